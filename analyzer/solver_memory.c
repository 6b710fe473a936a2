/* Memory to nodes: least time, interleaving where nobody owns, spilling where it does not fit. */
#include <errno.h>
#include <math.h>

#include "analyzer/solver_steps.h"

/*
 * Interleaving is preferred when it costs little more latency than the best node: it keeps one
 * node's bandwidth from being the limit of all. Little is a tenth of what interleaving costs
 * memory that one thread uses alone, and more where few samples tell the users apart: the standard
 * error of a share near one half is 0.5 / sqrt(n).
 */
#define INTERLEAVE_REGRET 0.10
#define INTERLEAVE_NOISE  0.70

struct choice {
	size_t unit;
	int node;
	double regret_per_byte; /* of not getting the node */
};

/* Time of a unit on each allowed node, and interleaved; returns the best node. */
static int unit_costs(const struct npg_search *search, const struct npg_unit *unit, double *costs,
		      double *interleaved)
{
	const struct npg_cost *cost = search->problem->cost;
	int n = cost->nr_nodes, best = -1;
	double by_node[NPG_COST_MAX_NODES] = { 0.0 };

	for (uint32_t i = 0; i < unit->nr_uses; i++)
		by_node[search->now.thread_node[unit->uses[i].thread]] +=
		    (double)unit->uses[i].weight;
	*interleaved = 0.0;
	for (int h = 0; h < n; h++) {
		costs[h] = 0.0;
		for (int from = 0; from < n; from++)
			costs[h] += by_node[from] * npg_cost_latency(cost, from, h) *
				    search->factors[from * n + h];
		*interleaved += costs[h] * search->share[h];
		if (search->memory_allowed[h] &&
		    (best < 0 || costs[h] < costs[best] * (1.0 - 1e-9)))
			best = h;
	}
	return best;
}

void npg_solver_set_spread(struct npg_search *search)
{
	const struct npg_cost *cost = search->problem->cost;
	double sum = 0.0, nr = 0.0;

	for (int n = 0; n < cost->nr_nodes; n++) {
		double interleaved = 0.0;

		if (!search->cpus_allowed[n])
			continue;
		for (int h = 0; h < cost->nr_nodes; h++)
			interleaved += search->share[h] * npg_cost_latency(cost, n, h);
		sum += interleaved / cost->nearest_ns[n] - 1.0;
		nr += 1.0;
	}
	search->spread = sum / nr;
}

static int choose(const struct npg_search *search, const struct npg_unit *unit)
{
	double costs[NPG_COST_MAX_NODES], interleaved, tolerance = INTERLEAVE_REGRET;
	int best;

	if (unit->follows >= 0)
		return search->now.thread_node[unit->follows];
	best = unit_costs(search, unit, costs, &interleaved);
	if (unit->nr_samples > 0.0F)
		tolerance += INTERLEAVE_NOISE / sqrt((double)unit->nr_samples);
	if (unit->can_interleave && search->now.nr_nodes_used > 1 &&
	    interleaved <= costs[best] * (1.0 + tolerance * search->spread))
		return NPG_SOLVER_INTERLEAVE;
	return best;
}

static void add_bytes(const struct npg_search *search, const struct npg_unit *unit, int node,
		      double *used)
{
	if (node >= 0) {
		used[node] += (double)unit->bytes;
		return;
	}
	for (int h = 0; h < search->problem->cost->nr_nodes; h++)
		used[h] += (double)unit->bytes * search->share[h];
}

static int by_regret(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;

	if (x->regret_per_byte < y->regret_per_byte || x->regret_per_byte > y->regret_per_byte)
		return x->regret_per_byte < y->regret_per_byte ? 1 : -1;
	return (x->unit > y->unit) - (x->unit < y->unit);
}

/* Allowed node of least cost that still has room for the unit; -1: none. */
static int best_with_room(const struct npg_search *search, const double *costs, const double *used,
			  double bytes)
{
	const struct npg_cost *cost = search->problem->cost;
	int best = -1;

	for (int h = 0; h < cost->nr_nodes; h++)
		if (search->memory_allowed[h] && used[h] + bytes <= (double)cost->memory_bytes[h] &&
		    (best < 0 || costs[h] < costs[best]))
			best = h;
	return best;
}

/* Places again, those first that lose most per byte elsewhere; what fits nowhere is interleaved. */
static int spill(struct npg_search *search)
{
	const struct npg_problem *p = search->problem;
	struct choice *choices = calloc(p->nr_units + 1, sizeof(*choices));
	double used[NPG_COST_MAX_NODES] = { 0.0 };
	double costs[NPG_COST_MAX_NODES], interleaved;
	size_t nr = 0;

	if (choices == NULL)
		return -ENOMEM;
	for (size_t u = 0; u < p->nr_units; u++) {
		const struct npg_unit *unit = &p->units[u];
		double others = HUGE_VAL;
		int best;

		if (search->now.unit_node[u] == NPG_SOLVER_INTERLEAVE || unit->follows >= 0) {
			add_bytes(search, unit, search->now.unit_node[u], used);
			continue;
		}
		best = unit_costs(search, unit, costs, &interleaved);
		for (int h = 0; h < p->cost->nr_nodes; h++)
			if (h != best && search->memory_allowed[h])
				others = fmin(others, costs[h]);
		choices[nr++] =
		    (struct choice){ u, best,
				     (others - costs[best]) / ((double)unit->bytes + 1.0) };
	}
	qsort(choices, nr, sizeof(*choices), by_regret);
	for (size_t i = 0; i < nr; i++) {
		const struct npg_unit *unit = &p->units[choices[i].unit];
		int node;

		unit_costs(search, unit, costs, &interleaved);
		node = best_with_room(search, costs, used, (double)unit->bytes);
		search->now.unit_node[choices[i].unit] = node >= 0 ? node : NPG_SOLVER_INTERLEAVE;
		search->now.is_over_capacity |= node < 0;
		add_bytes(search, unit, node, used);
	}
	free(choices);
	return 0;
}

static bool is_overfull(const struct npg_search *search)
{
	const struct npg_problem *p = search->problem;
	double used[NPG_COST_MAX_NODES] = { 0.0 };

	for (size_t u = 0; u < p->nr_units; u++)
		add_bytes(search, &p->units[u], search->now.unit_node[u], used);
	for (int h = 0; h < p->cost->nr_nodes; h++)
		if (used[h] > (double)p->cost->memory_bytes[h])
			return true;
	return false;
}

static int choose_table(const struct npg_search *search, const struct npg_unit *table)
{
	const struct npg_cost *cost = search->problem->cost;
	double least = HUGE_VAL;
	int best = 0;

	if (table->follows >= 0)
		return search->now.thread_node[table->follows];
	for (int h = 0; h < cost->nr_nodes; h++) {
		double sum = 0.0;

		if (!search->memory_allowed[h])
			continue;
		for (uint32_t i = 0; i < table->nr_uses; i++)
			sum +=
			    (double)table->uses[i].weight *
			    npg_cost_walk(cost, search->now.thread_node[table->uses[i].thread], h);
		if (sum < least * (1.0 - 1e-9)) {
			least = sum;
			best = h;
		}
	}
	return best;
}

static void add_traffic(const struct npg_search *search, const struct npg_unit *unit, int node,
			double *rows)
{
	int n = search->problem->cost->nr_nodes;

	for (uint32_t i = 0; i < unit->nr_uses; i++) {
		double *row = rows + unit->uses[i].thread * (size_t)n;
		double weight = (double)unit->uses[i].weight;

		if (node >= 0)
			row[node] += weight;
		else
			for (int h = 0; h < n; h++)
				row[h] += weight * search->share[h];
	}
}

int npg_solver_place_memory(struct npg_search *search)
{
	const struct npg_problem *p = search->problem;
	int ret;

	search->now.is_over_capacity = false;
	for (size_t u = 0; u < p->nr_units; u++)
		search->now.unit_node[u] = choose(search, &p->units[u]);
	if (is_overfull(search)) {
		ret = spill(search);
		if (ret < 0)
			return ret;
	}
	npg_traffic_clear(&search->traffic);
	for (size_t u = 0; u < p->nr_units; u++)
		add_traffic(search, &p->units[u], search->now.unit_node[u],
			    search->traffic.accesses);
	for (size_t t = 0; t < p->nr_tables; t++) {
		search->now.table_node[t] = choose_table(search, &p->tables[t]);
		add_traffic(search, &p->tables[t], search->now.table_node[t],
			    search->traffic.walks);
	}
	return 0;
}
