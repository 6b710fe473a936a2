/* Search over numbers of nodes and starting points; see solver.h. */
#include <errno.h>
#include <math.h>

#include "analyzer/solver_steps.h"

#define MAX_ROUNDS 8
#define NEAR_BEST  1.10 /* times that differ by less are equal: then the lower load decides */

enum start { START_SPREAD, START_COMPACT, START_CLUSTER, START_RECORDED, NR_STARTS };

static double value_of(const struct npg_problem *p, const struct npg_score *score)
{
	double all = score->memory_ns + score->walk_ns;

	/* the sum breaks ties between placements whose slowest threads are equal */
	return p->objective == NPG_OBJECTIVE_MAKESPAN ? score->slowest_ns + 1e-3 * all : all;
}

static int solution_init(const struct npg_problem *p, struct npg_solution *s)
{
	*s = (struct npg_solution){ 0 };
	s->thread_node = calloc(p->nr_threads + 1, sizeof(int));
	s->unit_node = calloc(p->nr_units + 1, sizeof(int));
	s->table_node = calloc(p->nr_tables + 1, sizeof(int));
	if (s->thread_node != NULL && s->unit_node != NULL && s->table_node != NULL)
		return 0;
	npg_solution_release(s);
	return -ENOMEM;
}

void npg_solution_release(struct npg_solution *solution)
{
	free(solution->thread_node);
	free(solution->unit_node);
	free(solution->table_node);
	*solution = (struct npg_solution){ 0 };
}

/* Copies the state of the search into @best. */
static void keep(const struct npg_search *search, struct npg_solution *best)
{
	const struct npg_problem *p = search->problem;
	const struct npg_solution *now = &search->now;

	memcpy(best->thread_node, now->thread_node, p->nr_threads * sizeof(int));
	memcpy(best->unit_node, now->unit_node, p->nr_units * sizeof(int));
	memcpy(best->table_node, now->table_node, p->nr_tables * sizeof(int));
	memcpy(best->share, search->share, sizeof(best->share));
	best->nr_nodes_used = now->nr_nodes_used;
	best->score = now->score;
	best->is_over_capacity = now->is_over_capacity;
}

static uint64_t bytes_of(const struct npg_problem *p)
{
	uint64_t bytes = 0;

	for (size_t u = 0; u < p->nr_units; u++)
		bytes += p->units[u].bytes;
	return bytes;
}

/* Memory of the threads' nodes; then, nearest first, of others as long as it does not fit. */
static void allow_memory(struct npg_search *search)
{
	const struct npg_cost *cost = search->problem->cost;
	double wanted = (double)bytes_of(search->problem), there = 0.0;

	for (int h = 0; h < cost->nr_nodes; h++) {
		search->memory_allowed[h] = search->cpus_allowed[h] && cost->memory_bytes[h] > 0;
		if (search->memory_allowed[h])
			there += (double)cost->memory_bytes[h];
	}
	while (there < wanted || there <= 0.0) {
		double least = HUGE_VAL;
		int nearest = -1;

		for (int h = 0; h < cost->nr_nodes; h++) {
			double sum = 0.0;

			if (search->memory_allowed[h] || cost->memory_bytes[h] == 0)
				continue;
			for (int n = 0; n < cost->nr_nodes; n++)
				sum += search->cpus_allowed[n] ? npg_cost_latency(cost, n, h) : 0.0;
			if (sum < least) {
				least = sum;
				nearest = h;
			}
		}
		if (nearest < 0)
			break;
		search->memory_allowed[nearest] = true;
		there += (double)cost->memory_bytes[nearest];
	}
}

/* Shares of interleaved memory: by bandwidth, over the allowed nodes near the threads. */
static void set_shares(struct npg_search *search)
{
	const struct npg_cost *cost = search->problem->cost;
	double sum = 0.0;
	int n = cost->nr_nodes;

	for (int h = 0; h < n; h++) {
		search->share[h] =
		    search->memory_allowed[h] ? cost->bandwidth_bytes_per_ns[h * n + h] : 0.0;
		sum += search->share[h];
	}
	for (int h = 0; h < n; h++)
		search->share[h] /= sum;
}

/* The @k nodes with CPUs that are nearest to each other and to @seed. */
static void allow_nearest(struct npg_search *search, int seed, int k)
{
	const struct npg_cost *cost = search->problem->cost;

	memset(search->cpus_allowed, 0, sizeof(search->cpus_allowed));
	search->cpus_allowed[seed] = true;
	for (int i = 1; i < k; i++) {
		double least = HUGE_VAL;
		int nearest = -1;

		for (int h = 0; h < cost->nr_nodes; h++) {
			double sum = 0.0;

			if (search->cpus_allowed[h] || cost->nr_cpus[h] == 0)
				continue;
			for (int n = 0; n < cost->nr_nodes; n++)
				if (search->cpus_allowed[n])
					sum += npg_cost_latency(cost, n, h) +
					       npg_cost_latency(cost, h, n);
			if (sum < least * (1.0 - 1e-9)) {
				least = sum;
				nearest = h;
			}
		}
		search->cpus_allowed[nearest] = true;
	}
	search->now.nr_nodes_used = k;
	allow_memory(search);
	set_shares(search);
	npg_solver_set_spread(search);
}

static double mutual_distance(const struct npg_search *search)
{
	const struct npg_cost *cost = search->problem->cost;
	double sum = 0.0;

	for (int i = 0; i < cost->nr_nodes; i++)
		for (int j = 0; j < cost->nr_nodes; j++)
			if (search->cpus_allowed[i] && search->memory_allowed[j])
				sum += npg_cost_latency(cost, i, j);
	return sum;
}

/* Chooses the best set of @k nodes; false if no such set has enough CPUs. */
static bool choose_nodes(struct npg_search *search, int k, int nr_cpu_nodes)
{
	const struct npg_problem *p = search->problem;
	double least = HUGE_VAL;
	int best = -1;

	for (int seed = 0; seed < p->cost->nr_nodes; seed++) {
		if (p->cost->nr_cpus[seed] == 0)
			continue;
		allow_nearest(search, seed, k);
		if (k < nr_cpu_nodes &&
		    !npg_solver_fits_cpus(p->cost, p->nr_threads, p->busy, search->cpus_allowed))
			continue;
		if (mutual_distance(search) < least * (1.0 - 1e-9)) {
			least = mutual_distance(search);
			best = seed;
		}
	}
	if (best >= 0)
		allow_nearest(search, best, k);
	return best >= 0;
}

/* Blocks of neighbouring threads on each node. */
static void start_compact(struct npg_search *search, int *thread_node)
{
	const struct npg_problem *p = search->problem;
	size_t nr_busy = npg_solver_nr_busy(p->nr_threads, p->busy), left = nr_busy, t = 0;
	int cpus = 0;

	npg_solver_spread(p->cost, p->nr_threads, p->busy, search->cpus_allowed, thread_node);
	for (int n = 0; n < p->cost->nr_nodes; n++)
		cpus += search->cpus_allowed[n] ? p->cost->nr_cpus[n] : 0;
	for (int n = 0; n < p->cost->nr_nodes && left > 0; n++) {
		int part;

		if (!search->cpus_allowed[n])
			continue;
		part = (int)ceil((double)left * p->cost->nr_cpus[n] / cpus);
		cpus -= p->cost->nr_cpus[n];
		for (; part > 0 && t < p->nr_threads; t++) {
			if (p->busy[t] < NPG_BUSY_LEAST)
				continue;
			thread_node[t] = n;
			part--;
			left--;
		}
	}
}

/* Where the threads ran when they were recorded, if that is known, allowed and fits. */
static int start_recorded(struct npg_search *search, int *thread_node)
{
	const struct npg_problem *p = search->problem;
	size_t nr_busy = npg_solver_nr_busy(p->nr_threads, p->busy);
	int room[NPG_COST_MAX_NODES];

	if (p->recorded_node == NULL)
		return 0;
	for (int n = 0; n < p->cost->nr_nodes; n++)
		room[n] = npg_solver_capacity(p->cost, search->cpus_allowed, nr_busy, n);
	npg_solver_spread(p->cost, p->nr_threads, p->busy, search->cpus_allowed, thread_node);
	for (size_t t = 0; t < p->nr_threads; t++) {
		if (p->busy[t] < NPG_BUSY_LEAST)
			continue;
		if (p->recorded_node[t] < 0 || room[p->recorded_node[t]]-- <= 0)
			return 0;
		thread_node[t] = p->recorded_node[t];
	}
	return 1;
}

/* Sets the threads' nodes for a starting point. Return: 1; 0: no such start; -ENOMEM. */
static int begin(struct npg_search *search, enum start start)
{
	const struct npg_problem *p = search->problem;
	int *node = search->now.thread_node;
	int ret;

	switch (start) {
	case START_SPREAD:
		npg_solver_spread(p->cost, p->nr_threads, p->busy, search->cpus_allowed, node);
		return 1;
	case START_COMPACT:
		start_compact(search, node);
		return 1;
	case START_CLUSTER:
		ret = npg_solver_cluster(search, node);
		return ret < 0 ? ret : 1;
	case START_RECORDED:
		return start_recorded(search, node);
	case NR_STARTS:
		break;
	}
	return 0;
}

/* Alternates from the present threads' nodes; keeps what is better than @best. */
static int descend(struct npg_search *search, struct npg_solution *best, double *best_value)
{
	const struct npg_problem *p = search->problem;
	int n = p->cost->nr_nodes, ret;

	for (int i = 0; i < n * n; i++)
		search->factors[i] = 1.0;
	for (int round = 0; round < MAX_ROUNDS; round++) {
		double value;

		ret = npg_solver_place_memory(search);
		if (ret < 0)
			return ret;
		npg_cost_score(p->cost, &search->traffic, search->now.thread_node, p->busy,
			       search->factors, &search->now.score);
		value = value_of(p, &search->now.score);
		if (search->now.is_over_capacity)
			value *= 2.0; /* only if nothing fits */
		if (value < *best_value * (1.0 - 1e-6)) {
			*best_value = value;
			keep(search, best);
		}
		npg_solver_thread_cost(search);
		ret = npg_solver_assign_threads(search);
		if (ret < 0)
			return ret;
		if (ret == 0 && round > 0)
			break;
	}
	return 0;
}

static int try_nodes(struct npg_search *search, struct npg_solution *best, double *best_value)
{
	for (int start = 0; start < NR_STARTS; start++) {
		int ret = begin(search, (enum start)start);

		if (ret > 0)
			ret = descend(search, best, best_value);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int search_init(struct npg_search *search, const struct npg_problem *p)
{
	size_t n = (size_t)p->cost->nr_nodes;

	search->problem = p;
	search->factors = calloc(n * n, sizeof(double));
	search->thread_cost = calloc(p->nr_threads * n + 1, sizeof(double));
	if (search->factors == NULL || search->thread_cost == NULL ||
	    npg_traffic_init(&search->traffic, p->nr_threads, p->cost->nr_nodes) < 0)
		return -ENOMEM;
	return solution_init(p, &search->now);
}

static void search_release(struct npg_search *search)
{
	free(search->factors);
	free(search->thread_cost);
	npg_traffic_release(&search->traffic);
	npg_solution_release(&search->now);
}

/*
 * Takes @candidate, the best of its number of nodes, instead of @best if it is faster, or as fast
 * with a lower load: the model knows little of caches and of CPUs that share a core, and spreading
 * is kind to both. @least: the least time of all candidates up to now.
 */
static void choose(const struct npg_problem *p, struct npg_solution *candidate,
		   struct npg_solution *best, double *least)
{
	double value = value_of(p, &candidate->score);
	bool is_first = best->thread_node == NULL;
	bool is_better = is_first || value * NEAR_BEST < value_of(p, &best->score) ||
			 best->is_over_capacity > candidate->is_over_capacity ||
			 (value <= *least * NEAR_BEST &&
			  candidate->score.highest_load < best->score.highest_load);

	if (value < *least)
		*least = value;
	if (!is_better)
		return;
	npg_solution_release(best);
	*best = *candidate;
	*candidate = (struct npg_solution){ 0 };
}

static int solve_for(struct npg_search *search, int k, int nr_cpu_nodes, struct npg_solution *best,
		     double *least)
{
	struct npg_solution candidate = { 0 };
	double value = HUGE_VAL;
	int ret;

	if (!choose_nodes(search, k, nr_cpu_nodes))
		return 0;
	ret = solution_init(search->problem, &candidate);
	if (ret == 0)
		ret = try_nodes(search, &candidate, &value);
	if (ret == 0)
		choose(search->problem, &candidate, best, least);
	npg_solution_release(&candidate);
	return ret;
}

int npg_solver_solve(const struct npg_problem *problem, struct npg_solution *solution)
{
	struct npg_search search = { 0 };
	struct npg_solution best = { 0 };
	double least = HUGE_VAL;
	int nr_cpu_nodes = 0, ret;

	for (int n = 0; n < problem->cost->nr_nodes; n++)
		nr_cpu_nodes += problem->cost->nr_cpus[n] > 0;
	if (nr_cpu_nodes == 0 || problem->nr_threads == 0)
		return -EINVAL;
	if (problem->max_nodes > 0 && problem->max_nodes < nr_cpu_nodes)
		nr_cpu_nodes = problem->max_nodes;
	ret = search_init(&search, problem);
	for (int k = 1; ret == 0 && k <= nr_cpu_nodes; k++)
		ret = solve_for(&search, k, nr_cpu_nodes, &best, &least);
	search_release(&search);
	if (ret < 0)
		npg_solution_release(&best);
	else
		*solution = best;
	return ret;
}
