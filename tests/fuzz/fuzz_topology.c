/* Machine files; what loads has consistent parts. XML belongs to hwloc and is not fuzzed here. */
#include "lib/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_topology *t;

	if (npg_topology_from_json((const char *)data, size, &t, NULL) < 0)
		return 0;
	for (int i = 0; i < t->nr_nodes; i++) {
		if (npg_topology_index_of_node(t, t->nodes[i].node) != i)
			abort();
		for (int j = 0; j < t->nr_nodes; j++)
			if (!(npg_topology_cost_ns(t, i, j, NULL) > 0))
				abort();
	}
	npg_topology_free(t);
	return 0;
}
