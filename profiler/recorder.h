/*
 * The recorder: events, the agent's channel, the live map and the database of one recording,
 * driven by its owner's loop.
 */
#ifndef NPG_PROFILER_RECORDER_H
#define NPG_PROFILER_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/error.h"
#include "lib/recording.h"
#include "profiler/channel.h"
#include "profiler/live_map.h"
#include "profiler/perf_event.h"
#include "profiler/queue.h"
#include "profiler/steer.h"

struct npg_recorder_options {
	bool wants[NPG_NR_SOURCES];
	bool is_auto;       /* nobody asked for a source by name */
	uint64_t period_ns; /* of clock; 0: by overhead_percent */
	double overhead_percent;
	bool keeps_counts;
	bool leaves_children;
	bool has_hints; /* kernel.numa_balancing is on */
	struct npg_error why_no_hints;
};

struct npg_recorder {
	struct npg_recorder_options options;
	struct npg_recording recording;
	struct npg_writer *writer;
	struct npg_live_map *live;
	struct npg_perf_session perf;
	struct npg_channel *channel; /* borrowed; NULL: no agent */
	struct npg_queue queue;
	struct npg_steer steer;
	uint64_t fault_cost_ns;      /* of one fault sample in the program's time */
	struct npg_error perf_error; /* why there are no events; empty: there are */
	uint64_t nr_malformed;
	bool has_ended_tasks; /* polling their rings would return at once, for ever */
	uint64_t committed_ns;
	int64_t start_ns;
	int status; /* 0, or the failure that ended the recording */
	struct npg_error error;
};

/**
 * npg_recorder_open() - begin a recording.
 * @path:  of the database.
 * @argv:  the program's; NULL for @tasks that run already.
 * @tasks: @nr_tasks thread ids to open events on; the first is the process.
 * @channel: the agent's, borrowed; may be NULL.
 * @recorder: zeroed by the caller; ended with npg_recorder_close(), also after a failure.
 *
 * Missing permission for events is no failure: .perf_error says so.
 *
 * Return: 0; as npg_recording_create(), -ENOMEM; @err set.
 * MT-Unsafe.
 */
NPG_MUST_CHECK int npg_recorder_open(struct npg_recorder *recorder,
				     const struct npg_recorder_options *options, const char *path,
				     char *const *argv, const pid_t *tasks, size_t nr_tasks,
				     struct npg_channel *channel, struct npg_error *err);

/** npg_recorder_wait() - sleep until a ring fills, @fd is readable or @timeout_ms are over. */
void npg_recorder_wait(struct npg_recorder *recorder, int fd, int timeout_ms);

/**
 * npg_recorder_drain() - take what has come; write what is old enough to be in order.
 * @is_over: the program has ended: take everything.
 *
 * Return: 0; the failure (disk full) that ended the recording, once and for all.
 */
int npg_recorder_drain(struct npg_recorder *recorder, bool is_over);

/**
 * npg_recorder_finish() - write what is still open and rename the file to its final name.
 * @why_no_agent: a phrase; NULL if the program was preloaded.
 */
NPG_MUST_CHECK int npg_recorder_finish(struct npg_recorder *recorder, int64_t exit_status,
				       int64_t exit_signal, int64_t program_cpu_ns,
				       const char *why_no_agent, struct npg_error *err);

/** npg_recorder_close() - safe on a zeroed struct; does not finish the recording. */
void npg_recorder_close(struct npg_recorder *recorder);

/** npg_recorder_interrupt_ns() - estimated time that sampling took in the program so far. */
int64_t npg_recorder_interrupt_ns(struct npg_recorder *recorder);

/** npg_recorder_now_ns() - CLOCK_MONOTONIC. */
uint64_t npg_recorder_now_ns(void);

#endif
