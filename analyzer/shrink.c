/* Fitting of the shrinkage weight by leave-one-out likelihood; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/shrink.h"

static const double grid[] = { 0.5, 1, 2, 4, 8, 16, 32 };

/* End of the run of points at the same position as points[first]. */
static size_t end_of_position(const struct npg_point *points, size_t nr, size_t first, double *sum)
{
	size_t end = first;

	*sum = 0.0;
	while (end < nr && points[end].position == points[first].position)
		*sum += points[end++].nr_samples;
	return end;
}

/*
 * Log likelihood of every sample given all the others. likelihood[0] is that of kappa = infinity,
 * the others belong to the grid.
 */
static void leave_one_out(const struct npg_point *points, size_t nr, const double *total,
			  double all, double nr_used, double *likelihood)
{
	for (size_t first = 0; first < nr;) {
		double here;
		size_t end = end_of_position(points, nr, first, &here);

		for (size_t i = first; i < end; i++) {
			double c = points[i].nr_samples;
			double region =
			    (total[points[i].category] - 0.5) / (all - 1.0 + 0.5 * nr_used);

			likelihood[0] += c * log(region);
			for (size_t g = 0; g < NPG_ARRAY_SIZE(grid); g++)
				likelihood[g + 1] +=
				    c * log(npg_shrink_share(c - 1.0, here - 1.0, region, grid[g]));
		}
		first = end;
	}
}

int npg_shrink_fit(const struct npg_point *points, size_t nr_points, uint32_t nr_categories,
		   double *kappa)
{
	double likelihood[NPG_ARRAY_SIZE(grid) + 1] = { 0.0 };
	double *total = calloc((size_t)nr_categories + 1, sizeof(*total));
	double all = 0.0, nr_used = 0.0, gain = 0.0;

	if (total == NULL)
		return -ENOMEM;
	*kappa = HUGE_VAL;
	for (size_t i = 0; i < nr_points; i++) {
		nr_used += total[points[i].category] <= 0.0 ? 1.0 : 0.0;
		total[points[i].category] += points[i].nr_samples;
		all += points[i].nr_samples;
	}
	if (nr_used > 1.5) {
		leave_one_out(points, nr_points, total, all, nr_used, likelihood);
		/* one more parameter must earn itself: half a logarithm, and some more */
		gain = 3.0 + 0.5 * log(all);
		for (size_t g = 0; g < NPG_ARRAY_SIZE(grid); g++) {
			if (likelihood[g + 1] - likelihood[0] > gain) {
				gain = likelihood[g + 1] - likelihood[0];
				*kappa = grid[g];
			}
		}
	}
	free(total);
	return 0;
}

double npg_shrink_share(double c_category, double c_all, double region_share, double kappa)
{
	if (isinf(kappa))
		return region_share;
	return (c_category + kappa * region_share) / (c_all + kappa);
}
