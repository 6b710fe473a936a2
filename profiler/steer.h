/*
 * How often to sample so that recording costs no more than asked for.
 */
#ifndef NPG_PROFILER_STEER_H
#define NPG_PROFILER_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_steer {
	double overhead_percent; /* the limit */
	uint64_t interrupt_ns;   /* cost of one sample in the program's time, measured */
	uint64_t period_ns;      /* clock, now */
	bool is_fixed;           /* the user chose the period */
	uint64_t last_ns;        /* when it was looked at last */
	int64_t last_samples;
	int64_t last_recorder_ns;
};

/**
 * npg_steer_measure_ns() - cost of one clock sample here: a loop timed with and without the event.
 *
 * Takes about 4 ms of CPU time. Return: ns, or a usual value where it cannot be measured.
 */
uint64_t npg_steer_measure_ns(void);

/** npg_steer_init() - choose the first period. @period_ns: the user's, or 0. */
void npg_steer_init(struct npg_steer *steer, double overhead_percent, uint64_t period_ns,
		    uint64_t interrupt_ns);

/**
 * npg_steer_update() - look at the cost since the last call.
 * @nr_samples, @recorder_ns: totals: records of the clock, and CPU time of the recorder.
 *
 * Return: true if .period_ns has changed.
 */
bool npg_steer_update(struct npg_steer *steer, uint64_t now_ns, int64_t nr_samples,
		      int64_t recorder_ns);

/** npg_steer_prime() - the smallest prime that is at least @n: no harmonics with the program. */
uint64_t npg_steer_prime(uint64_t n);

#endif
