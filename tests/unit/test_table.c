/* The hash table against an array, and the queue's order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiler/queue.h"
#include "profiler/table.h"

#define NR_KEYS 500

static void test_table_against_array(void **state)
{
	struct npg_table table = { 0 };
	uint64_t values[NR_KEYS] = { 0 };

	(void)state;
	srandom(2);
	for (int i = 0; i < 20000; i++) {
		uint64_t key = (uint64_t)random() % NR_KEYS;

		if (random() % 2 == 0) {
			values[key] = (uint64_t)i + 1;
			assert_int_equal(npg_table_put(&table, key << 12, key, values[key]), 0);
		} else {
			values[key] = 0;
			npg_table_remove(&table, key << 12, key);
		}
		key = (uint64_t)random() % NR_KEYS;
		assert_int_equal(npg_table_get(&table, key << 12, key), values[key]);
	}
	for (uint64_t key = 0; key < NR_KEYS; key++) {
		assert_int_equal(npg_table_get(&table, key << 12, key), values[key]);
		assert_int_equal(npg_table_get(&table, key << 12, key + 1), 0);
	}
	npg_table_release(&table);
	assert_int_equal(npg_table_get(&table, 1, 1), 0);
	npg_table_remove(&table, 1, 1);
}

struct seen {
	uint64_t last_ns;
	int nr;
	int order[3];
};

static void on_record(void *context, int kind, const void *data, uint32_t size)
{
	struct seen *seen = context;
	uint64_t time_ns;

	assert_int_equal(size, sizeof(time_ns));
	memcpy(&time_ns, data, sizeof(time_ns));
	assert_true(time_ns >= seen->last_ns);
	seen->last_ns = time_ns;
	if (seen->nr < 3)
		seen->order[seen->nr] = kind;
	seen->nr++;
}

static void test_queue_order_and_window(void **state)
{
	struct npg_queue queue = { 0 };
	struct seen seen = { 0 };
	int nr_pushed = 0;

	(void)state;
	srandom(3);
	for (uint64_t base = 0; base < 100; base++) {
		for (int i = 0; i < 200; i++, nr_pushed++) {
			uint64_t time_ns = base * 1000 + (uint64_t)random() % 2000;

			assert_int_equal(
			    npg_queue_push(&queue, time_ns, 0, &time_ns, sizeof(time_ns)), 0);
		}
		npg_queue_take(&queue, base * 1000, on_record, &seen);
		assert_true(seen.last_ns <= base * 1000);
	}
	npg_queue_take(&queue, UINT64_MAX, on_record, &seen);
	assert_int_equal(seen.nr, nr_pushed);
	npg_queue_release(&queue);
}

static void test_queue_keeps_arrival_of_equal_times(void **state)
{
	struct npg_queue queue = { 0 };
	struct seen seen = { 0 };
	uint64_t time_ns = 7;

	(void)state;
	for (int kind = 0; kind < 3; kind++)
		assert_int_equal(npg_queue_push(&queue, 7, kind, &time_ns, sizeof(time_ns)), 0);
	npg_queue_take(&queue, 6, on_record, &seen);
	assert_int_equal(seen.nr, 0);
	npg_queue_take(&queue, 7, on_record, &seen);
	assert_int_equal(seen.nr, 3);
	for (int kind = 0; kind < 3; kind++)
		assert_int_equal(seen.order[kind], kind);
	npg_queue_release(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_against_array),
		cmocka_unit_test(test_queue_order_and_window),
		cmocka_unit_test(test_queue_keeps_arrival_of_equal_times),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
