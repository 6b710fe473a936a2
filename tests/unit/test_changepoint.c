/* Change points against known truth, with a seeded generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzer/changepoint.h"

#define PAGES 16384 /* 64 MiB */

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % limit;
}

static int by_position(const void *a, const void *b)
{
	const struct npg_point *x = a, *y = b;

	if (x->position != y->position)
		return x->position < y->position ? -1 : 1;
	return (x->category > y->category) - (x->category < y->category);
}

/* @owner gives the user of a page; one sample in @noise_per_mille comes from any thread. */
static struct npg_point *sample(size_t n, uint64_t length, uint32_t nr_threads,
				uint32_t (*owner)(uint64_t page), unsigned noise_permille)
{
	struct npg_point *points = calloc(n, sizeof(*points));

	for (size_t i = 0; i < n; i++) {
		points[i].position = random_below(length);
		points[i].category = random_below(1000) < noise_permille
					 ? (uint32_t)random_below(nr_threads)
					 : owner(points[i].position);
		points[i].nr_samples = 1;
	}
	qsort(points, n, sizeof(*points), by_position);
	return points;
}

static uint32_t quarters(uint64_t page)
{
	return (uint32_t)(page / (PAGES / 4));
}

static uint32_t sixty_fourths(uint64_t page)
{
	return (uint32_t)(page / (PAGES / 64));
}

static uint32_t uneven(uint64_t page)
{
	return page < 1000 ? 0 : page < 9000 ? 3 : page < 9600 ? 1 : 2;
}

static uint32_t alternating(uint64_t page)
{
	return (page / 2048) % 2 ? 1 : 0;
}

static uint32_t anyone(uint64_t page)
{
	(void)page;
	return (uint32_t)random_below(4);
}

static void check_cover(const struct npg_segment *s, size_t nr, uint64_t length, size_t nr_points)
{
	uint64_t next = 0;
	size_t point = 0;

	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(s[i].first, next);
		assert_int_equal(s[i].first_point, point);
		assert_true(s[i].length > 0);
		next += s[i].length;
		point += s[i].nr_points;
	}
	assert_int_equal(next, length);
	assert_int_equal(point, nr_points);
}

/* Pages on which the segments' majority is not the true owner. */
static uint64_t wrong_pages(const struct npg_segment *s, size_t nr, const struct npg_point *points,
			    uint32_t (*owner)(uint64_t page))
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < nr; i++) {
		unsigned votes[64] = { 0 };
		uint32_t best = 0;

		for (size_t p = 0; p < s[i].nr_points; p++) {
			uint32_t c = points[s[i].first_point + p].category;

			if (++votes[c] > votes[best])
				best = c;
		}
		for (uint64_t page = s[i].first; page < s[i].first + s[i].length; page++)
			wrong += owner(page) != best;
	}
	return wrong;
}

static void test_quarters_from_500_samples(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct npg_segment *s;
		struct npg_point *points;
		size_t nr;

		random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		points = sample(500, PAGES, 4, quarters, 0);
		assert_int_equal(npg_changepoints_find(points, 500, PAGES, &s, &nr), 0);
		check_cover(s, nr, PAGES, 500);
		assert_int_equal(nr, 4);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(s[i].first, i * PAGES / 4);
		free(s);
		free(points);
	}
}

static void test_quarters_with_foreign_samples(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct npg_segment *s;
		struct npg_point *points;
		size_t nr;

		random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		points = sample(500, PAGES, 4, quarters, 100);
		assert_int_equal(npg_changepoints_find(points, 500, PAGES, &s, &nr), 0);
		assert_int_equal(nr, 4);
		assert_true(wrong_pages(s, nr, points, quarters) < PAGES / 50);
		free(s);
		free(points);
	}
}

static void check_pattern(size_t n, uint32_t nr_threads, uint32_t (*owner)(uint64_t), size_t want,
			  uint64_t most_wrong)
{
	struct npg_segment *s;
	struct npg_point *points;
	size_t nr;

	random_state = UINT64_C(0x1234567);
	points = sample(n, PAGES, nr_threads, owner, 0);
	assert_int_equal(npg_changepoints_find(points, n, PAGES, &s, &nr), 0);
	check_cover(s, nr, PAGES, n);
	assert_int_equal(nr, want);
	assert_true(wrong_pages(s, nr, points, owner) <= most_wrong);
	free(s);
	free(points);
}

static void test_other_patterns(void **state)
{
	(void)state;
	check_pattern(2000, 64, sixty_fourths, 64, 100);
	check_pattern(500, 4, uneven, 4, 200);
	check_pattern(500, 2, alternating, 8, 400);
	check_pattern(100000, 4, uneven, 4, 4); /* more positions than bins */
}

static void test_shared_is_one_segment(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct npg_segment *s;
		struct npg_point *points;
		size_t nr;

		random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		points = sample(2000, PAGES, 4, anyone, 0);
		assert_int_equal(npg_changepoints_find(points, 2000, PAGES, &s, &nr), 0);
		assert_int_equal(nr, 1);
		free(s);
		free(points);
	}
}

static void test_edges(void **state)
{
	struct npg_point one = { 7, 3, 5 };
	struct npg_segment *s;
	size_t nr;

	(void)state;
	assert_int_equal(npg_changepoints_find(NULL, 0, 10, &s, &nr), 0);
	assert_int_equal(nr, 1);
	assert_int_equal(s[0].length, 10);
	free(s);
	assert_int_equal(npg_changepoints_find(&one, 1, 10, &s, &nr), 0);
	assert_int_equal(nr, 1);
	check_cover(s, nr, 10, 1);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quarters_from_500_samples),
		cmocka_unit_test(test_quarters_with_foreign_samples),
		cmocka_unit_test(test_other_patterns),
		cmocka_unit_test(test_shared_is_one_segment),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
