/*
 * Machine files: JSON, format in datasets/machines/README.md. Checked strictly, since a wrong
 * figure here becomes a wrong plan: unknown keys, missing rows and impossible numbers are errors
 * that name their place.
 */
#include <errno.h>
#include <math.h>

#include <jansson.h>

#include "lib/topology_internal.h"

#define MAX_LATENCY_NS      1e6                   /* 1 ms */
#define MAX_BANDWIDTH       1e8                   /* 95 TiB/s */
#define MAX_NODE_MEMORY_MIB ((json_int_t)1 << 30) /* 1 PiB */

static const char *const top_keys[] = { "format",      "version",    "name",
					"description", "source",     "nodes",
					"slit",        "latency_ns", "bandwidth_mib_per_s",
					"load_factor", NULL };
static const char *const node_keys[] = { "node", "cpus", "memory_mib", NULL };
static const char *const load_factor_keys[] = { "a", "g", NULL };

static int check_keys(const json_t *object, const char *const *keys, const char *where,
		      struct npg_error *err)
{
	json_t *unconst = (json_t *)(uintptr_t)object; /* jansson's iterator lacks the const */
	const char *key;
	json_t *value;

	json_object_foreach(unconst, key, value)
	{
		size_t i = 0;

		while (keys[i] != NULL && strcmp(keys[i], key) != 0)
			i++;
		if (keys[i] == NULL)
			return npg_error_set(err, -EINVAL, "%sunknown key \"%.40s\"", where, key);
	}
	return 0;
}

static int get_text(const json_t *top, const char *key, bool may_be_empty, char **text,
		    struct npg_error *err)
{
	const char *value = json_string_value(json_object_get(top, key));

	if (value == NULL || (value[0] == '\0' && !may_be_empty) ||
	    strpbrk(value, "\n\r\t\033") != NULL)
		return npg_error_set(err, -EINVAL, "\"%s\" must be a text of one line", key);
	if (npg_topology_set_text(text, "%s", value) < 0)
		return npg_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int check_format(const json_t *top, struct npg_error *err)
{
	const char *format = json_string_value(json_object_get(top, "format"));
	const json_t *version = json_object_get(top, "version");

	if (!json_is_object(top) || format == NULL || strcmp(format, "numapgo-machine") != 0)
		return npg_error_set(err, -EINVAL,
				     "not a machine file: \"format\" must be \"numapgo-machine\"");
	if (json_integer_value(version) != 1)
		return npg_error_set(err, -EINVAL,
				     "\"version\" must be 1; a newer file needs a newer numapgo");
	return check_keys(top, top_keys, "", err);
}

static int read_cpus(const json_t *entry, const char *where, struct npg_topology *t, int i,
		     struct npg_error *err)
{
	const json_t *cpus = json_object_get(entry, "cpus");
	struct npg_node *node = &t->nodes[i];

	if (!json_is_string(cpus) ||
	    npg_cpulist_parse(json_string_value(cpus), json_string_length(cpus), &node->cpus) < 0)
		return npg_error_set(err, -EINVAL,
				     "%s\"cpus\" must be a CPU list such as \"0-3,8\", up to CPU "
				     "%d",
				     where, NPG_CPUSET_SIZE - 1);
	for (int before = 0; before < i; before++) {
		struct npg_cpuset both = node->cpus;

		npg_cpuset_and(&both, &t->nodes[before].cpus);
		if (npg_cpuset_next(&both, -1) >= 0)
			return npg_error_set(err, -EINVAL, "%sCPU %d is in node %d already", where,
					     npg_cpuset_next(&both, -1), t->nodes[before].node);
	}
	return 0;
}

static int read_node(const json_t *entry, struct npg_topology *t, int i, struct npg_error *err)
{
	const json_t *number = json_object_get(entry, "node");
	const json_t *memory = json_object_get(entry, "memory_mib");
	struct npg_node *node = &t->nodes[i];
	json_int_t mib = json_integer_value(memory);
	char where[32];
	int ret;

	snprintf(where, sizeof(where), "nodes[%d]: ", i);
	if (!json_is_object(entry))
		return npg_error_set(err, -EINVAL, "%smust be an object", where);
	ret = check_keys(entry, node_keys, where, err);
	if (ret < 0)
		return ret;
	if (!json_is_integer(number) || json_integer_value(number) < 0 ||
	    json_integer_value(number) >= NPG_CPUSET_SIZE)
		return npg_error_set(err, -EINVAL, "%s\"node\" must be a number from 0 to %d",
				     where, NPG_CPUSET_SIZE - 1);
	node->node = (int)json_integer_value(number);
	if (i > 0 && node->node <= t->nodes[i - 1].node)
		return npg_error_set(err, -EINVAL, "%snode %d must come after node %d", where,
				     t->nodes[i - 1].node, node->node);
	if (!json_is_integer(memory) || mib < 0 || mib > MAX_NODE_MEMORY_MIB)
		return npg_error_set(err, -EINVAL,
				     "%s\"memory_mib\" must be a whole number, 0 for none", where);
	node->memory_bytes = (uint64_t)mib << 20;
	node->free_bytes = node->memory_bytes;
	return read_cpus(entry, where, t, i, err);
}

static int check_usable(const struct npg_topology *t, struct npg_error *err)
{
	bool has_cpu = false, has_memory = false;

	for (int i = 0; i < t->nr_nodes; i++) {
		has_cpu = has_cpu || npg_cpuset_next(&t->nodes[i].cpus, -1) >= 0;
		has_memory = has_memory || t->nodes[i].memory_bytes > 0;
	}
	if (!has_cpu || !has_memory)
		return npg_error_set(err, -EINVAL, "\"nodes\": no node has %s",
				     has_cpu ? "memory" : "a CPU");
	return 0;
}

static int read_nodes(const json_t *top, struct npg_topology **topology, struct npg_error *err)
{
	const json_t *nodes = json_object_get(top, "nodes");
	size_t nr = json_array_size(nodes);
	struct npg_topology *t;
	int ret = 0;

	if (!json_is_array(nodes) || nr < 1 || nr > NPG_TOPOLOGY_MAX_NODES)
		return npg_error_set(err, -EINVAL, "\"nodes\" must be a list of 1 to %d nodes",
				     NPG_TOPOLOGY_MAX_NODES);
	t = npg_topology_new((int)nr);
	if (t == NULL)
		return npg_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; ret == 0 && i < nr; i++)
		ret = read_node(json_array_get(nodes, i), t, (int)i, err);
	if (ret == 0)
		ret = check_usable(t, err);
	if (ret < 0) {
		npg_topology_free(t);
		return ret;
	}
	*topology = t;
	return 0;
}

struct matrix_rule {
	const char *key;
	double minimum;
	double maximum;
	bool has_null_rows; /* of nodes without CPUs, and in columns of nodes without memory */
};

static int read_row(const json_t *row, const struct matrix_rule *rule, const struct npg_topology *t,
		    int i, double *values, struct npg_error *err)
{
	bool has_cpus = npg_cpuset_next(&t->nodes[i].cpus, -1) >= 0;

	if (rule->has_null_rows && json_is_null(row) && !has_cpus)
		return 0;
	if (!json_is_array(row) || json_array_size(row) != (size_t)t->nr_nodes)
		return npg_error_set(
		    err, -EINVAL, "%s[%d] must be a list of %d numbers%s", rule->key, i,
		    t->nr_nodes,
		    rule->has_null_rows && !has_cpus ? ", or null since the node has no CPU" : "");
	for (int j = 0; j < t->nr_nodes; j++) {
		const json_t *item = json_array_get(row, (size_t)j);
		double value = json_number_value(item);

		if (rule->has_null_rows && json_is_null(item) && t->nodes[j].memory_bytes == 0)
			continue;
		if (!json_is_number(item) || !isfinite(value) || value < rule->minimum ||
		    value > rule->maximum)
			return npg_error_set(err, -EINVAL,
					     "%s[%d][%d] must be a number from %g to %g", rule->key,
					     i, j, rule->minimum, rule->maximum);
		values[i * t->nr_nodes + j] = value;
	}
	return 0;
}

/* Return: 1 read, 0 there is none, negative. */
static int read_matrix(const json_t *top, const struct matrix_rule *rule,
		       const struct npg_topology *t, double **matrix, struct npg_error *err)
{
	const json_t *rows = json_object_get(top, rule->key);
	double *values;
	int ret = 0;

	if (rows == NULL)
		return 0;
	if (!json_is_array(rows) || json_array_size(rows) != (size_t)t->nr_nodes)
		return npg_error_set(err, -EINVAL, "\"%s\" must be a list of %d rows", rule->key,
				     t->nr_nodes);
	values = calloc((size_t)t->nr_nodes * (size_t)t->nr_nodes, sizeof(*values));
	if (values == NULL)
		return npg_error_set(err, -ENOMEM, "out of memory");
	for (int i = 0; ret == 0 && i < t->nr_nodes; i++)
		ret = read_row(json_array_get(rows, (size_t)i), rule, t, i, values, err);
	if (ret < 0) {
		free(values);
		return ret;
	}
	free(*matrix);
	*matrix = values;
	return 1;
}

static int check_slit(const struct npg_topology *t, struct npg_error *err)
{
	for (int i = 0; i < t->nr_nodes; i++)
		if (t->slit[i * t->nr_nodes + i] > 10)
			return npg_error_set(err, -EINVAL, "slit[%d][%d] must be 10: it is local",
					     i, i);
	return 0;
}

static int read_matrices(const json_t *top, struct npg_topology *t, const char *source,
			 struct npg_error *err)
{
	static const struct matrix_rule slit = { "slit", 10, 255, false };
	static const struct matrix_rule latency = { "latency_ns", 1, MAX_LATENCY_NS, true };
	static const struct matrix_rule bandwidth = { "bandwidth_mib_per_s", 1, MAX_BANDWIDTH,
						      true };
	int has_slit, has_latency = 0, has_bandwidth = 0, ret;

	has_slit = read_matrix(top, &slit, t, &t->slit, err);
	ret = has_slit < 0 ? has_slit : check_slit(t, err);
	if (ret == 0)
		ret = has_latency = read_matrix(top, &latency, t, &t->latency_ns, err);
	if (ret >= 0)
		ret = has_bandwidth = read_matrix(top, &bandwidth, t, &t->bandwidth_mib_per_s, err);
	if (ret < 0)
		return ret;
	if ((has_slit && npg_topology_set_text(&t->slit_origin, "machine file: %s", source) < 0) ||
	    npg_topology_set_text(&t->latency_origin, "%s%s",
				  has_latency ? "machine file: " : "not known: ",
				  has_latency ? source : "not in the machine file") < 0 ||
	    npg_topology_set_text(&t->bandwidth_origin, "%s%s",
				  has_bandwidth ? "machine file: " : "not known: ",
				  has_bandwidth ? source : "not in the machine file") < 0)
		return npg_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int read_load_factor(const json_t *top, struct npg_topology *t, struct npg_error *err)
{
	const json_t *factor = json_object_get(top, "load_factor");
	const json_t *a = json_object_get(factor, "a"), *g = json_object_get(factor, "g");
	int ret;

	if (factor == NULL)
		return 0;
	if (!json_is_number(a) || !json_is_number(g))
		return npg_error_set(err, -EINVAL, "\"load_factor\" must have numbers a and g");
	ret = check_keys(factor, load_factor_keys, "load_factor: ", err);
	if (ret < 0)
		return ret;
	t->load_factor_a = json_number_value(a);
	t->load_factor_g = json_number_value(g);
	if (!(t->load_factor_a >= 0 && t->load_factor_a <= 10 && t->load_factor_g >= 0 &&
	      t->load_factor_g < 1))
		return npg_error_set(err, -EINVAL,
				     "load_factor: a must be from 0 to 10, g from 0 to below 1");
	return 0;
}

static int read_top(const json_t *top, struct npg_topology **topology, struct npg_error *err)
{
	struct npg_topology *t = NULL;
	char *source = NULL;
	int ret = check_format(top, err);

	if (ret == 0)
		ret = get_text(top, "source", false, &source, err);
	if (ret == 0)
		ret = read_nodes(top, &t, err);
	if (ret == 0)
		ret = get_text(top, "name", false, &t->name, err);
	if (ret == 0)
		ret = get_text(top, "description", true, &t->description, err);
	if (ret == 0)
		ret = read_matrices(top, t, source, err);
	if (ret == 0)
		ret = read_load_factor(top, t, err);
	free(source);
	if (ret < 0) {
		npg_topology_free(t);
		return ret;
	}
	npg_topology_complete(t);
	*topology = t;
	return 0;
}

int npg_topology_from_json(const char *text, size_t length, struct npg_topology **topology,
			   struct npg_error *err)
{
	json_error_t where;
	json_t *top = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
	int ret;

	if (top == NULL)
		return npg_error_set(err, -EINVAL, "line %d, column %d: %s", where.line,
				     where.column, where.text);
	ret = read_top(top, topology, err);
	json_decref(top);
	return ret;
}
