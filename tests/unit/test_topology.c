/* Topologies: recorded machines, machine files, synthetic descriptions, this machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/topology_internal.h"

static struct npg_error err;

static struct npg_topology *load(const char *what)
{
	struct npg_topology *t;

	if (npg_topology_load(what, &t, &err) < 0)
		fail_msg("%s: %s", what, err.text);
	return t;
}

static void check_node(const struct npg_topology *t, int node, const char *cpus,
		       uint64_t memory_kib)
{
	int i = npg_topology_index_of_node(t, node);
	char list[256];

	assert_true(i >= 0);
	npg_cpulist_format(&t->nodes[i].cpus, list, sizeof(list));
	assert_string_equal(list, cpus);
	assert_int_equal(t->nodes[i].nr_cpus, npg_cpuset_count(&t->nodes[i].cpus));
	assert_int_equal(t->nodes[i].memory_bytes, memory_kib * 1024);
}

/* The /proc and /sys of a machine in datasets/topologies. */
static struct npg_topology *load_root(const char *name)
{
	char directory[] = "/tmp/numapgo-test-topo.XXXXXX", command[512], root[128];
	struct npg_topology *t;
	int ret;

	assert_non_null(mkdtemp(directory));
	snprintf(command, sizeof(command), "tar -xzf datasets/topologies/%s.tar.gz -C %s", name,
		 directory);
	assert_int_equal(system(command), 0);
	snprintf(root, sizeof(root), "%s/%s", directory, name);
	ret = npg_topology_load_root(root, &t, &err);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	assert_int_equal(system(command), 0);
	if (ret < 0)
		fail_msg("%s: %s", name, err.text);
	return t;
}

static double slit(const struct npg_topology *t, int from, int to)
{
	return t->slit[npg_topology_index_of_node(t, from) * t->nr_nodes +
		       npg_topology_index_of_node(t, to)];
}

static void memory_nodes_own_no_cpus(void **state)
{
	struct npg_topology *t = load_root("64intel64-fakeKNL-SNC4-hybrid");

	(void)state;
	assert_int_equal(t->nr_nodes, 8);
	check_node(t, 0, "0-3,16-19,32-35,48-51", 1048576);
	check_node(t, 3, "12-15,28-31,44-47,60-63", 1048576);
	for (int node = 4; node < 8; node++)
		check_node(t, node, "", 2097152);
	npg_topology_free(t);
}

static void nearest_node_may_have_no_cpu(void **state)
{
	struct npg_topology *t = load_root("128ia64-17n4s2c");

	(void)state;
	assert_int_equal(t->nr_nodes, 17);
	check_node(t, 1, "8-15", 100073472);
	assert_int_equal(t->nodes[16].nr_cpus, 0);
	assert_true(t->nodes[16].memory_bytes > 0);
	assert_int_equal((int)slit(t, 0, 16), 14);
	assert_int_equal((int)slit(t, 0, 0), 10);
	npg_topology_free(t);
}

static void memoryless_nodes_keep_their_cpus(void **state)
{
	struct npg_topology *t = load_root("fakememinitiators-1np2c_1npp_gi");

	(void)state;
	assert_int_equal(t->nr_nodes, 11);
	check_node(t, 0, "0-1", 0);
	check_node(t, 3, "6-7", 0);
	check_node(t, 4, "", 0);
	check_node(t, 5, "", 97447340);
	assert_null(t->latency_ns); /* only the nearest memory of each node has figures */
	npg_topology_free(t);
}

static void node_numbers_have_gaps(void **state)
{
	struct npg_topology *t = load_root("nvidiagpunumanodes");

	(void)state;
	assert_int_equal(t->nr_nodes, 8);
	check_node(t, 0, "0-15", 129839104); /* the others are offline */
	check_node(t, 8, "88-103", 133952000);
	check_node(t, 255, "", 15728640);
	assert_int_equal((int)slit(t, 0, 8), 40);
	assert_int_equal((int)slit(t, 8, 255), 80);
	assert_int_equal(npg_topology_index_of_node(t, 1), -1);
	assert_int_equal(npg_topology_index_of_cpu(t, 90), 1);
	assert_int_equal(npg_topology_index_of_cpu(t, 20), -1);
	npg_topology_free(t);
}

static void offline_cpus_are_left_out(void **state)
{
	struct npg_topology *t = load_root("16em64t-4s2c2t-offlines");

	(void)state;
	check_node(t, 0, "0-1,3-4,6-12,15", 16772456);
	npg_topology_free(t);
}

static void kernel_without_nodes_has_one(void **state)
{
	struct npg_topology *t = load_root("20s390-2g6s4c");

	(void)state;
	assert_int_equal(t->nr_nodes, 1);
	check_node(t, 0, "0-19", 2053992);
	npg_topology_free(t);
}

static void missing_distances_are_assumed(void **state)
{
	struct npg_topology *t = load_root("4fake-4gr1nu1pu");
	bool is_estimate = false;

	(void)state;
	assert_int_equal(t->nr_nodes, 4);
	assert_int_equal((int)slit(t, 0, 3), 20);
	assert_non_null(strstr(t->slit_origin, "assumed"));
	assert_int_equal((int)npg_topology_cost_ns(t, 0, 0, &is_estimate), 100);
	assert_int_equal((int)npg_topology_cost_ns(t, 0, 3, NULL), 200);
	assert_true(is_estimate);
	npg_topology_free(t);
}

static void free_memory_is_read(void **state)
{
	struct npg_topology *t = load_root("16amd64-8n2c");

	(void)state;
	assert_int_equal(t->nr_nodes, 8);
	assert_true(t->nodes[0].free_bytes > 0);
	assert_true(t->nodes[0].free_bytes < t->nodes[0].memory_bytes);
	npg_topology_free(t);
}

static void reads_xml_of_hwloc_1_and_2(void **state)
{
	static const struct {
		const char *name;
		int nr_nodes;
		const char *cpus; /* of the first node */
		int slit_far;     /* from the first to the last node */
	} cases[] = {
		{ "b211-16amd64-4distances.v2", 8, "2-3", 20 },
		{ "b211-16amd64-8n2c-cpusets.v2", 5, "2-3", 20 },
		{ "b211-28intel64-2p2g7c-CoDgroups.v1", 4, NULL, 31 },
		{ "b211-64intel64-fakeKNL-SNC4-hybrid.v2", 8, "0-3,16-19,32-35,48-51", 20 },
		{ "b211-power8gpudistances.v2", 2, NULL, 40 },
		{ "cxlmem_dax.v2", 1, "0-3", 10 },
		{ "memaxes-snb-2s-v1", 2, "0-7", 21 },
		{ "syssage-skylake", 4, NULL, 31 },
	};

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(cases); i++) {
		char path[256], list[256];
		struct npg_topology *t;

		snprintf(path, sizeof(path), "datasets/topologies/%s.xml", cases[i].name);
		t = load(path);
		if (t->nr_nodes != cases[i].nr_nodes ||
		    (int)t->slit[t->nr_nodes - 1] != cases[i].slit_far)
			fail_msg("%s: %d nodes, far %d", path, t->nr_nodes,
				 (int)t->slit[t->nr_nodes - 1]);
		npg_cpulist_format(&t->nodes[0].cpus, list, sizeof(list));
		if (cases[i].cpus != NULL)
			assert_string_equal(list, cases[i].cpus);
		npg_topology_free(t);
	}
}

static void refuses_bad_xml(void **state)
{
	static const char *const bad[] = { "", "<", "<topology>", "<?xml version=\"1.0\"?>\n<x/>" };
	struct npg_topology *t;

	(void)state;
	assert_int_equal(
	    npg_topology_load("datasets/topologies/8intel64-4n2t-memattrs.xml", &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "hwloc 3"));
	for (size_t i = 0; i < NPG_ARRAY_SIZE(bad); i++)
		assert_int_equal(npg_topology_from_xml(bad[i], &t, &err), -EINVAL);
}

static void this_machine_survives_its_xml(void **state)
{
	struct npg_topology *t, *again;

	(void)state;
	setenv("HWLOC_XMLFILE", "datasets/topologies/memaxes-snb-2s-v1.xml", 1);
	setenv("HWLOC_SYNTHETIC", "numa:3 pu:1", 1);
	assert_int_equal(npg_topology_load_system(&t, &err), 0);
	assert_string_equal(getenv("HWLOC_SYNTHETIC"), "numa:3 pu:1");
	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_SYNTHETIC");
	assert_true(npg_cpuset_has(&t->nodes[npg_topology_index_of_cpu(t, 0)].cpus, 0));
	assert_int_equal(npg_topology_load_system(&again, &err), 0); /* not what they said */
	assert_string_equal(again->fingerprint, t->fingerprint);
	npg_topology_free(again);
	assert_non_null(t->hwloc_xml);
	assert_int_equal(npg_topology_from_xml(t->hwloc_xml, &again, &err), 0);
	assert_string_equal(again->fingerprint, t->fingerprint);
	assert_int_equal(strlen(t->fingerprint), 32);
	npg_topology_free(again);
	npg_topology_free(t);
}

static void reads_synthetic_descriptions(void **state)
{
	struct npg_topology *t = load("numa:4 core:2 pu:2");

	(void)state;
	assert_int_equal(t->nr_nodes, 4);
	assert_int_equal(t->nodes[3].nr_cpus, 4);
	assert_null(t->latency_ns);
	assert_non_null(strstr(t->latency_origin, "synthetic"));
	npg_topology_free(t);
	assert_int_equal(npg_topology_load("numa:x", &t, &err), -EINVAL);
	assert_int_equal(npg_topology_load("numa:4 core:", &t, &err), -EINVAL);
}

static void names_what_exists(void **state)
{
	struct npg_topology *t;

	(void)state;
	assert_int_equal(npg_topology_load("no-such-machine", &t, &err), -ENOENT);
	assert_non_null(strstr(err.text, "4-nodes"));
	assert_int_equal(npg_topology_load("../machines/4-nodes", &t, &err), -ENOENT);
	assert_int_equal(npg_topology_load("", &t, &err), -ENOENT);
	assert_int_equal(npg_topology_load("/", &t, &err), -EINVAL);
	assert_int_equal(npg_topology_load("/dev/null", &t, &err), -EINVAL);
	assert_int_equal(npg_topology_load("Makefile", &t, &err), -EINVAL);
}

/* Every file of datasets/machines is sound, and its name is its file's name. */
static void all_machines_load(void **state)
{
	char names[512], *rest = names, *name;
	int nr = 0;

	(void)state;
	npg_machine_names(names, sizeof(names));
	while ((name = strsep(&rest, ", ")) != NULL) {
		struct npg_topology *t;

		if (name[0] == '\0')
			continue;
		t = load(name);
		assert_string_equal(t->name, name);
		assert_null(t->hwloc_xml);
		nr++;
		npg_topology_free(t);
	}
	assert_true(nr >= 11);
}

static void machines_have_their_figures(void **state)
{
	struct npg_topology *t = load("4-nodes-cxl");
	bool is_estimate;

	(void)state;
	assert_int_equal(t->nr_nodes, 5);
	assert_int_equal(t->nodes[4].nr_cpus, 0);
	assert_int_equal((int)(10 * npg_topology_cost_ns(t, 0, 4, &is_estimate)), 2794);
	assert_false(is_estimate);
	npg_topology_cost_ns(t, 4, 0, &is_estimate); /* nobody accesses from there */
	assert_true(is_estimate);
	npg_topology_free(t);
}

/* A machine file of two nodes with one part replaced. */
static int parse_with(const char *part, const char *by)
{
	static const char good[] =
	    "{\"format\":\"numapgo-machine\",\"version\":1,\"name\":\"x\",\"description\":\"\","
	    "\"source\":\"s\",\"nodes\":[{\"node\":0,\"cpus\":\"0-1\",\"memory_mib\":64},"
	    "{\"node\":1,\"cpus\":\"\",\"memory_mib\":64}],\"slit\":[[10,21],[21,10]],"
	    "\"latency_ns\":[[80,130.5],null],\"bandwidth_mib_per_s\":[[100,30],null],"
	    "\"load_factor\":{\"a\":0.2,\"g\":0.8}}";
	struct npg_topology *t;
	const char *at = strstr(good, part);
	char text[1024];
	int ret;

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, by, at + strlen(part));
	err.text[0] = '\0';
	ret = npg_topology_from_json(text, strlen(text), &t, &err);
	if (ret == 0)
		npg_topology_free(t);
	return ret;
}

static void machine_files_are_checked(void **state)
{
	static const struct {
		const char *part;
		const char *by;
		const char *says;
	} cases[] = {
		{ "numapgo-machine", "other", "format" },
		{ "\"version\":1", "\"version\":2", "version" },
		{ "\"name\":\"x\",", "", "\"name\"" },
		{ "\"source\":\"s\"", "\"source\":\"a\\nb\"", "\"source\"" },
		{ "\"source\":\"s\"", "\"source\":\"s\",\"extra\":1", "unknown key \"extra\"" },
		{ "\"node\":1", "\"node\":0", "nodes[1]: node 0 must come after" },
		{ "\"node\":1", "\"node\":\"1\"", "nodes[1]: \"node\"" },
		{ "\"node\":1", "\"node\":4096", "nodes[1]: \"node\"" },
		{ "\"cpus\":\"\"", "\"cpus\":\"1-2\"", "nodes[1]: CPU 1 is in node 0 already" },
		{ "\"cpus\":\"\"", "\"cpus\":\"x\"", "nodes[1]: \"cpus\"" },
		{ "\"cpus\":\"0-1\"", "\"cpus\":\"\"", "no node has a CPU" },
		{ "\"memory_mib\":64", "\"memory_mib\":-1", "nodes[0]: \"memory_mib\"" },
		{ "\"memory_mib\":64", "\"memory_mib\":1.5", "nodes[0]: \"memory_mib\"" },
		{ "\"memory_mib\":64", "\"memory_mib\":1,\"disk\":2", "unknown key \"disk\"" },
		{ "[21,10]", "[21]", "slit[1] must be a list of 2" },
		{ "[21,10]", "[21,11]", "slit[1][1] must be 10" },
		{ "[10,21]", "[10,5]", "slit[0][1]" },
		{ "[80,130.5]", "null", "latency_ns[0]" },
		{ "[80,130.5]", "[80,0]", "latency_ns[0][1]" },
		{ "[80,130.5]", "[80,null]", "latency_ns[0][1]" },
		{ "[80,130.5]", "[80,1e400]", "line 1" },
		{ "[100,30],null", "[100,30]", "\"bandwidth_mib_per_s\" must be a list of 2" },
		{ "\"g\":0.8", "\"g\":1", "load_factor" },
		{ "\"g\":0.8", "\"h\":1", "load_factor" },
		{ "\"g\":0.8}}", "\"g\":0.8}", "line 1" },
		{ "\"version\":1", "\"version\":1,\"version\":1", "line 1" },
	};

	(void)state;
	assert_int_equal(parse_with("\"name\"", "\"name\""), 0);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse_with(cases[i].part, cases[i].by), -EINVAL);
		if (strstr(err.text, cases[i].says) == NULL)
			fail_msg("%s: %s", cases[i].by, err.text);
	}
}

static void fingerprint_tells_shapes_apart(void **state)
{
	static const char *const names[] = { "2-nodes",         "2-small", "4-nodes",
					     "4-nodes-unequal", "4-small", "8-small" };
	struct npg_topology *t[NPG_ARRAY_SIZE(names)];

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(names); i++) {
		t[i] = load(names[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(t[i]->fingerprint, t[j]->fingerprint);
	}
	/* what a kernel keeps for itself does not count */
	t[0]->nodes[1].memory_bytes -= t[0]->nodes[1].memory_bytes / 64;
	npg_topology_complete(t[0]);
	npg_topology_free(t[1]);
	t[1] = load("2-nodes");
	assert_string_equal(t[0]->fingerprint, t[1]->fingerprint);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(names); i++)
		npg_topology_free(t[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_nodes_own_no_cpus),
		cmocka_unit_test(nearest_node_may_have_no_cpu),
		cmocka_unit_test(memoryless_nodes_keep_their_cpus),
		cmocka_unit_test(node_numbers_have_gaps),
		cmocka_unit_test(offline_cpus_are_left_out),
		cmocka_unit_test(kernel_without_nodes_has_one),
		cmocka_unit_test(missing_distances_are_assumed),
		cmocka_unit_test(free_memory_is_read),
		cmocka_unit_test(reads_xml_of_hwloc_1_and_2),
		cmocka_unit_test(refuses_bad_xml),
		cmocka_unit_test(this_machine_survives_its_xml),
		cmocka_unit_test(reads_synthetic_descriptions),
		cmocka_unit_test(names_what_exists),
		cmocka_unit_test(all_machines_load),
		cmocka_unit_test(machines_have_their_figures),
		cmocka_unit_test(machine_files_are_checked),
		cmocka_unit_test(fingerprint_tells_shapes_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
