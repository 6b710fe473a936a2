/* The half steps of the solver, private to it: threads given memory, memory given threads. */
#ifndef NPG_ANALYZER_SOLVER_STEPS_H
#define NPG_ANALYZER_SOLVER_STEPS_H

#include "analyzer/solver.h"

#define NPG_BUSY_LEAST 0.05 /* below this a thread needs no CPU of its own */

/* What one search for a subset of nodes works on. */
struct npg_search {
	const struct npg_problem *problem;
	bool cpus_allowed[NPG_COST_MAX_NODES];   /* nodes for threads */
	bool memory_allowed[NPG_COST_MAX_NODES]; /* nodes for memory */
	double share[NPG_COST_MAX_NODES];        /* of interleaved memory */
	double spread;                           /* see npg_solver_set_spread() */
	double *factors;                         /* load factors, N x N */
	double *thread_cost;                     /* T x N: time of a thread on a node */
	struct npg_traffic traffic;
	struct npg_solution now;
};

/**
 * npg_solver_thread_cost() - fill search->thread_cost from the traffic and the load factors.
 */
void npg_solver_thread_cost(struct npg_search *search);

/**
 * npg_solver_assign_threads() - threads to allowed nodes of least thread_cost, busy threads up to
 * npg_solver_capacity().
 *
 * Return: 1 if any thread moved, 0 if not, -ENOMEM.
 */
NPG_MUST_CHECK int npg_solver_assign_threads(struct npg_search *search);

/**
 * npg_solver_cluster() - a starting point: threads that use the same memory on the same node.
 * Return: 0; -ENOMEM.
 */
NPG_MUST_CHECK int npg_solver_cluster(struct npg_search *search, int *thread_node);

/**
 * npg_solver_place_memory() - units and tables to allowed nodes of least time, under capacity; then
 * the traffic of it.
 *
 * Return: 0; -ENOMEM.
 */
NPG_MUST_CHECK int npg_solver_place_memory(struct npg_search *search);

/**
 * npg_solver_set_spread() - set search->spread: by how much interleaving is slower than local
 * memory for a thread on one of the allowed nodes, as a share, at idle.
 */
void npg_solver_set_spread(struct npg_search *search);

/**
 * npg_solver_capacity() - busy threads that a node can take: its part of them by its part of the
 * allowed CPUs. Fewer nodes are tried as such; filling one of two nodes and putting all memory
 * there would rest on a guess of the bandwidth that the threads need.
 */
int npg_solver_capacity(const struct npg_cost *cost, const bool *allowed, size_t nr_busy, int node);

/** npg_solver_nr_busy() - threads that need a CPU of their own. */
size_t npg_solver_nr_busy(size_t nr_threads, const double *busy);

#endif
