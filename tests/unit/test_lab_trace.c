/* Lines of the NUMA lab's files: the values that come out, and refusal of what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/lab_trace.h"

static int parse(const char *line, struct npg_lab_record *record)
{
	return npg_lab_record_parse(line, strlen(line), record);
}

static void test_load(void **state)
{
	struct npg_lab_record r;

	(void)state;
	assert_int_equal(parse("load 5534244887 4 7fff517268b0 40a619 R 2 463", &r), 0);
	assert_int_equal(r.kind, NPG_LAB_LOAD);
	assert_int_equal(r.time_ns, 5534244887);
	assert_int_equal(r.cpu, 4);
	assert_int_equal(r.address, 0x7fff517268b0);
	assert_int_equal(r.ip, 0x40a619);
	assert_false(r.is_write);
	assert_int_equal(r.memory_node, 2);
	assert_int_equal(r.latency_cycles, 463);
}

static void test_walk(void **state)
{
	struct npg_lab_record r;

	(void)state;
	assert_int_equal(parse("walk 1 0 1000 2000 W 3 0", &r), 0);
	assert_int_equal(r.kind, NPG_LAB_WALK);
	assert_true(r.is_write);
	assert_int_equal(r.memory_node, 3);
}

static void test_page(void **state)
{
	struct npg_lab_record r;

	(void)state;
	assert_int_equal(parse("page 7 5bf000 1 10 20 3 4 5", &r), 0);
	assert_int_equal(r.kind, NPG_LAB_PAGE);
	assert_int_equal(r.cpu, 7);
	assert_int_equal(r.address, 0x5bf000);
	assert_int_equal(r.nr_loads, 10);
	assert_int_equal(r.nr_stores, 20);
	assert_int_equal(r.nr_memory_loads, 3);
	assert_int_equal(r.nr_memory_stores, 4);
	assert_int_equal(r.nr_walks, 5);
}

static void test_headers(void **state)
{
	struct npg_lab_record r;

	(void)state;
	assert_int_equal(parse("numalab-trace 1 1000", &r), 0);
	assert_int_equal(r.kind, NPG_LAB_TRACE);
	assert_int_equal(r.period, 1000);
	assert_int_equal(parse("numalab-counts 1", &r), 0);
	assert_int_equal(r.kind, NPG_LAB_COUNTS);
	assert_int_equal(parse("cpu 0 0 1 2 3 4 5 6 7", &r), 0);
	assert_int_equal(r.kind, NPG_LAB_OTHER);
}

static void test_refused(void **state)
{
	static const char *const lines[] = {
		"",
		" ",
		"load",
		"load 1 0 1000 2000 R 0",
		"load 1 0 1000 2000 R 0 1 1",
		"load  1 0 1000 2000 R 0 1",
		"load 1 0 1000 2000 X 0 1",
		"load 1 -1 1000 2000 R 0 1",
		"load 1 4294967296 1000 2000 R 0 1",
		"load 99999999999999999999 0 1000 2000 R 0 1",
		"load 1 0 10000000000000000 2000 R 0 1",
		"walk 1 0 10g0 2000 R 0 1",
		"page 7 5bf000 1 10 20 3 4 x",
		"numalab-trace 1 0",
		"numalab-trace 2 1000",
		"numalab-counts 2",
		"0 1 2 3 4 5 6 7 8 9 10 11 12 13 14",
	};
	struct npg_lab_record r;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_true(parse(lines[i], &r) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),    cmocka_unit_test(test_walk),
		cmocka_unit_test(test_page),    cmocka_unit_test(test_headers),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
