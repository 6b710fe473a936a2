/*
 * The joint decision: which node each thread, each piece of memory and each page-table page gets.
 *
 * This interface is all that the rest of the analyzer knows about the method. The method now:
 * for each number of nodes from one to all, the nearest such nodes, and several starting points,
 * alternate (threads -> nodes under CPU capacity) and (memory -> node of least time under memory
 * capacity) until nothing changes, and keep the best by modelled time (analyzer/cost.h). It is
 * deterministic: equal input gives equal output.
 */
#ifndef NPG_ANALYZER_SOLVER_H
#define NPG_ANALYZER_SOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/cost.h"
#include "lib/compiler.h"

#define NPG_SOLVER_INTERLEAVE (-1) /* as a unit's node: spread over the nodes by share */

enum npg_objective {
	NPG_OBJECTIVE_THROUGHPUT, /* least time of all threads together */
	NPG_OBJECTIVE_MAKESPAN,   /* least time of the slowest thread */
};

/* Use of a unit by one thread: accesses of a memory unit, page walks of a table unit. */
struct npg_use {
	uint32_t thread;
	float weight;
};

/* A piece of memory that is placed as one, or the leaf table of a 2 MiB region. */
struct npg_unit {
	const struct npg_use *uses; /* borrowed */
	uint32_t nr_uses;
	int32_t follows;     /* thread whose node it is on by first touch; -1: free to be placed */
	uint64_t bytes;      /* counted against the memory of the node */
	float nr_samples;    /* behind the weights; 0: they are exact */
	bool can_interleave; /* has more than one page */
};

struct npg_problem {
	const struct npg_cost *cost;
	size_t nr_threads;
	const double *busy; /* CPUs that each thread keeps busy, 0..1; below 0.05 it needs no CPU
			     * of its own */
	const int *recorded_node; /* of each thread, or NULL when it ran on another machine */
	size_t nr_units;
	const struct npg_unit *units;
	size_t nr_tables;
	const struct npg_unit *tables;
	enum npg_objective objective;
	int max_nodes; /* use at most so many nodes with CPUs; 0: all */
};

struct npg_solution {
	int *thread_node;
	int *unit_node; /* or NPG_SOLVER_INTERLEAVE */
	int *table_node;
	int nr_nodes_used;
	double share[NPG_COST_MAX_NODES]; /* of interleaved memory per node; sums to 1 */
	struct npg_score score;
	bool is_over_capacity; /* memory did not fit on the machine as asked */
};

/**
 * npg_solver_solve() - decide.
 * @problem: at least one thread and one node with CPUs.
 * @solution: result, to be ended with npg_solution_release().
 *
 * Return: 0; -ENOMEM; -EINVAL no node has CPUs.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_solver_solve(const struct npg_problem *problem,
				    struct npg_solution *solution);

/** npg_solution_release() - safe on a zeroed struct. */
void npg_solution_release(struct npg_solution *solution);

/**
 * npg_solver_spread() - threads over nodes as a scheduler does it: each next busy thread to the
 * node with the lowest share of its CPUs taken; idle ones to the first node.
 * @allowed: per node, or NULL for all nodes with CPUs.
 * @thread_node: result, caller's storage.
 * MT-Safe. AS-Safe.
 */
void npg_solver_spread(const struct npg_cost *cost, size_t nr_threads, const double *busy,
		       const bool *allowed, int *thread_node);

/**
 * npg_solver_fits_cpus() - do the busy threads get a CPU each on the @allowed nodes? MT-Safe.
 */
bool npg_solver_fits_cpus(const struct npg_cost *cost, size_t nr_threads, const double *busy,
			  const bool *allowed);

#endif
