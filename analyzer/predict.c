/* Scoring of placements on cells; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/predict.h"

/* Where something is: on one node, or spread by shares. */
struct home {
	int node; /* -1: by share */
	const double *share;
};

static struct home first_touch_home(const struct npg_predict_input *in,
				    const struct npg_placement *p, const struct npg_cell *cell,
				    uint64_t page)
{
	uint32_t thread = npg_first_touch_of(in->first_touch, cell->group, page, cell->thread);

	return (struct home){ p->thread_node[thread], NULL };
}

static struct home page_home(const struct npg_predict_input *in, const struct npg_placement *p,
			     const struct npg_cell *cell, const double *even)
{
	size_t unit;

	if (p->kind == NPG_PLACE_SINGLE)
		return (struct home){ p->node, NULL };
	if (p->kind == NPG_PLACE_INTERLEAVE)
		return (struct home){ -1, even };
	if (p->kind == NPG_PLACE_FIRST_TOUCH || !in->grouping->groups[cell->group].is_plannable)
		return first_touch_home(in, p, cell, cell->page);
	unit = npg_affinity_unit_of(p->affinity, cell->group, cell->page);
	if (p->affinity->units[unit].follows >= 0)
		return first_touch_home(in, p, cell, cell->page);
	return (struct home){ p->solution->unit_node[unit], p->solution->share };
}

/* First page of the 2 MiB region that a page is in. */
static uint64_t first_page_of_region(const struct npg_profile *profile,
				     const struct npg_profile_object *object, uint64_t page)
{
	uint64_t pages = (UINT64_C(2) << 20) / profile->page_bytes;
	uint64_t skipped = npg_object_is_movable(object->kind)
			       ? 0
			       : object->start_address / profile->page_bytes % pages;
	uint64_t first = (page + skipped) / pages * pages;

	return first > skipped ? first - skipped : 0;
}

/* The planned table of a region, or of the nearest region before it that has one. */
static int planned_table(const struct npg_placement *p, uint32_t group, uint64_t region)
{
	size_t low = p->affinity->first_table[group], high = p->affinity->first_table[group + 1];

	if (low == high)
		return -1;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (p->affinity->table_info[middle].region <= region)
			low = middle;
		else
			high = middle;
	}
	return p->affinity->tables[low].follows >= 0 ? -1 : p->solution->table_node[low];
}

static struct home table_home(const struct npg_predict_input *in, const struct npg_placement *p,
			      const struct npg_cell *cell, const double *even)
{
	const struct npg_group *g = &in->grouping->groups[cell->group];
	const struct npg_profile_object *object = &in->profile->objects[g->object];

	if (p->kind == NPG_PLACE_SINGLE)
		return (struct home){ p->node, NULL };
	if (p->kind == NPG_PLACE_INTERLEAVE)
		return (struct home){ -1, even };
	if (p->kind == NPG_PLACE_PLAN) {
		uint64_t region = npg_object_region(object, cell->page, in->profile->page_bytes);
		int node = planned_table(p, cell->group, region);

		if (node >= 0)
			return (struct home){ node, NULL };
	}
	return first_touch_home(in, p, cell, first_page_of_region(in->profile, object, cell->page));
}

/* Shares of plain interleaving: equal on all nodes with memory. */
static void even_shares(const struct npg_cost *cost, double *even)
{
	double nr = 0.0;

	for (int h = 0; h < cost->nr_nodes; h++)
		nr += cost->memory_bytes[h] > 0 ? 1.0 : 0.0;
	for (int h = 0; h < cost->nr_nodes; h++)
		even[h] = cost->memory_bytes[h] > 0 ? 1.0 / nr : 0.0;
}

static void add(struct home home, double weight, double *row, int nr_nodes)
{
	if (home.node >= 0) {
		row[home.node] += weight;
		return;
	}
	for (int h = 0; h < nr_nodes; h++)
		row[h] += weight * home.share[h];
}

void npg_predict_traffic(const struct npg_predict_input *input,
			 const struct npg_placement *placement, const struct npg_cells *cells,
			 struct npg_traffic *traffic)
{
	double even[NPG_COST_MAX_NODES];
	int n = input->cost->nr_nodes;

	even_shares(input->cost, even);
	for (size_t i = 0; i < cells->nr_cells; i++) {
		const struct npg_cell *cell = &cells->cells[i];
		size_t row = cell->thread * (size_t)n;

		if (cell->weight > 0.0F)
			add(page_home(input, placement, cell, even), (double)cell->weight,
			    traffic->accesses + row, n);
		if (cell->walks > 0.0F)
			add(table_home(input, placement, cell, even), (double)cell->walks,
			    traffic->walks + row, n);
	}
}

int npg_predict_score(const struct npg_predict_input *input, const struct npg_placement *placement,
		      const struct npg_cells *cells, struct npg_score *score)
{
	size_t n = (size_t)input->cost->nr_nodes;
	struct npg_traffic traffic = { 0 };
	double *factors = calloc(n * n, sizeof(*factors));

	if (factors == NULL ||
	    npg_traffic_init(&traffic, input->profile->nr_threads, input->cost->nr_nodes) < 0) {
		free(factors);
		return -ENOMEM;
	}
	npg_predict_traffic(input, placement, cells, &traffic);
	npg_cost_score(input->cost, &traffic, placement->thread_node, input->busy, factors, score);
	npg_traffic_release(&traffic);
	free(factors);
	return 0;
}

static double time_of(const struct npg_predict_input *in, const struct npg_placement *p,
		      const struct npg_cell *cell, const double *even)
{
	const struct npg_cost *cost = in->cost;
	struct home page = page_home(in, p, cell, even), table = table_home(in, p, cell, even);
	int from = p->thread_node[cell->thread];
	double sum = 0.0;

	for (int h = 0; h < cost->nr_nodes; h++) {
		double at_page = page.node >= 0 ? page.node == h : page.share[h];
		double at_table = table.node >= 0 ? table.node == h : table.share[h];

		sum += at_page * (double)cell->weight * npg_cost_latency(cost, from, h) +
		       at_table * (double)cell->walks * npg_cost_walk(cost, from, h);
	}
	return sum;
}

void npg_predict_gain(const struct npg_predict_input *input, const struct npg_placement *a,
		      const struct npg_placement *b, const struct npg_cells *cells, double *gain,
		      double *variance)
{
	double even[NPG_COST_MAX_NODES];

	even_shares(input->cost, even);
	for (size_t i = 0; i < cells->nr_cells; i++) {
		const struct npg_cell *cell = &cells->cells[i];
		double n = cell->nr_samples > 0 ? cell->nr_samples : 1.0;
		double d = time_of(input, a, cell, even) - time_of(input, b, cell, even);

		*gain += d;
		*variance += d * d / n;
	}
}
