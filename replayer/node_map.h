/*
 * Which node of this machine stands for which node of the plan.
 *
 * Pure arithmetic on distances and demands, without a look at the machine.
 */
#ifndef NPG_REPLAYER_NODE_MAP_H
#define NPG_REPLAYER_NODE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/plan.h"

/* A machine as the mapping sees it: the plan's, or the usable part of this one. */
struct npg_map_machine {
	int nr_nodes;           /* 1..NPG_PLAN_MAX_NODES */
	const double *distance; /* nr_nodes x nr_nodes, row = the CPUs' node; any unit */
	uint64_t bytes[NPG_PLAN_MAX_NODES]; /* plan: wanted on the node; here: free */
	int cpus[NPG_PLAN_MAX_NODES];       /* plan: threads that want the node; here: CPUs */
};

struct npg_node_map {
	int to[NPG_PLAN_MAX_NODES]; /* by the plan's node: index of a node here */
	bool is_folded;             /* fewer nodes here than in the plan: some share one */
	bool is_exact;              /* all possibilities were compared */
	int nr_short_of_memory;     /* nodes here that have less free memory than is wanted */
	int nr_without_cpus;        /* nodes here that threads want and that have no CPU */
	double mismatch;            /* mean difference of relative distances; 0: the same shape */
};

/**
 * npg_node_map_find() - map the nodes of @plan onto those of @here.
 *
 * With as many or more nodes here, each planned node gets one of its own, so that nodes with CPUs
 * and enough memory are taken first, then relative distances (to the local one) differ least: by
 * trying everything up to 8! arrangements, beyond that greedily, improved by exchanges. With fewer
 * nodes here, planned nodes that are near each other and lightly loaded are joined until there are
 * as many as here. Equal arrangements: the lowest numbers win, so the same shape maps to itself.
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_node_map_find(const struct npg_map_machine *plan,
				     const struct npg_map_machine *here, struct npg_node_map *map);

#endif
