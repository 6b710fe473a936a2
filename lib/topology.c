/*
 * Topologies: the parts that do not depend on where one came from, and the choice of the reader.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/topology_internal.h"

#define MAX_FILE_BYTES ((off_t)64 << 20) /* the largest hwloc XML known has 2 MB */

/* Fit of latency against utilisation on eight machines' loaded-latency curves, rms error 10 %. */
#define DEFAULT_LOAD_FACTOR_A 0.26
#define DEFAULT_LOAD_FACTOR_G 0.80

#define LOCAL_NS_ASSUMED 100.0

struct npg_topology *npg_topology_new(int nr_nodes)
{
	struct npg_topology *t = calloc(1, sizeof(*t));
	size_t n = (size_t)nr_nodes;

	if (t == NULL)
		return NULL;
	t->nr_nodes = nr_nodes;
	t->nodes = calloc(n, sizeof(*t->nodes));
	t->slit = calloc(n * n, sizeof(*t->slit));
	if (t->nodes == NULL || t->slit == NULL ||
	    npg_topology_set_text(&t->slit_origin, "assumed: 10 local, 20 remote") < 0) {
		npg_topology_free(t);
		return NULL;
	}
	for (size_t i = 0; i < n * n; i++)
		t->slit[i] = i % (n + 1) == 0 ? 10 : 20;
	t->load_factor_a = DEFAULT_LOAD_FACTOR_A;
	t->load_factor_g = DEFAULT_LOAD_FACTOR_G;
	return t;
}

int npg_topology_set_text(char **field, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return -ENOMEM;
	free(*field);
	*field = text;
	return 0;
}

void npg_topology_free(struct npg_topology *t)
{
	if (t == NULL)
		return;
	free(t->name);
	free(t->description);
	free(t->nodes);
	free(t->slit);
	free(t->latency_ns);
	free(t->bandwidth_mib_per_s);
	free(t->slit_origin);
	free(t->latency_origin);
	free(t->bandwidth_origin);
	free(t->hwloc_xml);
	free(t);
}

/* FNV-1a with 64 bits (Fowler, Noll, Vo), with a start of one's own choice */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * A node's memory up to the next quarter of a power of two: kernels keep a few percent for
 * themselves, and not the same number of pages at each start.
 */
static uint64_t nominal_bytes(uint64_t bytes)
{
	uint64_t quarter;

	if (bytes < 4)
		return bytes;
	quarter = UINT64_C(1) << (61 - __builtin_clzll(bytes));
	return (bytes - 1) / quarter * quarter + quarter;
}

static void compute_fingerprint(struct npg_topology *t)
{
	uint64_t high = UINT64_C(0xcbf29ce484222325), low = UINT64_C(0x6c62272e07bb0142);
	size_t n = (size_t)t->nr_nodes;
	static const size_t list_size = NPG_CPULIST_SIZE;
	char *list = malloc(list_size);

	for (size_t i = 0; i < n; i++) {
		const struct npg_node *node = &t->nodes[i];
		char text[64];

		snprintf(text, sizeof(text), "node %d memory %" PRIu64 " cpus ", node->node,
			 nominal_bytes(node->memory_bytes));
		high = hash_text(high, text);
		low = hash_text(low, text);
		if (list != NULL) {
			npg_cpulist_format(&node->cpus, list, list_size);
			high = hash_text(high, list);
			low = hash_text(low, list);
		}
		for (size_t j = 0; j < n; j++) {
			snprintf(text, sizeof(text), " %.0f", t->slit[i * n + j]);
			high = hash_text(high, text);
			low = hash_text(low, text);
		}
	}
	free(list);
	snprintf(t->fingerprint, sizeof(t->fingerprint), "%016" PRIx64 "%016" PRIx64, high, low);
}

void npg_topology_complete(struct npg_topology *t)
{
	for (int i = 0; i < t->nr_nodes; i++)
		t->nodes[i].nr_cpus = npg_cpuset_count(&t->nodes[i].cpus);
	compute_fingerprint(t);
}

int npg_topology_index_of_node(const struct npg_topology *t, int node)
{
	for (int i = 0; i < t->nr_nodes; i++)
		if (t->nodes[i].node == node)
			return i;
	return -1;
}

int npg_topology_index_of_cpu(const struct npg_topology *t, int cpu)
{
	for (int i = 0; i < t->nr_nodes; i++)
		if (npg_cpuset_has(&t->nodes[i].cpus, cpu))
			return i;
	return -1;
}

double npg_topology_cost_ns(const struct npg_topology *t, int from, int to, bool *is_estimate)
{
	size_t i = (size_t)from * (size_t)t->nr_nodes + (size_t)to;
	bool is_known = t->latency_ns != NULL && t->latency_ns[i] > 0;

	if (is_estimate != NULL)
		*is_estimate = !is_known;
	return is_known ? t->latency_ns[i] : t->slit[i] / 10 * LOCAL_NS_ASSUMED;
}

static int read_all(int fd, const char *path, char **text, size_t *length, struct npg_error *err)
{
	struct stat st;
	size_t used = 0;
	char *buffer;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return npg_error_set(
		    err, -EINVAL, "%s: not a regular file; give a machine file or hwloc XML", path);
	if (st.st_size > MAX_FILE_BYTES)
		return npg_error_set(err, -EINVAL, "%s: too large for a description of a machine",
				     path);
	buffer = malloc((size_t)st.st_size + 1);
	if (buffer == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	while (used < (size_t)st.st_size) {
		ssize_t got = read(fd, buffer + used, (size_t)st.st_size - used);

		if (got < 0) {
			int ret = npg_error_set(err, -EIO, "%s: %s", path, strerror(errno));

			free(buffer);
			return ret;
		}
		if (got == 0)
			break;
		used += (size_t)got;
	}
	buffer[used] = '\0';
	*text = buffer;
	*length = used;
	return 0;
}

static int read_file(const char *path, char **text, size_t *length, struct npg_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int ret;

	if (fd < 0)
		return npg_error_set(err, errno == ENOENT ? -ENOENT : -EIO, "%s: %s", path,
				     strerror(errno));
	ret = read_all(fd, path, text, length, err);
	close(fd);
	return ret;
}

static int from_text(const char *path, const char *text, size_t length,
		     struct npg_topology **topology, struct npg_error *err)
{
	const char *base = strrchr(path, '/');
	struct npg_topology *t = NULL;
	size_t i = 0;
	int ret;

	while (i < length && isspace((unsigned char)text[i]))
		i++;
	if (i < length && text[i] == '{')
		ret = npg_topology_from_json(text, length, &t, err);
	else if (i < length && text[i] == '<')
		ret = npg_topology_from_xml(text, &t, err);
	else
		return npg_error_set(err, -EINVAL,
				     "%s: neither a machine file (JSON) nor hwloc XML", path);
	if (ret < 0)
		return npg_error_prefix(err, ret, "%s", path);
	if (t->hwloc_xml != NULL) /* XML has no name of its own */
		ret = npg_topology_set_text(&t->name, "%s", base != NULL ? base + 1 : path);
	if (ret < 0) {
		npg_topology_free(t);
		return npg_error_set(err, ret, "%s: out of memory", path);
	}
	*topology = t;
	return 0;
}

static int load_file(const char *path, struct npg_topology **topology, struct npg_error *err)
{
	char *text = NULL;
	size_t length = 0;
	int ret = read_file(path, &text, &length, err);

	if (ret < 0)
		return ret;
	ret = from_text(path, text, length, topology, err);
	free(text);
	return ret;
}

int npg_topology_load(const char *what, struct npg_topology **topology, struct npg_error *err)
{
	char path[4096], names[512];

	if (npg_machine_find(what, path, sizeof(path)) == 0)
		return load_file(path, topology, err);
	if (access(what, F_OK) == 0)
		return load_file(what, topology, err);
	if (strchr(what, ':') != NULL && strchr(what, '/') == NULL)
		return npg_topology_from_synthetic(what, topology, err);
	npg_machine_names(names, sizeof(names));
	return npg_error_set(err, -ENOENT,
			     "no machine '%s': it is not one of %s; nor a file; nor a hwloc "
			     "synthetic description such as 'numa:4 core:2 pu:1'",
			     what, names);
}

int npg_topology_load_system(struct npg_topology **topology, struct npg_error *err)
{
	return npg_topology_load_root(NULL, topology, err);
}
