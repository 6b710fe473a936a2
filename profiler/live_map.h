/*
 * Streaming attribution: follows a program's processes, threads and memory by the kernel's and the
 * agent's records, and writes each sample with the object that its address belonged to at that
 * moment, so that a recording is usable whenever it ends.
 *
 * Records must come in the order of their times (profiler/queue.h sees to that).
 */
#ifndef NPG_PROFILER_LIVE_MAP_H
#define NPG_PROFILER_LIVE_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "profiler/perf_decode.h"
#include "profiler/writer.h"
#include "schemas/wire.h"

enum npg_source { /* id of the source's row minus 1 */
		  NPG_SOURCE_CLOCK,
		  NPG_SOURCE_HINT,
		  NPG_SOURCE_FAULT,
		  NPG_SOURCE_LOADS,
		  NPG_SOURCE_TLB,
		  NPG_NR_SOURCES,
};

struct npg_live_options {
	bool has_hints;    /* later faults of a touched page are hint faults */
	bool keeps_counts; /* --keep counts */
	int64_t epoch_ns;  /* of these */
	int64_t base_ns;   /* where epoch 0 begins */
	uint64_t page_bytes;
	pid_t only_pid; /* 0; or the process whose children are left alone */
	bool has_perf;  /* the kernel tells of mappings; else /proc/PID/maps is read */
};

struct npg_source_count {
	int64_t nr_records, nr_samples, nr_no_operand, nr_undecoded, nr_unmatched, nr_lost;
	int64_t nr_throttled;
	int64_t nr_events; /* that the records stand for */
};

struct npg_live_map;

/**
 * npg_live_map_open() - begin with no process.
 * @writer: borrowed until npg_live_map_close().
 *
 * Return: 0; -ENOMEM.
 * MT-Unsafe.
 */
NPG_MUST_CHECK int npg_live_map_open(const struct npg_live_options *options,
				     struct npg_writer *writer, struct npg_live_map **live);

/** npg_live_map_attach() - a process that runs already: its maps and threads from /proc. */
void npg_live_map_attach(struct npg_live_map *live, pid_t pid, int64_t time_ns);

/** npg_live_map_perf() - a record of the kernel; samples go to npg_live_map_sample(). */
void npg_live_map_perf(struct npg_live_map *live, const struct npg_perf_record *record);

/** npg_live_map_sample() - a sample of the clock or fault event. */
void npg_live_map_sample(struct npg_live_map *live, const struct npg_perf_record *record,
			 enum npg_source source);

/** npg_live_map_wire() - a record of the agent. */
void npg_live_map_wire(struct npg_live_map *live, const struct npg_wire_record *record);

/** npg_live_map_counts() - the counters of a source, to be read and added to. */
struct npg_source_count *npg_live_map_counts(struct npg_live_map *live, enum npg_source source);

/**
 * npg_live_map_finish() - the recording ends: write what is still open, name the functions.
 * @agent_of_first: why the first process has no agent, if it has none; may be NULL.
 */
void npg_live_map_finish(struct npg_live_map *live, int64_t time_ns, const char *agent_of_first);

/** npg_live_map_close() - NULL is allowed. */
void npg_live_map_close(struct npg_live_map *live);

#endif
