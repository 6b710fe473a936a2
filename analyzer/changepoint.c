/* Change points by dynamic programming over bins, then exact borders; see the header. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "analyzer/changepoint.h"
#include "analyzer/grow.h"

#define TABLE_SIZE 4096 /* counts whose log-gamma differences are kept */

/* A row being cut. Cells are the distinct positions, bins are runs of cells. */
struct row {
	const struct npg_point *points;
	size_t nr_points;
	uint64_t length;
	uint32_t *local; /* per point: category as 0 .. nr_categories - 1 */
	unsigned nr_categories;
	size_t nr_cells;
	size_t *cell_points; /* first point of each cell; nr_cells + 1 entries */
	size_t nr_bins;
	size_t *bin_cells;    /* first cell of each bin; nr_bins + 1 entries */
	uint32_t *cumulative; /* (nr_bins + 1) x nr_categories: samples before the bin */
	double *log_share;    /* per category, of the whole row */
	double *table;        /* lnGamma(alpha + c) - lnGamma(alpha), c < TABLE_SIZE */
	double alpha;
	size_t *borders; /* result: first cell of each segment */
	size_t nr_borders;
};

struct tally {
	uint32_t category;
	uint64_t nr_samples;
};

static int by_category(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	return (x->category > y->category) - (x->category < y->category);
}

static int by_samples(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	return by_category(a, b);
}

/* The categories that occur, each once, busiest first. */
static size_t count_categories(const struct row *row, struct tally *tally)
{
	size_t nr = 0;

	for (size_t i = 0; i < row->nr_points; i++)
		tally[i] = (struct tally){ row->points[i].category, row->points[i].nr_samples };
	qsort(tally, row->nr_points, sizeof(*tally), by_category);
	for (size_t i = 0; i < row->nr_points; i++) {
		if (nr > 0 && tally[nr - 1].category == tally[i].category)
			tally[nr - 1].nr_samples += tally[i].nr_samples;
		else
			tally[nr++] = tally[i];
	}
	qsort(tally, nr, sizeof(*tally), by_samples);
	return nr;
}

/* Numbers the busiest categories; what is beyond the limit shares the last number. */
static int number_categories(struct row *row)
{
	struct tally *tally = reallocarray(NULL, row->nr_points, sizeof(*tally));
	uint32_t *number = NULL; /* of a category, by value; categories are small integers */
	uint32_t largest = 0;
	size_t nr;

	if (tally == NULL)
		return -ENOMEM;
	nr = count_categories(row, tally);
	for (size_t i = 0; i < nr; i++)
		largest = tally[i].category > largest ? tally[i].category : largest;
	number = calloc((size_t)largest + 1, sizeof(*number));
	if (number == NULL) {
		free(tally);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++)
		number[tally[i].category] = i < NPG_CHANGEPOINT_MAX_CATEGORIES
						? (uint32_t)i
						: NPG_CHANGEPOINT_MAX_CATEGORIES - 1;
	for (size_t i = 0; i < row->nr_points; i++)
		row->local[i] = number[row->points[i].category];
	row->nr_categories =
	    nr < NPG_CHANGEPOINT_MAX_CATEGORIES ? (unsigned)nr : NPG_CHANGEPOINT_MAX_CATEGORIES;
	free(number);
	free(tally);
	return 0;
}

static void find_cells(struct row *row)
{
	for (size_t i = 0; i < row->nr_points; i++)
		if (i == 0 || row->points[i].position != row->points[i - 1].position)
			row->cell_points[row->nr_cells++] = i;
	row->cell_points[row->nr_cells] = row->nr_points;
}

/* Bins of whole cells with about equally many samples each. */
static void find_bins(struct row *row)
{
	size_t max =
	    row->nr_categories > 16 ? NPG_CHANGEPOINT_MAX_BINS / 2 : NPG_CHANGEPOINT_MAX_BINS;
	uint64_t total = 0, seen = 0;

	for (size_t i = 0; i < row->nr_points; i++)
		total += row->points[i].nr_samples;
	for (size_t c = 0; c < row->nr_cells; c++) {
		if (row->nr_cells <= max || seen * max >= total * row->nr_bins)
			row->bin_cells[row->nr_bins++] = c;
		for (size_t i = row->cell_points[c]; i < row->cell_points[c + 1]; i++)
			seen += row->points[i].nr_samples;
	}
	row->bin_cells[row->nr_bins] = row->nr_cells;
}

static void sum_bins(struct row *row)
{
	unsigned k = row->nr_categories;
	const uint32_t *all;
	double total = 0.0;

	for (size_t b = 0; b < row->nr_bins; b++) {
		uint32_t *sum = row->cumulative + (b + 1) * k;

		memcpy(sum, sum - k, k * sizeof(*sum));
		for (size_t i = row->cell_points[row->bin_cells[b]];
		     i < row->cell_points[row->bin_cells[b + 1]]; i++)
			sum[row->local[i]] += row->points[i].nr_samples;
	}
	all = row->cumulative + row->nr_bins * k;
	for (unsigned i = 0; i < k; i++)
		total += all[i];
	for (unsigned i = 0; i < k; i++)
		row->log_share[i] = log((double)all[i] / total);
	row->alpha = 1.0 / k;
	for (unsigned c = 0; c < TABLE_SIZE && c <= total; c++)
		row->table[c] = lgamma(row->alpha + c) - lgamma(row->alpha);
}

/* log L of a segment with the samples @after - @before (NULL: none before). */
static double log_likelihood(const struct row *row, const uint32_t *before, const uint32_t *after)
{
	double common = 0.0, own = 0.0, n = 0.0;

	for (unsigned i = 0; i < row->nr_categories; i++) {
		uint32_t c = after[i] - (before != NULL ? before[i] : 0);

		if (c == 0)
			continue;
		n += c;
		common += c * row->log_share[i];
		own += c < TABLE_SIZE ? row->table[c] : lgamma(row->alpha + c) - lgamma(row->alpha);
	}
	own -= lgamma(1.0 + n);
	return common > own ? common : own;
}

static double penalty_of(const struct row *row)
{
	return log((double)row->nr_cells) + 1.0;
}

/* Best cut between bins. best[j]: of the first j bins; from[j]: where its last segment begins. */
static void cut_bins(const struct row *row, double *best, size_t *from)
{
	double penalty = penalty_of(row);

	best[0] = penalty;
	for (size_t j = 1; j <= row->nr_bins; j++) {
		const uint32_t *after = row->cumulative + j * row->nr_categories;

		best[j] = -HUGE_VAL;
		for (size_t i = 0; i < j; i++) {
			const uint32_t *before = row->cumulative + i * row->nr_categories;
			double value = best[i] - penalty + log_likelihood(row, before, after);

			if (value > best[j]) {
				best[j] = value;
				from[j] = i;
			}
		}
	}
}

/* Counts of the cells @first .. @end - 1. */
static void count_cells(const struct row *row, size_t first, size_t end, uint32_t *counts)
{
	memset(counts, 0, row->nr_categories * sizeof(*counts));
	for (size_t i = row->cell_points[first]; i < row->cell_points[end]; i++)
		counts[row->local[i]] += row->points[i].nr_samples;
}

/*
 * Moves one border to the best cell within the bins on both its sides.
 * @first, @end: cells of the two segments that it separates.
 */
static size_t refine_border(const struct row *row, size_t first, size_t low, size_t high,
			    size_t end)
{
	uint32_t left[NPG_CHANGEPOINT_MAX_CATEGORIES], all[NPG_CHANGEPOINT_MAX_CATEGORIES];
	double best = -HUGE_VAL;
	size_t border = low;

	count_cells(row, first, low, left);
	count_cells(row, first, end, all);
	for (size_t c = low; c <= high; c++) {
		double value = log_likelihood(row, NULL, left) + log_likelihood(row, left, all);

		if (value > best) {
			best = value;
			border = c;
		}
		for (size_t i = row->cell_points[c]; c < high && i < row->cell_points[c + 1]; i++)
			left[row->local[i]] += row->points[i].nr_samples;
	}
	return border;
}

/* Turns the cut between bins into one between cells: row->borders. */
static void refine(struct row *row, const size_t *bins, size_t nr)
{
	row->borders[0] = 0;
	row->nr_borders = nr;
	for (size_t s = 1; s < nr; s++) {
		size_t first = row->borders[s - 1];
		size_t end = row->bin_cells[s + 1 < nr ? bins[s + 1] : row->nr_bins];
		size_t low = row->bin_cells[bins[s] - 1] + 1;
		size_t high = row->bin_cells[bins[s] + 1] - 1;

		if (low <= first)
			low = first + 1;
		row->borders[s] = low < high ? refine_border(row, first, low, high, end)
					     : row->bin_cells[bins[s]];
	}
}

/* Joins neighbours that only the coarse bins had separated: a bin across a true border. */
static void merge(struct row *row)
{
	uint32_t left[NPG_CHANGEPOINT_MAX_CATEGORIES], all[NPG_CHANGEPOINT_MAX_CATEGORIES];
	size_t nr = 1;

	for (size_t s = 1; s < row->nr_borders; s++) {
		size_t first = row->borders[nr - 1], border = row->borders[s];
		size_t end = s + 1 < row->nr_borders ? row->borders[s + 1] : row->nr_cells;
		double apart;

		count_cells(row, first, border, left);
		count_cells(row, first, end, all);
		apart = log_likelihood(row, NULL, left) + log_likelihood(row, left, all);
		if (apart - penalty_of(row) > log_likelihood(row, NULL, all))
			row->borders[nr++] = border;
	}
	row->nr_borders = nr;
}

static int cut(struct row *row)
{
	double *best = reallocarray(NULL, row->nr_bins + 1, sizeof(*best));
	size_t *from = calloc(row->nr_bins + 1, sizeof(*from));
	size_t nr = 0;

	if (best == NULL || from == NULL) {
		free(best);
		free(from);
		return -ENOMEM;
	}
	cut_bins(row, best, from);
	for (size_t j = row->nr_bins; j > 0; j = from[j])
		nr++;
	/* the chain of first bins, in order, in from[] itself: entries above are not needed */
	for (size_t j = row->nr_bins, i = nr; i-- > 0;) {
		size_t previous = from[j];

		from[j] = 0;
		row->borders[i] = previous;
		j = previous;
	}
	memcpy(from, row->borders, nr * sizeof(*from));
	refine(row, from, nr);
	if (row->nr_bins < row->nr_cells)
		merge(row);
	free(best);
	free(from);
	return 0;
}

/* A place between two neighbouring samples at @low and @high for the border: see the header. */
static uint64_t border_position(const struct row *row, uint64_t low, uint64_t high, size_t parts)
{
	size_t candidates[] = { parts, row->nr_categories };

	for (size_t i = 0; i < NPG_ARRAY_SIZE(candidates); i++) {
		double step = (double)row->length / (double)candidates[i];
		uint64_t border = (uint64_t)llround(floor((double)high / step) * step);

		if (candidates[i] > 1 && border > low && border <= high)
			return border;
	}
	return low + (high - low + 1) / 2;
}

static int make_segments(const struct row *row, struct npg_segment **segments)
{
	struct npg_segment *s = calloc(row->nr_borders, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < row->nr_borders; i++) {
		s[i].first_point = row->cell_points[row->borders[i]];
		if (i > 0)
			s[i].first = border_position(
			    row, row->points[s[i].first_point - 1].position,
			    row->points[s[i].first_point].position, row->nr_borders);
	}
	for (size_t i = 0; i < row->nr_borders; i++) {
		bool is_last = i + 1 == row->nr_borders;

		s[i].length = (is_last ? row->length : s[i + 1].first) - s[i].first;
		s[i].nr_points =
		    (is_last ? row->nr_points : s[i + 1].first_point) - s[i].first_point;
	}
	*segments = s;
	return 0;
}

static int prepare(struct row *row)
{
	size_t n = row->nr_points;
	size_t k;

	row->local = calloc(n, sizeof(*row->local));
	row->cell_points = calloc(n + 1, sizeof(*row->cell_points));
	row->bin_cells = calloc(n + 1, sizeof(*row->bin_cells));
	row->borders = calloc(n, sizeof(*row->borders));
	row->table = calloc(TABLE_SIZE, sizeof(*row->table));
	if (row->local == NULL || row->cell_points == NULL || row->bin_cells == NULL ||
	    row->borders == NULL || row->table == NULL || number_categories(row) < 0)
		return -ENOMEM;
	find_cells(row);
	find_bins(row);
	k = row->nr_categories;
	row->cumulative = calloc((row->nr_bins + 1) * k, sizeof(*row->cumulative));
	row->log_share = calloc(k, sizeof(*row->log_share));
	if (row->cumulative == NULL || row->log_share == NULL)
		return -ENOMEM;
	sum_bins(row);
	return 0;
}

static void row_release(struct row *row)
{
	free(row->local);
	free(row->cell_points);
	free(row->bin_cells);
	free(row->borders);
	free(row->table);
	free(row->cumulative);
	free(row->log_share);
}

int npg_changepoints_find(const struct npg_point *points, size_t nr_points, uint64_t length,
			  struct npg_segment **segments, size_t *nr_segments)
{
	struct row row = { .points = points, .nr_points = nr_points, .length = length };
	int ret;

	if (nr_points == 0) {
		*segments = calloc(1, sizeof(**segments));
		if (*segments == NULL)
			return -ENOMEM;
		(*segments)->length = length;
		*nr_segments = 1;
		return 0;
	}
	ret = prepare(&row);
	if (ret == 0)
		ret = cut(&row);
	if (ret == 0)
		ret = make_segments(&row, segments);
	if (ret == 0)
		*nr_segments = row.nr_borders;
	row_release(&row);
	return ret;
}
