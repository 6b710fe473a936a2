/* The cost model; formulas and their sources are in the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/cost.h"

#define LINE_BYTES       64.0
#define WALK_MEMORY_PART 0.47
#define MIB              1048576.0

double npg_cost_latency(const struct npg_cost *cost, int from, int to)
{
	return cost->latency_ns[from * cost->nr_nodes + to];
}

double npg_cost_walk(const struct npg_cost *cost, int from, int to)
{
	double local = npg_cost_latency(cost, from, from);

	return local * (1.0 + WALK_MEMORY_PART * (npg_cost_latency(cost, from, to) / local - 1.0));
}

double npg_cost_load_factor(const struct npg_cost *cost, double u)
{
	double bounded = u < 1.0 ? u : 1.0;
	double factor = 1.0 + cost->load_a * bounded / (1.0 - cost->load_g * bounded);

	return u > 1.0 ? factor * u : factor;
}

static bool allocate(struct npg_cost *cost, int n)
{
	size_t count = (size_t)n;

	cost->nr_nodes = n;
	cost->latency_ns = calloc(count * count, sizeof(double));
	cost->bandwidth_bytes_per_ns = calloc(count * count, sizeof(double));
	cost->nearest_ns = calloc(count, sizeof(double));
	cost->nr_cpus = calloc(count, sizeof(int));
	cost->memory_bytes = calloc(count, sizeof(uint64_t));
	return cost->latency_ns != NULL && cost->bandwidth_bytes_per_ns != NULL &&
	       cost->nearest_ns != NULL && cost->nr_cpus != NULL && cost->memory_bytes != NULL;
}

/* Bandwidth of memory node @to as seen from @from when nothing is known: see the header. */
static double assumed_bandwidth(const struct npg_cost *cost, int from, int to)
{
	int cpus = cost->nr_cpus[to] > 0 ? cost->nr_cpus[to] : 1;
	double ratio = npg_cost_latency(cost, from, to) / cost->local_ns;

	return 2.0 * cpus * LINE_BYTES / cost->local_ns / (from == to ? 1.0 : ratio);
}

/* Latencies from nodes without CPUs or to nodes without memory are not known: as the farthest. */
static void fill_latencies(struct npg_cost *cost)
{
	int n = cost->nr_nodes;
	double farthest = 0.0;

	for (int i = 0; i < n * n; i++)
		farthest = fmax(farthest, cost->latency_ns[i]);
	cost->local_ns = HUGE_VAL;
	for (int i = 0; i < n; i++) {
		cost->nearest_ns[i] = HUGE_VAL;
		for (int j = 0; j < n; j++) {
			if (cost->latency_ns[i * n + j] <= 0.0)
				cost->latency_ns[i * n + j] = farthest > 0.0 ? farthest : 100.0;
			cost->nearest_ns[i] =
			    fmin(cost->nearest_ns[i], npg_cost_latency(cost, i, j));
		}
		if (cost->nr_cpus[i] > 0)
			cost->local_ns = fmin(cost->local_ns, cost->nearest_ns[i]);
	}
	if (isinf(cost->local_ns))
		cost->local_ns = cost->nearest_ns[0];
}

/* A node's own memory gives what its fastest user gets; an unknown link is the slowest known. */
static void fill_bandwidths(struct npg_cost *cost)
{
	int n = cost->nr_nodes;
	double slowest = HUGE_VAL;

	for (int i = 0; i < n * n; i++)
		if (cost->bandwidth_bytes_per_ns[i] > 0.0)
			slowest = fmin(slowest, cost->bandwidth_bytes_per_ns[i]);
	for (int h = 0; h < n; h++) {
		double *own = &cost->bandwidth_bytes_per_ns[h * n + h];

		for (int i = 0; i < n; i++)
			*own = fmax(*own, cost->bandwidth_bytes_per_ns[i * n + h]);
	}
	for (int i = 0; i < n * n; i++)
		if (cost->bandwidth_bytes_per_ns[i] <= 0.0)
			cost->bandwidth_bytes_per_ns[i] = isinf(slowest) ? 1.0 : slowest;
}

struct npg_cost *npg_cost_new(const struct npg_topology *topology)
{
	struct npg_cost *cost = calloc(1, sizeof(*cost));
	int n = topology->nr_nodes;

	if (cost == NULL || !allocate(cost, n)) {
		npg_cost_free(cost);
		return NULL;
	}
	cost->load_a = topology->load_factor_a > 0.0 ? topology->load_factor_a : 0.26;
	cost->load_g = topology->load_factor_g > 0.0 ? topology->load_factor_g : 0.80;
	cost->latency_is_estimate = topology->latency_ns == NULL;
	cost->bandwidth_is_assumed = topology->bandwidth_mib_per_s == NULL;
	for (int i = 0; i < n; i++) {
		cost->nr_cpus[i] = topology->nodes[i].nr_cpus;
		cost->memory_bytes[i] = topology->nodes[i].memory_bytes;
		for (int j = 0; j < n; j++)
			cost->latency_ns[i * n + j] = npg_topology_cost_ns(topology, i, j, NULL);
	}
	fill_latencies(cost);
	for (int i = 0; i < n * n; i++)
		cost->bandwidth_bytes_per_ns[i] =
		    cost->bandwidth_is_assumed ? assumed_bandwidth(cost, i / n, i % n)
					       : topology->bandwidth_mib_per_s[i] * MIB / 1e9;
	fill_bandwidths(cost);
	return cost;
}

void npg_cost_free(struct npg_cost *cost)
{
	if (cost == NULL)
		return;
	free(cost->latency_ns);
	free(cost->bandwidth_bytes_per_ns);
	free(cost->nearest_ns);
	free(cost->nr_cpus);
	free(cost->memory_bytes);
	free(cost);
}

int npg_traffic_init(struct npg_traffic *traffic, size_t nr_threads, int nr_nodes)
{
	size_t count = nr_threads * (size_t)nr_nodes;

	*traffic = (struct npg_traffic){ .nr_threads = nr_threads, .nr_nodes = nr_nodes };
	traffic->accesses = calloc(count + 1, sizeof(double));
	traffic->walks = calloc(count + 1, sizeof(double));
	if (traffic->accesses == NULL || traffic->walks == NULL) {
		npg_traffic_release(traffic);
		return -ENOMEM;
	}
	return 0;
}

void npg_traffic_clear(struct npg_traffic *traffic)
{
	size_t bytes = traffic->nr_threads * (size_t)traffic->nr_nodes * sizeof(double);

	memset(traffic->accesses, 0, bytes);
	memset(traffic->walks, 0, bytes);
}

void npg_traffic_release(struct npg_traffic *traffic)
{
	free(traffic->accesses);
	free(traffic->walks);
	*traffic = (struct npg_traffic){ 0 };
}

double npg_cost_factors(const struct npg_cost *cost, const struct npg_traffic *traffic,
			const int *thread_node, const double *busy, double *factors)
{
	int n = cost->nr_nodes;
	double node_load[NPG_COST_MAX_NODES] = { 0.0 };
	double highest = 0.0;

	memset(factors, 0, (size_t)(n * n) * sizeof(double));
	for (size_t t = 0; t < traffic->nr_threads; t++) {
		const double *row = traffic->accesses + t * (size_t)n;
		double all = 0.0;

		for (int h = 0; h < n; h++)
			all += row[h];
		if (all <= 0.0)
			continue;
		for (int h = 0; h < n; h++) /* bytes per ns that this thread asks of h */
			factors[thread_node[t] * n + h] +=
			    row[h] / all * busy[t] * LINE_BYTES / cost->local_ns;
	}
	for (int h = 0; h < n; h++) {
		for (int i = 0; i < n; i++)
			node_load[h] += factors[i * n + h];
		node_load[h] /= cost->bandwidth_bytes_per_ns[h * n + h];
		highest = fmax(highest, node_load[h]);
	}
	for (int i = 0; i < n * n; i++) {
		double link = factors[i] / cost->bandwidth_bytes_per_ns[i];

		highest = fmax(highest, link);
		factors[i] = npg_cost_load_factor(cost, fmax(node_load[i % n], link));
	}
	return highest;
}

void npg_cost_score(const struct npg_cost *cost, const struct npg_traffic *traffic,
		    const int *thread_node, const double *busy, double *factors,
		    struct npg_score *score)
{
	double all = 0.0, local = 0.0, walks = 0.0, remote_walks = 0.0;
	int n = cost->nr_nodes;

	*score = (struct npg_score){ 0 };
	score->highest_load = npg_cost_factors(cost, traffic, thread_node, busy, factors);
	for (size_t t = 0; t < traffic->nr_threads; t++) {
		double memory_ns = 0.0, walk_ns = 0.0;
		int from = thread_node[t];

		for (int h = 0; h < n; h++) {
			double a = traffic->accesses[t * (size_t)n + (size_t)h];
			double w = traffic->walks[t * (size_t)n + (size_t)h];

			memory_ns += a * npg_cost_latency(cost, from, h) * factors[from * n + h];
			walk_ns += w * npg_cost_walk(cost, from, h);
			all += a;
			walks += w;
			local += h == from ? a : 0.0;
			remote_walks += h == from ? 0.0 : w;
		}
		score->memory_ns += memory_ns;
		score->walk_ns += walk_ns;
		score->slowest_ns = fmax(score->slowest_ns, memory_ns + walk_ns);
	}
	score->lar = all > 0.0 ? local / all : 0.0;
	score->remote_walks = walks > 0.0 ? remote_walks / walks : 0.0;
}
