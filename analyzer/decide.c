/* Ranges and evidence from a solution; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/decide.h"

#define PRIVATE_LEAST 0.90
#define BLOCKS_LEAST  0.80
#define USER_LEAST    0.01
#define SHARED_KAPPA  4.0 /* samples after which "shared by all" is half certain */

struct work {
	const struct npg_analysis *a;
	struct npg_decisions *d;
	double *by_thread; /* per thread: weight in the group at hand; zero in between */
	double total;      /* weight of all groups */
};

const char *npg_pattern_name(enum npg_pattern pattern)
{
	static const char *const names[] = { "unused", "private", "blocks", "shared" };

	return names[pattern];
}

double npg_decision_confidence(double best, double second)
{
	double z;

	if (best + second <= 0.0)
		return 0.5;
	z = fmax(best - second - 1.0, 0.0) / sqrt(best + second);
	return 0.5 * (1.0 + erf(z / sqrt(2.0)));
}

/* Weights 1..32 of an interleaved range, divided by their common divisor; equal ones become 0. */
static void set_weights(const double *share, int nr_nodes, struct npg_plan_range *range)
{
	double most = 0.0;
	unsigned divisor = 0;
	bool is_even = true;

	for (int n = 0; n < nr_nodes; n++)
		most = fmax(most, share[n]);
	for (int n = 0; n < nr_nodes; n++) {
		if (share[n] <= 0.0)
			continue;
		range->nodes[range->nr_nodes] = (uint8_t)n;
		range->weights[range->nr_nodes++] =
		    (uint8_t)fmax(1.0, round(8.0 * share[n] / most));
	}
	for (int i = 0; i < range->nr_nodes; i++) {
		unsigned a = divisor, b = range->weights[i];

		while (b != 0) {
			unsigned rest = a % b;

			a = b;
			b = rest;
		}
		divisor = a;
		is_even &= range->weights[i] == range->weights[0];
	}
	for (int i = 0; i < range->nr_nodes; i++) {
		unsigned reduced = range->weights[i] / (divisor > 0 ? divisor : 1);

		range->weights[i] = (uint8_t)(is_even ? 0 : reduced);
	}
}

static struct npg_plan_range range_of(const struct npg_analysis *a, size_t unit)
{
	const struct npg_unit_info *info = &a->affinity.unit_info[unit];
	struct npg_plan_range range = { .first_page = info->first_page,
					.nr_pages = info->nr_pages };
	int node = a->solution.unit_node[unit];

	if (node >= 0) {
		range.policy = NPG_POLICY_BIND;
		range.nr_nodes = 1;
		range.nodes[0] = (uint8_t)node;
	} else {
		range.policy = NPG_POLICY_INTERLEAVE;
		set_weights(a->solution.share, a->cost->nr_nodes, &range);
	}
	return range;
}

/* Ranges of a group's units, neighbours with the same node joined. */
static int make_ranges(struct work *w, struct npg_decision *d)
{
	const struct npg_affinity *af = &w->a->affinity;
	size_t first = af->first_unit[d->group], end = af->first_unit[d->group + 1];

	d->ranges = npg_arena_alloc(&w->d->arena, end - first, sizeof(*d->ranges));
	if (d->ranges == NULL)
		return -ENOMEM;
	for (size_t u = first; u < end; u++) {
		if (u > first && w->a->solution.unit_node[u] == w->a->solution.unit_node[u - 1])
			d->ranges[d->nr_ranges - 1].nr_pages += af->unit_info[u].nr_pages;
		else
			d->ranges[d->nr_ranges++] = range_of(w->a, u);
	}
	return 0;
}

/* Table ranges: each sampled region, reaching to the next; neighbours with the same node joined. */
static int make_table_ranges(struct work *w, struct npg_decision *d)
{
	const struct npg_affinity *af = &w->a->affinity;
	const struct npg_group *g = &w->a->grouping.groups[d->group];
	const struct npg_profile_object *object = &w->a->profile->objects[g->object];
	size_t first = af->first_table[d->group], end = af->first_table[d->group + 1];
	uint64_t nr_regions =
	    1 + npg_object_region(object, g->nr_pages - 1, w->a->profile->page_bytes);

	if (first == end || af->tables[first].follows >= 0)
		return 0;
	d->table_ranges = npg_arena_alloc(&w->d->arena, end - first, sizeof(*d->table_ranges));
	if (d->table_ranges == NULL)
		return -ENOMEM;
	for (size_t t = first; t < end; t++) {
		uint64_t from = t == first ? 0 : af->table_info[t].region;
		uint64_t to = t + 1 < end ? af->table_info[t + 1].region : nr_regions;
		uint8_t node = (uint8_t)w->a->solution.table_node[t];
		struct npg_plan_table_range *last =
		    d->nr_table_ranges > 0 ? &d->table_ranges[d->nr_table_ranges - 1] : NULL;

		if (last != NULL && last->node == node)
			last->nr_regions += to - from;
		else
			d->table_ranges[d->nr_table_ranges++] =
			    (struct npg_plan_table_range){ from, to - from, node };
	}
	return 0;
}

/* Who uses the group, and how evenly. */
static void find_users(struct work *w, struct npg_decision *d)
{
	const struct npg_cells *c = &w->a->cells;
	double most = 0.0;

	for (size_t i = c->first_cell[d->group]; i < c->first_cell[d->group + 1]; i++) {
		const struct npg_cell *cell = &c->cells[i];

		w->by_thread[cell->thread] += (double)cell->weight;
		d->weight += (double)cell->weight;
		d->nr_samples += cell->nr_samples;
		if (w->by_thread[cell->thread] > most) {
			most = w->by_thread[cell->thread];
			d->main_thread = cell->thread;
		}
	}
	for (size_t i = c->first_cell[d->group]; i < c->first_cell[d->group + 1]; i++) {
		double *weight = &w->by_thread[c->cells[i].thread];

		d->nr_users += *weight > USER_LEAST * d->weight;
		*weight = 0.0;
	}
	d->main_share = d->weight > 0.0 ? most / d->weight : 0.0;
	d->share = w->total > 0.0 ? d->weight / w->total : 0.0;
	d->first_toucher = w->a->first_touch.usual[d->group];
}

/* Share of the accesses by the main user of each unit. */
static double exclusivity(const struct npg_affinity *af, uint32_t group)
{
	double most = 0.0, all = 0.0;

	for (size_t u = af->first_unit[group]; u < af->first_unit[group + 1]; u++) {
		double here = 0.0;

		for (uint32_t i = 0; i < af->units[u].nr_uses; i++) {
			here = fmax(here, (double)af->units[u].uses[i].weight);
			all += (double)af->units[u].uses[i].weight;
		}
		most += here;
	}
	return all > 0.0 ? most / all : 0.0;
}

static enum npg_pattern pattern_of(const struct work *w, const struct npg_decision *d)
{
	if (d->weight <= 0.0)
		return NPG_PATTERN_UNUSED;
	if (d->main_share >= PRIVATE_LEAST)
		return NPG_PATTERN_PRIVATE;
	if (d->is_placed && exclusivity(&w->a->affinity, d->group) >= BLOCKS_LEAST)
		return NPG_PATTERN_BLOCKS;
	return NPG_PATTERN_SHARED;
}

/* Confidence of one unit: samples for the best node against those for the second. */
static double unit_confidence(const struct work *w, size_t u)
{
	const struct npg_unit *unit = &w->a->affinity.units[u];
	double n = w->a->affinity.unit_info[u].nr_samples, sum = 0.0, best = 0.0, second = 0.0;
	double by_node[NPG_COST_MAX_NODES] = { 0.0 };

	if (w->a->solution.unit_node[u] < 0)
		return n / (n + SHARED_KAPPA);
	for (uint32_t i = 0; i < unit->nr_uses; i++) {
		by_node[w->a->solution.thread_node[unit->uses[i].thread]] +=
		    (double)unit->uses[i].weight;
		sum += (double)unit->uses[i].weight;
	}
	for (int h = 0; h < w->a->cost->nr_nodes; h++) {
		if (by_node[h] > best) {
			second = best;
			best = by_node[h];
		} else {
			second = fmax(second, by_node[h]);
		}
	}
	return sum > 0.0 ? npg_decision_confidence(n * best / sum, n * second / sum) : 0.5;
}

static void set_confidence(const struct work *w, struct npg_decision *d)
{
	const struct npg_affinity *af = &w->a->affinity;
	double sum = 0.0, all = 0.0;

	for (size_t u = af->first_unit[d->group]; u < af->first_unit[d->group + 1]; u++) {
		double weight = 0.0;

		for (uint32_t i = 0; i < af->units[u].nr_uses; i++)
			weight += (double)af->units[u].uses[i].weight;
		sum += weight * unit_confidence(w, u);
		all += weight;
	}
	d->confidence = all > 0.0 ? sum / all : 0.0;
}

/* Time and locality of the group's accesses under alternatives, at idle latency. */
static int set_costs(struct work *w, struct npg_decision *d)
{
	const struct npg_analysis *a = w->a;
	const struct npg_predict_input input = npg_analysis_predict_input(a);
	struct npg_placement places[2] = { npg_analysis_placement(a, NPG_ALTERNATIVE_FIRST_TOUCH),
					   { .kind = NPG_PLACE_PLAN,
					     .thread_node = a->solution.thread_node,
					     .affinity = &a->affinity,
					     .solution = &a->solution } };
	struct npg_cells part = { .nr_cells = a->cells.first_cell[d->group + 1] -
					      a->cells.first_cell[d->group],
				  .cells = a->cells.cells + a->cells.first_cell[d->group] };
	double *shares[2] = { &d->first_touch_local_share, &d->local_share };
	double scale =
	    a->profile->access_scale / (a->profile->access_is_time ? a->cost->local_ns : 1.0);
	int n = a->cost->nr_nodes;

	d->node_cost_ns = npg_arena_alloc(&w->d->arena, (size_t)n, sizeof(double));
	if (d->node_cost_ns == NULL)
		return -ENOMEM;
	for (int i = 0; i < 2 && part.nr_cells > 0; i++) {
		struct npg_score score;

		if (npg_predict_score(&input, &places[i], &part, &score) < 0)
			return -ENOMEM;
		*shares[i] = score.lar;
		d->planned_cost_ns = score.memory_ns * scale;
	}
	for (size_t i = 0; i < part.nr_cells; i++)
		for (int h = 0; h < n; h++)
			d->node_cost_ns[h] +=
			    scale * (double)part.cells[i].weight *
			    npg_cost_latency(a->cost, a->solution.thread_node[part.cells[i].thread],
					     h);
	for (int h = 0; h < n; h++)
		d->interleaved_cost_ns += a->solution.share[h] * d->node_cost_ns[h];
	return 0;
}

static void set_reason(const struct work *w, struct npg_decision *d)
{
	const struct npg_profile_thread *t = &w->a->profile->threads[d->main_thread];
	double percent = 100.0 * d->main_share;

	if (d->nr_ranges == 1 && d->ranges[0].policy == NPG_POLICY_BIND)
		snprintf(d->reason, sizeof(d->reason),
			 "%.0f%% of %.0f samples by thread %s; %.0f%% would be local, %.0f%% by "
			 "first touch",
			 percent, d->nr_samples, t->path, 100.0 * d->local_share,
			 100.0 * d->first_touch_local_share);
	else if (d->nr_ranges == 1)
		snprintf(d->reason, sizeof(d->reason),
			 "shared by %zu threads, the largest user makes %.0f%% of %.0f samples",
			 d->nr_users, percent, d->nr_samples);
	else
		snprintf(d->reason, sizeof(d->reason),
			 "%zu ranges, each near its users; of %.0f samples %.0f%% would be local, "
			 "%.0f%% by first touch",
			 d->nr_ranges, d->nr_samples, 100.0 * d->local_share,
			 100.0 * d->first_touch_local_share);
}

static int decide(struct work *w, struct npg_decision *d)
{
	const struct npg_affinity *af = &w->a->affinity;
	const struct npg_group *g = &w->a->grouping.groups[d->group];
	int ret;

	find_users(w, d);
	/* an allocation without samples is placed as its neighbours say, if the site has any */
	d->is_placed = g->is_plannable && af->units[af->first_unit[d->group]].follows < 0;
	d->pattern = pattern_of(w, d);
	ret = set_costs(w, d);
	if (ret < 0 || !d->is_placed)
		return ret;
	set_confidence(w, d);
	ret = make_ranges(w, d);
	if (ret == 0)
		ret = make_table_ranges(w, d);
	if (ret == 0)
		set_reason(w, d);
	return ret;
}

int npg_decisions_make(const struct npg_analysis *analysis, struct npg_decisions *decisions)
{
	struct npg_decisions d = { .nr_decisions = analysis->grouping.nr_groups };
	struct work w = { .a = analysis, .d = &d };
	int ret = 0;

	d.decisions = calloc(d.nr_decisions + 1, sizeof(*d.decisions));
	w.by_thread = calloc(analysis->profile->nr_threads + 1, sizeof(*w.by_thread));
	if (d.decisions == NULL || w.by_thread == NULL)
		ret = -ENOMEM;
	for (size_t i = 0; i < analysis->cells.nr_cells; i++)
		w.total += (double)analysis->cells.cells[i].weight;
	for (size_t i = 0; ret == 0 && i < d.nr_decisions; i++) {
		d.decisions[i].group = (uint32_t)i;
		ret = decide(&w, &d.decisions[i]);
	}
	free(w.by_thread);
	if (ret < 0)
		npg_decisions_release(&d);
	else
		*decisions = d;
	return ret;
}

void npg_decisions_release(struct npg_decisions *decisions)
{
	free(decisions->decisions);
	npg_arena_release(&decisions->arena);
	*decisions = (struct npg_decisions){ 0 };
}
