/*
 * Topologies by hwloc: this machine, hwloc XML, synthetic descriptions.
 *
 * hwloc's node objects carry the CPUs that are near to their memory; for a node of memory only
 * these are another node's CPUs. Each CPU is given to one node: of those near to it the one near
 * to the fewest CPUs, then the one with the lowest number (the kernel numbers nodes with CPUs
 * first).
 *
 * hwloc takes orders from the environment (HWLOC_XMLFILE replaces the machine) and can print to
 * stderr. Both are switched off for the time of a call.
 */
#include <errno.h>
#include <unistd.h>

#include <hwloc.h>

#include "lib/topology_internal.h"

#define MAX_HWLOC_VARIABLES 64

struct environment {
	char *variables[MAX_HWLOC_VARIABLES]; /* "HWLOC_X=Y" */
	size_t nr;
};

static void hide_environment(struct environment *e, const char *root)
{
	static const char prefix[] = "HWLOC_";

	e->nr = 0;
	for (char **v = environ; *v != NULL && e->nr < MAX_HWLOC_VARIABLES; v++)
		if (strncmp(*v, prefix, sizeof(prefix) - 1) == 0 && strchr(*v, '=') != NULL) {
			char *copy = strdup(*v);

			if (copy != NULL)
				e->variables[e->nr++] = copy;
		}
	for (size_t i = 0; i < e->nr; i++) {
		char *equals = strchr(e->variables[i], '=');

		*equals = '\0';
		unsetenv(e->variables[i]);
		*equals = '=';
	}
	setenv("HWLOC_HIDE_ERRORS", "2", 1);
	if (root != NULL)
		setenv("HWLOC_FSROOT", root, 1);
}

static void restore_environment(struct environment *e)
{
	unsetenv("HWLOC_HIDE_ERRORS");
	unsetenv("HWLOC_FSROOT");
	for (size_t i = 0; i < e->nr; i++) {
		char *equals = strchr(e->variables[i], '=');

		*equals = '\0';
		setenv(e->variables[i], equals + 1, 1);
		free(e->variables[i]);
	}
}

static int out_of_memory(struct npg_error *err)
{
	return npg_error_set(err, -ENOMEM, "topology: out of memory");
}

static int compare_nodes(const void *left, const void *right)
{
	const hwloc_obj_t *a = left, *b = right;

	return (*a)->os_index < (*b)->os_index ? -1 : (*a)->os_index > (*b)->os_index;
}

/* hwloc's node objects by system number. */
static int list_nodes(hwloc_topology_t h, hwloc_obj_t **objects, int *nr, struct npg_error *err)
{
	int count = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_NUMANODE);
	hwloc_obj_t *list;

	if (count < 1 || count > NPG_TOPOLOGY_MAX_NODES)
		return npg_error_set(err, -EINVAL, "%d NUMA nodes; from 1 to %d are possible",
				     count, NPG_TOPOLOGY_MAX_NODES);
	list = calloc((size_t)count, sizeof(*list));
	if (list == NULL)
		return out_of_memory(err);
	for (int i = 0; i < count; i++)
		list[i] = hwloc_get_obj_by_type(h, HWLOC_OBJ_NUMANODE, (unsigned int)i);
	qsort(list, (size_t)count, sizeof(*list), compare_nodes);
	for (int i = 0; i < count; i++)
		if (list[i]->os_index >= NPG_CPUSET_SIZE ||
		    (i > 0 && list[i]->os_index == list[i - 1]->os_index)) {
			int ret = npg_error_set(
			    err, -EINVAL, "node number %u is %s", list[i]->os_index,
			    i > 0 && list[i]->os_index == list[i - 1]->os_index ? "there twice"
										: "too large");

			free(list);
			return ret;
		}
	*objects = list;
	*nr = count;
	return 0;
}

static int node_of_pu(const hwloc_obj_t *objects, const int *weights, int nr, unsigned int pu)
{
	int best = -1;

	for (int i = 0; i < nr; i++)
		if (hwloc_bitmap_isset(objects[i]->cpuset, pu) &&
		    (best < 0 || weights[i] < weights[best]))
			best = i;
	return best;
}

static int assign_cpus(hwloc_topology_t h, const hwloc_obj_t *objects, struct npg_topology *t,
		       struct npg_error *err)
{
	int *weights = calloc((size_t)t->nr_nodes, sizeof(*weights));
	int ret = 0;

	if (weights == NULL)
		return out_of_memory(err);
	for (int i = 0; i < t->nr_nodes; i++)
		weights[i] = hwloc_bitmap_weight(objects[i]->cpuset);
	for (hwloc_obj_t pu = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PU, NULL);
	     pu != NULL && ret == 0; pu = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PU, pu)) {
		int i = node_of_pu(objects, weights, t->nr_nodes, pu->os_index);

		if (pu->os_index >= NPG_CPUSET_SIZE)
			ret = npg_error_set(err, -EINVAL, "CPU number %u is too large (up to %d)",
					    pu->os_index, NPG_CPUSET_SIZE - 1);
		else if (i >= 0)
			npg_cpuset_add(&t->nodes[i].cpus, (int)pu->os_index);
	}
	free(weights);
	return ret;
}

/* Place of each of our nodes in hwloc's matrix; false if one is not in it. */
static bool map_to_matrix(const struct hwloc_distances_s *d, const hwloc_obj_t *objects, int nr,
			  unsigned int *places)
{
	for (int i = 0; i < nr; i++) {
		unsigned int k = 0;

		while (k < d->nbobjs && d->objs[k] != objects[i])
			k++;
		if (k == d->nbobjs)
			return false;
		places[i] = k;
	}
	return true;
}

static bool is_slit(const struct hwloc_distances_s *d)
{
	for (unsigned int i = 0; i < d->nbobjs; i++)
		for (unsigned int j = 0; j < d->nbobjs; j++) {
			uint64_t value = d->values[i * d->nbobjs + j];

			if (value < 1 || value > 65535 || (i == j && value != 10))
				return false;
		}
	return true;
}

static int read_slit(hwloc_topology_t h, const hwloc_obj_t *objects, struct npg_topology *t,
		     struct npg_error *err)
{
	struct hwloc_distances_s *matrices[16];
	unsigned int nr = NPG_ARRAY_SIZE(matrices);
	size_t n = (size_t)t->nr_nodes;
	unsigned int *places = calloc(n, sizeof(*places));
	bool is_found = false;
	int ret = 0;

	if (places == NULL)
		return out_of_memory(err);
	if (hwloc_distances_get_by_type(
		h, HWLOC_OBJ_NUMANODE, &nr, matrices,
		HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) < 0)
		nr = 0;
	for (unsigned int m = 0; m < nr && m < NPG_ARRAY_SIZE(matrices); m++) {
		const struct hwloc_distances_s *d = matrices[m];

		if (!is_found && is_slit(d) && map_to_matrix(d, objects, t->nr_nodes, places)) {
			for (size_t i = 0; i < n * n; i++)
				t->slit[i] =
				    (double)d->values[places[i / n] * d->nbobjs + places[i % n]];
			ret = npg_topology_set_text(&t->slit_origin, "firmware (SLIT)");
			is_found = true;
		}
		hwloc_distances_release(h, matrices[m]);
	}
	free(places);
	return ret < 0 ? out_of_memory(err) : 0;
}

static void fill_bitmap(hwloc_bitmap_t bitmap, const struct npg_cpuset *cpus)
{
	hwloc_bitmap_zero(bitmap);
	for (int c = npg_cpuset_next(cpus, -1); c >= 0; c = npg_cpuset_next(cpus, c))
		hwloc_bitmap_set(bitmap, (unsigned int)c);
}

/*
 * A memory attribute for each pair of a node with CPUs and a node with memory; rows and columns of
 * the others stay 0. Return: false if any pair lacks it, or there is no pair.
 */
static bool fill_attribute(hwloc_topology_t h, hwloc_memattr_id_t id, const hwloc_obj_t *objects,
			   const struct npg_topology *t, hwloc_bitmap_t cpus, double *values)
{
	struct hwloc_location from = { .type = HWLOC_LOCATION_TYPE_CPUSET,
				       .location.cpuset = cpus };
	bool has_pair = false;

	for (int i = 0; i < t->nr_nodes; i++) {
		if (npg_cpuset_next(&t->nodes[i].cpus, -1) < 0)
			continue;
		fill_bitmap(cpus, &t->nodes[i].cpus);
		for (int j = 0; j < t->nr_nodes; j++) {
			hwloc_uint64_t value = 0;

			if (t->nodes[j].memory_bytes == 0)
				continue;
			if (hwloc_memattr_get_value(h, id, objects[j], &from, 0, &value) < 0 ||
			    value == 0)
				return false;
			values[i * t->nr_nodes + j] = (double)value;
			has_pair = true;
		}
	}
	return has_pair;
}

/* NULL in @matrix if it is not known. */
static int read_attribute(hwloc_topology_t h, hwloc_memattr_id_t id, const hwloc_obj_t *objects,
			  const struct npg_topology *t, double **matrix)
{
	size_t n = (size_t)t->nr_nodes;
	double *values = calloc(n * n, sizeof(*values));
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	int ret = values != NULL && cpus != NULL ? 0 : -ENOMEM;

	if (ret == 0 && fill_attribute(h, id, objects, t, cpus, values)) {
		*matrix = values;
		values = NULL;
	}
	free(values);
	hwloc_bitmap_free(cpus);
	return ret;
}

static int read_attributes(hwloc_topology_t h, const hwloc_obj_t *objects, struct npg_topology *t,
			   const char *why_unknown, struct npg_error *err)
{
	static const char known[] = "firmware (HMAT)";

	if (read_attribute(h, HWLOC_MEMATTR_ID_LATENCY, objects, t, &t->latency_ns) < 0 ||
	    read_attribute(h, HWLOC_MEMATTR_ID_BANDWIDTH, objects, t, &t->bandwidth_mib_per_s) <
		0 ||
	    npg_topology_set_text(&t->latency_origin, "%s",
				  t->latency_ns != NULL ? known : why_unknown) < 0 ||
	    npg_topology_set_text(&t->bandwidth_origin, "%s",
				  t->bandwidth_mib_per_s != NULL ? known : why_unknown) < 0)
		return out_of_memory(err);
	return 0;
}

static int export_xml(hwloc_topology_t h, struct npg_topology *t, struct npg_error *err)
{
	char *buffer;
	int length;

	if (hwloc_topology_export_xmlbuffer(h, &buffer, &length, 0) < 0)
		return npg_error_set(err, -EIO, "hwloc cannot write its XML: %s", strerror(errno));
	t->hwloc_xml = strdup(buffer);
	hwloc_free_xmlbuffer(h, buffer);
	return t->hwloc_xml != NULL ? 0 : out_of_memory(err);
}

static int describe(hwloc_topology_t h, const char *name, struct npg_topology *t,
		    struct npg_error *err)
{
	hwloc_obj_t package = hwloc_get_obj_by_type(h, HWLOC_OBJ_PACKAGE, 0);
	const char *model =
	    package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

	int length = model != NULL ? (int)strlen(model) : 0;

	while (length > 0 && model[length - 1] == ' ') /* some processors pad theirs */
		length--;
	if (npg_topology_set_text(&t->name, "%s", name) < 0 ||
	    npg_topology_set_text(&t->description, "%.*s", length, length > 0 ? model : "") < 0)
		return out_of_memory(err);
	return 0;
}

/* A loaded hwloc topology to ours. */
static int convert(hwloc_topology_t h, const char *name, const char *why_unknown,
		   struct npg_topology **topology, struct npg_error *err)
{
	hwloc_obj_t *objects = NULL;
	struct npg_topology *t = NULL;
	int nr = 0, ret = list_nodes(h, &objects, &nr, err);

	if (ret < 0)
		return ret;
	t = npg_topology_new(nr);
	if (t == NULL) {
		ret = out_of_memory(err);
		goto out;
	}
	for (int i = 0; i < nr; i++) {
		t->nodes[i].node = (int)objects[i]->os_index;
		t->nodes[i].memory_bytes = objects[i]->attr->numanode.local_memory;
		t->nodes[i].free_bytes = t->nodes[i].memory_bytes;
	}
	ret = assign_cpus(h, objects, t, err);
	if (ret == 0)
		ret = read_slit(h, objects, t, err);
	if (ret == 0)
		ret = read_attributes(h, objects, t, why_unknown, err);
	if (ret == 0)
		ret = describe(h, name, t, err);
	if (ret == 0)
		ret = export_xml(h, t, err);
	if (ret == 0) {
		npg_topology_complete(t);
		*topology = t;
		t = NULL;
	}
out:
	npg_topology_free(t);
	free(objects);
	return ret;
}

static void read_free_memory(const char *root, struct npg_node *node)
{
	unsigned long long free_kib;
	char path[4096], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d/meminfo",
		 root != NULL ? root : "", node->node);
	file = fopen(path, "re");
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "Node %*d MemFree: %llu kB", &free_kib) == 1)
			node->free_bytes = (uint64_t)free_kib * 1024;
	fclose(file);
}

enum source { SYSTEM, XML, SYNTHETIC };

static int set_source(hwloc_topology_t h, enum source source, const char *text)
{
	switch (source) {
	case XML:
		return hwloc_topology_set_xmlbuffer(h, text, (int)strlen(text) + 1);
	case SYNTHETIC:
		return hwloc_topology_set_synthetic(h, text);
	case SYSTEM:
		break;
	}
	return 0;
}

static int load(enum source source, const char *text, const char *root, struct npg_topology **t,
		struct npg_error *err)
{
	static const char *const what[] = {
		"hwloc cannot read this machine",
		("hwloc cannot read the XML: broken, or written by hwloc 3, which "
		 "'lstopo --export-xml-flags v2 FILE.xml' avoids"),
		"not a hwloc synthetic description such as 'numa:4 core:2 pu:1'",
	};
	static const char *const why_unknown[] = {
		"not known: the firmware gives none (no HMAT), or not for every pair",
		"not known: not in the XML for every pair",
		"not known: a synthetic description has none",
	};
	static const char *const names[] = { "this machine", "recorded machine", NULL };
	struct environment environment;
	hwloc_topology_t h;
	int ret = 0;

	hide_environment(&environment, root);
	if (hwloc_topology_init(&h) < 0) {
		restore_environment(&environment);
		return out_of_memory(err);
	}
	if (hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0 ||
	    set_source(h, source, text) < 0 || hwloc_topology_load(h) < 0)
		ret = npg_error_set(err, source == SYSTEM ? -EIO : -EINVAL, "%s", what[source]);
	if (ret == 0)
		ret = convert(h, names[source] != NULL ? names[source] : text, why_unknown[source],
			      t, err);
	hwloc_topology_destroy(h);
	restore_environment(&environment);
	return ret;
}

int npg_topology_load_root(const char *root, struct npg_topology **topology, struct npg_error *err)
{
	struct npg_topology *t = NULL;
	int ret = load(SYSTEM, NULL, root, &t, err);

	if (ret < 0)
		return ret;
	for (int i = 0; i < t->nr_nodes; i++)
		read_free_memory(root, &t->nodes[i]);
	*topology = t;
	return 0;
}

int npg_topology_from_xml(const char *xml, struct npg_topology **topology, struct npg_error *err)
{
	return load(XML, xml, NULL, topology, err);
}

int npg_topology_from_synthetic(const char *text, struct npg_topology **topology,
				struct npg_error *err)
{
	int ret = load(SYNTHETIC, text, NULL, topology, err);

	return ret < 0 ? npg_error_prefix(err, ret, "'%s'", text) : 0;
}
