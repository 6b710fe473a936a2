/*
 * Kernel events on a program: opened per CPU with inherit, so that threads and processes that come
 * later are seen; one ring per CPU for all of them; times are CLOCK_MONOTONIC.
 *
 * The first event that opens also carries the side band: mappings, names, task starts and ends.
 */
#ifndef NPG_PROFILER_PERF_EVENT_H
#define NPG_PROFILER_PERF_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/error.h"
#include "profiler/perf_decode.h"
#include "profiler/perf_ring.h"
#include "profiler/table.h"

enum npg_perf_event {
	NPG_PERF_EVENT_CLOCK, /* cpu-clock with user registers */
	NPG_PERF_EVENT_FAULT, /* page faults with address */
	NPG_PERF_EVENT_TRACK, /* no samples: the side band alone, when nothing else opens */
	NPG_PERF_NR_EVENTS,
};

struct npg_perf_state {
	bool is_wanted;
	bool is_open;
	bool sees_kernel;      /* also faults that the kernel takes on the program's memory */
	uint64_t period_ns;    /* clock: CPU time between samples */
	uint64_t frequency_hz; /* fault: the kernel steers the period to this rate per CPU */
	char text[160];        /* the event and its attributes, for the record */
	struct npg_error why;  /* why it is not open */
};

struct npg_perf_cpu {
	int cpu;
	struct npg_perf_ring ring;
};

struct npg_perf_session {
	struct npg_perf_layout layout;
	struct npg_perf_state events[NPG_PERF_NR_EVENTS];
	size_t nr_cpus;
	struct npg_perf_cpu *cpus;
	size_t nr_tasks;
	int *fds;            /* [task][cpu][event]; -1: none */
	struct npg_table id; /* event ID to enum npg_perf_event + 1 */
	bool has_ring;
	bool leaves_children; /* only threads inherit, not processes */
};

/**
 * npg_perf_session_open() - open what .events wants on tasks.
 * @tasks: @nr_tasks thread ids.
 * @is_exec_pending: true: counting begins at the task's next execve; false: at once.
 * @session: .events[].is_wanted, .period_ns, .frequency_hz and .leaves_children are read, the
 *           rest is result; to be
 *           ended with npg_perf_session_close(), also after a failure.
 *
 * An event that cannot be opened is left out and explains itself in .why.
 *
 * Return: 0 (something is open); -ENODATA nothing is, @err says why; -ENOMEM.
 * MT-Unsafe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_perf_session_open(struct npg_perf_session *session, const pid_t *tasks,
					 size_t nr_tasks, bool is_exec_pending,
					 struct npg_error *err);

/**
 * npg_perf_event_of() - which event a record's .id names; NPG_PERF_NR_EVENTS if none of ours.
 */
enum npg_perf_event npg_perf_event_of(const struct npg_perf_session *session, uint64_t id);

/** npg_perf_session_ring_fd() - to poll for a ring that is half full; -1: none on this CPU. */
int npg_perf_session_ring_fd(const struct npg_perf_session *session, size_t i_cpu);

/** npg_perf_session_set_period() - another clock period for the tasks opened and their new ones. */
void npg_perf_session_set_period(struct npg_perf_session *session, uint64_t period_ns);

/** npg_perf_session_stop() - count no more; the rings stay readable. */
void npg_perf_session_stop(struct npg_perf_session *session);

/** npg_perf_session_close() - safe on a zeroed struct. */
void npg_perf_session_close(struct npg_perf_session *session);

/**
 * npg_perf_event_explain() - say why perf_event_open(2) or its mmap failed and what to do.
 * @error: positive errno.
 * @name:  of the source, for the text.
 *
 * Return: -@error.
 * MT-Safe. Not AS-Safe (reads /proc/sys).
 */
int npg_perf_event_explain(int error, const char *name, struct npg_error *err);

#endif
