/* numapgo report: a recording in the terminal. */
#include <errno.h>
#include <inttypes.h>

#include "analyzer/cmd_text.h"
#include "analyzer/report.h"
#include "analyzer/text.h"
#include "lib/command.h"
#include "lib/log.h"

#define MAX_ROWS    10
#define MAX_THREADS 16
#define MAX_NODES   8 /* of a matrix that fits into 80 columns */

struct report_options {
	struct npg_common common;
	const char *machine;
	const char *process;
};

static const struct npg_option options_table[] = {
	{ "machine", 'm', NPG_OPTION_STRING, offsetof(struct report_options, machine), "M",
	  "The machine to predict for, as for analyze. Default: that of the last analyze, else the "
	  "recorded one.",
	  NULL },
	{ "process", 0, NPG_OPTION_STRING, offsetof(struct report_options, process), "PID",
	  "The recorded process to report, or 'all' that ran its executable. Default: the one with "
	  "most samples.",
	  NULL },
};

static void heading(const char *text)
{
	bool color = npg_use_color(1);

	printf("\n%s%s%s\n", color ? "\033[1m" : "", text, color ? "\033[0m" : "");
}

static void print_quality_phrase(const struct npg_report *r)
{
	char percent[NPG_TEXT_SIZE], overhead[NPG_TEXT_SIZE];

	npg_text_wrap(stdout, 0, 2, "%s of %.0f address samples match an object%s%s%s",
		      npg_text_percent(r->matched_share, percent), r->nr_seen,
		      r->overhead >= 0.0 ? "; recording cost " : "",
		      r->overhead >= 0.0 ? npg_text_percent(r->overhead, overhead) : "",
		      r->overhead >= 0.0 ? " of the program's CPU time" : "");
}

/* The answer in one sentence, with the numbers that matter. */
static void print_verdict(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	const struct npg_analysis *a = r->analysis;
	char before[NPG_TEXT_SIZE], after[NPG_TEXT_SIZE], t0[NPG_TEXT_SIZE], t1[NPG_TEXT_SIZE];
	const struct npg_score *first, *plan;

	npg_text_wrap(stdout, 0, 2, "%s%s", p->command[0] != '\0' ? p->command : p->program,
		      p->is_complete ? "" : " (incomplete recording)");
	if (a == NULL) {
		puts("There is no address sample, so nothing can be said about its accesses.");
		return;
	}
	first = &a->predictions[NPG_ALTERNATIVE_FIRST_TOUCH].score;
	plan = &a->predictions[NPG_ALTERNATIVE_PLAN].score;
	if (a->cost->nr_nodes == 1)
		npg_text_wrap(stdout, 0, 0,
			      "On a machine with one node all memory is local; %s of the sampled "
			      "accesses (%.0f) go to pages that another thread touched first.",
			      npg_text_percent(1.0 - r->first_toucher_share, before),
			      p->nr_samples);
	else if (a->leave)
		npg_text_wrap(stdout, 0, 0,
			      "On %s, %s of %.0f sampled accesses are local by first touch (memory "
			      "time %s): leave it as it is.",
			      a->topology->name, npg_text_percent(first->lar, before),
			      p->nr_samples, npg_text_ns(first->memory_ns, t0));
	else
		npg_text_wrap(stdout, 0, 0,
			      "On %s, %s of %.0f sampled accesses are local by first touch, %s as "
			      "planned; memory time goes from %s to %s.",
			      a->topology->name, npg_text_percent(first->lar, before),
			      p->nr_samples, npg_text_percent(plan->lar, after),
			      npg_text_ns(first->memory_ns, t0), npg_text_ns(plan->memory_ns, t1));
}

static void print_observed(const struct npg_observed *o)
{
	int n = o->nr_nodes < MAX_NODES ? o->nr_nodes : MAX_NODES;

	heading("Observed while recording: CPUs' node by memory's node, % of accesses");
	printf("%10s", "");
	for (int j = 0; j < n; j++)
		printf(" %7d", o->nodes[j]);
	putchar('\n');
	for (int i = 0; i < n; i++) {
		printf("%10d", o->nodes[i]);
		for (int j = 0; j < n; j++)
			printf(" %6.1f%c", 100.0 * o->counts[i * 64 + j] / o->total,
			       i == j ? '*' : ' ');
		putchar('\n');
	}
}

static void print_matrix(const struct npg_analysis *a, enum npg_alternative alternative,
			 const char *title)
{
	int n = a->cost->nr_nodes, shown = n < MAX_NODES ? n : MAX_NODES;
	double *matrix = NULL;

	if (npg_analysis_matrix(a, alternative, &matrix) < 0)
		return;
	heading(title);
	printf("%10s", "");
	for (int j = 0; j < shown; j++)
		printf(" %7d", j);
	putchar('\n');
	for (int i = 0; i < shown; i++) {
		printf("%10d", i);
		for (int j = 0; j < shown; j++)
			printf(" %6.1f%c", 100.0 * matrix[i * n + j], i == j ? '*' : ' ');
		putchar('\n');
	}
	if (shown < n)
		printf("(%d more nodes: see --json)\n", n - shown);
	free(matrix);
}

static void print_matrices(const struct npg_report *r)
{
	if (r->session.profile->observed.nr_nodes > 1)
		print_observed(&r->session.profile->observed);
	if (r->analysis == NULL || r->analysis->cost->nr_nodes == 1)
		return;
	print_matrix(r->analysis, NPG_ALTERNATIVE_FIRST_TOUCH,
		     "First touch: CPUs' node by memory's node, % of accesses (* local)");
	if (!r->analysis->leave)
		print_matrix(r->analysis, NPG_ALTERNATIVE_PLAN, "Planned");
}

static void planned_text(const struct npg_report *r, const struct npg_report_row *row, char *text,
			 size_t size)
{
	if (r->analysis->leave || !row->is_placed)
		snprintf(text, size, "-");
	else if (row->node >= 0)
		snprintf(text, size, "node %d", row->node);
	else
		snprintf(text, size, "%s",
			 row->node == NPG_SOLVER_INTERLEAVE ? "spread" : "ranges");
}

/* "main (heap 0x126f x473)": two call sites in one function need telling apart. */
static void object_label(const struct npg_report *r, const struct npg_report_row *row, char *text,
			 size_t size)
{
	size_t used = (size_t)snprintf(text, size, "%.400s (%s", npg_text_file_name(row->name),
				       npg_object_kind_name(row->kind));

	if (row->site >= 0)
		used += (size_t)snprintf(text + used, size - used, " 0x%" PRIx64,
					 npg_site_offset(r->session.profile, row->site));
	if (row->nr_allocations > 1)
		used += (size_t)snprintf(text + used, size - used, " x%zu", row->nr_allocations);
	snprintf(text + used, size - used, ")");
}

static void print_objects(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	size_t columns = npg_text_columns(), width = columns > 70 ? columns - 54 : 16;
	char share[NPG_TEXT_SIZE], size[NPG_TEXT_SIZE], planned[32], user[64], touched[64],
	    name[2048], label[512];
	double others = 0.0;

	if (r->nr_rows == 0)
		return;
	heading("Objects");
	printf("%7s %7s %8s %-7s %6s %5s %6s  %s\n", "share", "samples", "size", "use", "by",
	       "first", "plan", "name");
	for (size_t i = 0; i < r->nr_rows; i++) {
		const struct npg_report_row *row = &r->rows[i];

		if (i >= MAX_ROWS) {
			others += row->share;
			continue;
		}
		if (row->pattern == NPG_PATTERN_PRIVATE && row->has_many_users)
			snprintf(user, sizeof(user), "1 each");
		else if (row->pattern == NPG_PATTERN_PRIVATE)
			npg_text_elide(p->threads[row->main_thread].path, 6, user, sizeof(user));
		else
			snprintf(user, sizeof(user), "%zu thr", row->nr_users);
		planned_text(r, row, planned, sizeof(planned));
		object_label(r, row, label, sizeof(label));
		printf("%7s %7.0f %8s %-7s %6s %5s %6s  %s\n", npg_text_percent(row->share, share),
		       row->nr_samples, npg_text_bytes(row->size_bytes, size),
		       npg_pattern_name(row->pattern), user,
		       npg_text_elide(p->threads[row->first_toucher].path, 5, touched,
				      sizeof(touched)),
		       planned, npg_text_elide(label, width, name, sizeof(name)));
	}
	if (r->nr_rows > MAX_ROWS)
		printf("%7s in %zu other objects\n", npg_text_percent(others, share),
		       r->nr_rows - MAX_ROWS);
}

static void print_threads(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	char cpu[NPG_TEXT_SIZE], path[128], name[256], node[16] = "-";
	size_t shown = 0;

	heading("Threads");
	printf("%-16s %8s %9s %7s  %s\n", "path", "samples", "CPU time", "planned", "name");
	for (size_t t = 0; t < p->nr_threads && shown < MAX_THREADS; t++) {
		const struct npg_profile_thread *thread = &p->threads[t];

		if (thread->samples <= 0.0 && p->nr_threads > MAX_THREADS)
			continue;
		if (r->analysis != NULL && !r->analysis->leave)
			snprintf(node, sizeof(node), "node %d",
				 r->analysis->solution.thread_node[t]);
		printf("%-16s %8.0f %9s %7s  %s\n",
		       npg_text_elide(thread->path, 16, path, sizeof(path)), thread->samples,
		       thread->cpu_ns > 0.0 ? npg_text_ns(thread->cpu_ns, cpu) : "-", node,
		       npg_text_elide(thread->name != NULL ? thread->name : "", 32, name,
				      sizeof(name)));
		shown++;
	}
	if (shown < p->nr_threads)
		printf("and %zu more threads\n", p->nr_threads - shown);
}

static void print_first_touch(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	char own[NPG_TEXT_SIZE], others[NPG_TEXT_SIZE];

	if (r->analysis == NULL)
		return;
	heading("First touch against use");
	npg_text_wrap(stdout, 0, 2,
		      "%s of the accesses are by the thread that touched the page first, %s by "
		      "others (%zu pages' first touches are known)",
		      npg_text_percent(r->first_toucher_share, own),
		      npg_text_percent(1.0 - r->first_toucher_share, others), p->nr_touches);
	if (p->nr_start_samples > 0.0)
		npg_text_wrap(stdout, 0, 2,
			      "%.0f of %.0f samples are of initialisations and count %.2f each",
			      p->nr_start_samples, p->nr_samples, npg_start_weight(p));
}

static void print_quality(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;

	heading("Quality of the recording");
	print_quality_phrase(r);
	printf("%-8s %8s %8s %10s %9s %9s %7s\n", "source", "records", "samples", "no operand",
	       "undecoded", "unmatched", "lost");
	for (size_t i = 0; i < p->nr_sources; i++) {
		const struct npg_profile_source *s = &p->sources[i];

		if (strcmp(s->state, "used") != 0) {
			printf("%-8s ", s->name);
			npg_text_wrap(stdout, 9, 9, "%s%s%s", s->state,
				      s->reason[0] != '\0' ? ": " : "", s->reason);
			continue;
		}
		printf("%-8s %8lld %8lld %10lld %9lld %9lld %7lld\n", s->name,
		       (long long)s->nr_records, (long long)s->nr_samples,
		       (long long)s->nr_no_operand, (long long)s->nr_undecoded,
		       (long long)s->nr_unmatched, (long long)s->nr_lost);
	}
	if (p->nr_text_samples > 0.0)
		npg_text_wrap(stdout, 0, 2,
			      "%.0f samples in program text are not among the accesses above",
			      p->nr_text_samples);
	if (p->nr_other_processes > 0)
		npg_text_wrap(stdout, 0, 2,
			      "%zu other processes with %.0f samples are not in this report",
			      p->nr_other_processes, p->other_samples);
	if (strcmp(p->agent, "active") != 0)
		npg_text_wrap(stdout, 0, 2, "allocations were not seen: %s", p->agent);
	for (size_t i = 0; i < p->nr_notes; i++)
		npg_text_wrap(stdout, 0, 2, "note: %s", p->notes[i]);
}

static void print_next(const struct npg_report *r)
{
	const struct npg_profile *p = r->session.profile;
	const char *path = r->session.recording.path;

	putchar('\n');
	if (r->analysis == NULL)
		puts("next: numapgo doctor");
	else if (!r->was_analyzed && r->analysis->cost->nr_nodes == 1)
		printf("next: numapgo analyze --machine 4-nodes %s\n", path);
	else if (!r->was_analyzed)
		printf("next: numapgo analyze %s\n", path);
	else
		printf("next: numapgo replay -- %s\n", p->command[0] != '\0' ? p->command : "CMD");
}

void npg_report_print_text(const struct npg_report *report)
{
	print_verdict(report);
	print_matrices(report);
	print_objects(report);
	print_threads(report);
	print_first_touch(report);
	print_quality(report);
	print_next(report);
}

static int report_run(const struct npg_command *command, void *raw, int argc, char **argv)
{
	const struct report_options *options = raw;
	struct npg_error err = { "out of memory" };
	struct npg_report report;
	int ret;

	if (argc > 1) {
		npg_error_print("report: one recording is wanted, not also '%s'", argv[1]);
		return NPG_EXIT_USAGE;
	}
	ret = npg_report_make(&report, argc == 1 ? argv[0] : NULL, options->machine,
			      options->process, &err);
	if (ret == 0 && options->common.json)
		ret = npg_report_print_json(&report);
	else if (ret == 0)
		npg_report_print_text(&report);
	if (ret < 0)
		npg_error_print("%s: %s", command->name, err.text);
	npg_report_release(&report);
	return ret < 0 ? NPG_EXIT_FAILED : NPG_EXIT_OK;
}

const struct npg_command npg_command_report = {
	.name = "report",
	.summary = "inspect a recording in the terminal",
	.operands = "[DB]",
	.description =
	    "Says in one sentence how local the program's accesses are, then shows nodes against\n"
	    "nodes, the objects and threads that matter, first touch against use, and how good\n"
	    "the recording is. Works before analyze and on incomplete recordings too. DB is\n"
	    "numapgo.db by default. Output fits the terminal or COLUMNS.",
	.examples = "  numapgo report\n"
		    "  numapgo report --machine 2-nodes run.db\n"
		    "  numapgo report --json run.db",
	.options = options_table,
	.nr_options = NPG_ARRAY_SIZE(options_table),
	.options_size = sizeof(struct report_options),
	.run = report_run,
};
