/* numapgo record: run a program, or watch one, and store samples, objects, threads, topology. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/command.h"
#include "lib/launch.h"
#include "lib/log.h"
#include "profiler/record_run.h"

static const char *const children_choices[] = { "follow", "leave", NULL };
static const char *const keep_choices[] = { "samples", "counts", NULL };

static const struct npg_option record_options[] = {
	{ "output", 'o', NPG_OPTION_STRING, offsetof(struct npg_record_options, output), "FILE",
	  "database to write, default numapgo.db; %p pid, %h host, %r rank, %j job, %e program, "
	  "%q{VAR} variable, %% percent. An existing file becomes FILE.old.",
	  NULL },
	{ "source", 's', NPG_OPTION_STRING, offsetof(struct npg_record_options, source), "LIST",
	  "sources, comma-separated: auto (default: clock and fault, and hint if the kernel does "
	  "NUMA balancing already), clock, hint, fault, loads, tlb.",
	  NULL },
	{ "overhead", 0, NPG_OPTION_REAL, offsetof(struct npg_record_options, overhead_percent),
	  "PCT", "CPU time that sampling may take, in percent of the program's; default 1.", NULL },
	{ "period", 0, NPG_OPTION_UINT, offsetof(struct npg_record_options, period_ns), "NS",
	  "CPU time between clock samples, in ns; default: chosen by --overhead.", NULL },
	{ "min-object", 0, NPG_OPTION_BYTES, offsetof(struct npg_record_options, min_object_bytes),
	  "BYTES", "heap blocks below this size are counted, not followed; default 16K.", NULL },
	{ "children", 0, NPG_OPTION_CHOICE, offsetof(struct npg_record_options, children), "WHAT",
	  "child processes: follow (default) or leave.", children_choices },
	{ "keep", 0, NPG_OPTION_CHOICE, offsetof(struct npg_record_options, keep), "WHAT",
	  "samples (default), or counts per page, thread and ten seconds, for long runs.",
	  keep_choices },
	{ "pid", 'p', NPG_OPTION_UINT, offsetof(struct npg_record_options, pid), "PID",
	  "watch a running process instead of starting one; its allocations stay unknown.", NULL },
	{ "duration", 'd', NPG_OPTION_REAL, offsetof(struct npg_record_options, duration_s), "S",
	  "with --pid: stop after S seconds; default: when it ends, or at Ctrl-C.", NULL },
};

static void tell(bool is_error, const char *text)
{
	if (is_error)
		npg_error_print("record: %s", text);
	else
		npg_info("%s", text);
}

static void record_defaults(void *options)
{
	struct npg_record_options *o = options;

	o->output = NPG_RECORDING_DEFAULT;
	o->source = "auto";
	o->overhead_percent = 1;
	o->min_object_bytes = 16384;
	o->tell = tell;
}

static int check(const struct npg_record_options *o, int argc, struct npg_error *err)
{
	if (o->pid == 0 && argc == 0)
		return npg_error_set(err, -EINVAL,
				     "no program given; write: numapgo record -- CMD ARGS...");
	if (o->pid != 0 && argc > 0)
		return npg_error_set(err, -EINVAL, "both --pid and a program are given; take one");
	if (o->pid > INT32_MAX)
		return npg_error_set(err, -EINVAL, "--pid %" PRIu64 ": no such process", o->pid);
	if (o->duration_s > 0 && o->pid == 0)
		return npg_error_set(err, -EINVAL, "--duration needs --pid");
	if (o->overhead_percent <= 0 || o->overhead_percent > 100)
		return npg_error_set(err, -EINVAL, "--overhead must be above 0 and at most 100");
	if (o->period_ns != 0 && o->period_ns < 10000)
		return npg_error_set(err, -EINVAL, "--period must be at least 10000 ns");
	return 0;
}

static void print_json(const struct npg_record_summary *s)
{
	fprintf(stderr,
		"{\"file\":\"%s\",\"complete\":%s,\"samples\":%" PRId64 ",\"matched\":%" PRId64
		",\"lost\":%" PRId64 ",\"program_cpu_ns\":%" PRId64 ",\"recorder_cpu_ns\":%" PRId64
		",\"interrupt_ns\":%" PRId64 "}\n",
		s->path, s->is_complete ? "true" : "false", s->nr_samples,
		s->nr_samples - s->nr_unmatched, s->nr_lost, s->program_cpu_ns, s->recorder_cpu_ns,
		s->interrupt_ns);
}

static void print_summary(const struct npg_record_options *o, const struct npg_record_summary *s)
{
	double cpu = (double)s->program_cpu_ns;

	if (o->common.json) {
		print_json(s);
		return;
	}
	if (s->perf_reason[0] != '\0')
		npg_warn("no samples: %s", s->perf_reason);
	if (!s->is_complete)
		return;
	npg_info("%" PRId64 " samples, %.1f %% matched to objects, %" PRId64
		 " lost; overhead %.1f %% (recorder %.1f ms, sampling %.1f ms); %s",
		 s->nr_samples,
		 s->nr_samples > 0
		     ? 100.0 * (double)(s->nr_samples - s->nr_unmatched) / (double)s->nr_samples
		     : 100.0,
		 s->nr_lost,
		 cpu > 0 ? 100.0 * (double)(s->recorder_cpu_ns + s->interrupt_ns) / cpu : 0.0,
		 (double)s->recorder_cpu_ns / 1e6, (double)s->interrupt_ns / 1e6, s->path);
	if (strcmp(o->output, NPG_RECORDING_DEFAULT) == 0)
		npg_info("next: numapgo analyze");
	else
		npg_info("next: numapgo analyze %s", s->path);
}

static int record_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	const struct npg_record_options *o = options;
	struct npg_record_summary summary = { .is_complete = false };
	struct npg_error err = { "" };
	int status;

	(void)command;
	if (check(o, argc, &err) < 0) {
		npg_error_print("record: %s", err.text);
		return o->pid != 0 ? NPG_EXIT_USAGE : NPG_EXIT_LAUNCH_FAILED;
	}
	status = o->pid != 0 ? npg_record_watch(o, &summary, &err)
			     : npg_record_launch(o, argv, &summary, &err);
	if (err.text[0] != '\0')
		npg_error_print("record: %s", err.text);
	if (summary.has_begun)
		print_summary(o, &summary);
	if (summary.was_launched)
		return npg_launch_exit_like(summary.wait_status);
	return status;
}

const struct npg_command npg_command_record = {
	.name = "record",
	.summary = "run a program and store where its memory is used from",
	.operands = "[--] CMD [ARGS...]",
	.description =
	    "Runs CMD, samples which thread uses which memory, and stores it together with the\n"
	    "program's objects, threads and the machine's topology in one SQLite file.\n"
	    "\n"
	    "Nothing needs to be recompiled and no privileges are needed. CMD's own output, exit\n"
	    "status and signals are left as they are; a summary goes to stderr. With --json the\n"
	    "summary is one line of JSON, the last line of stderr, since stdout is CMD's.",
	.examples = "  numapgo record -- ./app args\n"
		    "  numapgo record -o run-%h-%r.db --source clock -- ./app\n"
		    "  numapgo record --pid 1234 --duration 10",
	.options = record_options,
	.nr_options = NPG_ARRAY_SIZE(record_options),
	.options_size = sizeof(struct npg_record_options),
	.defaults = record_defaults,
	.run = record_run,
	.is_launcher = true,
};
