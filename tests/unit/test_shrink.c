/* The shrinkage weight on pages with known users. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzer/shrink.h"

/* Pages 0 .. n-1 with two samples each; the users of a page agree or come from a fixed cycle. */
static size_t make(struct npg_point *points, uint64_t nr_pages, bool is_private)
{
	size_t nr = 0;
	uint32_t state = 12345;

	for (uint64_t page = 0; page < nr_pages; page++) {
		uint32_t first, second;

		state = state * 1664525 + 1013904223;
		first = state >> 30;
		state = state * 1664525 + 1013904223;
		second = is_private ? first : state >> 30;
		if (first == second) {
			points[nr++] = (struct npg_point){ page, first, 2 };
			continue;
		}
		points[nr++] = (struct npg_point){ page, first < second ? first : second, 1 };
		points[nr++] = (struct npg_point){ page, first < second ? second : first, 1 };
	}
	return nr;
}

static void test_private_pages_are_trusted(void **state)
{
	struct npg_point points[400];
	double kappa;

	(void)state;
	assert_int_equal(npg_shrink_fit(points, make(points, 200, true), 4, &kappa), 0);
	assert_true(kappa <= 1.0);
}

static void test_shared_pages_follow_the_segment(void **state)
{
	struct npg_point points[400];
	double kappa;

	(void)state;
	assert_int_equal(npg_shrink_fit(points, make(points, 200, false), 4, &kappa), 0);
	assert_true(isinf(kappa));
}

static void test_one_user_needs_no_fit(void **state)
{
	struct npg_point points[] = { { 0, 2, 3 }, { 5, 2, 1 } };
	double kappa;

	(void)state;
	assert_int_equal(npg_shrink_fit(points, 2, 4, &kappa), 0);
	assert_true(isinf(kappa));
	assert_int_equal(npg_shrink_fit(NULL, 0, 4, &kappa), 0);
	assert_true(isinf(kappa));
}

static void test_share(void **state)
{
	(void)state;
	assert_true(fabs(npg_shrink_share(0, 0, 0.25, 4) - 0.25) < 1e-12); /* unseen page */
	assert_true(fabs(npg_shrink_share(4, 4, 0.25, 4) - 0.625) < 1e-12);
	assert_true(fabs(npg_shrink_share(4, 4, 0.25, (double)INFINITY) - 0.25) < 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_private_pages_are_trusted),
		cmocka_unit_test(test_shared_pages_follow_the_segment),
		cmocka_unit_test(test_one_user_needs_no_fit),
		cmocka_unit_test(test_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
