/* One transaction: drop, create, fill; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/store.h"
#include "lib/schemas.h"

#define MAX_VALUES 24

struct writer {
	struct npg_db *db;
	struct npg_error *err;
	const struct npg_analysis *a;
	const struct npg_decisions *d;
	struct npg_stmt *stmt;
	int i_value;
	int status; /* first failure; later writes do nothing */
};

/* Begins an insert into a table with @nr columns, all of them given in order. */
static void begin_table(struct writer *w, const char *table, int nr)
{
	char sql[64 + 3 * MAX_VALUES];
	int used;

	if (w->status < 0)
		return;
	used = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (?", table);
	for (int i = 1; i < nr; i++)
		used += snprintf(sql + used, sizeof(sql) - (size_t)used, ",?");
	snprintf(sql + used, sizeof(sql) - (size_t)used, ")");
	w->status = npg_db_prepare(w->db, sql, &w->stmt, w->err);
	w->i_value = 0;
}

static void end_table(struct writer *w)
{
	npg_stmt_finalize(w->stmt);
	w->stmt = NULL;
}

static void put_i64(struct writer *w, int64_t value)
{
	if (w->status == 0)
		npg_stmt_bind_i64(w->stmt, ++w->i_value, value);
}

static void put_real(struct writer *w, double value)
{
	if (w->status == 0 && isfinite(value))
		npg_stmt_bind_real(w->stmt, ++w->i_value, value);
	else if (w->status == 0)
		npg_stmt_bind_null(w->stmt, ++w->i_value);
}

static void put_text(struct writer *w, const char *text)
{
	if (w->status == 0)
		npg_stmt_bind_text(w->stmt, ++w->i_value, text);
}

static void put_null(struct writer *w)
{
	if (w->status == 0)
		npg_stmt_bind_null(w->stmt, ++w->i_value);
}

static void end_row(struct writer *w)
{
	if (w->status == 0)
		w->status = npg_stmt_run(w->stmt, w->err);
	w->i_value = 0;
}

static void put_analysis(struct writer *w)
{
	const struct npg_analysis *a = w->a;
	const struct npg_profile *p = a->profile;

	begin_table(w, "analysis", 17);
	put_i64(w, p->run_id);
	put_text(w, p->program);
	put_i64(w, p->program_pid);
	put_text(w, a->topology->name);
	put_text(w, a->topology->fingerprint);
	put_i64(w, a->cost->nr_nodes);
	put_text(w, a->options.objective == NPG_OBJECTIVE_MAKESPAN ? "makespan" : "throughput");
	put_i64(w, a->options.plan_tables);
	put_i64(w, a->options.max_nodes);
	put_i64(w, (int64_t)p->nr_samples);
	put_i64(w, (int64_t)p->nr_start_samples);
	put_real(w, npg_start_weight(p));
	put_i64(w, a->solution.nr_nodes_used);
	put_real(w, a->gain);
	put_real(w, a->gain_error);
	put_i64(w, a->leave);
	put_text(w, a->leave ? a->leave_reason : NULL);
	end_row(w);
	end_table(w);
}

static void put_group(struct writer *w, const struct npg_decision *d)
{
	static const char *const which[] = { "all", "site_ordinal", "thread_ordinal" };
	const struct npg_profile *p = w->a->profile;
	const struct npg_group *g = &w->a->grouping.groups[d->group];

	put_i64(w, d->group);
	put_text(w, npg_object_kind_name(g->kind));
	put_text(w, g->name);
	if (g->module >= 0)
		put_i64(w, p->modules[g->module].id);
	else
		put_null(w);
	put_i64(w, (int64_t)g->offset_bytes);
	if (g->site >= 0)
		put_i64(w, p->sites[g->site].id);
	else
		put_null(w);
	put_text(w, which[g->which]);
	put_i64(w, (int64_t)g->ordinal);
	put_text(w, g->creator >= 0 ? p->threads[g->creator].path : NULL);
	put_i64(w, (int64_t)g->nr_objects);
	put_i64(w, (int64_t)g->size_bytes);
	put_i64(w, (int64_t)d->nr_samples);
	put_real(w, d->share);
	put_text(w, npg_pattern_name(d->pattern));
	put_text(w, d->weight > 0.0 ? p->threads[d->main_thread].path : NULL);
	put_real(w, d->main_share);
	put_i64(w, (int64_t)d->nr_users);
	put_text(w, p->threads[d->first_toucher].path);
	put_real(w, d->first_touch_local_share);
	put_real(w, d->local_share);
	put_i64(w, d->is_placed);
	put_real(w, d->confidence);
	put_text(w, d->is_placed ? d->reason : NULL);
	end_row(w);
}

static void put_groups(struct writer *w)
{
	begin_table(w, "affinity_group", 23);
	for (size_t i = 0; i < w->d->nr_decisions; i++)
		put_group(w, &w->d->decisions[i]);
	end_table(w);
	begin_table(w, "group_object", 2);
	for (size_t i = 0; i < w->a->profile->nr_objects; i++) {
		put_i64(w, w->a->grouping.group_of[i]);
		put_i64(w, w->a->profile->objects[i].id);
		end_row(w);
	}
	end_table(w);
}

static void put_affinities(struct writer *w)
{
	const struct npg_affinity *af = &w->a->affinity;

	begin_table(w, "affinity", 5);
	for (size_t u = 0; u < af->nr_units; u++) {
		for (uint32_t i = 0; i < af->units[u].nr_uses; i++) {
			const struct npg_use *use = &af->units[u].uses[i];

			put_i64(w, af->unit_info[u].group);
			put_i64(w, (int64_t)af->unit_info[u].first_page);
			put_i64(w, (int64_t)af->unit_info[u].nr_pages);
			put_text(w, w->a->profile->threads[use->thread].path);
			put_real(w, (double)use->weight);
			end_row(w);
		}
	}
	end_table(w);
}

static void put_ranges(struct writer *w)
{
	begin_table(w, "decision", 5);
	for (size_t i = 0; i < w->d->nr_decisions; i++) {
		for (size_t r = 0; r < w->d->decisions[i].nr_ranges; r++) {
			const struct npg_plan_range *range = &w->d->decisions[i].ranges[r];
			bool is_bound = range->policy == NPG_POLICY_BIND;

			put_i64(w, (int64_t)i);
			put_i64(w, (int64_t)range->first_page);
			put_i64(w, (int64_t)range->nr_pages);
			put_text(w, is_bound ? "bind" : "interleave");
			if (is_bound)
				put_i64(w, range->nodes[0]);
			else
				put_null(w);
			end_row(w);
		}
	}
	end_table(w);
	begin_table(w, "table_decision", 4);
	for (size_t i = 0; i < w->d->nr_decisions; i++) {
		for (size_t r = 0; r < w->d->decisions[i].nr_table_ranges; r++) {
			const struct npg_plan_table_range *range =
			    &w->d->decisions[i].table_ranges[r];

			put_i64(w, (int64_t)i);
			put_i64(w, (int64_t)range->first_region);
			put_i64(w, (int64_t)range->nr_regions);
			put_i64(w, range->node);
			end_row(w);
		}
	}
	end_table(w);
}

static void put_threads(struct writer *w)
{
	begin_table(w, "thread_decision", 6);
	for (size_t t = 0; t < w->a->profile->nr_threads; t++) {
		const struct npg_profile_thread *thread = &w->a->profile->threads[t];

		put_text(w, thread->path);
		put_text(w, thread->name);
		put_i64(w, w->a->solution.thread_node[t]);
		put_i64(w, w->a->spread_node[t]);
		put_real(w, w->a->busy[t]);
		put_i64(w, (int64_t)thread->samples);
		end_row(w);
	}
	end_table(w);
}

static void put_alternative(struct writer *w, size_t group, const char *placement, double cost_ns)
{
	put_i64(w, (int64_t)group);
	put_text(w, placement);
	put_real(w, cost_ns);
	end_row(w);
}

static void put_alternatives(struct writer *w)
{
	char name[16];

	begin_table(w, "alternative", 3);
	for (size_t i = 0; i < w->d->nr_decisions; i++) {
		const struct npg_decision *d = &w->d->decisions[i];

		if (!d->is_placed)
			continue;
		for (int h = 0; h < w->a->cost->nr_nodes; h++) {
			snprintf(name, sizeof(name), "node %d", h);
			put_alternative(w, i, name, d->node_cost_ns[h]);
		}
		put_alternative(w, i, "interleave", d->interleaved_cost_ns);
		put_alternative(w, i, "decision", d->planned_cost_ns);
	}
	end_table(w);
}

static void put_predictions(struct writer *w)
{
	begin_table(w, "prediction", 8);
	for (int i = 0; i < NPG_NR_ALTERNATIVES; i++) {
		const struct npg_prediction *p = &w->a->predictions[i];
		const double values[] = { p->score.lar,        p->score.memory_ns,
					  p->score.walk_ns,    p->score.remote_walks,
					  p->score.slowest_ns, p->score.highest_load };

		put_text(w, p->name);
		put_text(w, p->is_possible ? NULL : p->why_not);
		for (size_t v = 0; v < NPG_ARRAY_SIZE(values); v++)
			put_real(w, p->is_possible ? values[v] : HUGE_VAL);
		end_row(w);
	}
	end_table(w);
}

static void put_traffic(struct writer *w, enum npg_alternative alternative, const char *name)
{
	double *matrix = NULL;
	int n = w->a->cost->nr_nodes;

	if (w->status == 0 && npg_analysis_matrix(w->a, alternative, &matrix) < 0)
		w->status = npg_error_set(w->err, -ENOMEM, "out of memory");
	for (int i = 0; w->status == 0 && i < n * n; i++) {
		put_text(w, name);
		put_i64(w, i / n);
		put_i64(w, i % n);
		put_real(w, matrix[i]);
		end_row(w);
	}
	free(matrix);
}

static void put_all(struct writer *w)
{
	put_analysis(w);
	put_groups(w);
	put_affinities(w);
	put_ranges(w);
	put_threads(w);
	put_alternatives(w);
	put_predictions(w);
	begin_table(w, "node_traffic", 4);
	put_traffic(w, NPG_ALTERNATIVE_FIRST_TOUCH, "first touch");
	put_traffic(w, NPG_ALTERNATIVE_PLAN, "plan");
	end_table(w);
	begin_table(w, "meta", 2);
	put_text(w, "analysis_version");
	put_i64(w, NPG_ANALYSIS_VERSION);
	end_row(w);
	end_table(w);
}

int npg_store_analysis(struct npg_db *db, const struct npg_analysis *analysis,
		       const struct npg_decisions *decisions, struct npg_error *err)
{
	struct writer w = { .db = db, .err = err, .a = analysis, .d = decisions };

	w.status = npg_db_exec(db, "BEGIN IMMEDIATE", err);
	if (w.status < 0)
		return w.status;
	w.status = npg_db_exec(db, npg_analysis_sql, err);
	if (w.status == 0)
		w.status = npg_db_exec(db, "DELETE FROM meta WHERE key = 'analysis_version'", err);
	put_all(&w);
	if (w.status == 0)
		w.status = npg_db_exec(db, "COMMIT", err);
	if (w.status < 0) {
		struct npg_error ignored;

		if (npg_db_exec(db, "ROLLBACK", &ignored) < 0)
			return w.status;
	}
	return w.status;
}
