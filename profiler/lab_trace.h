/*
 * The files that the NUMA lab's counting plugin writes (formats: tests/lab/README.md): a trace of
 * its virtual PMU, or exact counts per page and CPU. A pure decoder of one line.
 */
#ifndef NPG_PROFILER_LAB_TRACE_H
#define NPG_PROFILER_LAB_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

enum npg_lab_kind {
	NPG_LAB_TRACE,  /* first line of a trace: .period */
	NPG_LAB_COUNTS, /* first line of a file of counts */
	NPG_LAB_LOAD,   /* load that missed the last-level cache */
	NPG_LAB_WALK,   /* access that missed the second-level TLB */
	NPG_LAB_PAGE,   /* all accesses of one CPU to one page */
	NPG_LAB_OTHER,  /* a line of a file of counts that tells nothing about pages */
};

struct npg_lab_record {
	enum npg_lab_kind kind;
	int cpu;
	int memory_node;
	uint64_t period;  /* events per record of a trace */
	uint64_t time_ns; /* guest's CLOCK_MONOTONIC */
	uint64_t address; /* of a page: its first byte */
	uint64_t ip;
	uint64_t latency_cycles; /* 0: not known */
	bool is_write;
	uint64_t nr_loads, nr_stores;               /* page: of all accesses */
	uint64_t nr_memory_loads, nr_memory_stores; /* page: of these, in memory */
	uint64_t nr_walks;                          /* page: of these, after a page walk */
};

/**
 * npg_lab_record_parse() - decode one line.
 * @line, @size: without the line's end; need not be terminated.
 *
 * Return: 0; -EINVAL if it is no line of such a file.
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_lab_record_parse(const char *line, size_t size,
					struct npg_lab_record *record);

#endif
