/*
 * Ranges of a planned object on this machine: nodes become policies of the kernel.
 */
#ifndef NPG_REPLAYER_RANGES_H
#define NPG_REPLAYER_RANGES_H

#include <stdint.h>

#include "replayer/list.h"
#include "replayer/placing.h"

/* Private to replayer/: a table being built. */
struct npg_build {
	const struct npg_plan *plan;
	const struct npg_resolution *res;
	const struct npg_fit *fit;
	const struct npg_placing_options *options;
	struct npg_list sites;
	struct npg_list objects;
	struct npg_list statics;
	struct npg_list ranges;
	struct npg_list tables;
	struct npg_list policies;
	struct npg_list threads;
	struct npg_list cpusets;
	uint32_t nr_counters;
	uint32_t nr_pools;
	uint64_t min_bytes;
};

struct npg_extent { /* places in the lists ranges and tables of the build */
	uint32_t first_range, nr_ranges;
	uint32_t first_table, nr_tables;
};

/**
 * npg_ranges_add() - append an object's ranges in pages of this machine, and its page-table ranges.
 *
 * Return: 0; -ENOMEM. MT-Safe (per build).
 */
NPG_MUST_CHECK int npg_ranges_add(struct npg_build *build, const struct npg_plan_object *object,
				  struct npg_extent *extent);

/**
 * npg_statics_add() - append all static objects, pages claimed once.
 *
 * Return: 0; -ENOMEM. MT-Safe (per build).
 */
NPG_MUST_CHECK int npg_statics_add(struct npg_build *build);

#endif
