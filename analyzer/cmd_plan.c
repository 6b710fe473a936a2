/* numapgo plan: read a plan, say why it is as it is, compare two. */
#include <inttypes.h>

#include "analyzer/cmd_plan.h"
#include "analyzer/cmd_text.h"
#include "analyzer/text.h"
#include "lib/log.h"

#define MAX_OPERANDS 4
#define SHOWN_RANGES 8 /* per object; the JSON has all */

static const struct npg_option options_table[] = {
	{ "db", 0, NPG_OPTION_STRING, offsetof(struct plan_options, database), "DB",
	  "explain: the recording that the plan was made from. Default: the one named in the "
	  "plan, if it is there.",
	  NULL },
	{ "exit-code", 0, NPG_OPTION_FLAG, offsetof(struct plan_options, exit_code), NULL,
	  "diff: end with 1 if the plans differ.", NULL },
};

const char *npg_plan_describe_object(const struct npg_plan_object *object, char *text, size_t size)
{
	const char *name = object->name != NULL ? object->name : "unnamed";

	if (object->which == NPG_PLAN_ALL)
		snprintf(text, size, "%s (%s)", name, object->kind);
	else if (object->which == NPG_PLAN_SITE_ORDINAL)
		snprintf(text, size, "%s (%s, allocation %" PRIu64 ")", name, object->kind,
			 object->ordinal);
	else
		snprintf(text, size, "%s (%s, allocation %" PRIu64 " by thread %s)", name,
			 object->kind, object->ordinal,
			 object->creator != NULL ? object->creator : "?");
	return text;
}

const char *npg_plan_describe_range(const struct npg_plan_range *range, char *text, size_t size)
{
	size_t used;

	if (range->policy == NPG_POLICY_BIND) {
		snprintf(text, size, "node %d", range->nodes[0]);
		return text;
	}
	used = (size_t)snprintf(text, size, "interleaved on");
	for (int i = 0; i < range->nr_nodes && used < size; i++) {
		used += (size_t)snprintf(text + used, size - used, "%s%d", i > 0 ? "," : " ",
					 range->nodes[i]);
		if (range->weights[0] != 0 && used < size)
			used +=
			    (size_t)snprintf(text + used, size - used, "(%d)", range->weights[i]);
	}
	return text;
}

static void print_head(const struct npg_plan *plan, const char *path)
{
	char before[NPG_TEXT_SIZE], after[NPG_TEXT_SIZE];
	const struct npg_plan_prediction *first = NULL, *last = NULL;

	npg_text_wrap(stdout, 0, 2,
		      "%s: for %s on machine %s (%d nodes), objective %s, made from %s", path,
		      plan->command != NULL ? plan->command : plan->program,
		      plan->machine != NULL ? plan->machine : "unknown", plan->nr_nodes,
		      plan->objective != NULL ? plan->objective : "throughput",
		      plan->recording != NULL ? plan->recording : "an unknown recording");
	if (plan->leave) {
		npg_text_wrap(stdout, 0, 2, "leave everything as it is: %s",
			      plan->leave_reason != NULL ? plan->leave_reason : "no reason given");
		return;
	}
	for (size_t i = 0; i < plan->nr_predictions; i++) {
		if (strcmp(plan->predictions[i].placement, "first touch") == 0)
			first = &plan->predictions[i];
		if (strcmp(plan->predictions[i].placement, "plan") == 0)
			last = &plan->predictions[i];
	}
	if (first == NULL || last == NULL)
		return;
	npg_text_wrap(stdout, 0, 2, "predicted: %s local instead of %s",
		      npg_text_percent(last->lar, after), npg_text_percent(first->lar, before));
	npg_text_wrap(stdout, 0, 2, "           memory time %s instead of %s",
		      npg_text_ns(last->memory_ns, after), npg_text_ns(first->memory_ns, before));
}

static void print_threads(const struct npg_plan *plan)
{
	char share[NPG_TEXT_SIZE], name[128], path[128];

	printf("\n%5s %8s  %-16s %s\n", "node", "samples", "thread", "name");
	for (size_t i = 0; i < plan->nr_threads; i++) {
		const struct npg_plan_thread *t = &plan->threads[i];

		printf("%5d %8s  %-16s %s\n", t->node, npg_text_percent(t->share, share),
		       npg_text_elide(t->path, 16, path, sizeof(path)),
		       npg_text_elide(t->name != NULL ? t->name : "", 30, name, sizeof(name)));
	}
}

static void print_ranges(const struct npg_plan_object *o)
{
	char where[256];

	for (size_t r = 0; r < o->nr_ranges && r < SHOWN_RANGES; r++)
		printf("%18s pages %" PRIu64 "-%" PRIu64 ": %s\n", "", o->ranges[r].first_page,
		       o->ranges[r].first_page + o->ranges[r].nr_pages - 1,
		       npg_plan_describe_range(&o->ranges[r], where, sizeof(where)));
	if (o->nr_ranges > SHOWN_RANGES)
		printf("%18s and %zu more ranges\n", "", o->nr_ranges - SHOWN_RANGES);
	for (size_t r = 0; r < o->nr_table_ranges && r < SHOWN_RANGES; r++)
		printf("%18s page tables of regions %" PRIu64 "-%" PRIu64 ": node %d\n", "",
		       o->table_ranges[r].first_region,
		       o->table_ranges[r].first_region + o->table_ranges[r].nr_regions - 1,
		       o->table_ranges[r].node);
	if (o->nr_table_ranges > SHOWN_RANGES)
		printf("%18s and %zu more ranges of page tables\n", "",
		       o->nr_table_ranges - SHOWN_RANGES);
}

static void print_objects(const struct npg_plan *plan)
{
	size_t columns = npg_text_columns();
	char share[NPG_TEXT_SIZE], size[NPG_TEXT_SIZE], what[512], name[2048];

	printf("\n%8s %9s  %s\n", "samples", "size", "object");
	for (size_t i = 0; i < plan->nr_objects; i++) {
		const struct npg_plan_object *o = &plan->objects[i];

		npg_plan_describe_object(o, what, sizeof(what));
		printf("%8s %9s  %s\n", npg_text_percent(o->share, share),
		       npg_text_bytes(o->size_bytes, size),
		       npg_text_elide(what, columns - 19, name, sizeof(name)));
		print_ranges(o);
	}
}

static int print_json(const struct npg_plan *plan)
{
	struct npg_error err = { "" };
	char *text = NULL;
	size_t length;

	if (npg_plan_to_text(plan, &text, &length, &err) < 0) {
		npg_error_print("plan: %s", err.text);
		return NPG_EXIT_FAILED;
	}
	fwrite(text, 1, length, stdout);
	free(text);
	return NPG_EXIT_OK;
}

static int show(const struct plan_options *options, const struct npg_plan *plan, const char *path)
{
	if (options->common.json)
		return print_json(plan);
	print_head(plan, path);
	if (!plan->leave) {
		print_threads(plan);
		print_objects(plan);
	}
	printf("next: numapgo replay%s%s -- %s\n", strcmp(path, NPG_PLAN_DEFAULT) ? " --plan " : "",
	       strcmp(path, NPG_PLAN_DEFAULT) ? path : "",
	       plan->command != NULL ? plan->command : "CMD");
	return NPG_EXIT_OK;
}

/* Operands with options between them: "plan diff A B --exit-code". */
static int gather(const struct npg_command *command, struct plan_options *options, int argc,
		  char **argv, const char **operands, struct npg_error *err)
{
	int nr = 0;

	while (argc > 0 && nr < MAX_OPERANDS) {
		struct plan_options more;
		int i;

		operands[nr++] = argv[0];
		if (npg_command_parse(command, argc, argv, &more, &i, err) < 0)
			return -1;
		options->common.help |= more.common.help;
		options->common.json |= more.common.json;
		options->exit_code |= more.exit_code;
		if (more.database != NULL)
			options->database = more.database;
		argc -= i;
		argv += i;
	}
	return nr;
}

static int usage(const char *text)
{
	npg_error_print("plan: %s", text);
	fprintf(stderr, "usage: numapgo plan show PLAN | explain PLAN [OBJECT] | diff A B\n"
			"try: numapgo plan --help\n");
	return NPG_EXIT_USAGE;
}

static int run_on(const struct plan_options *options, int nr, const char **operands)
{
	struct npg_plan *plans[2] = { NULL, NULL };
	bool is_diff = strcmp(operands[0], "diff") == 0;
	struct npg_error err = { "" };
	int status;

	for (int i = 0; i < (is_diff ? 2 : 1); i++) {
		if (npg_plan_read(operands[i + 1], &plans[i], &err) < 0) {
			npg_error_print("plan: %s", err.text);
			npg_plan_free(plans[0]);
			return NPG_EXIT_FAILED;
		}
	}
	if (is_diff)
		status = npg_plan_print_diff(options, plans[0], plans[1]);
	else if (strcmp(operands[0], "show") == 0)
		status = show(options, plans[0], operands[1]);
	else
		status = npg_plan_print_explanation(options, plans[0], operands[1],
						    nr > 2 ? operands[2] : NULL);
	npg_plan_free(plans[0]);
	npg_plan_free(plans[1]);
	return status;
}

static int plan_run(const struct npg_command *command, void *raw, int argc, char **argv)
{
	struct plan_options *options = raw;
	const char *operands[MAX_OPERANDS] = { NULL };
	struct npg_error err = { "" };
	int nr = gather(command, options, argc, argv, operands, &err);

	if (nr < 0)
		return usage(err.text);
	if (options->common.help) {
		npg_command_help(command, stdout);
		return NPG_EXIT_OK;
	}
	if (nr == 0)
		return usage("say what to do: show, explain or diff");
	if (strcmp(operands[0], "show") != 0 && strcmp(operands[0], "explain") != 0 &&
	    strcmp(operands[0], "diff") != 0)
		return usage("the first word must be show, explain or diff");
	if (nr == 1 && strcmp(operands[0], "diff") != 0)
		operands[nr++] = NPG_PLAN_DEFAULT;
	if ((strcmp(operands[0], "show") == 0 && nr != 2) ||
	    (strcmp(operands[0], "explain") == 0 && nr > 3) ||
	    (strcmp(operands[0], "diff") == 0 && nr != 3))
		return usage("wrong number of operands");
	return run_on(options, nr, operands);
}

const struct npg_command npg_command_plan = {
	.name = "plan",
	.summary = "show, explain and compare plans",
	.operands = "show PLAN | explain PLAN [OBJECT] | diff A B",
	.description =
	    "show prints what a plan does: nodes of threads, pages and page tables. explain says\n"
	    "why an object went where it went: its users by node and what other places would\n"
	    "cost; OBJECT is a part of its name. diff lists threads and objects that were added,\n"
	    "went, or moved from plan A to plan B. PLAN is numapgo.plan by default.",
	.examples = "  numapgo plan show numapgo.plan\n"
		    "  numapgo plan explain numapgo.plan main\n"
		    "  numapgo plan diff --exit-code numapgo.plan.old numapgo.plan",
	.options = options_table,
	.nr_options = NPG_ARRAY_SIZE(options_table),
	.options_size = sizeof(struct plan_options),
	.run = plan_run,
};
