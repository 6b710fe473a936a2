/* What would be done and what was done, in words and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include <jansson.h>

#include "replayer/replay.h"

#define MIB (1024.0 * 1024.0)

static const char *const refusal_names[NPG_WIRE_NR_REFUSALS] = {
	[NPG_WIRE_POLICY_FAILED] = "memory policies that the kernel refused",
	[NPG_WIRE_NO_ADDRESS_SPACE] = "allocations: no address space left for them",
	[NPG_WIRE_NO_MEMORY] = "allocations that the kernel did not map",
	[NPG_WIRE_MAPPING_BUDGET] = "ranges: too many mappings (vm.max_map_count)",
	[NPG_WIRE_OTHER_ALLOCATOR] = "allocations: malloc is not the C library's",
	[NPG_WIRE_ALIGNMENT] = "allocations aligned above 2 MiB",
	[NPG_WIRE_TABLE_SKIPPED] = "page-table pages that existed, or too many to touch",
	[NPG_WIRE_PIN_FAILED] = "threads that the kernel did not pin",
	[NPG_WIRE_PIN_RESPECTED] = "threads with a mask of their own",
};

struct totals {
	size_t nr_matched;
	uint64_t nr_placed;
	uint64_t placed_bytes;
	uint64_t nr_sampled;
	uint64_t nr_on_node;
};

static void add_up(const struct npg_replay *replay, struct totals *t)
{
	const struct npg_wire_outcome *outcomes;

	memset(t, 0, sizeof(*t));
	if (replay->status == NULL)
		return;
	outcomes = npg_placing_outcomes(replay->status);
	for (size_t i = 0; i < replay->plan->nr_objects; i++) {
		t->nr_matched += outcomes[i].nr_matched > 0;
		t->nr_placed += outcomes[i].nr_placed;
		t->placed_bytes += outcomes[i].placed_bytes;
	}
	t->nr_sampled = replay->verify.nr_sampled + replay->status->nr_sampled_pages;
	t->nr_on_node = replay->verify.nr_on_node + replay->status->nr_sampled_on_node;
}

static NPG_PRINTF(4, 5) void add_text(char *text, size_t size, size_t *used, const char *format,
				      ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text + *used, size - *used, format, args);
	va_end(args);
	if (n > 0)
		*used = (size_t)n < size - *used ? *used + (size_t)n : size - 1;
}

static void add_refusals(const struct npg_replay *replay, char *text, size_t size, size_t *used)
{
	const char *before = "; refused: ";

	for (int i = 0; i < NPG_WIRE_NR_REFUSALS; i++) {
		uint64_t nr = replay->status->refused[i];
		uint32_t error = replay->status->first_errno[i];

		if (nr == 0)
			continue;
		add_text(text, size, used, "%s%" PRIu64 " %s", before, nr, refusal_names[i]);
		if (error != 0 && error < 4096)
			add_text(text, size, used, " (%s)", strerror((int)error));
		before = ", ";
	}
}

static void add_verified(const struct totals *t, char *text, size_t size, size_t *used)
{
	if (t->nr_sampled > 0)
		add_text(text, size, used,
			 " (%.1f %% of %" PRIu64 " sampled pages on the planned node)",
			 100.0 * (double)t->nr_on_node / (double)t->nr_sampled, t->nr_sampled);
	else if (t->nr_placed > 0)
		add_text(text, size, used, " (no page was sampled)");
}

void npg_replay_summary(const struct npg_replay *replay, char *text, size_t size)
{
	struct totals t;
	size_t used = 0;
	char nodes[256];

	text[0] = '\0';
	if (replay->why_plain[0] != '\0') {
		add_text(text, size, &used, "replayed nothing: %s", replay->why_plain);
		return;
	}
	add_up(replay, &t);
	npg_resolution_describe(&replay->resolution, nodes, sizeof(nodes));
	if (replay->status->nr_processes == 0) {
		add_text(text, size, &used,
			 "replayed nothing: the placing object was not loaded by "
			 "the program");
		return;
	}
	add_text(text, size, &used,
		 "replayed (%s): %zu/%zu objects matched, %.1f MiB placed in %" PRIu64
		 " allocations",
		 nodes, t.nr_matched, replay->plan->nr_objects, (double)t.placed_bytes / MIB,
		 t.nr_placed);
	add_verified(&t, text, size, &used);
	if (replay->status->nr_table_regions > 0)
		add_text(text, size, &used, ", %" PRIu64 " page-table pages placed",
			 replay->status->nr_table_regions);
	add_text(text, size, &used, ", %" PRIu64 " threads pinned", replay->status->nr_pinned);
	add_refusals(replay, text, size, &used);
	if (replay->why_memory[0] != '\0')
		add_text(text, size, &used, "; %s", replay->why_memory);
	if (replay->why_threads[0] != '\0')
		add_text(text, size, &used, "; %s", replay->why_threads);
	if (replay->why_tables[0] != '\0')
		add_text(text, size, &used, "; %s", replay->why_tables);
}

static json_t *objects_json(const struct npg_replay *replay)
{
	json_t *list = json_array();

	for (size_t i = 0; i < replay->plan->nr_objects; i++) {
		const struct npg_plan_object *o = &replay->plan->objects[i];
		struct npg_wire_outcome none = { 0 };
		const struct npg_wire_outcome *outcome =
		    replay->status != NULL ? &npg_placing_outcomes(replay->status)[i] : &none;

		json_array_append_new(list,
				      json_pack("{s:s, s:s?, s:b, s:I, s:I, s:I}", "kind", o->kind,
						"name", o->name, "stale", replay->fit.is_stale[i],
						"matched", (json_int_t)outcome->nr_matched,
						"placed", (json_int_t)outcome->nr_placed,
						"placed_bytes", (json_int_t)outcome->placed_bytes));
	}
	return list;
}

static json_t *nodes_json(const struct npg_replay *replay)
{
	json_t *list = json_array();
	char cpus[512];

	for (int i = 0; i < replay->resolution.nr_planned; i++) {
		const struct npg_resolved_node *n = &replay->resolution.nodes[i];

		npg_cpulist_format(&n->cpus, cpus, sizeof(cpus));
		json_array_append_new(list, json_pack("{s:i, s:i, s:s, s:I, s:I, s:i}", "planned",
						      i, "node", n->node, "cpus", cpus,
						      "wanted_bytes", (json_int_t)n->wanted_bytes,
						      "free_bytes", (json_int_t)n->free_bytes,
						      "threads", n->nr_threads));
	}
	return list;
}

static json_t *refusals_json(const struct npg_replay *replay)
{
	json_t *list = json_array();

	for (int i = 0; replay->status != NULL && i < NPG_WIRE_NR_REFUSALS; i++)
		if (replay->status->refused[i] > 0)
			json_array_append_new(
			    list, json_pack("{s:s, s:I, s:I}", "what", refusal_names[i], "number",
					    (json_int_t)replay->status->refused[i], "errno",
					    (json_int_t)replay->status->first_errno[i]));
	return list;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, text[0] != '\0' ? json_string(text) : json_null());
}

int npg_replay_print_json(const struct npg_replay *replay, FILE *out)
{
	const struct npg_wire_status *s = replay->status;
	char stale[512];
	struct totals t;
	json_t *json;
	int ret;

	add_up(replay, &t);
	npg_fit_describe(replay->plan, &replay->fit, stale, sizeof(stale));
	json = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "placed",
			 replay->why_plain[0] == '\0', "objects",
			 (json_int_t)replay->plan->nr_objects, "matched", (json_int_t)t.nr_matched,
			 "stale", (json_int_t)replay->fit.nr_stale_objects, "placed_bytes",
			 (json_int_t)t.placed_bytes, "sampled_pages", (json_int_t)t.nr_sampled,
			 "sampled_pages_on_node", (json_int_t)t.nr_on_node, "table_pages",
			 (json_int_t)(s != NULL ? s->nr_table_regions : 0), "pinned_threads",
			 (json_int_t)(s != NULL ? s->nr_pinned : 0), "nodes", nodes_json(replay),
			 "refused", refusals_json(replay), "per_object", objects_json(replay));
	if (json == NULL)
		return -ENOMEM;
	set_text(json, "why_nothing_placed", replay->why_plain);
	set_text(json, "why_no_memory_placed", replay->why_memory);
	set_text(json, "why_no_thread_pinned", replay->why_threads);
	set_text(json, "why_no_page_table_placed", replay->why_tables);
	set_text(json, "why_stale", stale);
	ret = json_dumpf(json, out, JSON_COMPACT) < 0 || fputc('\n', out) == EOF ? -EIO : 0;
	json_decref(json);
	return ret;
}

static void print_policy(const struct npg_replay *replay, const struct npg_plan_range *range,
			 FILE *out)
{
	const char *verb = replay->options.is_strict ? "bind" : "prefer";

	if (range->policy == NPG_POLICY_BIND) {
		fprintf(out, "%s node %d", verb, replay->resolution.nodes[range->nodes[0]].node);
		return;
	}
	fprintf(out, "interleave nodes");
	for (int i = 0; i < range->nr_nodes; i++)
		fprintf(out, "%s%d", i > 0 ? "," : " ",
			replay->resolution.nodes[range->nodes[i]].node);
	for (int i = 0; range->weights[0] != 0 && i < range->nr_nodes; i++)
		fprintf(out, "%s%d", i > 0 ? ":" : ", weights ", range->weights[i]);
}

static void print_object(const struct npg_replay *replay, size_t i, FILE *out)
{
	const struct npg_plan_object *o = &replay->plan->objects[i];
	bool has_tables = !replay->options.leaves_page_tables && replay->resolution.nr_here > 1 &&
			  !replay->options.has_huge_pages;

	fprintf(out, "  %s %s, %.1f MiB", o->kind, o->name != NULL ? o->name : "(no name)",
		(double)o->size_bytes / MIB);
	if (o->which != NPG_PLAN_ALL)
		fprintf(out, ", number %" PRIu64 "%s%s", o->ordinal,
			o->which == NPG_PLAN_THREAD_ORDINAL ? " of thread " : " of its call site",
			o->which == NPG_PLAN_THREAD_ORDINAL ? o->creator : "");
	if (replay->fit.is_stale[i]) {
		fprintf(out, ": left, it is stale\n");
		return;
	}
	fprintf(out, "\n");
	for (size_t r = 0; r < o->nr_ranges; r++) {
		fprintf(out, "    pages %" PRIu64 "-%" PRIu64 ": ", o->ranges[r].first_page,
			o->ranges[r].first_page + o->ranges[r].nr_pages - 1);
		print_policy(replay, &o->ranges[r], out);
		fprintf(out, "\n");
	}
	for (size_t r = 0; has_tables && r < o->nr_table_ranges; r++)
		fprintf(out, "    page-table pages %" PRIu64 "-%" PRIu64 ": node %d\n",
			o->table_ranges[r].first_region,
			o->table_ranges[r].first_region + o->table_ranges[r].nr_regions - 1,
			replay->resolution.nodes[o->table_ranges[r].node].node);
}

static void print_nodes(const struct npg_replay *replay, FILE *out)
{
	char text[512];

	npg_resolution_describe(&replay->resolution, text, sizeof(text));
	fprintf(out, "nodes: %s\n", text);
	for (int i = 0; i < replay->resolution.nr_planned; i++) {
		const struct npg_resolved_node *n = &replay->resolution.nodes[i];

		npg_cpulist_format(&n->cpus, text, sizeof(text));
		fprintf(out,
			"  planned node %d is node %d: CPUs %s, %.1f MiB wanted, %.1f MiB free\n",
			i, n->node, text[0] != '\0' ? text : "none", (double)n->wanted_bytes / MIB,
			(double)n->free_bytes / MIB);
	}
}

void npg_replay_print_dry(const struct npg_replay *replay, FILE *out)
{
	char text[512];

	if (replay->why_plain[0] != '\0')
		fprintf(out, "nothing would be placed: %s\n", replay->why_plain);
	print_nodes(replay, out);
	npg_fit_describe(replay->plan, &replay->fit, text, sizeof(text));
	if (text[0] != '\0')
		fprintf(out, "stale: %s\n", text);
	if (replay->why_tables[0] != '\0')
		fprintf(out, "%s\n", replay->why_tables);
	fprintf(out, "objects:%s%s\n", replay->why_memory[0] ? " left: " : "", replay->why_memory);
	for (size_t i = 0; i < replay->plan->nr_objects; i++)
		print_object(replay, i, out);
	fprintf(out, "threads:%s%s\n", replay->why_threads[0] ? " left: " : "",
		replay->why_threads);
	for (size_t i = 0; i < replay->plan->nr_threads; i++) {
		const struct npg_plan_thread *t = &replay->plan->threads[i];
		const struct npg_resolved_node *n = &replay->resolution.nodes[t->node];

		npg_cpulist_format(&n->cpus, text, sizeof(text));
		fprintf(out, "  %s%s%s: node %d, CPUs %s%s\n", t->path, t->name != NULL ? " " : "",
			t->name != NULL ? t->name : "", n->node, text[0] != '\0' ? text : "none",
			replay->table.nr_pins == 0 ? " (as they are)" : "");
	}
}
