/*
 * How often to sample so that recording costs no more than asked for.
 *
 * The first period follows from the measured cost of a sample. While the program runs, the real
 * cost is looked at each second; a new period reaches the threads and processes that start from
 * then on, since the kernel has no way to change it for inherited events. Weights in the database
 * are each sample's own.
 */
#ifndef NPG_PROFILER_STEER_H
#define NPG_PROFILER_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_steer_totals {     /* since the start */
	uint64_t time_ns;     /* CLOCK_MONOTONIC */
	int64_t program_ns;   /* CPU time that the clock samples stand for */
	int64_t interrupt_ns; /* spent in sampling */
	int64_t recorder_ns;  /* CPU time of the recorder */
};

struct npg_steer {
	double overhead_percent; /* the limit */
	uint64_t clock_cost_ns;  /* of one clock sample in the program's time */
	uint64_t period_ns;      /* of the clock, now */
	bool is_fixed;           /* the user chose the period */
	struct npg_steer_totals last;
};

/**
 * npg_steer_clock_cost_ns(), npg_steer_fault_cost_ns() - cost of one sample to the program here: a
 * loop, and first touches, timed with and without the event.
 *
 * Each takes about 3 ms of CPU time. Return: ns, or a usual value where it cannot be measured.
 */
uint64_t npg_steer_clock_cost_ns(void);
uint64_t npg_steer_fault_cost_ns(void);

/** npg_steer_init() - choose the first period. @period_ns: the user's, or 0. */
void npg_steer_init(struct npg_steer *steer, double overhead_percent, uint64_t period_ns,
		    uint64_t clock_cost_ns);

/** npg_steer_update() - judge the cost since the last call. Return: true if .period_ns changed. */
bool npg_steer_update(struct npg_steer *steer, const struct npg_steer_totals *now);

/** npg_steer_prime() - the smallest prime that is at least @n: no harmonics with the program. */
uint64_t npg_steer_prime(uint64_t n);

#endif
