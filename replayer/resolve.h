/*
 * A plan's nodes on this machine: what may be used here, and which node stands for which.
 */
#ifndef NPG_REPLAYER_RESOLVE_H
#define NPG_REPLAYER_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/cpulist.h"
#include "lib/error.h"
#include "lib/plan.h"
#include "lib/topology.h"
#include "replayer/node_map.h"

/* What the kernel lets this process use: cpuset, taskset, batch system. */
struct npg_allowed {
	struct npg_cpuset cpus;
	struct npg_cpuset nodes;
};

/**
 * npg_allowed_parse() - from the text of /proc/PID/status. Pure; fuzzed.
 *
 * Return: 0; -EINVAL: a line is missing or is not a list. MT-Safe.
 */
NPG_MUST_CHECK int npg_allowed_parse(const char *text, size_t length, struct npg_allowed *allowed);

/** npg_allowed_read() - of this process. Return: 0; -EIO, -EINVAL; @err set. MT-Safe. */
NPG_MUST_CHECK int npg_allowed_read(struct npg_allowed *allowed, struct npg_error *err);

/* A node of the plan, here. */
struct npg_resolved_node {
	int node;               /* the system's number */
	struct npg_cpuset cpus; /* of it, that are allowed; may be empty */
	uint64_t wanted_bytes;  /* that the plan puts there */
	uint64_t free_bytes;
	int nr_threads; /* that the plan puts there */
};

struct npg_resolution {
	int nr_here; /* usable nodes: allowed and with memory */
	int nr_planned;
	struct npg_resolved_node nodes[NPG_PLAN_MAX_NODES]; /* by the plan's node */
	struct npg_node_map map;
	struct npg_cpuset allowed_cpus;
	bool is_same_machine; /* fingerprints are equal */
};

/**
 * npg_resolve() - map @plan's nodes onto the usable ones of @topology.
 *
 * Nodes count as usable if they are allowed and have memory; without any such line in the topology
 * all allowed ones do. Free memory is what the topology says.
 *
 * Return: 0; -ENODEV: no usable node; -ENOMEM; @err set. MT-Safe.
 */
NPG_MUST_CHECK int npg_resolve(const struct npg_plan *plan, const struct npg_topology *topology,
			       const struct npg_allowed *allowed, struct npg_resolution *resolution,
			       struct npg_error *err);

/** npg_resolution_describe() - one phrase: which node stands for which, for the summary. */
void npg_resolution_describe(const struct npg_resolution *resolution, char *text, size_t size);

#endif
