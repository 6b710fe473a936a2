/*
 * plan explain: why objects are where they are. The plan itself has the reasons; if the recording
 * is at hand and its analysis tables are of this plan, they have the counts and the costs.
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include <jansson.h>

#include "analyzer/cmd_plan.h"
#include "analyzer/cmd_text.h"
#include "analyzer/json_text.h"
#include "analyzer/text.h"
#include "lib/log.h"
#include "lib/recording.h"

#define MAX_RANGES 16 /* shown */

struct explain {
	const struct npg_plan *plan;
	struct npg_recording recording;
	bool has_tables;
};

/* What the analysis tables say about one object. */
struct evidence {
	double by_node[NPG_PLAN_MAX_NODES];      /* accesses by threads on the node */
	double node_cost_ns[NPG_PLAN_MAX_NODES]; /* if all were there */
	double interleaved_ns;
	double decision_ns;
	bool is_found;
	int64_t group; /* one of its groups; with several ranges it is the only one */
};

static int open_tables(struct explain *e, const char *path, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int64_t version = 0;
	int ret = npg_recording_open(path, false, &e->recording, err);

	if (ret < 0)
		return ret;
	ret = npg_db_query_i64(e->recording.db,
			       "SELECT value FROM meta WHERE key = 'analysis_version'", 0, &version,
			       err);
	if (ret == 0 && version != 1)
		ret =
		    npg_error_set(err, -ENODATA,
				  "%s: has no analysis tables; 'numapgo analyze' makes them", path);
	if (ret == 0)
		ret = npg_db_prepare(e->recording.db, "SELECT fingerprint, program FROM analysis",
				     &stmt, err);
	if (ret < 0)
		return ret;
	ret = npg_stmt_step(stmt, err);
	if (ret == 1) {
		const char *fingerprint = npg_stmt_column_text(stmt, 0);
		const char *program = npg_stmt_column_text(stmt, 1);

		e->has_tables = fingerprint != NULL &&
				strcmp(fingerprint, e->plan->fingerprint) == 0 && program != NULL &&
				strcmp(program, e->plan->program) == 0;
		ret = 0;
	}
	npg_stmt_finalize(stmt);
	if (ret == 0 && !e->has_tables)
		ret = npg_error_set(err, -ENODATA,
				    "%s: its analysis is of another program or machine than the "
				    "plan's",
				    path);
	return ret;
}

/* Groups of an object: by call site's hash or symbol, and which of the site's allocations. */
static int prepare_groups(const struct explain *e, const struct npg_plan_object *o,
			  struct npg_stmt **stmt, struct npg_error *err)
{
	static const char *const which[] = { "all", "site_ordinal", "thread_ordinal" };
	bool is_static = strcmp(o->kind, "static") == 0;
	int ret = npg_db_prepare(
	    e->recording.db,
	    is_static ? "SELECT id FROM affinity_group WHERE kind = 'static' AND "
			"offset_bytes = ?1 AND name IS ?2"
		      : "SELECT g.id FROM affinity_group g JOIN callsite c ON c.id = "
			"g.callsite_id WHERE c.hash = ?1 AND g.is_placed AND (?2 = 'all' OR "
			"(g.which = ?2 AND g.ordinal = ?3 AND (?4 IS NULL OR g.creator = ?4)))",
	    stmt, err);

	if (ret < 0)
		return ret;
	if (is_static) {
		npg_stmt_bind_i64(*stmt, 1, (int64_t)o->offset_bytes);
		npg_stmt_bind_text(*stmt, 2, o->name);
		return 0;
	}
	npg_stmt_bind_i64(*stmt, 1, (int64_t)npg_plan_site_hash(e->plan, o));
	npg_stmt_bind_text(*stmt, 2, which[o->which]);
	npg_stmt_bind_i64(*stmt, 3, (int64_t)o->ordinal);
	npg_stmt_bind_text(*stmt, 4, o->creator);
	return 0;
}

static int add_counts(const struct explain *e, int64_t group, struct evidence *v,
		      struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret = npg_db_prepare(e->recording.db,
				 "SELECT t.node, sum(a.weight) FROM affinity a JOIN "
				 "thread_decision t ON t.path = a.thread WHERE a.group_id = ? "
				 "GROUP BY t.node",
				 &stmt, err);

	if (ret < 0)
		return ret;
	npg_stmt_bind_i64(stmt, 1, group);
	while ((ret = npg_stmt_step(stmt, err)) == 1) {
		int64_t node = npg_stmt_column_i64(stmt, 0);

		if (node >= 0 && node < e->plan->nr_nodes)
			v->by_node[node] += npg_stmt_column_real(stmt, 1);
	}
	npg_stmt_finalize(stmt);
	return ret;
}

static int add_costs(const struct explain *e, int64_t group, struct evidence *v,
		     struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret = npg_db_prepare(e->recording.db,
				 "SELECT placement, cost_ns FROM alternative WHERE group_id = ?",
				 &stmt, err);

	if (ret < 0)
		return ret;
	npg_stmt_bind_i64(stmt, 1, group);
	while ((ret = npg_stmt_step(stmt, err)) == 1) {
		const char *placement = npg_stmt_column_text(stmt, 0);
		double cost = npg_stmt_column_real(stmt, 1);
		unsigned long node;

		if (placement == NULL)
			continue;
		node = strncmp(placement, "node ", 5) == 0 ? strtoul(placement + 5, NULL, 10)
							   : NPG_PLAN_MAX_NODES;
		if (node < NPG_PLAN_MAX_NODES)
			v->node_cost_ns[node] += cost;
		else if (strcmp(placement, "interleave") == 0)
			v->interleaved_ns += cost;
		else
			v->decision_ns += cost;
	}
	npg_stmt_finalize(stmt);
	return ret;
}

static int find_evidence(const struct explain *e, const struct npg_plan_object *o,
			 struct evidence *v, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret;

	*v = (struct evidence){ .is_found = false };
	if (!e->has_tables)
		return 0;
	ret = prepare_groups(e, o, &stmt, err);
	while (ret >= 0 && (ret = npg_stmt_step(stmt, err)) == 1) {
		int64_t group = npg_stmt_column_i64(stmt, 0);

		v->is_found = true;
		v->group = group;
		ret = add_counts(e, group, v, err);
		if (ret == 0)
			ret = add_costs(e, group, v, err);
	}
	npg_stmt_finalize(stmt);
	return ret;
}

static void print_stack(const struct npg_plan *plan, const struct npg_plan_object *o)
{
	for (size_t i = 0; i < o->nr_frames; i++) {
		const struct npg_plan_frame *f = &o->frames[i];
		const char *path = f->module >= 0 ? plan->modules[f->module].path : "?";
		const char *name = strrchr(path, '/');

		printf("  %s %s+0x%" PRIx64 "%s%s\n", i == 0 ? "allocated at" : "        from",
		       name != NULL ? name + 1 : path, f->offset_bytes,
		       f->function != NULL ? " in " : "", f->function != NULL ? f->function : "");
	}
}

static void print_evidence(const struct npg_plan *plan, const struct evidence *v)
{
	char time[NPG_TEXT_SIZE], share[NPG_TEXT_SIZE];
	double all = 0.0;

	for (int n = 0; n < plan->nr_nodes; n++)
		all += v->by_node[n];
	printf("  %-22s %12s %12s\n", "", "accesses by", "time if all");
	printf("  %-22s %12s %12s\n", "", "its threads", "pages there");
	for (int n = 0; n < plan->nr_nodes; n++)
		printf("  node %-17d %12s %12s\n", n,
		       npg_text_percent(all > 0.0 ? v->by_node[n] / all : 0.0, share),
		       npg_text_ns(v->node_cost_ns[n], time));
	printf("  %-22s %12s %12s\n", "interleaved", "", npg_text_ns(v->interleaved_ns, time));
	printf("  %-22s %12s %12s\n", "as planned", "", npg_text_ns(v->decision_ns, time));
}

/* The thread that uses pages of a group most, and its part, from the analysis tables. */
static int find_user(const struct explain *e, int64_t group, const struct npg_plan_range *range,
		     char *user, size_t size, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	double most = 0.0, all = 0.0;
	int ret = npg_db_prepare(e->recording.db,
				 "SELECT thread, sum(weight) FROM affinity WHERE group_id = ?1 AND "
				 "first_page BETWEEN ?2 AND ?3 GROUP BY thread",
				 &stmt, err);

	if (ret < 0)
		return ret;
	npg_stmt_bind_i64(stmt, 1, group);
	npg_stmt_bind_i64(stmt, 2, (int64_t)range->first_page);
	npg_stmt_bind_i64(stmt, 3, (int64_t)(range->first_page + range->nr_pages - 1));
	while ((ret = npg_stmt_step(stmt, err)) == 1) {
		const char *thread = npg_stmt_column_text(stmt, 0);
		double weight = npg_stmt_column_real(stmt, 1);

		all += weight;
		if (weight > most && thread != NULL) {
			most = weight;
			snprintf(user, size, "%s", thread);
		}
	}
	npg_stmt_finalize(stmt);
	if (ret == 0 && all > 0.0) {
		size_t used = strlen(user);

		snprintf(user + used, size - used, " makes %.0f %% of the accesses",
			 100.0 * most / all);
	}
	return ret;
}

/* Each range with its main user: why it went where it went. */
static void print_ranges(const struct explain *e, const struct npg_plan_object *o,
			 const struct evidence *v)
{
	struct npg_error ignored;
	char where[256], user[128];

	for (size_t i = 0; i < o->nr_ranges && i < MAX_RANGES; i++) {
		const struct npg_plan_range *r = &o->ranges[i];

		user[0] = '\0';
		printf("  pages %" PRIu64 "-%" PRIu64 ": %s", r->first_page,
		       r->first_page + r->nr_pages - 1,
		       npg_plan_describe_range(r, where, sizeof(where)));
		if (v->is_found && find_user(e, v->group, r, user, sizeof(user), &ignored) == 0 &&
		    user[0] != '\0')
			printf(", thread %s", user);
		putchar('\n');
	}
	if (o->nr_ranges > MAX_RANGES)
		printf("  and %zu more ranges\n", o->nr_ranges - MAX_RANGES);
}

static void print_object(const struct explain *e, const struct npg_plan_object *o,
			 const struct evidence *v)
{
	char what[512], size[NPG_TEXT_SIZE], share[NPG_TEXT_SIZE], where[256];

	npg_text_wrap(stdout, 0, 2, "%s: %s, %s of the samples, confidence %.2f",
		      npg_plan_describe_object(o, what, sizeof(what)),
		      npg_text_bytes(o->size_bytes, size), npg_text_percent(o->share, share),
		      o->confidence);
	print_stack(e->plan, o);
	if (o->nr_ranges == 1)
		printf("  placed: %s\n",
		       npg_plan_describe_range(&o->ranges[0], where, sizeof(where)));
	else
		printf("  placed: %zu ranges\n", o->nr_ranges);
	fputs("  why: ", stdout);
	npg_text_wrap(stdout, 7, 7, "%s", o->reason != NULL ? o->reason : "the plan does not say");
	if (o->nr_ranges > 1)
		print_ranges(e, o, v);
	if (v->is_found)
		print_evidence(e->plan, v);
	putchar('\n');
}

static json_t *object_json(const struct explain *e, const struct npg_plan_object *o,
			   const struct evidence *v)
{
	char what[512];
	json_t *nodes = json_array();
	json_t *entry =
	    json_pack("{s:s, s:s, s:I, s:f, s:f, s:s}", "object",
		      npg_plan_describe_object(o, what, sizeof(what)), "kind", o->kind,
		      "size_bytes", (json_int_t)o->size_bytes, "share", o->share, "confidence",
		      o->confidence, "reason", o->reason != NULL ? o->reason : "");

	for (int n = 0; v->is_found && n < e->plan->nr_nodes; n++)
		json_array_append_new(nodes,
				      json_pack("{s:i, s:f, s:f}", "node", n, "accesses",
						v->by_node[n], "cost_ns", v->node_cost_ns[n]));
	if (v->is_found) {
		json_object_set(entry, "nodes", nodes);
		json_object_set_new(entry, "interleaved_ns", json_real(v->interleaved_ns));
		json_object_set_new(entry, "planned_ns", json_real(v->decision_ns));
	}
	json_decref(nodes);
	return entry;
}

/* Prints the wanted objects; the number of them, or negative. */
static int explain_objects(const struct explain *e, const char *wanted, json_t *list,
			   struct npg_error *err)
{
	struct evidence v;
	int nr = 0;

	for (size_t i = 0; i < e->plan->nr_objects; i++) {
		const struct npg_plan_object *o = &e->plan->objects[i];
		int ret;

		if (wanted != NULL && (o->name == NULL || strstr(o->name, wanted) == NULL))
			continue;
		ret = find_evidence(e, o, &v, err);
		if (ret < 0)
			return ret;
		if (list != NULL)
			json_array_append_new(list, object_json(e, o, &v));
		else
			print_object(e, o, &v);
		nr++;
	}
	return nr;
}

/* The recording asked for must be right; one that the plan names is used if it is. */
static int find_tables(struct explain *e, const char *database, struct npg_error *err)
{
	struct npg_error why = { "" };

	if (database != NULL)
		return open_tables(e, database, err);
	database = e->plan->recording != NULL ? e->plan->recording : NPG_RECORDING_DEFAULT;
	if (access(database, R_OK) < 0)
		npg_info("%s is not here: counts and costs are left out, see --db", database);
	else if (open_tables(e, database, &why) < 0)
		npg_info("counts and costs are left out: %s", why.text);
	return 0;
}

static int finish(const struct plan_options *options, const struct npg_plan *plan, int nr,
		  const char *wanted, json_t *list)
{
	if (nr == 0 && wanted != NULL) {
		npg_error_print("plan: no object whose name contains '%s'; 'numapgo plan show' "
				"lists them",
				wanted);
		return NPG_EXIT_FAILED;
	}
	if (options->common.json) {
		json_t *root = json_pack("{s:s, s:b, s:O}", "schema", "numapgo.plan-explain/1",
					 "leave", plan->leave, "objects", list);

		if (plan->leave_reason != NULL)
			json_object_set_new(root, "leave_reason", json_string(plan->leave_reason));
		json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
		putchar('\n');
		json_decref(root);
	}
	return NPG_EXIT_OK;
}

int npg_plan_print_explanation(const struct plan_options *options, const struct npg_plan *plan,
			       const char *path, const char *wanted)
{
	struct explain e = { .plan = plan };
	struct npg_error err = { "" };
	json_t *list = options->common.json ? json_array() : NULL;
	int status = NPG_EXIT_FAILED, ret = find_tables(&e, options->database, &err);

	if (ret == 0 && list == NULL && plan->leave)
		npg_text_wrap(stdout, 0, 2, "%s: leave everything as it is: %s", path,
			      plan->leave_reason != NULL ? plan->leave_reason : "no reason given");
	if (ret == 0)
		ret = explain_objects(&e, plan->leave ? NULL : wanted, list, &err);
	if (ret < 0)
		npg_error_print("plan: %s", err.text);
	else
		status = finish(options, plan, ret, plan->leave ? NULL : wanted, list);
	json_decref(list);
	npg_recording_close(&e.recording);
	return status;
}
