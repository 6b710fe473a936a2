/*
 * Shrinkage: what a page's few samples say, against what its neighbourhood says.
 *
 *     q(page, thread) = (c(page, thread) + kappa * r(thread)) / (c(page) + kappa)
 *
 * with r the thread's share of the segment's samples (facts: Dirichlet-multinomial pooling). kappa
 * is how many samples the neighbourhood is worth. It is fitted per segment by the likelihood of
 * each sample given all others (leave one out): small where neighbouring pages have different
 * users, infinite where the page itself tells nothing beyond its segment.
 */
#ifndef NPG_ANALYZER_SHRINK_H
#define NPG_ANALYZER_SHRINK_H

#include <stddef.h>

#include "analyzer/changepoint.h"
#include "lib/compiler.h"

/**
 * npg_shrink_fit() - kappa of a segment.
 * @points: of the segment, ordered by position, a category at most once per position.
 * @nr_categories: categories are below this.
 * @kappa: result, 0.5 .. 32, or INFINITY when single positions should follow the segment.
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_shrink_fit(const struct npg_point *points, size_t nr_points,
				  uint32_t nr_categories, double *kappa);

/**
 * npg_shrink_share() - the estimate q of one category at one position.
 * @c_category: samples of the category at the position; @c_all: all samples there.
 * @region_share: the category's share in the segment.
 * MT-Safe. AS-Safe.
 */
double npg_shrink_share(double c_category, double c_all, double region_share, double kappa);

#endif
