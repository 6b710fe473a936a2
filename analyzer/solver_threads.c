/* Threads to nodes: spread, clusters by shared memory, and assignment with swaps. */
#include <errno.h>
#include <math.h>

#include "analyzer/solver_steps.h"

#define MAX_PASSES       10
#define MAX_CLUSTERED    1024 /* threads: the matrix of shared use has this squared entries */
#define MAX_SHARING_USES 256  /* a unit used by more threads tells nothing about pairs */

size_t npg_solver_nr_busy(size_t nr_threads, const double *busy)
{
	size_t nr = 0;

	for (size_t t = 0; t < nr_threads; t++)
		nr += busy[t] >= NPG_BUSY_LEAST;
	return nr;
}

static int nr_cpus_of(const struct npg_cost *cost, const bool *allowed)
{
	int cpus = 0;

	for (int n = 0; n < cost->nr_nodes; n++)
		if (allowed == NULL || allowed[n])
			cpus += cost->nr_cpus[n];
	return cpus;
}

bool npg_solver_fits_cpus(const struct npg_cost *cost, size_t nr_threads, const double *busy,
			  const bool *allowed)
{
	return npg_solver_nr_busy(nr_threads, busy) <= (size_t)nr_cpus_of(cost, allowed);
}

int npg_solver_capacity(const struct npg_cost *cost, const bool *allowed, size_t nr_busy, int node)
{
	if (!allowed[node])
		return 0;
	return (int)ceil((double)nr_busy * cost->nr_cpus[node] / nr_cpus_of(cost, allowed));
}

void npg_solver_spread(const struct npg_cost *cost, size_t nr_threads, const double *busy,
		       const bool *allowed, int *thread_node)
{
	int taken[NPG_COST_MAX_NODES] = { 0 };
	int first = -1;

	for (int n = 0; n < cost->nr_nodes && first < 0; n++)
		if (cost->nr_cpus[n] > 0 && (allowed == NULL || allowed[n]))
			first = n;
	for (size_t t = 0; t < nr_threads; t++) {
		int best = first;

		thread_node[t] = first;
		if (busy[t] < NPG_BUSY_LEAST)
			continue;
		for (int n = 0; n < cost->nr_nodes; n++) {
			if (cost->nr_cpus[n] == 0 || (allowed != NULL && !allowed[n]))
				continue;
			if (taken[n] * cost->nr_cpus[best] < taken[best] * cost->nr_cpus[n])
				best = n;
		}
		taken[best]++;
		thread_node[t] = best;
	}
}

void npg_solver_thread_cost(struct npg_search *search)
{
	const struct npg_problem *p = search->problem;
	int n = p->cost->nr_nodes;

	for (size_t t = 0; t < p->nr_threads; t++) {
		const double *accesses = search->traffic.accesses + t * (size_t)n;
		const double *walks = search->traffic.walks + t * (size_t)n;

		for (int from = 0; from < n; from++) {
			double sum = 0.0;

			for (int h = 0; h < n; h++)
				sum += accesses[h] * npg_cost_latency(p->cost, from, h) *
					   search->factors[from * n + h] +
				       walks[h] * npg_cost_walk(p->cost, from, h);
			search->thread_cost[t * (size_t)n + (size_t)from] = sum;
		}
	}
}

struct wish {
	size_t thread;
	double regret; /* of not getting the best node */
};

static int by_regret(const void *a, const void *b)
{
	const struct wish *x = a, *y = b;

	if (x->regret < y->regret || x->regret > y->regret)
		return x->regret < y->regret ? 1 : -1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static double cost_on(const struct npg_search *search, size_t thread, int node)
{
	return search->thread_cost[thread * (size_t)search->problem->cost->nr_nodes + (size_t)node];
}

/* The node of least cost with room; the present node wins ties. */
static int best_node(const struct npg_search *search, size_t thread, const int *room, int present,
		     double *regret)
{
	int n = search->problem->cost->nr_nodes, best = -1;
	double least = HUGE_VAL, second = HUGE_VAL;

	for (int i = 0; i < n; i++) {
		double c = cost_on(search, thread, i);

		if (!search->cpus_allowed[i] || (room != NULL && room[i] <= 0))
			continue;
		if (best < 0 || c < least * (1.0 - 1e-9) ||
		    (i == present && c <= least * (1.0 + 1e-9))) {
			second = least;
			least = c;
			best = i;
		} else if (c < second) {
			second = c;
		}
	}
	*regret = isinf(second) ? 0.0 : second - least;
	return best;
}

/* Swaps of two threads, and moves to free CPUs, as long as they save time. */
static void improve(const struct npg_search *search, const struct wish *wishes, size_t nr,
		    int *room, int *node)
{
	bool changed = true;

	for (int pass = 0; changed && pass < MAX_PASSES; pass++) {
		changed = false;
		for (size_t i = 0; i < nr; i++) {
			size_t a = wishes[i].thread;
			double regret;
			int free_node = best_node(search, a, room, -1, &regret);

			if (free_node >= 0 && cost_on(search, a, free_node) <
						  cost_on(search, a, node[a]) * (1.0 - 1e-9)) {
				room[node[a]]++;
				room[free_node]--;
				node[a] = free_node;
				changed = true;
			}
			for (size_t j = i + 1; j < nr; j++) {
				size_t b = wishes[j].thread;
				double stay =
				    cost_on(search, a, node[a]) + cost_on(search, b, node[b]);
				double swap =
				    cost_on(search, a, node[b]) + cost_on(search, b, node[a]);

				if (node[a] != node[b] && swap < stay * (1.0 - 1e-9)) {
					int other = node[a];

					node[a] = node[b];
					node[b] = other;
					changed = true;
				}
			}
		}
	}
}

int npg_solver_assign_threads(struct npg_search *search)
{
	const struct npg_problem *p = search->problem;
	size_t nr_busy = npg_solver_nr_busy(p->nr_threads, p->busy), nr = 0;
	struct wish *wishes = calloc(nr_busy + 1, sizeof(*wishes));
	int *node = calloc(p->nr_threads, sizeof(*node));
	int room[NPG_COST_MAX_NODES], moved;
	double regret;

	if (wishes == NULL || node == NULL) {
		free(wishes);
		free(node);
		return -ENOMEM;
	}
	for (int n = 0; n < p->cost->nr_nodes; n++)
		room[n] = npg_solver_capacity(p->cost, search->cpus_allowed, nr_busy, n);
	for (size_t t = 0; t < p->nr_threads; t++) {
		node[t] = best_node(search, t, NULL, search->now.thread_node[t], &regret);
		if (p->busy[t] >= NPG_BUSY_LEAST)
			wishes[nr++] = (struct wish){ t, regret };
	}
	qsort(wishes, nr, sizeof(*wishes), by_regret);
	for (size_t i = 0; i < nr; i++) {
		size_t t = wishes[i].thread;

		node[t] = best_node(search, t, room, search->now.thread_node[t], &regret);
		room[node[t]]--;
	}
	improve(search, wishes, nr, room, node);
	moved = memcmp(node, search->now.thread_node, p->nr_threads * sizeof(*node)) != 0;
	memcpy(search->now.thread_node, node, p->nr_threads * sizeof(*node));
	free(wishes);
	free(node);
	return moved;
}

/* shared[a * T + b]: accesses of a and b to the same units, the smaller of both. */
static void count_sharing(const struct npg_problem *p, float *shared)
{
	for (size_t u = 0; u < p->nr_units; u++) {
		const struct npg_unit *unit = &p->units[u];

		if (unit->nr_uses > MAX_SHARING_USES)
			continue;
		for (uint32_t i = 0; i < unit->nr_uses; i++) {
			for (uint32_t j = 0; j < i; j++) {
				size_t a = unit->uses[i].thread, b = unit->uses[j].thread;
				float w = fminf(unit->uses[i].weight, unit->uses[j].weight);

				shared[a * p->nr_threads + b] += w;
				shared[b * p->nr_threads + a] += w;
			}
		}
	}
}

/* The unplaced busy thread that shares most with those on @node; the first one if none is there. */
static size_t next_for(const struct npg_problem *p, const float *shared, const int *thread_node,
		       int node)
{
	size_t best = p->nr_threads;
	float most = -1.0F;

	for (size_t t = 0; t < p->nr_threads; t++) {
		float sum = 0.0F;

		if (thread_node[t] >= 0 || p->busy[t] < NPG_BUSY_LEAST)
			continue;
		for (size_t other = 0; other < p->nr_threads; other++)
			if (thread_node[other] == node)
				sum += shared[t * p->nr_threads + other];
		if (sum > most) {
			most = sum;
			best = t;
		}
	}
	return best;
}

int npg_solver_cluster(struct npg_search *search, int *thread_node)
{
	const struct npg_problem *p = search->problem;
	size_t nr_busy = npg_solver_nr_busy(p->nr_threads, p->busy), left = nr_busy;
	int cpus = nr_cpus_of(p->cost, search->cpus_allowed);
	float *shared;

	npg_solver_spread(p->cost, p->nr_threads, p->busy, search->cpus_allowed, thread_node);
	if (p->nr_threads > MAX_CLUSTERED)
		return 0;
	shared = calloc(p->nr_threads * p->nr_threads, sizeof(*shared));
	if (shared == NULL)
		return -ENOMEM;
	count_sharing(p, shared);
	for (size_t t = 0; t < p->nr_threads; t++)
		if (p->busy[t] >= NPG_BUSY_LEAST)
			thread_node[t] = -1;
	for (int n = 0; n < p->cost->nr_nodes && left > 0; n++) {
		int part; /* an even share, so that all allowed nodes are used */

		if (!search->cpus_allowed[n])
			continue;
		part = (int)ceil((double)left * p->cost->nr_cpus[n] / cpus);
		cpus -= p->cost->nr_cpus[n];
		for (; part > 0 && left > 0; part--, left--)
			thread_node[next_for(p, shared, thread_node, n)] = n;
	}
	free(shared);
	return 0;
}
