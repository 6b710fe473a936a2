/* numapgo import: make a recording from the files of other tools. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "lib/command.h"
#include "lib/log.h"
#include "profiler/import_lab.h"

struct import_options {
	struct npg_common common;
	const char *output;
	const char *with;
	int format;
};

static const char *const format_choices[] = { "lab", NULL };

static const struct npg_option import_options[] = {
	{ "output", 'o', NPG_OPTION_STRING, offsetof(struct import_options, output), "FILE",
	  "database to write, default numapgo.db; an existing one becomes FILE.old.", NULL },
	{ "format", 'f', NPG_OPTION_CHOICE, offsetof(struct import_options, format), "F",
	  "lab: a trace of the NUMA lab's virtual PMU, or its counts per page (default).",
	  format_choices },
	{ "with", 'w', NPG_OPTION_STRING, offsetof(struct import_options, with), "DB",
	  "recording of the same run: its objects, threads and machine; needed by lab.", NULL },
};

static void import_defaults(void *options)
{
	((struct import_options *)options)->output = NPG_RECORDING_DEFAULT;
}

static int import_file(const struct import_options *o, const char *path,
		       struct npg_import_summary *summary, struct npg_error *err)
{
	struct npg_recording from = { .db = NULL }, to = { .db = NULL };
	int ret = npg_recording_open(o->with, false, &from, err);

	if (ret == 0)
		ret = npg_recording_create(o->output, &to, err);
	if (ret == 0) {
		ret = npg_import_lab(path, &from, &to, summary, err);
		if (ret == 0)
			ret = npg_recording_finish(&to, err);
		if (ret < 0 && to.partial_path != NULL)
			unlink(to.partial_path); /* half an import is of no use */
	}
	npg_recording_close(&to);
	npg_recording_close(&from);
	return ret;
}

static void print_summary(const struct import_options *o, const struct npg_import_summary *s)
{
	if (o->common.json) {
		printf("{\"file\":\"%s\",\"records\":%" PRId64 ",\"samples\":%" PRId64
		       ",\"unmatched\":%" PRId64 ",\"no_thread\":%" PRId64 "}\n",
		       o->output, s->nr_records, s->nr_samples, s->nr_unmatched, s->nr_no_thread);
		return;
	}
	printf("%" PRId64 " records, %" PRId64
	       " stored, %.1f %% of these matched to objects; %" PRId64
	       " on CPUs without a thread of the recording; %s\n",
	       s->nr_records, s->nr_samples,
	       s->nr_samples > 0
		   ? 100.0 * (double)(s->nr_samples - s->nr_unmatched) / (double)s->nr_samples
		   : 100.0,
	       s->nr_no_thread, o->output);
	npg_info("next: numapgo analyze %s", o->output);
}

static int import_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	const struct import_options *o = options;
	struct npg_import_summary summary = { 0 };
	struct npg_error err = { "" };

	if (argc != 1 || o->with == NULL) {
		npg_error_print("%s: %s", command->name,
				argc != 1 ? "one FILE is needed"
					  : "--with DB is needed: the lab's files have no objects "
					    "and threads");
		return NPG_EXIT_USAGE;
	}
	if (import_file(o, argv[0], &summary, &err) < 0) {
		npg_error_print("import: %s", err.text);
		return NPG_EXIT_FAILED;
	}
	print_summary(o, &summary);
	return NPG_EXIT_OK;
}

const struct npg_command npg_command_import = {
	.name = "import",
	.summary = "make a recording from another tool's file",
	.operands = "FILE",
	.description =
	    "Makes a recording of what another tool saw.\n"
	    "\n"
	    "Format lab: FILE is a trace or the counts of the NUMA lab (tests/lab/README.md). "
	    "They\n"
	    "have addresses, CPUs and times, and take objects, threads, machine and first touches\n"
	    "from a recording of the same run, made with numapgo record inside the lab. The\n"
	    "samples of that recording are replaced by those of the file, as the sources loads\n"
	    "and tlb.",
	.examples = "  numapgo import --with run.db -o loads.db run.trace\n",
	.options = import_options,
	.nr_options = NPG_ARRAY_SIZE(import_options),
	.options_size = sizeof(struct import_options),
	.defaults = import_defaults,
	.run = import_run,
};
