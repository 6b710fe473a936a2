/* Ranges against a plain array of owners, over random insertions and removals. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include "profiler/range_map.h"

#define SPAN 512

static int nr_held[SPAN]; /* by value: ranges that have it */

static int *value_of(int i)
{
	return &nr_held[i];
}

static void keep(void *value)
{
	++*(int *)value;
}

static void drop(void *context, void *value)
{
	(void)context;
	--*(int *)value;
}

static void check(const struct npg_range_map *map, int *const *owners)
{
	for (uint64_t at = 0; at < SPAN; at++) {
		struct npg_range *range = npg_range_map_find(map, at);

		if (owners[at] == NULL) {
			assert_null(range);
			continue;
		}
		assert_non_null(range);
		assert_ptr_equal(range->value, owners[at]);
		assert_true(range->start <= at && at < range->end);
	}
}

static void check_counts(const struct npg_range_map *map)
{
	struct npg_range *range = npg_range_map_next(map, 0);
	size_t nr = 0;
	int found[SPAN] = { 0 };

	for (; range != NULL; range = npg_range_map_next(map, range->end), nr++)
		found[(int *)range->value - nr_held]++;
	assert_int_equal(nr, map->nr_ranges);
	assert_memory_equal(found, nr_held, sizeof(found));
}

static void test_against_array(void **state)
{
	struct npg_range_map map;
	int *owners[SPAN] = { NULL };

	(void)state;
	srandom(1);
	npg_range_map_init(&map, keep, drop, NULL);
	for (int i = 0; i < 4000; i++) {
		uint64_t start = (uint64_t)random() % (SPAN - 1);
		uint64_t end = start + 1 + (uint64_t)random() % (SPAN - start - 1);
		int *value = value_of(i % SPAN);
		bool is_insertion = random() % 3 != 0;

		if (is_insertion) {
			keep(value);
			assert_int_equal(npg_range_map_insert(&map, start, end, value), 0);
		} else {
			assert_int_equal(npg_range_map_clear(&map, start, end), 0);
		}
		for (uint64_t at = start; at < end; at++)
			owners[at] = is_insertion ? value : NULL;
		if (i % 50 == 0) {
			check(&map, owners);
			check_counts(&map);
		}
	}
	npg_range_map_release(&map);
	check_counts(&map);
}

static void test_borders(void **state)
{
	struct npg_range_map map;

	(void)state;
	npg_range_map_init(&map, keep, drop, NULL);
	assert_int_equal(npg_range_map_insert(&map, 5, 5, value_of(0)), -EINVAL);
	keep(value_of(0));
	assert_int_equal(npg_range_map_insert(&map, UINT64_MAX - 1, UINT64_MAX, value_of(0)), 0);
	assert_non_null(npg_range_map_find(&map, UINT64_MAX - 1));
	assert_null(npg_range_map_find(&map, UINT64_MAX));
	assert_non_null(npg_range_map_next(&map, 0));
	npg_range_map_release(&map);
	assert_int_equal(nr_held[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_array),
		cmocka_unit_test(test_borders),
	};

	return cmocka_run_group_tests_name("range_map", tests, NULL, NULL);
}
