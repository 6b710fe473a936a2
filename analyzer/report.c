/* Gathering a report; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/report.h"
#include "analyzer/store.h"

/* What the last analyze was told, so that the report repeats it. */
struct last_analysis {
	char machine[512];
	char fingerprint[40];
	struct npg_analysis_options options;
};

static void copy_column(struct npg_stmt *stmt, int column, char *text, size_t size)
{
	const char *value = npg_stmt_column_text(stmt, column);

	snprintf(text, size, "%s", value != NULL ? value : "");
}

/* Return: 1 found, 0 not analysed, negative. */
static int read_last(struct npg_db *db, struct last_analysis *last, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	char objective[16];
	int64_t version;
	int ret = npg_db_query_i64(db, "SELECT value FROM meta WHERE key = 'analysis_version'", 0,
				   &version, err);

	if (ret < 0 || version != NPG_ANALYSIS_VERSION)
		return ret;
	ret = npg_db_prepare(db,
			     "SELECT machine, fingerprint, objective, plan_tables, max_nodes "
			     "FROM analysis",
			     &stmt, err);
	if (ret < 0)
		return ret;
	ret = npg_stmt_step(stmt, err);
	if (ret == 1) {
		copy_column(stmt, 0, last->machine, sizeof(last->machine));
		copy_column(stmt, 1, last->fingerprint, sizeof(last->fingerprint));
		copy_column(stmt, 2, objective, sizeof(objective));
		last->options.objective = strcmp(objective, "makespan") == 0
					      ? NPG_OBJECTIVE_MAKESPAN
					      : NPG_OBJECTIVE_THROUGHPUT;
		last->options.plan_tables = npg_stmt_column_i64(stmt, 3) != 0;
		last->options.max_nodes = (int)npg_stmt_column_i64(stmt, 4);
	}
	npg_stmt_finalize(stmt);
	return ret;
}

/* The machine that was analysed, instead of the recorded one, if it can still be found. */
static void take_analyzed_machine(struct npg_report *r, const struct last_analysis *last)
{
	struct npg_topology *found = NULL;
	struct npg_error ignored;

	if (r->session.topology != NULL &&
	    strcmp(r->session.topology->fingerprint, last->fingerprint) == 0) {
		r->is_analyzed_machine = true;
		return;
	}
	if (npg_topology_load(last->machine, &found, &ignored) < 0)
		return;
	if (strcmp(found->fingerprint, last->fingerprint) != 0) {
		npg_topology_free(found);
		return;
	}
	npg_topology_free(r->session.topology);
	r->session.topology = found;
	r->session.is_recorded_machine = false;
	r->is_analyzed_machine = true;
}

static int node_of(const struct npg_decision *d)
{
	if (d->nr_ranges != 1)
		return -2;
	return d->ranges[0].policy == NPG_POLICY_BIND ? d->ranges[0].nodes[0]
						      : NPG_SOLVER_INTERLEAVE;
}

/* Adds a group to a row; the first group sets what all have in common. */
static void add_to_row(const struct npg_report *r, const struct npg_decision *d,
		       struct npg_report_row *row, double *most)
{
	const struct npg_group *g = &r->analysis->grouping.groups[d->group];

	if (row->nr_allocations == 0) {
		row->name = g->name;
		row->kind = g->kind;
		row->site = g->site;
		row->node = node_of(d);
	}
	row->has_many_users |=
	    row->share > 0.0 && d->share > 0.0 && row->main_thread != d->main_thread;
	if (row->nr_allocations == 0 || d->weight > *most) {
		*most = d->weight;
		row->pattern = d->pattern;
		row->main_thread = d->main_thread;
		row->main_share = d->main_share;
		row->first_toucher = d->first_toucher;
	}
	row->nr_allocations += g->nr_objects;
	row->size_bytes += g->alive_bytes;
	row->nr_samples += d->nr_samples;
	row->share += d->share;
	row->nr_users = d->nr_users > row->nr_users ? d->nr_users : row->nr_users;
	row->is_placed |= d->is_placed;
	row->node = row->node == node_of(d) ? row->node : -2;
	row->first_touch_local_share += d->share * d->first_touch_local_share;
	row->local_share += d->share * d->local_share;
}

static int by_share(const void *a, const void *b)
{
	const struct npg_report_row *x = a, *y = b;

	if (x->share < y->share || x->share > y->share)
		return x->share < y->share ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int make_rows(struct npg_report *r)
{
	const struct npg_grouping *g = &r->analysis->grouping;

	r->rows = calloc(g->nr_groups + 1, sizeof(*r->rows));
	if (r->rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < g->nr_groups;) {
		struct npg_report_row *row = &r->rows[r->nr_rows];
		size_t nr = g->groups[i].nr_of_site;
		double most = 0.0;

		for (size_t j = i; j < i + nr; j++)
			add_to_row(r, &r->decisions.decisions[j], row, &most);
		i += nr;
		if (row->share <= 0.0) {
			memset(row, 0, sizeof(*row));
			continue;
		}
		row->first_touch_local_share /= row->share;
		row->local_share /= row->share;
		r->nr_rows++;
	}
	qsort(r->rows, r->nr_rows, sizeof(*r->rows), by_share);
	return 0;
}

static void count_quality(struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	double matched = 0.0;

	for (size_t i = 0; i < p->nr_sources; i++) {
		if (p->sources[i].role == NPG_ROLE_TOUCH)
			continue;
		r->nr_seen += p->sources[i].seen;
		matched += p->sources[i].matched;
	}
	r->matched_share = r->nr_seen > 0.0 ? matched / r->nr_seen : 0.0;
	r->overhead = -1.0;
	if (p->program_cpu_ns > 0.0 && p->recorder_cpu_ns >= 0.0)
		r->overhead = (p->recorder_cpu_ns + fmax(p->interrupt_ns, 0.0)) / p->program_cpu_ns;
}

static void count_first_touchers(struct npg_report *r)
{
	const struct npg_cells *c = &r->analysis->cells;
	double own = 0.0, all = 0.0;

	for (size_t i = 0; i < c->nr_cells; i++) {
		const struct npg_cell *cell = &c->cells[i];

		all += (double)cell->weight;
		if (npg_first_touch_of(&r->analysis->first_touch, cell->group, cell->page,
				       cell->thread) == cell->thread)
			own += (double)cell->weight;
	}
	r->first_toucher_share = all > 0.0 ? own / all : 0.0;
}

int npg_report_make(struct npg_report *report, const char *path, const char *machine,
		    const char *process, struct npg_error *err)
{
	struct last_analysis last = { .options = { .plan_tables = true } };
	int ret;

	*report = (struct npg_report){ 0 };
	ret = npg_session_open(&report->session, path, false, machine, process, err);
	if (ret == 0)
		ret = read_last(report->session.recording.db, &last, err);
	if (ret < 0)
		return ret;
	report->was_analyzed = ret == 1;
	if (report->was_analyzed && machine == NULL)
		take_analyzed_machine(report, &last);
	count_quality(report);
	if (report->session.topology == NULL || report->session.profile->nr_samples <= 0.0)
		return 0;
	ret = npg_analysis_run(report->session.profile, report->session.topology, &last.options,
			       &report->analysis, err);
	if (ret == 0 &&
	    (npg_decisions_make(report->analysis, &report->decisions) < 0 || make_rows(report) < 0))
		ret = npg_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0)
		count_first_touchers(report);
	return ret;
}

void npg_report_release(struct npg_report *report)
{
	free(report->rows);
	npg_decisions_release(&report->decisions);
	npg_analysis_free(report->analysis);
	npg_session_close(&report->session);
	*report = (struct npg_report){ 0 };
}
