/* Which objects are one thing to a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzer/grouping.h"
#include "tests/unit/synthetic.h"

static struct npg_profile *profile;
static struct npg_grouping grouping;

static void load(struct synthetic *s)
{
	synthetic_end(s);
	profile = synthetic_load(s, NULL);
	assert_int_equal(npg_grouping_make(profile, &grouping), 0);
}

static void unload(struct synthetic *s)
{
	npg_grouping_release(&grouping);
	npg_profile_free(profile);
	synthetic_remove(s);
}

static struct npg_group *group_of(int id)
{
	return &grouping.groups[grouping.group_of[id - 1]];
}

static void test_one_allocation(void **state)
{
	struct synthetic s;
	int id, small, symbol;

	(void)state;
	synthetic_begin(&s, 1);
	synthetic_site(&s, 1);
	synthetic_site(&s, 2);
	id = synthetic_object(&s, (struct synthetic_object){
				      .kind = "heap", .site = 1, .thread = 1, .size = 1 << 20 });
	small = synthetic_object(
	    &s, (struct synthetic_object){ .kind = "heap", .site = 2, .thread = 1, .size = 100 });
	symbol = synthetic_object(
	    &s, (struct synthetic_object){
		    .kind = "static", .thread = 1, .offset = 64, .size = 1 << 20 });
	load(&s);
	assert_int_equal(group_of(id)->which, NPG_PLAN_ALL);
	assert_true(group_of(id)->is_plannable);
	assert_string_equal(group_of(id)->name, "main"); /* not the wrapper xmalloc */
	assert_int_equal(npg_site_offset(profile, group_of(id)->site), 4096 + 64);
	assert_false(group_of(small)->is_plannable); /* shares its page with others */
	assert_true(group_of(symbol)->is_plannable);
	assert_false(group_of(symbol)->is_movable);
	unload(&s);
}

static void test_told_apart_by_ordinal(void **state)
{
	struct synthetic s;

	(void)state;
	synthetic_begin(&s, 2);
	synthetic_site(&s, 1);
	for (int i = 0; i < 8; i++)
		synthetic_object(&s, (struct synthetic_object){ .kind = "heap",
								.site = 1,
								.thread = 1,
								.site_ordinal = i,
								.thread_ordinal = i,
								.size = 1 << 20 });
	load(&s);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(group_of(i + 1)->which, NPG_PLAN_SITE_ORDINAL);
		assert_int_equal(group_of(i + 1)->ordinal, i);
		assert_int_equal(group_of(i + 1)->nr_of_site, 8);
		assert_int_equal(grouping.group_of[i], group_of(1)->first_of_site + (size_t)i);
	}
	unload(&s);
}

static void test_told_apart_by_thread(void **state)
{
	struct synthetic s;

	(void)state;
	synthetic_begin(&s, 2);
	synthetic_site(&s, 1);
	for (int i = 0; i < 8; i++) /* threads 2 and 3 race: the site's order is chance */
		synthetic_object(&s, (struct synthetic_object){ .kind = "heap",
								.site = 1,
								.thread = 2 + i % 2,
								.site_ordinal = i,
								.thread_ordinal = i / 2,
								.size = 1 << 20 });
	load(&s);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(group_of(i + 1)->which, NPG_PLAN_THREAD_ORDINAL);
		assert_int_equal(group_of(i + 1)->ordinal, i / 2);
		assert_int_equal(group_of(i + 1)->creator, 1 + i % 2);
	}
	unload(&s);
}

static void test_churn_is_one_group(void **state)
{
	struct synthetic s;

	(void)state;
	synthetic_begin(&s, 1);
	synthetic_site(&s, 1);
	for (int i = 0; i < 100; i++) /* two alive at a time */
		synthetic_object(&s, (struct synthetic_object){ .kind = "heap",
								.site = 1,
								.thread = 1,
								.site_ordinal = i,
								.thread_ordinal = i,
								.size = 1 << 20,
								.start_ns = i * 1000,
								.end_ns = i * 1000 + 1500 });
	load(&s);
	assert_int_equal(group_of(1)->which, NPG_PLAN_ALL);
	assert_int_equal(group_of(1)->nr_objects, 100);
	assert_int_equal(group_of(1)->alive_bytes, 2 << 20);
	unload(&s);
}

static void test_each_threads_own(void **state)
{
	struct synthetic s;

	(void)state;
	synthetic_begin(&s, 2);
	synthetic_site(&s, 1);
	for (int i = 0; i < 100; i++) {
		int id =
		    synthetic_object(&s, (struct synthetic_object){ .kind = "heap",
								    .site = 1,
								    .thread = 2 + i % 2,
								    .site_ordinal = i,
								    .thread_ordinal = i / 2,
								    .size = 1 << 16,
								    .start_ns = i * 1000,
								    .end_ns = i * 1000 + 1500 });

		synthetic_sample(&s, CLOCK, 2 + i % 2, id, address_of(&s, id), i * 1000 + 10);
	}
	load(&s);
	assert_true(group_of(1)->is_thread_own);
	assert_false(group_of(1)->is_plannable);
	unload(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_allocation),
		cmocka_unit_test(test_told_apart_by_ordinal),
		cmocka_unit_test(test_told_apart_by_thread),
		cmocka_unit_test(test_churn_is_one_group),
		cmocka_unit_test(test_each_threads_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
