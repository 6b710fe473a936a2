/* report --json: the same content as the text, nothing left out. */
#include <errno.h>

#include <jansson.h>

#include "analyzer/json_text.h"
#include "analyzer/report.h"

static json_t *summary_json(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	json_t *json = json_pack("{s:o, s:o, s:i, s:b, s:f, s:f, s:f, s:f, s:f, s:b, s:o}",
				 "command", npg_json_text(p->command), "program",
				 npg_json_text(p->program), "pid", p->program_pid, "is_complete",
				 p->is_complete, "nr_address_samples", r->nr_seen, "matched_share",
				 r->matched_share, "nr_samples", p->nr_samples, "nr_start_samples",
				 p->nr_start_samples, "first_toucher_share", r->first_toucher_share,
				 "was_analyzed", r->was_analyzed, "agent", npg_json_text(p->agent));

	if (r->overhead >= 0.0)
		json_object_set_new(json, "overhead", json_real(r->overhead));
	if (r->session.topology != NULL)
		json_object_set_new(json, "machine", npg_json_text(r->session.topology->name));
	return json;
}

static json_t *predictions_json(const struct npg_analysis *a)
{
	json_t *list = json_array();

	for (int i = 0; i < NPG_NR_ALTERNATIVES; i++) {
		const struct npg_prediction *p = &a->predictions[i];

		json_array_append_new(
		    list,
		    p->is_possible
			? json_pack("{s:s, s:f, s:f, s:f, s:f}", "placement", p->name, "lar",
				    p->score.lar, "memory_ns", p->score.memory_ns, "walk_ns",
				    p->score.walk_ns, "remote_walks", p->score.remote_walks)
			: json_pack("{s:s, s:s}", "placement", p->name, "why_not", p->why_not));
	}
	return list;
}

static json_t *matrix_json(const struct npg_analysis *a, enum npg_alternative alternative)
{
	json_t *rows = json_array();
	double *matrix = NULL;
	int n = a->cost->nr_nodes;

	if (npg_analysis_matrix(a, alternative, &matrix) < 0)
		return rows;
	for (int i = 0; i < n; i++) {
		json_t *row = json_array();

		for (int j = 0; j < n; j++)
			json_array_append_new(row, json_real(matrix[i * n + j]));
		json_array_append_new(rows, row);
	}
	free(matrix);
	return rows;
}

static json_t *observed_json(const struct npg_observed *o)
{
	json_t *list = json_array();

	for (int i = 0; i < o->nr_nodes; i++)
		for (int j = 0; j < o->nr_nodes; j++)
			json_array_append_new(list,
					      json_pack("{s:i, s:i, s:f}", "cpu_node", o->nodes[i],
							"memory_node", o->nodes[j], "share",
							o->counts[i * 64 + j] / o->total));
	return list;
}

static json_t *planned_json(const struct npg_report *r, const struct npg_report_row *row)
{
	if (r->analysis->leave || !row->is_placed)
		return json_null();
	if (row->node >= 0)
		return json_integer(row->node);
	return json_string(row->node == NPG_SOLVER_INTERLEAVE ? "interleaved" : "ranges");
}

static json_t *object_json(const struct npg_report *r, const struct npg_report_row *row)
{
	const struct npg_profile *p = r->session.profile;
	json_t *json = json_pack(
	    "{s:o, s:s, s:I, s:I, s:f, s:f, s:s, s:I, s:o, s:f, s:o, s:f, s:f}", "name",
	    npg_json_text(row->name), "kind", npg_object_kind_name(row->kind), "nr_allocations",
	    (json_int_t)row->nr_allocations, "size_bytes", (json_int_t)row->size_bytes,
	    "nr_samples", row->nr_samples, "share", row->share, "pattern",
	    npg_pattern_name(row->pattern), "nr_users", (json_int_t)row->nr_users, "main_thread",
	    npg_json_text(p->threads[row->main_thread].path), "main_share", row->main_share,
	    "first_touch_thread", npg_json_text(p->threads[row->first_toucher].path),
	    "first_touch_local_share", row->first_touch_local_share, "local_share",
	    row->local_share);

	json_object_set_new(json, "planned", planned_json(r, row));
	return json;
}

static json_t *threads_json(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	json_t *list = json_array();

	for (size_t t = 0; t < p->nr_threads; t++) {
		json_t *json =
		    json_pack("{s:o, s:f, s:f}", "path", npg_json_text(p->threads[t].path),
			      "nr_samples", p->threads[t].samples, "busy", p->threads[t].busy);

		if (p->threads[t].name != NULL)
			json_object_set_new(json, "name", npg_json_text(p->threads[t].name));
		if (p->threads[t].cpu_ns > 0.0)
			json_object_set_new(json, "cpu_ns", json_real(p->threads[t].cpu_ns));
		if (r->analysis != NULL && !r->analysis->leave)
			json_object_set_new(json, "node",
					    json_integer(r->analysis->solution.thread_node[t]));
		json_array_append_new(list, json);
	}
	return list;
}

static json_t *sources_json(const struct npg_profile *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->nr_sources; i++) {
		const struct npg_profile_source *s = &p->sources[i];

		json_array_append_new(
		    list,
		    json_pack("{s:o, s:o, s:o, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:I, "
			      "s:I}",
			      "name", npg_json_text(s->name), "state", npg_json_text(s->state),
			      "reason", npg_json_text(s->reason), "period", s->period,
			      "period_unit", npg_json_text(s->period_unit), "nr_records",
			      (json_int_t)s->nr_records, "nr_samples", (json_int_t)s->nr_samples,
			      "nr_no_operand", (json_int_t)s->nr_no_operand, "nr_undecoded",
			      (json_int_t)s->nr_undecoded, "nr_unmatched",
			      (json_int_t)s->nr_unmatched, "nr_lost", (json_int_t)s->nr_lost,
			      "nr_throttled", (json_int_t)s->nr_throttled));
	}
	return list;
}

int npg_report_print_json(const struct npg_report *report)
{
	const struct npg_profile *p = report->session.profile;
	json_t *objects = json_array(), *notes = json_array();
	json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "schema", "numapgo.report/1",
				 "summary", summary_json(report), "objects", objects, "threads",
				 threads_json(report), "sources", sources_json(p), "notes", notes);

	if (root == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < report->nr_rows; i++)
		json_array_append_new(objects, object_json(report, &report->rows[i]));
	for (size_t i = 0; i < p->nr_notes; i++)
		json_array_append_new(notes, npg_json_text(p->notes[i]));
	if (report->analysis != NULL) {
		json_object_set_new(root, "leave", json_boolean(report->analysis->leave));
		json_object_set_new(root, "predictions", predictions_json(report->analysis));
		json_object_set_new(root, "first_touch_matrix",
				    matrix_json(report->analysis, NPG_ALTERNATIVE_FIRST_TOUCH));
		json_object_set_new(root, "planned_matrix",
				    matrix_json(report->analysis, NPG_ALTERNATIVE_PLAN));
	}
	if (p->observed.nr_nodes > 1)
		json_object_set_new(root, "observed", observed_json(&p->observed));
	json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
	putchar('\n');
	json_decref(root);
	return 0;
}
