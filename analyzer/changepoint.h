/*
 * Where inside an object the users change: change points in a row of sparse samples.
 *
 * Each sample has a position (a page of an object, or the ordinal of an allocation) and a category
 * (a thread). The row is cut into segments that maximise
 *
 *     sum over segments of log L(segment)  -  (segments - 1) * log(candidate borders)
 *
 * by dynamic programming, so the cut is the best one, not a greedy one. L is the larger of
 *   - the multinomial likelihood under the whole row's distribution ("nothing special here"), and
 *   - the Dirichlet-multinomial marginal likelihood with total concentration 1, spread evenly over
 *     the categories that occur: it favours segments with few users and, unlike BIC with its half a
 *     logarithm per category, does not drown a block of eight unanimous samples among 64 threads.
 * Rows with more than NPG_CHANGEPOINT_MAX_BINS distinct positions are cut between bins of equally
 * many samples first; each border is then placed exactly between two samples.
 *
 * Between the last sample before and the first one after a border nothing is known: the border goes
 * to a multiple of length/categories if one lies there (programs divide their work evenly), else
 * to the middle.
 */
#ifndef NPG_ANALYZER_CHANGEPOINT_H
#define NPG_ANALYZER_CHANGEPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

#define NPG_CHANGEPOINT_MAX_BINS       512
#define NPG_CHANGEPOINT_MAX_CATEGORIES 64 /* further ones, by samples, count as one */

struct npg_point {
	uint64_t position;
	uint32_t category;
	uint32_t nr_samples;
};

struct npg_segment {
	uint64_t first;
	uint64_t length;
	size_t first_point; /* index into the points */
	size_t nr_points;
};

/**
 * npg_changepoints_find() - cut a row into segments.
 * @points: ordered by position; positions below @length.
 * @length: of the row, at least 1.
 * @segments: result, covers 0 .. @length - 1 without gaps; at least one; to be freed by free(3).
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_changepoints_find(const struct npg_point *points, size_t nr_points,
					 uint64_t length, struct npg_segment **segments,
					 size_t *nr_segments);

#endif
