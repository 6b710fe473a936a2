/*
 * What all parts of the placing object share: the launcher's table, its status, and counting.
 */
#ifndef NPG_REPLAYER_PRELOAD_STATE_H
#define NPG_REPLAYER_PRELOAD_STATE_H

#include "lib/preload/rules.h"
#include "schemas/wire.h"

/* Set before the object becomes active, then read only. */
struct npg_state {
	const struct npg_wire_table *table;
	const struct npg_wire_site *sites;
	const struct npg_wire_object *objects;
	const struct npg_wire_static *statics;
	const struct npg_wire_range *ranges;
	const struct npg_wire_range *tables;
	const struct npg_wire_policy *policies;
	const struct npg_wire_pin *pins;
	const struct npg_wire_cpuset *cpusets;
	uint32_t *counters; /* one per site, then table->nr_counters */
};

extern struct npg_state npg_state;

/* Changes once, when a forked child stops to report. Never NULL. */
extern struct npg_wire_status *npg_status;
extern struct npg_wire_outcome *npg_outcomes; /* NULL: nobody to report to */

/**
 * npg_state_init() - check the table, which its writer may have spoiled, and point into it.
 * @memory: all of the memfd, mapped for reading and writing; the table becomes read-only.
 *
 * Return: false if anything in it lies outside of it. MT-Unsafe. AS-Safe.
 */
NPG_MUST_CHECK bool npg_state_init(void *memory, size_t size_bytes);

/** npg_state_stop_reporting() - in a forked child that is not followed. AS-Safe. */
void npg_state_stop_reporting(void);

/** npg_count() - add to a counter of the status. MT-Safe. AS-Safe. */
static inline void npg_count(uint64_t *counter, uint64_t nr)
{
	__atomic_fetch_add(counter, nr, __ATOMIC_RELAXED);
}

/** npg_refuse() - count what was not done; @error is a positive errno, 0 if there is none. */
void npg_refuse(enum npg_wire_refusal refusal, int error);

#endif
