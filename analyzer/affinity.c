/* Units and tables from cells; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/affinity_internal.h"
#include "analyzer/grow.h"
#include "analyzer/shrink.h"

#define MAX_CHUNKS     4096 /* per segment */
#define MAX_PRIOR_USES 8    /* threads of a segment that speak for its pages */
#define OWN_SAMPLES    16   /* with these, an allocation speaks for itself */
#define UNSEEN_WEIGHT  0.01 /* of an allocation without samples */

/* Threads' weights in a segment, the heaviest first. */
struct prior {
	struct npg_use *uses;
	size_t nr;
	double sum;
	double nr_samples; /* behind it */
};

void npg_affinity_collect(struct npg_affinity_builder *b, uint32_t thread, double weight)
{
	if (weight <= 0.0)
		return;
	if (b->weight[thread] <= 0.0)
		b->thread[b->nr_collected++] = thread;
	b->weight[thread] += weight;
}

static int by_thread(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int npg_affinity_take_uses(struct npg_affinity_builder *b, struct npg_unit *unit)
{
	struct npg_use *uses = npg_arena_alloc(&b->a->arena, b->nr_collected, sizeof(*uses));

	if (uses == NULL)
		return -ENOMEM;
	qsort(b->thread, b->nr_collected, sizeof(*b->thread), by_thread);
	for (size_t i = 0; i < b->nr_collected; i++) {
		uses[i] = (struct npg_use){ b->thread[i], (float)b->weight[b->thread[i]] };
		b->weight[b->thread[i]] = 0.0;
	}
	unit->uses = uses;
	unit->nr_uses = (uint32_t)b->nr_collected;
	b->nr_collected = 0;
	return 0;
}

/* @nr_behind: samples behind the uses, or 0 where shrinkage has weighed their number already. */
static int add_unit(struct npg_affinity_builder *b, struct npg_unit_info info, int32_t follows,
		    double nr_behind)
{
	const struct npg_group *g = &b->input->grouping->groups[info.group];
	struct npg_affinity *a = b->a;
	struct npg_unit *unit;

	NPG_GROW(a->units, a->nr_units, b->unit_capacity);
	NPG_GROW(a->unit_info, a->nr_units, b->info_capacity);
	a->unit_info[a->nr_units] = info;
	unit = &a->units[a->nr_units++];
	unit->follows = follows;
	unit->bytes =
	    (uint64_t)((double)g->alive_bytes * (double)info.nr_pages / (double)g->nr_pages);
	unit->nr_samples = (float)nr_behind;
	unit->can_interleave = info.nr_pages > 1;
	return npg_affinity_take_uses(b, unit);
}

/* Cells of a group from a page on. */
static size_t cell_of_page(const struct npg_cells *c, uint32_t group, uint64_t page)
{
	size_t low = c->first_cell[group], high = c->first_cell[group + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->cells[middle].page < page)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_weight(const void *a, const void *b)
{
	const struct npg_use *x = a, *y = b;

	if (x->weight < y->weight || x->weight > y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Makes a prior of what was collected. */
static int take_prior(struct npg_affinity_builder *b, struct prior *prior)
{
	struct npg_unit unit = { 0 };

	if (npg_affinity_take_uses(b, &unit) < 0)
		return -ENOMEM;
	*prior = (struct prior){ .uses = calloc((size_t)unit.nr_uses + 1, sizeof(*prior->uses)) };
	if (prior->uses == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < unit.nr_uses; i++)
		prior->uses[i] = unit.uses[i];
	qsort(prior->uses, unit.nr_uses, sizeof(*prior->uses), by_weight);
	prior->nr = unit.nr_uses < MAX_PRIOR_USES ? unit.nr_uses : MAX_PRIOR_USES;
	for (size_t i = 0; i < prior->nr; i++)
		prior->sum += (double)prior->uses[i].weight;
	return 0;
}

/* Own accesses, first .. end - 1, and the prior for kappa samples. Returns the samples. */
static double collect_shrunk(struct npg_affinity_builder *b, size_t first, size_t end,
			     const struct prior *prior, double kappa)
{
	const struct npg_cell *cells = b->input->cells->cells;
	double n = 0.0, weight = 0.0, own;

	for (size_t i = first; i < end; i++) {
		n += cells[i].nr_samples;
		weight += (double)cells[i].weight;
	}
	own = isinf(kappa) ? 0.0 : n / (n + kappa);
	for (size_t i = first; i < end; i++)
		npg_affinity_collect(b, cells[i].thread, own * (double)cells[i].weight);
	if (weight <= 0.0)
		weight = UNSEEN_WEIGHT;
	for (size_t i = 0; i < prior->nr; i++)
		npg_affinity_collect(b, prior->uses[i].thread,
				     (1.0 - own) * weight * (double)prior->uses[i].weight /
					 prior->sum);
	return n;
}

static int by_position(const void *a, const void *b)
{
	const struct npg_point *x = a, *y = b;

	if (x->position != y->position)
		return x->position < y->position ? -1 : 1;
	return (x->category > y->category) - (x->category < y->category);
}

/* Points of chunks of pages, few enough; in place. Returns their number. */
static size_t make_chunks(struct npg_point *points, size_t nr, uint64_t *chunk_pages)
{
	size_t positions = MAX_CHUNKS + 1;

	*chunk_pages = 1;
	for (; positions > MAX_CHUNKS; *chunk_pages *= 2) {
		positions = 0;
		for (size_t i = 0; i < nr; i++)
			positions += i == 0 || points[i].position / *chunk_pages !=
						   points[i - 1].position / *chunk_pages;
		if (positions <= MAX_CHUNKS)
			break;
	}
	if (*chunk_pages > 1) {
		size_t merged = 0;

		for (size_t i = 0; i < nr; i++)
			points[i].position /= *chunk_pages;
		qsort(points, nr, sizeof(*points), by_position);
		for (size_t i = 0; i < nr; i++) {
			if (merged > 0 && by_position(&points[merged - 1], &points[i]) == 0)
				points[merged - 1].nr_samples += points[i].nr_samples;
			else
				points[merged++] = points[i];
		}
		nr = merged;
	}
	return nr;
}

/* One unit per chunk with samples; it reaches to the next one. */
static int add_chunks(struct npg_affinity_builder *b, uint32_t group, const struct npg_segment *s,
		      const struct npg_point *points, size_t nr, uint64_t chunk_pages,
		      const struct prior *prior, double kappa)
{
	uint64_t first = s->first, segment_end = s->first + s->length;
	int ret = 0;

	for (size_t i = 0, next; ret == 0 && i < nr; i = next) {
		uint64_t end = segment_end;
		double n;

		for (next = i + 1; next < nr && points[next].position == points[i].position;)
			next++;
		if (next < nr)
			end = points[next].position * chunk_pages;
		n = collect_shrunk(b, cell_of_page(b->input->cells, group, first),
				   cell_of_page(b->input->cells, group, end), prior, kappa);
		ret = add_unit(b, (struct npg_unit_info){ group, first, end - first, n }, -1, 0.0);
		first = end;
	}
	return ret;
}

/* Units of a segment: one, or one per page where pages have users of their own. */
static int add_segment(struct npg_affinity_builder *b, uint32_t group, const struct npg_segment *s,
		       struct npg_point *points)
{
	const struct npg_cells *c = b->input->cells;
	size_t first = cell_of_page(c, group, s->first), nr_points = s->nr_points;
	size_t end = cell_of_page(c, group, s->first + s->length);
	struct prior prior = { 0 };
	uint64_t chunk_pages;
	double kappa, n = 0.0;
	int ret;

	nr_points = make_chunks(points, nr_points, &chunk_pages);
	ret = npg_shrink_fit(points, nr_points, (uint32_t)b->input->profile->nr_threads, &kappa);
	if (ret < 0)
		return ret;
	for (size_t i = first; i < end; i++) {
		npg_affinity_collect(b, c->cells[i].thread, (double)c->cells[i].weight);
		n += c->cells[i].nr_samples;
	}
	if (isinf(kappa))
		return add_unit(b, (struct npg_unit_info){ group, s->first, s->length, n }, -1, n);
	ret = take_prior(b, &prior);
	if (ret == 0)
		ret = add_chunks(b, group, s, points, nr_points, chunk_pages, &prior, kappa);
	free(prior.uses);
	return ret;
}

/* A whole allocation as one unit, with its neighbours' users for kappa samples. */
static int add_shrunk(struct npg_affinity_builder *b, uint32_t group, const struct prior *prior,
		      double kappa)
{
	const struct npg_cells *c = b->input->cells;
	double n = collect_shrunk(b, c->first_cell[group], c->first_cell[group + 1], prior, kappa);

	return add_unit(
	    b, (struct npg_unit_info){ group, 0, b->input->grouping->groups[group].nr_pages, n },
	    -1, isinf(kappa) ? prior->nr_samples : 0.0);
}

static int need_points(struct npg_affinity_builder *b, size_t nr)
{
	void *grown = npg_grow(b->points, &b->point_capacity, nr + 1, sizeof(*b->points));

	if (grown == NULL)
		return -ENOMEM;
	b->points = grown;
	return 0;
}

/*
 * Units of one object that speaks for itself. Without blocks of use in it, it still leans on the
 * other allocations of its site, if it has a prior.
 */
static int add_object(struct npg_affinity_builder *b, uint32_t group, const struct prior *prior,
		      double kappa)
{
	const struct npg_cells *c = b->input->cells;
	size_t first = c->first_cell[group], end = c->first_cell[group + 1], nr = 0;
	uint64_t nr_pages = b->input->grouping->groups[group].nr_pages;
	struct npg_segment *segments = NULL;
	size_t nr_segments = 0;
	int ret = need_points(b, end - first);

	if (ret < 0)
		return ret;
	if (first == end) /* nothing is known: it stays where first touch puts it */
		return add_unit(b, (struct npg_unit_info){ group, 0, nr_pages, 0.0 },
				(int32_t)b->input->first_touch->usual[group], 0.0);
	for (size_t i = first; i < end; i++)
		if (c->cells[i].nr_samples > 0)
			b->points[nr++] = (struct npg_point){ c->cells[i].page, c->cells[i].thread,
							      c->cells[i].nr_samples };
	ret = npg_changepoints_find(b->points, nr, nr_pages, &segments, &nr_segments);
	if (ret == 0 && nr_segments == 1 && prior != NULL)
		ret = add_shrunk(b, group, prior, kappa);
	else
		for (size_t i = 0; ret == 0 && i < nr_segments; i++)
			ret = add_segment(b, group, &segments[i],
					  b->points + segments[i].first_point);
	free(segments);
	return ret;
}

/* Allocations of a site as points: position is the place among them. */
static int site_points(struct npg_affinity_builder *b, size_t first_group, size_t nr_groups,
		       struct npg_point **points, size_t *nr)
{
	const struct npg_cells *c = b->input->cells;
	size_t first = c->first_cell[first_group], end = c->first_cell[first_group + nr_groups];
	struct npg_point *all = calloc(end - first + 1, sizeof(*all));
	size_t merged = 0;

	if (all == NULL)
		return -ENOMEM;
	for (size_t i = first; i < end; i++)
		all[i - first] = (struct npg_point){ c->cells[i].group - first_group,
						     c->cells[i].thread, c->cells[i].nr_samples };
	qsort(all, end - first, sizeof(*all), by_position);
	for (size_t i = 0; i < end - first; i++) {
		if (merged > 0 && by_position(&all[merged - 1], &all[i]) == 0)
			all[merged - 1].nr_samples += all[i].nr_samples;
		else if (all[i].nr_samples > 0)
			all[merged++] = all[i];
	}
	*points = all;
	*nr = merged;
	return 0;
}

static double samples_of(const struct npg_cells *c, uint32_t group)
{
	double n = 0.0;

	for (size_t i = c->first_cell[group]; i < c->first_cell[group + 1]; i++)
		n += c->cells[i].nr_samples;
	return n;
}

/* Allocations first .. first + length - 1 of a site, which have alike users. */
static int add_neighbours(struct npg_affinity_builder *b, uint32_t first, uint64_t length,
			  double kappa)
{
	const struct npg_cells *c = b->input->cells;
	struct prior prior = { 0 };
	int ret;

	for (size_t i = c->first_cell[first]; i < c->first_cell[first + length]; i++)
		npg_affinity_collect(b, c->cells[i].thread, (double)c->cells[i].weight);
	ret = take_prior(b, &prior);
	for (size_t i = c->first_cell[first]; i < c->first_cell[first + length]; i++)
		prior.nr_samples += c->cells[i].nr_samples;
	for (uint32_t g = first; ret == 0 && g < first + length; g++) {
		const struct npg_group *group = &b->input->grouping->groups[g];
		double n = samples_of(c, g);

		ret = n >= OWN_SAMPLES && group->nr_pages > 1 ? add_object(b, g, &prior, kappa)
							      : add_shrunk(b, g, &prior, kappa);
		b->a->first_unit[g + 1] = b->a->nr_units;
	}
	free(prior.uses);
	return ret;
}

/* All allocations of a site that are told apart. */
static int add_site(struct npg_affinity_builder *b, uint32_t first, size_t nr_groups)
{
	uint32_t nr_threads = (uint32_t)b->input->profile->nr_threads;
	struct npg_segment *segments = NULL;
	struct npg_point *points = NULL;
	size_t nr = 0, nr_segments = 0;
	int ret = site_points(b, first, nr_groups, &points, &nr);

	if (ret == 0)
		ret = npg_changepoints_find(points, nr, nr_groups, &segments, &nr_segments);
	for (size_t i = 0; ret == 0 && i < nr_segments; i++) {
		const struct npg_segment *s = &segments[i];
		double kappa;

		ret = npg_shrink_fit(points + s->first_point, s->nr_points, nr_threads, &kappa);
		if (ret == 0)
			ret = add_neighbours(b, first + (uint32_t)s->first, s->length, kappa);
	}
	free(segments);
	free(points);
	return ret;
}

struct touched {
	uint32_t toucher;
	uint32_t cell;
};

static int by_toucher(const void *a, const void *b)
{
	const struct touched *x = a, *y = b;

	if (x->toucher != y->toucher)
		return x->toucher < y->toucher ? -1 : 1;
	return (x->cell > y->cell) - (x->cell < y->cell);
}

/* A group that no plan places: one unit per thread that touched pages of it first. */
static int add_following(struct npg_affinity_builder *b, uint32_t group)
{
	const struct npg_cells *c = b->input->cells;
	size_t first = c->first_cell[group], nr = c->first_cell[group + 1] - first;
	uint64_t nr_pages = b->input->grouping->groups[group].nr_pages;
	struct touched *touched = calloc(nr + 1, sizeof(*touched));
	int ret = 0;

	if (touched == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct npg_cell *cell = &c->cells[first + i];

		touched[i] = (struct touched){ npg_first_touch_of(b->input->first_touch, group,
								  cell->page, cell->thread),
					       (uint32_t)i };
	}
	qsort(touched, nr, sizeof(*touched), by_toucher);
	for (size_t i = 0; ret == 0 && i < nr; i++) {
		const struct npg_cell *cell = &c->cells[first + touched[i].cell];

		npg_affinity_collect(b, cell->thread, (double)cell->weight);
		if (i + 1 < nr && touched[i + 1].toucher == touched[i].toucher)
			continue;
		ret = add_unit(b,
			       (struct npg_unit_info){
				   group, 0,
				   touched[0].toucher == touched[nr - 1].toucher ? nr_pages : 1,
				   0.0 },
			       (int32_t)touched[i].toucher, 0.0);
	}
	free(touched);
	return ret;
}

static int build(struct npg_affinity_builder *b)
{
	const struct npg_grouping *g = b->input->grouping;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < g->nr_groups;) {
		const struct npg_group *group = &g->groups[i];
		size_t nr = group->is_plannable ? group->nr_of_site : 1;

		if (!group->is_plannable)
			ret = add_following(b, (uint32_t)i);
		else if (nr == 1)
			ret = add_object(b, (uint32_t)i, NULL, HUGE_VAL);
		else
			ret = add_site(b, (uint32_t)i, nr);
		i += nr;
		b->a->first_unit[i] = b->a->nr_units;
	}
	for (size_t i = 0; ret == 0 && i < g->nr_groups; i++) {
		ret = npg_affinity_add_tables(b, (uint32_t)i);
		b->a->first_table[i + 1] = b->a->nr_tables;
	}
	return ret;
}

int npg_affinity_make(const struct npg_affinity_input *input, struct npg_affinity *affinity)
{
	size_t nr_groups = input->grouping->nr_groups, nr_threads = input->profile->nr_threads;
	struct npg_affinity a = { 0 };
	struct npg_affinity_builder b = { .input = input, .a = &a };
	int ret = -ENOMEM;

	b.weight = calloc(nr_threads + 1, sizeof(*b.weight));
	b.thread = calloc(nr_threads + 1, sizeof(*b.thread));
	a.first_unit = calloc(nr_groups + 1, sizeof(*a.first_unit));
	a.first_table = calloc(nr_groups + 1, sizeof(*a.first_table));
	if (b.weight != NULL && b.thread != NULL && a.first_unit != NULL && a.first_table != NULL)
		ret = build(&b);
	free(b.weight);
	free(b.thread);
	free(b.points);
	if (ret < 0)
		npg_affinity_release(&a);
	else
		*affinity = a;
	return ret;
}

size_t npg_affinity_unit_of(const struct npg_affinity *affinity, uint32_t group, uint64_t page)
{
	size_t low = affinity->first_unit[group], high = affinity->first_unit[group + 1];

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (affinity->unit_info[middle].first_page <= page)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void npg_affinity_release(struct npg_affinity *affinity)
{
	free(affinity->units);
	free(affinity->unit_info);
	free(affinity->first_unit);
	free(affinity->tables);
	free(affinity->table_info);
	free(affinity->first_table);
	npg_arena_release(&affinity->arena);
	*affinity = (struct npg_affinity){ 0 };
}
