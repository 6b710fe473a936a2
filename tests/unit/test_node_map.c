/* Mapping planned nodes onto real ones: same shape, permuted, more, fewer, short of something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "replayer/node_map.h"

#define GIB (UINT64_C(1) << 30)

/* A ring of four: neighbours 1.6, opposite 2.2 */
static const double ring[16] = { 10, 16, 16, 22, 16, 10, 22, 16, 16, 22, 10, 16, 22, 16, 16, 10 };

static struct npg_map_machine machine(int n, const double *distance, uint64_t bytes, int cpus)
{
	struct npg_map_machine m = { .nr_nodes = n, .distance = distance };

	for (int i = 0; i < n; i++) {
		m.bytes[i] = bytes;
		m.cpus[i] = cpus;
	}
	return m;
}

static void test_same_shape_is_identity(void **state)
{
	struct npg_map_machine plan = machine(4, ring, GIB, 2), here = machine(4, ring, 4 * GIB, 8);
	struct npg_node_map map;

	(void)state;
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(map.to[i], i);
	assert_true(map.is_exact && !map.is_folded && map.mismatch < 1e-9);
}

static void test_permuted_machine(void **state)
{
	static const int order[4] = { 2, 0, 3, 1 };
	struct npg_map_machine plan = machine(4, ring, GIB, 2), here;
	struct npg_node_map map;
	double permuted[16];

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) /* the same ring in other units, numbered otherwise */
			permuted[(order[i] * 4) + order[j]] = 8 * ring[(i * 4) + j];
	here = machine(4, permuted, 4 * GIB, 8);
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	assert_true(map.mismatch < 1e-9);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			assert_true(permuted[(map.to[i] * 4) + map.to[j]] == 8 * ring[(i * 4) + j]);
}

static void test_two_near_nodes_of_four(void **state)
{
	static const double two[4] = { 10, 16, 16, 10 };
	/* only 1 and 3 are near each other */
	static const double pairs[16] = { 10, 32, 32, 32, 32, 10, 32, 16,
					  32, 32, 10, 32, 32, 16, 32, 10 };
	struct npg_map_machine plan = machine(2, two, GIB, 2), here = machine(4, pairs, 4 * GIB, 8);
	struct npg_node_map map;

	(void)state;
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	assert_int_equal(map.to[0], 1);
	assert_int_equal(map.to[1], 3);
}

static void test_memory_and_cpus_come_first(void **state)
{
	struct npg_map_machine plan = machine(2, (double[]){ 10, 16, 16, 10 }, GIB, 2);
	struct npg_map_machine here = machine(4, ring, 4 * GIB, 8);
	struct npg_node_map map;

	(void)state;
	here.bytes[0] = GIB / 2; /* too full */
	here.cpus[1] = 0;        /* memory only */
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	assert_int_equal(map.to[0], 2);
	assert_int_equal(map.to[1], 3);
	assert_int_equal(map.nr_short_of_memory, 0);
	assert_int_equal(map.nr_without_cpus, 0);
	here = machine(4, ring, GIB / 2, 8);
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	assert_int_equal(map.nr_short_of_memory, 2);
}

static void test_fold_keeps_neighbours(void **state)
{
	static const double two_pairs[16] = { 10, 12, 32, 32, 12, 10, 32, 32,
					      32, 32, 10, 12, 32, 32, 12, 10 };
	struct npg_map_machine plan = machine(4, two_pairs, GIB, 2);
	struct npg_map_machine here = machine(2, (double[]){ 10, 21, 21, 10 }, 8 * GIB, 8);
	struct npg_node_map map;

	(void)state;
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	assert_true(map.is_folded);
	assert_int_equal(map.to[0], map.to[1]);
	assert_int_equal(map.to[2], map.to[3]);
	assert_int_not_equal(map.to[0], map.to[2]);
}

static void test_fold_on_one(void **state)
{
	struct npg_map_machine plan = machine(4, ring, GIB, 2);
	struct npg_map_machine here = machine(1, (double[]){ 10 }, 8 * GIB, 2);
	struct npg_node_map map;

	(void)state;
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(map.to[i], 0);
}

/* 64 nodes do not try everything, and still find a permutation; folding them ends soon. */
static void test_large(void **state)
{
	static double distance[64 * 64];
	struct npg_map_machine plan, here;
	struct npg_node_map map;
	uint64_t seen = 0;

	(void)state;
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < 64; j++)
			distance[(i * 64) + j] = i == j ? 10 : i / 8 == j / 8 ? 16 : 32;
	plan = machine(64, distance, GIB, 1);
	here = plan;
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	for (int i = 0; i < 64; i++)
		seen |= UINT64_C(1) << map.to[i];
	assert_true(seen == UINT64_MAX);
	assert_true(map.mismatch < 1e-9);
	here = machine(8, ring, 64 * GIB, 64);
	here.distance = distance; /* any: eight equal groups are wanted */
	assert_int_equal(npg_node_map_find(&plan, &here, &map), 0);
	for (int i = 0; i < 64; i++)
		assert_int_equal(map.to[i], map.to[i - (i % 8)]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_shape_is_identity),
		cmocka_unit_test(test_permuted_machine),
		cmocka_unit_test(test_two_near_nodes_of_four),
		cmocka_unit_test(test_memory_and_cpus_come_first),
		cmocka_unit_test(test_fold_keeps_neighbours),
		cmocka_unit_test(test_fold_on_one),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
