/* What may be used here, and the plan's nodes on it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "replayer/resolve.h"

/* The rest of the line that begins with @name. */
static int find_line(const char *text, size_t length, const char *name, const char **line,
		     size_t *line_length)
{
	size_t name_length = strlen(name);
	const char *end = text + length;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline != NULL ? newline : end;

		if ((size_t)(stop - text) >= name_length && memcmp(text, name, name_length) == 0) {
			*line = text + name_length;
			*line_length = (size_t)(stop - *line);
			return 0;
		}
		text = stop + 1;
	}
	return -EINVAL;
}

int npg_allowed_parse(const char *text, size_t length, struct npg_allowed *allowed)
{
	struct npg_allowed found = { 0 };
	const char *line;
	size_t line_length;
	int ret = find_line(text, length, "Cpus_allowed_list:", &line, &line_length);

	if (ret == 0)
		ret = npg_cpulist_parse(line, line_length, &found.cpus);
	if (ret == 0)
		ret = find_line(text, length, "Mems_allowed_list:", &line, &line_length);
	if (ret == 0)
		ret = npg_cpulist_parse(line, line_length, &found.nodes);
	if (ret < 0)
		return -EINVAL;
	*allowed = found;
	return 0;
}

int npg_allowed_read(struct npg_allowed *allowed, struct npg_error *err)
{
	static const char path[] = "/proc/self/status";
	char text[12288];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return npg_error_set(err, -EIO, "%s: %s; is /proc mounted?", path, strerror(errno));
	if (npg_allowed_parse(text, (size_t)n, allowed) < 0)
		return npg_error_set(err, -EINVAL,
				     "%s: no usable Cpus_allowed_list and Mems_allowed_list; was "
				     "the kernel built without NUMA?",
				     path);
	return 0;
}

static void count_wishes(const struct npg_plan *plan, uint64_t *bytes, int *threads)
{
	for (size_t i = 0; i < plan->nr_threads; i++)
		threads[plan->threads[i].node]++;
	for (size_t i = 0; i < plan->nr_objects; i++) {
		const struct npg_plan_object *o = &plan->objects[i];

		for (size_t r = 0; r < o->nr_ranges; r++) {
			const struct npg_plan_range *range = &o->ranges[r];

			for (int n = 0; n < range->nr_nodes; n++)
				bytes[range->nodes[n]] += range->nr_pages * plan->page_size_bytes /
							  (uint64_t)range->nr_nodes;
		}
	}
}

/* Indexes of usable nodes in @topology. Return: how many. */
static int find_usable(const struct npg_topology *topology, const struct npg_allowed *allowed,
		       int *index)
{
	int nr = 0;

	for (int i = 0; i < topology->nr_nodes && nr < NPG_PLAN_MAX_NODES; i++)
		if (npg_cpuset_has(&allowed->nodes, topology->nodes[i].node) &&
		    topology->nodes[i].memory_bytes > 0)
			index[nr++] = i;
	return nr;
}

static void describe_here(const struct npg_topology *topology, const struct npg_allowed *allowed,
			  const int *index, struct npg_map_machine *here, double *distance)
{
	for (int i = 0; i < here->nr_nodes; i++) {
		struct npg_cpuset cpus = topology->nodes[index[i]].cpus;

		npg_cpuset_and(&cpus, &allowed->cpus);
		here->cpus[i] = npg_cpuset_count(&cpus);
		here->bytes[i] = topology->nodes[index[i]].free_bytes;
		for (int j = 0; j < here->nr_nodes; j++)
			distance[(i * here->nr_nodes) + j] =
			    npg_topology_cost_ns(topology, index[i], index[j], NULL);
	}
	here->distance = distance;
}

static int map_nodes(const struct npg_plan *plan, const struct npg_topology *topology,
		     const struct npg_allowed *allowed, const int *index,
		     struct npg_resolution *res)
{
	struct npg_map_machine wanted = { .nr_nodes = plan->nr_nodes,
					  .distance = plan->distance_ns };
	struct npg_map_machine here = { .nr_nodes = res->nr_here };
	double *distance = calloc((size_t)res->nr_here * (size_t)res->nr_here, sizeof(*distance));
	int ret;

	if (distance == NULL)
		return -ENOMEM;
	count_wishes(plan, wanted.bytes, wanted.cpus);
	describe_here(topology, allowed, index, &here, distance);
	ret = npg_node_map_find(&wanted, &here, &res->map);
	free(distance);
	for (int i = 0; ret == 0 && i < plan->nr_nodes; i++) {
		struct npg_resolved_node *node = &res->nodes[i];
		const struct npg_node *real = &topology->nodes[index[res->map.to[i]]];

		node->node = real->node;
		node->cpus = real->cpus;
		npg_cpuset_and(&node->cpus, &allowed->cpus);
		node->wanted_bytes = wanted.bytes[i];
		node->nr_threads = wanted.cpus[i];
		node->free_bytes = real->free_bytes;
	}
	return ret;
}

int npg_resolve(const struct npg_plan *plan, const struct npg_topology *topology,
		const struct npg_allowed *allowed, struct npg_resolution *resolution,
		struct npg_error *err)
{
	int index[NPG_PLAN_MAX_NODES];

	memset(resolution, 0, sizeof(*resolution));
	resolution->nr_planned = plan->nr_nodes;
	resolution->allowed_cpus = allowed->cpus;
	resolution->nr_here = find_usable(topology, allowed, index);
	resolution->is_same_machine =
	    plan->fingerprint[0] != '\0' && strcmp(plan->fingerprint, topology->fingerprint) == 0;
	if (resolution->nr_here == 0)
		return npg_error_set(err, -ENODEV,
				     "no node may be used here: see Mems_allowed_list in "
				     "/proc/self/status and 'numapgo topo'");
	if (map_nodes(plan, topology, allowed, index, resolution) < 0)
		return npg_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

void npg_resolution_describe(const struct npg_resolution *res, char *text, size_t size)
{
	bool is_identity = true;
	size_t used;

	for (int i = 0; i < res->nr_planned; i++)
		is_identity = is_identity && res->nodes[i].node == i;
	if (res->nr_here == 1) {
		snprintf(text, size, "planned for %d node%s, all on node %d: the only one here",
			 res->nr_planned, res->nr_planned == 1 ? "" : "s", res->nodes[0].node);
		return;
	}
	if (is_identity) {
		snprintf(text, size, "%d nodes as planned", res->nr_planned);
		return;
	}
	used = (size_t)snprintf(text, size, "%s",
				res->map.is_folded ? "fewer nodes here than planned: nodes "
						   : "nodes ");
	for (int i = 0; i < res->nr_planned && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%d->%d", i > 0 ? ", " : "", i,
					 res->nodes[i].node);
	if (used < size && res->map.mismatch > 0.25)
		snprintf(text + used, size - used, " (distances differ)");
}
