/*
 * The two ways to record: launch a program, or watch a process that runs already.
 */
#ifndef NPG_PROFILER_RECORD_RUN_H
#define NPG_PROFILER_RECORD_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/command.h"
#include "lib/compiler.h"
#include "lib/error.h"
#include "lib/recording.h"

enum npg_record_children { NPG_CHILDREN_FOLLOW, NPG_CHILDREN_LEAVE };
enum npg_record_keep { NPG_KEEP_SAMPLES, NPG_KEEP_COUNTS };

struct npg_record_options {
	struct npg_common common;
	const char *output; /* pattern of npg_output_expand() */
	const char *source; /* list */
	double overhead_percent;
	uint64_t period_ns; /* 0: by overhead_percent */
	uint64_t min_object_bytes;
	int children; /* enum npg_record_children */
	int keep;     /* enum npg_record_keep */
	uint64_t pid;
	double duration_s;
	void (*tell)(bool is_error, const char *text); /* a message while recording; may be NULL */
};

struct npg_record_summary {
	bool has_begun;    /* the program ran, or was watched */
	bool is_complete;  /* the file is there */
	bool was_launched; /* .wait_status is valid */
	int wait_status;
	char path[PATH_MAX];
	char perf_reason[1024]; /* why there are no samples; empty: there are */
	int64_t nr_samples;
	int64_t nr_unmatched;
	int64_t nr_lost;
	int64_t program_cpu_ns;
	int64_t recorder_cpu_ns;
	int64_t interrupt_ns;
};

/**
 * npg_record_launch() - run @argv under the recorder until it ends.
 * @summary: cleared by the caller.
 *
 * When recording fails while the program runs, the program goes on and .tell gets the reason.
 *
 * Return: enum npg_exit; of meaning only if .was_launched is false.
 * MT-Unsafe (fork, signals).
 */
int npg_record_launch(const struct npg_record_options *options, char **argv,
		      struct npg_record_summary *summary, struct npg_error *err);

/** npg_record_watch() - the same for process .pid; it is never disturbed. Return: enum npg_exit. */
int npg_record_watch(const struct npg_record_options *options, struct npg_record_summary *summary,
		     struct npg_error *err);

/**
 * npg_sources_parse() - read a list of sources: "auto" or names with commas.
 * @wants: NPG_NR_SOURCES flags, by enum npg_source.
 *
 * Return: 0; -EINVAL with @err set.
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_sources_parse(const char *list, bool *wants, bool *is_auto,
				     struct npg_error *err);

#endif
