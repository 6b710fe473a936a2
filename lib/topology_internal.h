/* What the topology_*.c files share; nobody else but their tests includes it. */
#ifndef NPG_LIB_TOPOLOGY_INTERNAL_H
#define NPG_LIB_TOPOLOGY_INTERNAL_H

#include <stddef.h>

#include "lib/topology.h"

#define NPG_TOPOLOGY_MAX_NODES 1024 /* of a Linux kernel, CONFIG_NODES_SHIFT=10 */

/**
 * npg_topology_new() - a topology with zeroed nodes, 10/20 distances, and default load factors.
 *
 * Return: NULL when out of memory.
 */
struct npg_topology *npg_topology_new(int nr_nodes);

/**
 * npg_topology_set_text() - replace a text field by a formatted one.
 *
 * Return: 0; -ENOMEM.
 */
NPG_MUST_CHECK int npg_topology_set_text(char **field, const char *format, ...) NPG_PRINTF(2, 3);

/** npg_topology_complete() - count the CPUs, compute the fingerprint; the last step of a reader. */
void npg_topology_complete(struct npg_topology *topology);

/**
 * npg_topology_load_root() - npg_topology_load_system() for a copy of /proc and /sys below @root.
 * @root: NULL for this machine.
 */
NPG_MUST_CHECK int npg_topology_load_root(const char *root, struct npg_topology **topology,
					  struct npg_error *err);

/** npg_topology_from_synthetic() - from a hwloc synthetic description. As npg_topology_load(). */
NPG_MUST_CHECK int npg_topology_from_synthetic(const char *text, struct npg_topology **topology,
					       struct npg_error *err);

/**
 * npg_machine_find() - path of datasets/machines/NAME.json, in the source tree of the running
 * program or beside where it is installed.
 * @path: @size bytes.
 *
 * Return: 0; -ENOENT if there is none of this name.
 */
NPG_MUST_CHECK int npg_machine_find(const char *name, char *path, size_t size);

/** npg_machine_names() - the names that npg_machine_find() finds, "a, b, c", cut to @size. */
void npg_machine_names(char *names, size_t size);

#endif
