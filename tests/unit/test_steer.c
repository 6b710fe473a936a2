/* Periods that keep to the overhead asked for, and lists of sources. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiler/live_map.h"
#include "profiler/record_run.h"
#include "profiler/steer.h"

static void test_primes(void **state)
{
	(void)state;
	assert_int_equal(npg_steer_prime(1000000), 1000003);
	assert_int_equal(npg_steer_prime(97), 97);
	assert_int_equal(npg_steer_prime(8), 11);
}

static void test_first_period(void **state)
{
	struct npg_steer steer;

	(void)state;
	npg_steer_init(&steer, 1, 0, 8000);
	assert_in_range(steer.period_ns, 1000000, 1000100);
	npg_steer_init(&steer, 2, 0, 8000);
	assert_in_range(steer.period_ns, 500000, 500100);
	npg_steer_init(&steer, 100, 0, 100); /* never finer than the limit */
	assert_in_range(steer.period_ns, 100000, 100100);
	npg_steer_init(&steer, 1, 123456, 8000);
	assert_int_equal(steer.period_ns, 123456);
}

static void test_update(void **state)
{
	struct npg_steer_totals totals = { .time_ns = 1000000000,
					   .program_ns = 1000000000,
					   .interrupt_ns = 20000000,
					   .recorder_ns = 10000000 };
	struct npg_steer steer;
	uint64_t before;

	(void)state;
	npg_steer_init(&steer, 1, 0, 8000);
	before = steer.period_ns;
	assert_true(npg_steer_update(&steer, &totals)); /* 3 % where 1 % was allowed */
	assert_in_range(steer.period_ns, before * 3, before * 4);
	totals.program_ns += 1000000000; /* too soon after the last look */
	assert_false(npg_steer_update(&steer, &totals));
	totals.time_ns += 1000000000;
	totals.interrupt_ns += 8000000; /* 0.8 %: as it should be */
	assert_false(npg_steer_update(&steer, &totals));
	npg_steer_init(&steer, 1, 50000, 8000);
	totals.time_ns += 5000000000;
	totals.recorder_ns += 500000000;
	assert_false(npg_steer_update(&steer, &totals)); /* the user's period stays */
}

static void test_sources(void **state)
{
	bool wants[NPG_NR_SOURCES], is_auto;
	struct npg_error err = { "" };

	(void)state;
	assert_int_equal(npg_sources_parse("auto", wants, &is_auto, &err), 0);
	assert_true(is_auto && wants[NPG_SOURCE_CLOCK] && wants[NPG_SOURCE_FAULT]);
	assert_int_equal(npg_sources_parse("hint,clock", wants, &is_auto, &err), 0);
	assert_true(!is_auto && wants[NPG_SOURCE_HINT] && wants[NPG_SOURCE_CLOCK]);
	assert_false(wants[NPG_SOURCE_FAULT]);
	assert_int_equal(npg_sources_parse("clock,", wants, &is_auto, &err), -EINVAL);
	assert_int_equal(npg_sources_parse("", wants, &is_auto, &err), -EINVAL);
	assert_int_equal(npg_sources_parse("clocks", wants, &is_auto, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'clocks'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_primes),
		cmocka_unit_test(test_first_period),
		cmocka_unit_test(test_update),
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests_name("steer", tests, NULL, NULL);
}
