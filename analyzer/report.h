/*
 * The content of a report: what a recording says, in the order in which people ask. Printed as
 * text or JSON by cmd_report*.c.
 */
#ifndef NPG_ANALYZER_REPORT_H
#define NPG_ANALYZER_REPORT_H

#include "analyzer/decide.h"
#include "analyzer/session.h"

/* An object, or all allocations of a call site together. */
struct npg_report_row {
	const char *name;
	enum npg_object_kind kind;
	int site;              /* call site of the profile, or NPG_NONE */
	size_t nr_allocations; /* objects joined in this row */
	uint64_t size_bytes;   /* of all */
	double nr_samples;
	double share;
	enum npg_pattern pattern; /* of the group with most accesses */
	uint32_t main_thread;
	bool has_many_users; /* its groups have different main threads */
	double main_share;
	size_t nr_users;
	uint32_t first_toucher;
	bool is_placed;
	int node; /* NPG_SOLVER_INTERLEAVE; -2: several; if .is_placed */
	double first_touch_local_share;
	double local_share;
};

struct npg_report {
	struct npg_session session;
	struct npg_analysis *analysis; /* NULL: no samples or no machine */
	struct npg_decisions decisions;
	bool was_analyzed;        /* the recording has analysis tables */
	bool is_analyzed_machine; /* .session.topology is the machine of those */
	size_t nr_rows;
	struct npg_report_row *rows; /* by share */
	double nr_seen;              /* address samples of the program */
	double matched_share;        /* of them, in an object */
	double first_toucher_share;  /* of accesses, by the thread that touched the page first */
	double overhead; /* recorder and sampling CPU time / program's; < 0: not known */
};

/**
 * npg_report_make() - open a recording and gather its report.
 * @report: result, to be ended with npg_report_release() in any case.
 * @machine: as for npg_session_open(); NULL: the machine of the last analyze, if it can be found,
 *           else the recorded one.
 *
 * Return: 0; negative with @err set.
 * MT-Unsafe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_report_make(struct npg_report *report, const char *path, const char *machine,
				   const char *process, struct npg_error *err);

/** npg_report_release() - safe on a zeroed struct. */
void npg_report_release(struct npg_report *report);

/** npg_report_print_text() - for people, at most npg_text_columns() wide. */
void npg_report_print_text(const struct npg_report *report);

/** npg_report_print_json() - the same content. Return: 0; -ENOMEM. */
NPG_MUST_CHECK int npg_report_print_json(const struct npg_report *report);

#endif
