/* numapgo analyze: from a recording to a plan, with what it is predicted to give. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include <jansson.h>

#include "analyzer/cmd_text.h"
#include "analyzer/json_text.h"
#include "analyzer/plan_make.h"
#include "analyzer/session.h"
#include "analyzer/store.h"
#include "analyzer/text.h"
#include "lib/command.h"
#include "lib/log.h"

struct analyze_options {
	struct npg_common common;
	const char *output;
	const char *machine;
	const char *process;
	int objective;
	int page_tables;
	uint64_t max_nodes;
};

static const char *const objectives[] = { "throughput", "makespan", NULL };
static const char *const page_table_choices[] = { "auto", "off", NULL };

static const struct npg_option options_table[] = {
	{ "output", 'o', NPG_OPTION_STRING, offsetof(struct analyze_options, output), "PLAN",
	  "Write the plan there; an existing one becomes PLAN.old. Patterns: %p pid, %h host, %e "
	  "program, %r rank, %j job, %q{VAR}, %%. Default: numapgo.plan.",
	  NULL },
	{ "machine", 'm', NPG_OPTION_STRING, offsetof(struct analyze_options, machine), "M",
	  "The machine to plan for: a name in datasets/machines, a machine file, hwloc XML, or a "
	  "hwloc synthetic description. Default: the recorded one.",
	  NULL },
	{ "objective", 0, NPG_OPTION_CHOICE, offsetof(struct analyze_options, objective), "GOAL",
	  "throughput: least memory time of all threads together (default); makespan: of the "
	  "slowest thread.",
	  objectives },
	{ "page-tables", 0, NPG_OPTION_CHOICE, offsetof(struct analyze_options, page_tables),
	  "WHICH",
	  "auto: place page-table pages near the threads that walk them (default); off: leave "
	  "them to first touch.",
	  page_table_choices },
	{ "process", 0, NPG_OPTION_STRING, offsetof(struct analyze_options, process), "PID",
	  "The recorded process to plan, or 'all' that ran its executable. Default: the one with "
	  "most samples.",
	  NULL },
	{ "max-nodes", 0, NPG_OPTION_UINT, offsetof(struct analyze_options, max_nodes), "N",
	  "Place threads on at most N nodes. Default: all are tried.", NULL },
};

struct analyze {
	const struct analyze_options *options;
	struct npg_session session;
	struct npg_analysis *analysis;
	struct npg_decisions decisions;
	struct npg_plan *plan;
	char path[4096];
	bool is_stored;
};

static double matched_share(const struct npg_profile *p, double *all)
{
	double seen = 0.0, matched = 0.0;

	for (size_t i = 0; i < p->nr_sources; i++) {
		if (p->sources[i].role == NPG_ROLE_TOUCH)
			continue;
		seen += p->sources[i].seen;
		matched += p->sources[i].matched;
	}
	*all = seen;
	return seen > 0.0 ? matched / seen : 0.0;
}

static void print_input(const struct analyze *a)
{
	const struct npg_profile *p = a->session.profile;
	const struct npg_topology *t = a->session.topology;
	char percent[NPG_TEXT_SIZE];
	double all, share = matched_share(p, &all);

	npg_text_wrap(stdout, 0, 2, "%s: %s of %.0f address samples match an object, %zu threads",
		      p->command[0] != '\0' ? p->command : p->program,
		      npg_text_percent(share, percent), all, p->nr_threads);
	npg_text_wrap(stdout, 0, 2, "machine %s: %d nodes; latencies: %s; bandwidths: %s", t->name,
		      t->nr_nodes,
		      a->analysis->cost->latency_is_estimate
			  ? "estimated from firmware distances, which are no latencies"
			  : (t->latency_origin != NULL ? t->latency_origin : "given"),
		      a->analysis->cost->bandwidth_is_assumed
			  ? "assumed"
			  : (t->bandwidth_origin != NULL ? t->bandwidth_origin : "given"));
	if (p->nr_text_samples > 0.0)
		npg_text_wrap(stdout, 0, 2,
			      "%.0f samples in program text are left out: no plan moves it",
			      p->nr_text_samples);
	if (p->nr_start_samples > 0.0 && npg_start_weight(p) < 1.0) {
		npg_text_wrap(
		    stdout, 0, 2,
		    "start-up: %.0f samples of initialisation, weighted down to 5 %% of the "
		    "others",
		    p->nr_start_samples);
	}
}

static void print_predictions(const struct npg_analysis *a)
{
	char lar[NPG_TEXT_SIZE], memory[NPG_TEXT_SIZE], walks[NPG_TEXT_SIZE], remote[NPG_TEXT_SIZE],
	    both[NPG_TEXT_SIZE];
	bool makespan = a->options.objective == NPG_OBJECTIVE_MAKESPAN;

	printf("\n%-12s %10s %12s %12s %13s%s\n", "placement", "local", "memory time", "page walks",
	       "remote walks", makespan ? "  slowest thread" : "");
	for (int i = 0; i < NPG_NR_ALTERNATIVES; i++) {
		const struct npg_prediction *p = &a->predictions[i];

		if (!p->is_possible) {
			printf("%-12s not possible: %s\n", p->name, p->why_not);
			continue;
		}
		printf("%-12s %10s %12s %12s %13s", p->name, npg_text_percent(p->score.lar, lar),
		       npg_text_ns(p->score.memory_ns, memory),
		       npg_text_ns(p->score.walk_ns, walks),
		       npg_text_percent(p->score.remote_walks, remote));
		if (makespan)
			printf("  %14s", npg_text_ns(p->score.slowest_ns, both));
		putchar('\n');
	}
}

static uint64_t placed_bytes(const struct analyze *a)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < a->decisions.nr_decisions; i++)
		if (a->decisions.decisions[i].is_placed)
			bytes += a->analysis->grouping.groups[i].alive_bytes;
	return bytes;
}

static void print_result(const struct analyze *a)
{
	char size[NPG_TEXT_SIZE];
	const struct npg_profile *p = a->session.profile;
	const struct npg_analysis *an = a->analysis;

	print_input(a);
	print_predictions(an);
	if (!an->leave)
		puts("(plan: made from one half of the samples, scored on the other, both ways)");
	puts("(assumed: each busy thread has one cache line under way at any time)");
	if (!npg_walks_are_sampled(p))
		puts("(assumed: page walks from the pages used, as no source sampled TLB misses)");
	if (an->leave)
		npg_text_wrap(stdout, 0, 2, "%s: leave everything as it is; %s", a->path,
			      an->leave_reason);
	else
		npg_text_wrap(
		    stdout, 0, 2,
		    "%s: %zu threads on %d of %d nodes, %zu objects (%s) placed; saves %.1f "
		    "+- %.1f %% of the memory time of first touch",
		    a->path, a->plan->nr_threads, an->solution.nr_nodes_used, an->cost->nr_nodes,
		    a->plan->nr_objects, npg_text_bytes(placed_bytes(a), size), 100.0 * an->gain,
		    100.0 * an->gain_error);
	if (an->leave && an->topology->nr_nodes < 2)
		printf("next: numapgo analyze --machine 4-nodes %s\n", a->session.recording.path);
	else
		printf("next: numapgo replay%s%s -- %s\n",
		       strcmp(a->path, NPG_PLAN_DEFAULT) == 0 ? "" : " --plan ",
		       strcmp(a->path, NPG_PLAN_DEFAULT) == 0 ? "" : a->path,
		       p->command[0] != '\0' ? p->command : "CMD");
}

static json_t *prediction_json(const struct npg_prediction *p)
{
	if (!p->is_possible)
		return json_pack("{s:s, s:s}", "placement", p->name, "why_not", p->why_not);
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "placement", p->name, "lar",
			 p->score.lar, "memory_ns", p->score.memory_ns, "walk_ns", p->score.walk_ns,
			 "remote_walks", p->score.remote_walks, "slowest_ns", p->score.slowest_ns,
			 "highest_load", p->score.highest_load);
}

static int print_json(const struct analyze *a)
{
	const struct npg_analysis *an = a->analysis;
	const struct npg_profile *p = a->session.profile;
	json_t *predictions = json_array();
	double all, share = matched_share(p, &all);
	json_t *root;

	for (int i = 0; i < NPG_NR_ALTERNATIVES; i++)
		json_array_append_new(predictions, prediction_json(&an->predictions[i]));
	root = json_pack(
	    "{s:s, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:f, s:f, s:f, s:f, s:I, s:b, "
	    "s:f, s:f, s:I, s:I, s:i, s:i, s:o}",
	    "schema", "numapgo.analyze/1", "recording", npg_json_text(a->session.recording.path),
	    "plan", npg_json_text(a->path), "program", npg_json_text(p->program), "machine",
	    npg_json_text(an->topology->name), "latency_is_estimate", an->cost->latency_is_estimate,
	    "bandwidth_is_assumed", an->cost->bandwidth_is_assumed, "is_complete", p->is_complete,
	    "nr_samples", p->nr_samples, "matched_share", share, "nr_start_samples",
	    p->nr_start_samples, "start_weight", npg_start_weight(p), "nr_recorded_threads",
	    (json_int_t)p->nr_threads, "leave", an->leave, "gain", an->gain, "gain_error",
	    isfinite(an->gain_error) ? an->gain_error : 0.0, "nr_threads",
	    (json_int_t)a->plan->nr_threads, "nr_objects", (json_int_t)a->plan->nr_objects,
	    "nr_nodes", an->cost->nr_nodes, "nr_nodes_used", an->solution.nr_nodes_used,
	    "predictions", predictions);
	if (root == NULL)
		return -ENOMEM;
	if (an->leave)
		json_object_set_new(root, "leave_reason", json_string(an->leave_reason));
	json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
	putchar('\n');
	json_decref(root);
	return 0;
}

static void warn_about_input(const struct analyze *a)
{
	const struct npg_profile *p = a->session.profile;

	if (!p->is_complete)
		npg_warn("%s: the recording is incomplete; what is there is used",
			 a->session.recording.path);
	if (strcmp(p->agent, "active") != 0)
		npg_warn("allocations of %s were not seen (%s): only static objects can be placed",
			 p->program, p->agent);
	if (p->same_program_samples > 0.2 * p->nr_samples)
		npg_warn("other processes of the same executable have %.0f samples; the plan is "
			 "made from process %d and would apply to all of them alike, see --process",
			 p->same_program_samples, p->program_pid);
	if (p->nr_other_processes > 0)
		npg_verbose("%zu other processes with %.0f samples are left out",
			    p->nr_other_processes, p->other_samples);
	if (p->nr_touches == 0)
		npg_warn("no first-touch fault was recorded; first touch is guessed from who "
			 "allocated");
}

/* An existing plan stays as PATH.old. */
static int keep_old(const char *path, struct npg_error *err)
{
	char old[4096 + 8];

	if (access(path, F_OK) < 0)
		return 0;
	snprintf(old, sizeof(old), "%s.old", path);
	for (int i = 0; i < 2; i++) {
		const char *name = i == 0 ? path : old;

		if (npg_output_is_foreign(name, "numapgo-plan"))
			return npg_error_set(err, -EEXIST,
					     "%s: is there and is no plan, and would have to be "
					     "replaced; move it, or give another name with -o",
					     name);
	}
	unlink(old);
	if (link(path, old) < 0 && rename(path, old) < 0)
		return npg_error_set(err, -errno,
				     "%s: cannot be kept as %s: %s; choose another name with -o",
				     path, old, strerror(errno));
	return 0;
}

static int write_plan(struct analyze *a, struct npg_error *err)
{
	const struct npg_profile *p = a->session.profile;
	int ret = npg_output_expand(a->options->output, p->program, p->program_pid, a->path,
				    sizeof(a->path), err);

	if (ret == 0 &&
	    npg_plan_make(a->analysis, &a->decisions, a->session.recording.path, &a->plan) < 0)
		ret = npg_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0)
		ret = keep_old(a->path, err);
	return ret < 0 ? ret : npg_plan_write(a->plan, a->path, err);
}

static void store(struct analyze *a)
{
	struct npg_error err = { "" };

	if (a->session.recording.is_writable &&
	    npg_store_analysis(a->session.recording.db, a->analysis, &a->decisions, &err) == 0)
		return;
	npg_warn("%s: the analysis tables are not kept in it: %s", a->session.recording.path,
		 err.text[0] != '\0' ? err.text : "the file cannot be written");
}

static int decide(struct analyze *a, struct npg_error *err)
{
	struct npg_analysis_options options = {
		.objective = (enum npg_objective)a->options->objective,
		.plan_tables = a->options->page_tables == 0,
		.max_nodes =
		    a->options->max_nodes < NPG_COST_MAX_NODES ? (int)a->options->max_nodes : 0,
	};
	int ret;

	if (a->session.topology == NULL)
		return npg_error_set(err, -ENODATA,
				     "%s: no machine is recorded in it; name one with --machine",
				     a->session.recording.path);
	if (a->session.profile->nr_samples <= 0.0) {
		npg_session_explain_no_samples(&a->session, err);
		return -ENODATA;
	}
	ret =
	    npg_analysis_run(a->session.profile, a->session.topology, &options, &a->analysis, err);
	if (ret == 0 && npg_decisions_make(a->analysis, &a->decisions) < 0)
		ret = npg_error_set(err, -ENOMEM, "out of memory");
	return ret;
}

static int analyze(struct analyze *a, const char *database, struct npg_error *err)
{
	int ret = npg_session_open(&a->session, database, true, a->options->machine,
				   a->options->process, err);

	if (ret == 0)
		warn_about_input(a);
	if (ret == 0)
		ret = decide(a, err);
	if (ret == 0)
		ret = write_plan(a, err);
	if (ret < 0)
		return ret;
	store(a);
	if (a->options->common.json)
		return print_json(a);
	if (!a->options->common.quiet)
		print_result(a);
	return 0;
}

static int analyze_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	struct analyze a = { .options = options };
	struct npg_error err = { "out of memory" };
	int ret;

	if (argc > 1) {
		npg_error_print("analyze: one recording is wanted, not also '%s'", argv[1]);
		return NPG_EXIT_USAGE;
	}
	ret = analyze(&a, argc == 1 ? argv[0] : NULL, &err);
	if (ret < 0)
		npg_error_print("%s: %s", command->name, err.text);
	npg_plan_free(a.plan);
	npg_decisions_release(&a.decisions);
	npg_analysis_free(a.analysis);
	npg_session_close(&a.session);
	return ret < 0 ? NPG_EXIT_FAILED : NPG_EXIT_OK;
}

static void analyze_defaults(void *options)
{
	((struct analyze_options *)options)->output = NPG_PLAN_DEFAULT;
}

const struct npg_command npg_command_analyze = {
	.name = "analyze",
	.summary = "decide where pages, page tables and threads belong",
	.operands = "[DB]",
	.description =
	    "Reads a recording, works out which threads use which pages, and decides where\n"
	    "threads, pages and page-table pages belong on a machine with several nodes. Writes\n"
	    "the plan and prints what it is predicted to give against first touch, interleaving\n"
	    "and a single node. Where the gain is not more than noise, the plan says to leave\n"
	    "everything as it is. DB is numapgo.db by default; the analysis tables are kept in it.",
	.examples = "  numapgo analyze\n"
		    "  numapgo analyze --machine 4-nodes -o four.plan run.db",
	.options = options_table,
	.nr_options = NPG_ARRAY_SIZE(options_table),
	.options_size = sizeof(struct analyze_options),
	.defaults = analyze_defaults,
	.run = analyze_run,
};
