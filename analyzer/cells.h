/*
 * Cells: weighted accesses by (group, page, thread), of one half of the samples or of all. They are
 * what affinities are made from and what placements are scored on.
 *
 * Start-up: accesses of an object's initialisation are real, but a recording is often a short run,
 * in which they weigh more than in the runs to come. Together they count for at most 5 % of the
 * others.
 */
#ifndef NPG_ANALYZER_CELLS_H
#define NPG_ANALYZER_CELLS_H

#include "analyzer/grouping.h"
#include "analyzer/profile.h"

enum npg_half {
	NPG_HALF_FIRST = 1,
	NPG_HALF_SECOND = 2,
	NPG_HALF_BOTH = 3,
};

struct npg_cell {
	uint64_t page;
	uint32_t group;
	uint32_t thread;
	uint32_t nr_samples; /* without those of the start-up, unless there are no others */
	float weight;        /* 0: page walks only */
	float walks;
};

struct npg_cells {
	size_t nr_cells;
	struct npg_cell *cells; /* by group, page, thread */
	size_t *first_cell;     /* per group, and one more: the end */
};

/**
 * npg_cells_make() - collect the cells of @half of the samples.
 *
 * Page walks are the samples of sources that sample TLB misses. Without those, each page that a
 * thread uses counts once, however often it was sampled, since walks follow page changes; and it
 * counts a quarter of a sample: published runs of large programs spend 16 to 41 % of their time in
 * walks. Where that matters it is said that walks are assumed (npg_walks_are_sampled()).
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_cells_make(const struct npg_profile *profile,
				  const struct npg_grouping *grouping, enum npg_half half,
				  struct npg_cells *cells);

/** npg_cells_release() - safe on a zeroed struct. */
void npg_cells_release(struct npg_cells *cells);

/** npg_walks_are_sampled() - is there a source that samples page walks? */
bool npg_walks_are_sampled(const struct npg_profile *profile);

/** npg_start_weight() - factor that accesses of the start-up count with, 0..1. */
double npg_start_weight(const struct npg_profile *profile);

#endif
