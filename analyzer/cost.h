/*
 * The cost model: time of memory accesses and page walks on a machine, for a placement.
 *
 * A placement enters only by its traffic: how many accesses each thread makes to memory of each
 * node. With Lat(n,h) the idle latency from CPUs of node n to memory of node h:
 *
 *   memory time  = sum A(t,h) * Lat(n(t),h) * phi(u)        phi(u) = 1 + a*u / (1 - g*u)
 *   walk time    = sum W(t,h) * Lwalk(n(t),h)
 *   Lwalk(n,h)   = Lwalk_local * (1 + 0.47 * (Lat(n,h)/Lat_local - 1))
 *
 * u is the load of the memory node or of the link to it, whichever is higher: bytes per second
 * asked for, over its bandwidth. phi is fitted to measured loaded latencies (a, g: of the machine,
 * 0.26 and 0.80 by default); beyond u = 1 time grows with u, since bandwidth is the limit. 0.47 is
 * the share of local page-walk time that is the memory latency of the leaf table, from published
 * runs with remote and local tables; a local walk counts as one local latency.
 *
 * Samples of memory instructions do not tell how many bytes go to memory. Unless known better, a
 * thread that is busy is taken to have one cache line under way at any time (64 bytes per local
 * latency). Where bandwidths are unknown, a node is taken to serve its own CPUs, all busy in that
 * way, at half load.
 */
#ifndef NPG_ANALYZER_COST_H
#define NPG_ANALYZER_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/topology.h"

#define NPG_COST_MAX_NODES 64

struct npg_cost {
	int nr_nodes;
	double *latency_ns;             /* N x N, row = CPUs' node */
	double *bandwidth_bytes_per_ns; /* N x N, likewise; the diagonal is the node's memory */
	double *nearest_ns;             /* per node: latency to its nearest memory */
	double local_ns;                /* the smallest of these, of nodes with CPUs */
	double load_a;
	double load_g;
	int *nr_cpus;
	uint64_t *memory_bytes;
	bool latency_is_estimate;  /* scaled from the SLIT */
	bool bandwidth_is_assumed; /* see above */
};

/* Accesses and walks of a placement: nr_threads x nr_nodes, row = thread, column = memory's node */
struct npg_traffic {
	size_t nr_threads;
	int nr_nodes;
	double *accesses;
	double *walks;
};

struct npg_score {
	double lar;          /* local accesses / all, 0..1 */
	double memory_ns;    /* of all threads */
	double walk_ns;      /* of all threads */
	double remote_walks; /* walks to a remote table / all, 0..1 */
	double slowest_ns;   /* memory and walk time of the slowest thread */
	double highest_load; /* largest u */
};

/**
 * npg_cost_new() - the model of a machine.
 * @topology: borrowed for the call; at most NPG_COST_MAX_NODES nodes.
 *
 * Return: the model, to be ended with npg_cost_free(); NULL when out of memory.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK struct npg_cost *npg_cost_new(const struct npg_topology *topology);

/** npg_cost_free() - NULL is allowed. */
void npg_cost_free(struct npg_cost *cost);

/** npg_cost_latency() - idle latency from CPUs of node @from to memory of node @to, ns. */
double npg_cost_latency(const struct npg_cost *cost, int from, int to);

/** npg_cost_walk() - duration of a page walk by a CPU of node @from, table on node @to, ns. */
double npg_cost_walk(const struct npg_cost *cost, int from, int to);

/** npg_cost_load_factor() - phi of the utilisation @u. MT-Safe. */
double npg_cost_load_factor(const struct npg_cost *cost, double u);

/** npg_traffic_init() - all zero. Return: 0; -ENOMEM. */
NPG_MUST_CHECK int npg_traffic_init(struct npg_traffic *traffic, size_t nr_threads, int nr_nodes);

/** npg_traffic_clear() - set all to zero. */
void npg_traffic_clear(struct npg_traffic *traffic);

/** npg_traffic_release() - safe on a zeroed struct. */
void npg_traffic_release(struct npg_traffic *traffic);

/**
 * npg_cost_factors() - load factor of each pair of nodes under a traffic.
 * @thread_node: node of each thread.
 * @busy: CPUs that each thread keeps busy, 0..1.
 * @factors: result, N x N, caller's storage.
 *
 * Return: the highest utilisation.
 * MT-Safe. AS-Safe.
 */
double npg_cost_factors(const struct npg_cost *cost, const struct npg_traffic *traffic,
			const int *thread_node, const double *busy, double *factors);

/**
 * npg_cost_score() - time and locality of a placement; arguments as npg_cost_factors(), which it
 * calls.
 * MT-Safe. AS-Safe.
 */
void npg_cost_score(const struct npg_cost *cost, const struct npg_traffic *traffic,
		    const int *thread_node, const double *busy, double *factors,
		    struct npg_score *score);

#endif
