/*
 * Affinity: pieces of memory, and leaf page tables, with the accesses of each thread to them.
 *
 * An object is cut where its users change (analyzer/changepoint.h). A segment in which single pages
 * have users of their own (analyzer/shrink.h) is cut further, into pages or, beyond 4096 sampled
 * ones, into chunks of pages. Each allocation of a call site is such an object; those with few
 * samples lean on their neighbours among the site's allocations in the same two ways.
 *
 * Units cover all pages of a group that a plan can place, in order. Other groups have one unit per
 * thread that touched pages of them first; such a unit follows that thread.
 */
#ifndef NPG_ANALYZER_AFFINITY_H
#define NPG_ANALYZER_AFFINITY_H

#include "analyzer/cells.h"
#include "analyzer/first_touch.h"
#include "analyzer/solver.h"

struct npg_unit_info {
	uint32_t group;
	uint64_t first_page;
	uint64_t nr_pages;
	double nr_samples; /* that decide about it, start-up left out */
};

struct npg_table_info {
	uint32_t group;
	uint64_t region; /* see npg_object_region() */
};

struct npg_affinity {
	struct npg_arena arena; /* of the uses */
	size_t nr_units;
	struct npg_unit *units;
	struct npg_unit_info *unit_info;
	size_t *first_unit; /* per group, and one more: the end */
	size_t nr_tables;
	struct npg_unit *tables;
	struct npg_table_info *table_info;
	size_t *first_table; /* per group, and one more: the end */
};

struct npg_affinity_input {
	const struct npg_profile *profile;
	const struct npg_grouping *grouping;
	const struct npg_first_touch *first_touch;
	const struct npg_cells *cells;
	bool plan_tables; /* else page tables follow the first touch of their region */
};

/**
 * npg_affinity_make() - units and tables of all groups.
 * @affinity: result, to be ended with npg_affinity_release().
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_affinity_make(const struct npg_affinity_input *input,
				     struct npg_affinity *affinity);

/** npg_affinity_release() - safe on a zeroed struct. */
void npg_affinity_release(struct npg_affinity *affinity);

/**
 * npg_affinity_unit_of() - index of the unit that covers a page of a plannable group.
 * MT-Safe. AS-Safe.
 */
size_t npg_affinity_unit_of(const struct npg_affinity *affinity, uint32_t group, uint64_t page);

#endif
