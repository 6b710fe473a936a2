/* numapgo topo: a machine's nodes, distances, latencies and bandwidths, and where each is from. */
#include <inttypes.h>

#include <jansson.h>

#include "lib/command.h"
#include "lib/log.h"
#include "lib/topology.h"

struct topo_options {
	struct npg_common common;
	const char *machine;
};

static const struct npg_option options_table[] = {
	{ "machine", 'm', NPG_OPTION_STRING, offsetof(struct topo_options, machine), "M",
	  "The machine: a name in datasets/machines, a machine file, hwloc XML, or a hwloc "
	  "synthetic description such as 'numa:4 core:2 pu:1'. Default: this machine.",
	  NULL },
};

static void format_size(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < NPG_ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	if (bytes == 0)
		snprintf(text, size, "none");
	else
		snprintf(text, size, "%.*f %s", value < 100 && unit > 0 ? 1 : 0, value,
			 units[unit]);
}

static void format_cpus(const struct npg_node *node, char *text, size_t size)
{
	if (node->nr_cpus == 0)
		snprintf(text, size, "none");
	else if (npg_cpulist_format(&node->cpus, text, size) >= size && size > 4)
		memcpy(text + size - 4, "...", 4);
}

static void print_nodes(const struct npg_topology *t, bool is_here)
{
	char memory[32], free_memory[32], cpus[120];

	printf("\n%6s %6s %10s %10s  %s\n", "node", "CPUs", "memory", "free", "CPU list");
	for (int i = 0; i < t->nr_nodes; i++) {
		const struct npg_node *node = &t->nodes[i];

		format_size(node->memory_bytes, memory, sizeof(memory));
		format_size(node->free_bytes, free_memory, sizeof(free_memory));
		format_cpus(node, cpus, sizeof(cpus));
		printf("%6d %6d %10s %10s  %s\n", node->node, node->nr_cpus, memory,
		       is_here && node->memory_bytes > 0 ? free_memory : "-", cpus);
	}
}

/* Width of the widest number of a matrix or node number. */
static int column_width(const struct npg_topology *t, const double *matrix, int decimals)
{
	int width = snprintf(NULL, 0, "%d", t->nodes[t->nr_nodes - 1].node);

	for (int i = 0; i < t->nr_nodes * t->nr_nodes; i++) {
		int needed = snprintf(NULL, 0, "%.*f", decimals, matrix[i]);

		if (needed > width)
			width = needed;
	}
	return width;
}

static bool has_value(const struct npg_topology *t, const double *matrix, int i, int j)
{
	return matrix == t->slit || matrix[i * t->nr_nodes + j] > 0;
}

static void print_matrix(const struct npg_topology *t, const char *title, const double *matrix,
			 int decimals, const char *origin, const char *origin_before)
{
	int width;

	if (matrix == NULL) {
		printf("\n%s: %s\n", title, origin);
		return;
	}
	width = column_width(t, matrix, decimals);
	printf("\n%s; from node (row) to memory of node (column)\n  from: %s\n%6s", title,
	       strcmp(origin, origin_before) == 0 ? "the same" : origin, "node");
	for (int j = 0; j < t->nr_nodes; j++)
		printf(" %*d", width, t->nodes[j].node);
	putchar('\n');
	for (int i = 0; i < t->nr_nodes; i++) {
		printf("%6d", t->nodes[i].node);
		for (int j = 0; j < t->nr_nodes; j++)
			if (has_value(t, matrix, i, j))
				printf(" %*.*f", width, decimals, matrix[i * t->nr_nodes + j]);
			else
				printf(" %*s", width, "-");
		putchar('\n');
	}
}

static void print_text(const struct npg_topology *t, bool is_here)
{
	int nr_cpus = 0;
	uint64_t bytes = 0;
	char memory[32];

	for (int i = 0; i < t->nr_nodes; i++) {
		nr_cpus += t->nodes[i].nr_cpus;
		bytes += t->nodes[i].memory_bytes;
	}
	format_size(bytes, memory, sizeof(memory));
	printf("%s%s%s\n%d node%s, %d CPU%s, memory %s, fingerprint %s\n", t->name,
	       t->description[0] != '\0' ? ": " : "", t->description, t->nr_nodes,
	       t->nr_nodes == 1 ? "" : "s", nr_cpus, nr_cpus == 1 ? "" : "s", memory,
	       t->fingerprint);
	print_nodes(t, is_here);
	print_matrix(t, "distance (SLIT; local 10; no latency)", t->slit, 0, t->slit_origin, "");
	print_matrix(t, "idle latency, ns", t->latency_ns, 1, t->latency_origin, t->slit_origin);
	print_matrix(t, "read bandwidth, MiB/s", t->bandwidth_mib_per_s, 0, t->bandwidth_origin,
		     t->latency_origin);
	if (is_here && t->nr_nodes == 1)
		printf("\nOne node: nothing to place here. Plan for another machine with\n"
		       "  numapgo analyze --machine 4-nodes\n");
	else
		printf("\nnext: numapgo record -- ./app\n");
}

static json_t *matrix_to_json(const struct npg_topology *t, const double *matrix)
{
	json_t *rows;

	if (matrix == NULL)
		return json_null();
	rows = json_array();
	for (int i = 0; i < t->nr_nodes; i++) {
		json_t *row = json_array();

		for (int j = 0; j < t->nr_nodes; j++)
			json_array_append_new(row, has_value(t, matrix, i, j)
						       ? json_real(matrix[i * t->nr_nodes + j])
						       : json_null());
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *nodes_to_json(const struct npg_topology *t)
{
	json_t *nodes = json_array();

	for (int i = 0; i < t->nr_nodes; i++) {
		const struct npg_node *node = &t->nodes[i];
		char cpus[NPG_CPULIST_SIZE];

		npg_cpulist_format(&node->cpus, cpus, sizeof(cpus));
		json_array_append_new(nodes,
				      json_pack("{s:i, s:s, s:i, s:I, s:I}", "node", node->node,
						"cpus", cpus, "nr_cpus", node->nr_cpus,
						"memory_bytes", (json_int_t)node->memory_bytes,
						"free_bytes", (json_int_t)node->free_bytes));
	}
	return nodes;
}

static int print_json(const struct npg_topology *t)
{
	json_t *top = json_pack(
	    "{s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:s, s:o, s:s, s:{s:f, s:f}}", "name", t->name,
	    "description", t->description, "fingerprint", t->fingerprint, "nodes", nodes_to_json(t),
	    "slit", matrix_to_json(t, t->slit), "slit_origin", t->slit_origin, "latency_ns",
	    matrix_to_json(t, t->latency_ns), "latency_origin", t->latency_origin,
	    "bandwidth_mib_per_s", matrix_to_json(t, t->bandwidth_mib_per_s), "bandwidth_origin",
	    t->bandwidth_origin, "load_factor", "a", t->load_factor_a, "g", t->load_factor_g);
	int ret =
	    top != NULL ? json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : -1;

	json_decref(top);
	putchar('\n');
	return ret;
}

static int topo_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	const struct topo_options *o = options;
	struct npg_topology *t = NULL;
	struct npg_error err = { "" };
	int ret;

	if (argc > 0) {
		npg_error_print("%s: unexpected '%s'; a machine is given by --machine",
				command->name, argv[0]);
		return NPG_EXIT_USAGE;
	}
	ret = o->machine != NULL ? npg_topology_load(o->machine, &t, &err)
				 : npg_topology_load_system(&t, &err);
	if (ret < 0) {
		npg_error_print("%s", err.text);
		return NPG_EXIT_FAILED;
	}
	if (!o->common.json)
		print_text(t, o->machine == NULL);
	else if (print_json(t) < 0) {
		npg_error_print("out of memory");
		ret = -1;
	}
	npg_topology_free(t);
	return ret < 0 ? NPG_EXIT_FAILED : NPG_EXIT_OK;
}

const struct npg_command npg_command_topo = {
	.name = "topo",
	.summary = "nodes, CPUs, memory, distances, latencies and bandwidths of a machine",
	.operands = "",
	.description =
	    "Prints the nodes of a machine, what an access from each node to each node's\n"
	    "memory costs, and where each number came from.\n"
	    "\n"
	    "The distances that firmware gives (SLIT) are no latencies. Where only they are\n"
	    "known, numapgo takes 100 ns for a local access and scales by the distance, and\n"
	    "says that its predictions are estimates.",
	.examples = "  numapgo topo\n"
		    "  numapgo topo --machine 4-nodes\n"
		    "  numapgo topo --machine 'numa:2 core:4 pu:2' --json\n",
	.options = options_table,
	.nr_options = NPG_ARRAY_SIZE(options_table),
	.options_size = sizeof(struct topo_options),
	.run = topo_run,
};
