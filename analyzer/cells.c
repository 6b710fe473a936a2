/* Cells from accesses; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/cells.h"

#define START_SHARE   0.05 /* of the other accesses */
#define ASSUMED_WALKS 0.25F
#define STEADY_ENOUGH 8 /* samples of a group: with these, the start-up's are not needed */

bool npg_walks_are_sampled(const struct npg_profile *profile)
{
	for (size_t i = 0; i < profile->nr_sources; i++)
		if (profile->sources[i].is_used && profile->sources[i].role == NPG_ROLE_WALK)
			return true;
	return false;
}

double npg_start_weight(const struct npg_profile *profile)
{
	double start = profile->nr_start_samples, steady = profile->nr_samples - start;

	if (start <= 0.0 || steady <= 0.0)
		return 1.0;
	return fmin(1.0, START_SHARE * steady / start);
}

static int by_place(const void *a, const void *b)
{
	const struct npg_cell *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static void sort_and_merge(struct npg_cells *c)
{
	bool is_sorted = true;
	size_t nr = 0;

	for (size_t i = 1; i < c->nr_cells && is_sorted; i++)
		is_sorted = by_place(&c->cells[i - 1], &c->cells[i]) <= 0;
	if (!is_sorted)
		qsort(c->cells, c->nr_cells, sizeof(*c->cells), by_place);
	for (size_t i = 0; i < c->nr_cells; i++) {
		if (nr > 0 && by_place(&c->cells[nr - 1], &c->cells[i]) == 0) {
			c->cells[nr - 1].nr_samples += c->cells[i].nr_samples;
			c->cells[nr - 1].weight += c->cells[i].weight;
			c->cells[nr - 1].walks += c->cells[i].walks;
		} else {
			c->cells[nr++] = c->cells[i];
		}
	}
	c->nr_cells = nr;
}

/* Samples per group outside start-ups. */
static void count_steady(const struct npg_profile *p, const struct npg_grouping *g,
			 enum npg_half half, uint32_t *steady)
{
	for (size_t i = 0; i < p->nr_accesses; i++) {
		const struct npg_access *a = &p->accesses[i];
		uint32_t *n = &steady[g->group_of[a->object]];

		if ((half & (1 << a->half)) != 0 && !a->is_start && *n < STEADY_ENOUGH)
			*n += a->nr_samples < STEADY_ENOUGH ? a->nr_samples : STEADY_ENOUGH;
	}
}

static void fill(const struct npg_profile *p, const struct npg_grouping *g, enum npg_half half,
		 const uint32_t *steady, struct npg_cells *c)
{
	float start_weight = (float)npg_start_weight(p);

	for (size_t i = 0; i < p->nr_accesses; i++) {
		const struct npg_access *a = &p->accesses[i];
		struct npg_cell *cell = &c->cells[c->nr_cells];
		float weight = a->is_start ? a->weight * start_weight : a->weight;

		if ((half & (1 << a->half)) == 0)
			continue;
		*cell = (struct npg_cell){ .page = a->page,
					   .group = g->group_of[a->object],
					   .thread = a->thread,
					   .nr_samples = a->nr_samples };
		if (a->is_start && steady[cell->group] >= STEADY_ENOUGH)
			cell->nr_samples = 0;
		if (p->sources[a->source].role == NPG_ROLE_WALK) {
			cell->walks = weight;
			cell->nr_samples = 0;
		} else {
			cell->weight = weight;
		}
		c->nr_cells++;
	}
}

int npg_cells_make(const struct npg_profile *profile, const struct npg_grouping *grouping,
		   enum npg_half half, struct npg_cells *cells)
{
	uint32_t *steady = calloc(grouping->nr_groups + 1, sizeof(*steady));
	struct npg_cells c = { 0 };
	size_t i = 0;

	c.cells = calloc(profile->nr_accesses + 1, sizeof(*c.cells));
	c.first_cell = calloc(grouping->nr_groups + 1, sizeof(*c.first_cell));
	if (steady == NULL || c.cells == NULL || c.first_cell == NULL) {
		free(steady);
		npg_cells_release(&c);
		return -ENOMEM;
	}
	count_steady(profile, grouping, half, steady);
	fill(profile, grouping, half, steady, &c);
	sort_and_merge(&c);
	for (size_t k = 0; !npg_walks_are_sampled(profile) && k < c.nr_cells; k++)
		c.cells[k].walks = ASSUMED_WALKS * fminf(c.cells[k].weight, 1.0F);
	for (size_t group = 0; group <= grouping->nr_groups; group++) {
		while (i < c.nr_cells && c.cells[i].group < group)
			i++;
		c.first_cell[group] = i;
	}
	free(steady);
	*cells = c;
	return 0;
}

void npg_cells_release(struct npg_cells *cells)
{
	free(cells->cells);
	free(cells->first_cell);
	*cells = (struct npg_cells){ 0 };
}
