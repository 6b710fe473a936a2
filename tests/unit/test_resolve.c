/* What may be used here, and the plan's nodes on it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "replayer/resolve.h"

static const char status_text[] = "Name:\tcat\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"
				  "Mems_allowed:\t3\nMems_allowed_list:\t0-1\nSeccomp:\t0\n";

static const char plan_text[] =
    "{\"format\":\"numapgo-plan\",\"version\":1,\"program\":{\"path\":\"/bin/app\"},"
    "\"machine\":{\"page_size_bytes\":4096,\"nodes\":[{\"memory_bytes\":1,\"nr_cpus\":1},"
    "{\"memory_bytes\":1,\"nr_cpus\":1}],\"distance_ns\":[[80,140],[140,80]]},"
    "\"modules\":[{\"path\":\"/bin/app\"}],"
    "\"threads\":[{\"path\":\"0\",\"node\":0},{\"path\":\"0.0\",\"node\":1}],"
    "\"objects\":[{\"kind\":\"heap\",\"size_bytes\":8388608,"
    "\"frames\":[{\"module\":0,\"offset_bytes\":291}],"
    "\"ranges\":[{\"pages\":[0,1024],\"node\":1},{\"pages\":[1024,1024],"
    "\"interleave\":[0,1]}]}]}";

static struct npg_plan *parse(void)
{
	struct npg_plan *plan = NULL;

	assert_int_equal(npg_plan_from_text(plan_text, strlen(plan_text), "test", &plan, NULL), 0);
	return plan;
}

static void test_allowed(void **state)
{
	static struct npg_allowed allowed;

	(void)state;
	assert_int_equal(npg_allowed_parse(status_text, strlen(status_text), &allowed), 0);
	assert_int_equal(npg_cpuset_count(&allowed.cpus), 4);
	assert_int_equal(npg_cpuset_count(&allowed.nodes), 2);
	assert_int_equal(npg_allowed_parse("", 0, &allowed), -EINVAL);
	assert_int_equal(npg_allowed_parse("Cpus_allowed_list:\t0-3\n", 24, &allowed), -EINVAL);
	assert_int_equal(
	    npg_allowed_parse("Cpus_allowed_list:\tx\nMems_allowed_list:\t0", 42, &allowed),
	    -EINVAL);
	assert_int_equal(npg_allowed_read(&allowed, NULL), 0);
	assert_true(npg_cpuset_count(&allowed.cpus) > 0);
}

/* @nr_nodes of two CPUs each; node numbers 2 apart, as some machines have them. */
static struct npg_topology *machine(int nr_nodes)
{
	struct npg_topology *topology = calloc(1, sizeof(*topology));

	topology->nr_nodes = nr_nodes;
	topology->nodes = calloc((size_t)nr_nodes, sizeof(*topology->nodes));
	topology->slit = calloc((size_t)(nr_nodes * nr_nodes), sizeof(double));
	for (int i = 0; i < nr_nodes; i++) {
		topology->nodes[i].node = 2 * i;
		npg_cpuset_add(&topology->nodes[i].cpus, 2 * i);
		npg_cpuset_add(&topology->nodes[i].cpus, (2 * i) + 1);
		topology->nodes[i].nr_cpus = 2;
		topology->nodes[i].memory_bytes = UINT64_C(1) << 30;
		topology->nodes[i].free_bytes = UINT64_C(1) << 29;
		for (int j = 0; j < nr_nodes; j++)
			topology->slit[(i * nr_nodes) + j] = i == j ? 10 : 21;
	}
	return topology;
}

static void allow(struct npg_allowed *allowed, const char *cpus, const char *nodes)
{
	assert_int_equal(npg_cpulist_parse(cpus, strlen(cpus), &allowed->cpus), 0);
	assert_int_equal(npg_cpulist_parse(nodes, strlen(nodes), &allowed->nodes), 0);
}

static void test_wishes_and_nodes(void **state)
{
	static struct npg_resolution res;
	static struct npg_allowed allowed;
	struct npg_topology *topology = machine(2);
	struct npg_plan *plan = parse();

	(void)state;
	allow(&allowed, "0-3", "0-7");
	assert_int_equal(npg_resolve(plan, topology, &allowed, &res, NULL), 0);
	assert_int_equal(res.nr_here, 2);
	assert_int_equal(res.nodes[0].node, 0);
	assert_int_equal(res.nodes[1].node, 2);
	assert_int_equal(res.nodes[0].wanted_bytes, 2 << 20);
	assert_int_equal(res.nodes[1].wanted_bytes, 6 << 20);
	assert_int_equal(res.nodes[1].nr_threads, 1);
	assert_true(npg_cpuset_has(&res.nodes[1].cpus, 3));
	npg_topology_free(topology);
	npg_plan_free(plan);
}

static void test_cpuset_narrows(void **state)
{
	static struct npg_resolution res;
	static struct npg_allowed allowed;
	struct npg_topology *topology = machine(4);
	struct npg_plan *plan = parse();
	struct npg_error err = { "" };
	char text[256];

	(void)state;
	allow(&allowed, "3-5", "2,4");
	assert_int_equal(npg_resolve(plan, topology, &allowed, &res, NULL), 0);
	assert_int_equal(res.nr_here, 2);
	assert_int_equal(res.nodes[0].node + res.nodes[1].node, 6);
	assert_int_equal(
	    npg_cpuset_count(&res.nodes[0].cpus) + npg_cpuset_count(&res.nodes[1].cpus), 3);
	allow(&allowed, "0", "4");
	assert_int_equal(npg_resolve(plan, topology, &allowed, &res, NULL), 0);
	npg_resolution_describe(&res, text, sizeof(text));
	assert_non_null(strstr(text, "all on node 4"));
	assert_int_equal(npg_cpuset_count(&res.nodes[0].cpus), 0);
	allow(&allowed, "0", "1");
	assert_int_equal(npg_resolve(plan, topology, &allowed, &res, &err), -ENODEV);
	assert_non_null(strstr(err.text, "Mems_allowed_list"));
	npg_topology_free(topology);
	npg_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allowed),
		cmocka_unit_test(test_wishes_and_nodes),
		cmocka_unit_test(test_cpuset_narrows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
