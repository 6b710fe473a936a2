/* The cost model against figures worked out by hand and the table it was fitted to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzer/cost.h"
#include "tests/unit/synthetic.h"

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static void test_load_factor(void **state)
{
	struct npg_topology *t = synthetic_machine(2, 2, 1024);
	struct npg_cost *cost = npg_cost_new(t);

	(void)state;
	assert_non_null(cost);
	NEAR(npg_cost_load_factor(cost, 0.0), 1.0, 1e-12);
	NEAR(npg_cost_load_factor(cost, 0.25), 1.08, 0.005);
	NEAR(npg_cost_load_factor(cost, 0.5), 1.22, 0.005);
	NEAR(npg_cost_load_factor(cost, 0.9), 1.84, 0.005);
	NEAR(npg_cost_load_factor(cost, 1.0), 2.30, 0.005);
	NEAR(npg_cost_load_factor(cost, 2.0), 4.60, 0.01); /* the bandwidth is the limit */
	npg_cost_free(cost);
	npg_topology_free(t);
}

static void test_walks(void **state)
{
	struct npg_topology *t = synthetic_machine(2, 2, 1024);
	struct npg_cost *cost = npg_cost_new(t);

	(void)state;
	NEAR(npg_cost_walk(cost, 0, 0), 80.0, 1e-9);
	NEAR(npg_cost_walk(cost, 0, 1), 80.0 * 1.47, 1e-9); /* latency twice the local one */
	npg_cost_free(cost);
	npg_topology_free(t);
}

static void test_score(void **state)
{
	struct npg_topology *t = synthetic_machine(2, 2, 1024);
	struct npg_cost *cost = npg_cost_new(t);
	double busy[] = { 0.0, 0.0 }, factors[4]; /* idle: no load */
	int node[] = { 0, 1 };
	struct npg_traffic traffic;
	struct npg_score score;

	(void)state;
	assert_int_equal(npg_traffic_init(&traffic, 2, 2), 0);
	traffic.accesses[0] = 10.0; /* thread 0 to node 0 */
	traffic.accesses[2] = 30.0; /* thread 1 to node 0: remote */
	traffic.walks[3] = 5.0;     /* thread 1 to node 1 */
	npg_cost_score(cost, &traffic, node, busy, factors, &score);
	NEAR(score.lar, 0.25, 1e-12);
	NEAR(score.memory_ns, 10 * 80.0 + 30 * 160.0, 1e-6);
	NEAR(score.walk_ns, 5 * 80.0, 1e-6);
	NEAR(score.slowest_ns, 30 * 160.0 + 5 * 80.0, 1e-6);
	NEAR(score.remote_walks, 0.0, 1e-12);
	npg_traffic_release(&traffic);
	npg_cost_free(cost);
	npg_topology_free(t);
}

/* The same accesses take longer when busy threads press one node. */
static void test_load_counts(void **state)
{
	struct npg_topology *t = synthetic_machine(2, 100, 1024);
	struct npg_cost *cost = npg_cost_new(t);
	double busy[80], factors[4];
	int node[80];
	struct npg_traffic traffic;
	struct npg_score one, both;

	(void)state;
	assert_int_equal(npg_traffic_init(&traffic, 80, 2), 0);
	for (int i = 0; i < 80; i++) {
		busy[i] = 1.0;
		node[i] = 0;
		traffic.accesses[2 * i] = 1.0;
	}
	npg_cost_score(cost, &traffic, node, busy, factors, &one);
	for (int i = 40; i < 80; i++) {
		node[i] = 1;
		traffic.accesses[2 * i] = 0.0;
		traffic.accesses[2 * i + 1] = 1.0;
	}
	npg_cost_score(cost, &traffic, node, busy, factors, &both);
	/* 80 lines of 64 bytes per 80 ns against 60000 MiB/s */
	NEAR(one.highest_load, 64.0 / (60000.0 * 1048576.0 / 1e9), 1e-6);
	NEAR(both.highest_load, one.highest_load / 2.0, 1e-6);
	assert_true(one.memory_ns > 1.5 * both.memory_ns);
	npg_traffic_release(&traffic);
	npg_cost_free(cost);
	npg_topology_free(t);
}

/* Latencies that a machine file cannot know (no CPUs, no memory) do no harm. */
static void test_unknown_figures(void **state)
{
	struct npg_topology *t = synthetic_machine(3, 2, 1024);
	struct npg_cost *cost;

	(void)state;
	t->nodes[2].nr_cpus = 0;
	t->nodes[1].memory_bytes = 0;
	for (int i = 0; i < 3; i++) {
		t->latency_ns[6 + i] = 0.0;
		t->bandwidth_mib_per_s[6 + i] = 0.0;
		t->latency_ns[3 * i + 1] = 0.0;
		t->bandwidth_mib_per_s[3 * i + 1] = 0.0;
	}
	cost = npg_cost_new(t);
	for (int i = 0; i < 9; i++) {
		assert_true(cost->latency_ns[i] > 0.0);
		assert_true(cost->bandwidth_bytes_per_ns[i] > 0.0);
	}
	NEAR(cost->bandwidth_bytes_per_ns[8], 30000.0 * 1048576.0 / 1e9, 1e-6);
	NEAR(cost->local_ns, 80.0, 1e-9);
	npg_cost_free(cost);
	npg_topology_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_factor),     cmocka_unit_test(test_walks),
		cmocka_unit_test(test_score),           cmocka_unit_test(test_load_counts),
		cmocka_unit_test(test_unknown_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
