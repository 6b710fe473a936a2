/* numapgo replay: run a program under a plan. */
#include <errno.h>

#include "lib/command.h"
#include "lib/log.h"
#include "replayer/replay.h"

enum on_stale {
	STALE_WARN,
	STALE_IGNORE,
	STALE_ERROR,
};

struct replay_options {
	struct npg_common common;
	const char *plan;
	const char *report;
	bool is_strict;
	bool is_dry;
	bool overrides_affinity;
	int children;
	int on_stale;
	int page_tables;
};

static const char *const children_choices[] = { "leave", "follow", NULL };
static const char *const stale_choices[] = { "warn", "ignore", "error", NULL };
static const char *const tables_choices[] = { "auto", "off", NULL };

#define OFFSET(field) offsetof(struct replay_options, field)

static const struct npg_option replay_options[] = {
	{ "plan", 'p', NPG_OPTION_STRING, OFFSET(plan), "PLAN",
	  "plan to apply, default numapgo.plan.", NULL },
	{ "dry-run", 'n', NPG_OPTION_FLAG, OFFSET(is_dry), NULL,
	  "Print what would be done on this machine; run nothing.", NULL },
	{ "strict", 0, NPG_OPTION_FLAG, OFFSET(is_strict), NULL,
	  "Bind memory to its node instead of preferring it, and refuse to run CMD (status 125) "
	  "if it is known before that a part of the plan cannot be applied.",
	  NULL },
	{ "on-stale", 0, NPG_OPTION_CHOICE, OFFSET(on_stale), "WHAT",
	  "if CMD or its libraries were rebuilt since: warn (default), ignore, or error (status "
	  "125).",
	  stale_choices },
	{ "children", 0, NPG_OPTION_CHOICE, OFFSET(children), "WHAT",
	  "programs that CMD starts: leave (default) or follow.", children_choices },
	{ "override-affinity", 0, NPG_OPTION_FLAG, OFFSET(overrides_affinity), NULL,
	  "Pin threads also where OMP_PROC_BIND, taskset or the program itself says otherwise.",
	  NULL },
	{ "page-tables", 0, NPG_OPTION_CHOICE, OFFSET(page_tables), "WHAT",
	  "page-table pages: auto (default, as planned) or off.", tables_choices },
	{ "report", 0, NPG_OPTION_STRING, OFFSET(report), "FILE",
	  "Write the outcome as JSON to FILE.", NULL },
};

static void replay_defaults(void *options)
{
	struct replay_options *o = options;

	o->plan = NPG_PLAN_DEFAULT;
}

/* Exit status for a program that could not be started. */
static int status_of(int error)
{
	if (error == -ENOENT)
		return NPG_EXIT_NOT_FOUND;
	if (error == -EACCES || error == -ENOEXEC || error == -EPERM)
		return NPG_EXIT_CANNOT_RUN;
	return NPG_EXIT_LAUNCH_FAILED;
}

static int fail(int status, const struct npg_error *err)
{
	npg_error_print("replay: %s", err->text);
	return status;
}

/* Say what is stale. Return: 0, or -ENOTSUP if that is to be an error. */
static int tell_stale(const struct replay_options *o, const struct npg_replay *replay,
		      struct npg_error *err)
{
	char text[512];

	npg_fit_describe(replay->plan, &replay->fit, text, sizeof(text));
	if (replay->fit.is_other_program && replay->fit.nr_stale_objects > 0)
		snprintf(text, sizeof(text), "%s was made for another program: %s", o->plan,
			 replay->plan->program);
	if (text[0] == '\0' || o->on_stale == STALE_IGNORE || replay->plan->leave)
		return 0;
	if (o->on_stale == STALE_ERROR && replay->fit.nr_stale_objects > 0)
		return npg_error_set(err, -ENOTSUP, "--on-stale=error: %s", text);
	npg_warn("%s", text);
	return 0;
}

static void write_report(const struct replay_options *o, const struct npg_replay *replay)
{
	FILE *out = fopen(o->report, "we");
	int ret = out == NULL ? -errno : npg_replay_print_json(replay, out);

	if (out != NULL && fclose(out) != 0 && ret == 0)
		ret = -errno;
	if (ret < 0)
		npg_error_print("replay: %s: cannot write the report: %s", o->report,
				strerror(-ret));
}

static void tell_outcome(const struct replay_options *o, const struct npg_replay *replay)
{
	char text[1536];

	if (o->report != NULL)
		write_report(o, replay);
	if (o->common.json) {
		if (npg_replay_print_json(replay, stderr) < 0)
			npg_error_print("replay: the outcome cannot be written");
		return;
	}
	npg_replay_summary(replay, text, sizeof(text));
	npg_info("%s", text);
}

static int print_dry(const struct replay_options *o, const struct npg_replay *replay)
{
	if (!o->common.json)
		npg_replay_print_dry(replay, stdout);
	else if (npg_replay_print_json(replay, stdout) < 0)
		return NPG_EXIT_FAILED;
	return NPG_EXIT_OK;
}

static int run_program(const struct replay_options *o, struct npg_replay *replay,
		       struct npg_launch *launch, char **argv, int *wait_status)
{
	struct npg_error err = { "" };
	int ret = tell_stale(o, replay, &err);

	if (ret == 0 && o->is_strict)
		ret = npg_replay_check_strict(replay, &err);
	if (ret < 0)
		return fail(NPG_EXIT_LAUNCH_FAILED, &err);
	if (o->is_dry)
		return print_dry(o, replay);
	ret = npg_replay_run(replay, launch, argv, wait_status, &err);
	if (ret < 0)
		return fail(status_of(ret), &err);
	tell_outcome(o, replay);
	return NPG_EXIT_OK;
}

static int replay_plan(const struct replay_options *o, const struct npg_plan *plan,
		       struct npg_launch *launch, char **argv)
{
	struct npg_replay *replay = calloc(1, sizeof(*replay));
	struct npg_error err = { "out of memory" };
	int wait_status = -1, status;

	if (replay == NULL)
		return fail(NPG_EXIT_LAUNCH_FAILED, &err);
	replay->options.is_strict = o->is_strict;
	replay->options.has_children = o->children == 1;
	replay->options.overrides_affinity = o->overrides_affinity;
	replay->options.leaves_page_tables = o->page_tables == 1;
	if (npg_replay_prepare(replay, plan, launch, &err) < 0)
		status = fail(NPG_EXIT_LAUNCH_FAILED, &err);
	else
		status = run_program(o, replay, launch, argv, &wait_status);
	npg_replay_release(replay);
	free(replay);
	return status == NPG_EXIT_OK && wait_status >= 0 ? npg_launch_exit_like(wait_status)
							 : status;
}

static int replay_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	const struct replay_options *o = options;
	struct npg_launch launch = { .go_fd = -1, .status_fd = -1 };
	struct npg_plan *plan = NULL;
	struct npg_error err = { "" };
	int status, ret;

	(void)command;
	if (argc == 0) {
		npg_error_print("replay: no program given; write: numapgo replay -- CMD ARGS...");
		return NPG_EXIT_LAUNCH_FAILED;
	}
	ret = npg_launch_check(&launch, argv, &err);
	if (ret < 0)
		return fail(status_of(ret), &err);
	if (npg_plan_read(o->plan, &plan, &err) < 0)
		status = fail(NPG_EXIT_LAUNCH_FAILED, &err);
	else
		status = replay_plan(o, plan, &launch, argv);
	npg_plan_free(plan);
	npg_launch_release(&launch);
	return status;
}

const struct npg_command npg_command_replay = {
	.name = "replay",
	.summary = "run a program under a plan, and check what was placed",
	.operands = "[--] CMD [ARGS...]",
	.description =
	    "Runs CMD with its memory, page-table pages and threads where the plan puts them, and\n"
	    "says in one line on stderr what was applied and what was refused.\n"
	    "\n"
	    "The plan's nodes are mapped onto those that may be used here. A part of the plan "
	    "that\n"
	    "does not fit this machine, this build of CMD or this container is skipped and "
	    "counted,\n"
	    "and CMD runs all the same; a plan that cannot be read ends with status 125 before "
	    "CMD\n"
	    "runs. CMD's own output, exit status and signals are left as they are. With --json "
	    "the\n"
	    "outcome is one line of JSON, the last line of stderr, since stdout is CMD's.",
	.examples = "  numapgo replay -- ./app args\n"
		    "  numapgo replay --dry-run -- ./app args\n"
		    "  numapgo replay --plan big.plan --report out.json -- ./app args",
	.options = replay_options,
	.nr_options = NPG_ARRAY_SIZE(replay_options),
	.options_size = sizeof(struct replay_options),
	.defaults = replay_defaults,
	.run = replay_run,
	.is_launcher = true,
};
