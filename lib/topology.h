/*
 * The machine: nodes, their CPUs and memory, distances, latencies, bandwidths.
 *
 * hwloc is the only reader of real topologies and of hwloc XML; a machine file (JSON, format in
 * datasets/machines/README.md) describes machines that are not here, with measured figures.
 *
 * Nodes are kept in an array ordered by the system's node number; "index" below is the place in
 * that array, .node the system's number. Matrices are nr_nodes x nr_nodes, row = the CPUs' node
 * index, column = the memory's node index. In .latency_ns and .bandwidth_mib_per_s the row of a
 * node without CPUs and the column of a node without memory may be 0: not known.
 */
#ifndef NPG_LIB_TOPOLOGY_H
#define NPG_LIB_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/cpulist.h"
#include "lib/error.h"

#define NPG_NODE_NONE (-1)

struct npg_node {
	int node;               /* the system's number */
	struct npg_cpuset cpus; /* empty for a node of memory only */
	int nr_cpus;
	uint64_t memory_bytes; /* 0 for a node without memory */
	uint64_t free_bytes;   /* now, on this machine; memory_bytes for others */
};

struct npg_topology {
	char *name;        /* of the machine file, or "this machine" */
	char *description; /* one line, may be empty */
	int nr_nodes;
	struct npg_node *nodes;
	double *slit;                /* firmware distances, local = 10; never a latency */
	double *latency_ns;          /* idle load latency; NULL if not known */
	double *bandwidth_mib_per_s; /* read bandwidth; NULL if not known */
	double load_factor_a; /* latency under load, facts: 1 + a*u/(1 - g*u), u = utilisation */
	double load_factor_g;
	char *slit_origin; /* where each came from, one phrase; or why it is not known */
	char *latency_origin;
	char *bandwidth_origin;
	char *hwloc_xml;      /* complete export; NULL for a machine file */
	char fingerprint[33]; /* equal for machines of equal shape: nodes, CPUs, memory, SLIT */
};

/**
 * npg_topology_load_system() - this machine, everything that is online, by hwloc.
 * @topology: result, to be ended with npg_topology_free().
 *
 * Latency and bandwidth are hwloc's memory attributes (HMAT, sysfs access0) where the kernel gives
 * them for every pair; else they stay NULL. What HWLOC_* variables ask for is not done: they are
 * taken out of the environment for the time of the call.
 *
 * Return: 0; -ENOMEM, -EIO; @err set.
 * MT-Unsafe (environment). Not AS-Safe.
 */
NPG_MUST_CHECK int npg_topology_load_system(struct npg_topology **topology, struct npg_error *err);

/**
 * npg_topology_load() - a machine by name, file or description.
 * @what: a name in datasets/machines ("4-nodes"), a path of a machine file (JSON) or of hwloc XML,
 *        or a hwloc synthetic description ("numa:4 core:2 pu:1"), tried in this order.
 *
 * Return: 0; -ENOENT, -EINVAL, -EIO, -ENOMEM; @err set (with the names that exist for -ENOENT).
 * MT-Unsafe (environment). Not AS-Safe.
 */
NPG_MUST_CHECK int npg_topology_load(const char *what, struct npg_topology **topology,
				     struct npg_error *err);

/** npg_topology_from_xml() - from hwloc XML text, as kept in a recording. As npg_topology_load().
 */
NPG_MUST_CHECK int npg_topology_from_xml(const char *xml, struct npg_topology **topology,
					 struct npg_error *err);

/** npg_topology_from_json() - from the text of a machine file. As npg_topology_load(). */
NPG_MUST_CHECK int npg_topology_from_json(const char *text, size_t length,
					  struct npg_topology **topology, struct npg_error *err);

/** npg_topology_free() - NULL is allowed. */
void npg_topology_free(struct npg_topology *topology);

/** npg_topology_index_of_node() - index of the system's node number; -1 if there is none. */
int npg_topology_index_of_node(const struct npg_topology *topology, int node);

/** npg_topology_index_of_cpu() - index of the node that has this CPU; -1 if none has. */
int npg_topology_index_of_cpu(const struct npg_topology *topology, int cpu);

/**
 * npg_topology_cost_ns() - idle latency from node index @from to memory of node index @to: the
 * latency matrix, or, where it is not known, the SLIT scaled so that local is 100 ns.
 * @is_estimate: set to true in the latter case; may be NULL.
 */
double npg_topology_cost_ns(const struct npg_topology *topology, int from, int to,
			    bool *is_estimate);

#endif
