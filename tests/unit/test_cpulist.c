/* CPU lists: parsing, formatting, sets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "lib/cpulist.h"

static void check_list(const char *text, const char *want)
{
	struct npg_cpuset set;
	char list[256];

	assert_int_equal(npg_cpulist_parse(text, strlen(text), &set), 0);
	assert_int_equal(npg_cpulist_format(&set, list, sizeof(list)), strlen(want));
	assert_string_equal(list, want);
}

static void parses_what_the_kernel_prints(void **state)
{
	(void)state;
	check_list("0", "0");
	check_list("0-3,8\n", "0-3,8");
	check_list("8,0-3", "0-3,8");
	check_list("0-15:2", "0,2,4,6,8,10,12,14");
	check_list("0-3,2-5", "0-5");
	check_list("", "");
	check_list(" \n", "");
	check_list("63-64,127-128", "63-64,127-128");
	check_list("4095", "4095");
}

static void refuses_what_is_no_list(void **state)
{
	static const char *const bad[] = { ",",     "1,",    ",1",    "-1",     "1-",  "3-1",
					   "0-3:0", "0-3:",  "a",     "1 2",    "1;2", "0x1",
					   "1--2",  "1-2-3", "\"0\"", "0-3:1/2" };
	struct npg_cpuset set, before;

	(void)state;
	memset(&set, 0x55, sizeof(set));
	before = set;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(bad); i++)
		assert_int_equal(npg_cpulist_parse(bad[i], strlen(bad[i]), &set), -EINVAL);
	assert_int_equal(npg_cpulist_parse("4096", 4, &set), -ERANGE);
	assert_int_equal(npg_cpulist_parse("99999999999999999999", 20, &set), -ERANGE);
	assert_memory_equal(&set, &before, sizeof(set)); /* written only on success */
}

static void needs_no_final_nul(void **state)
{
	static const char text[] = { '1', '-', '3' };
	struct npg_cpuset set;

	(void)state;
	assert_int_equal(npg_cpulist_parse(text, 1, &set), 0);
	assert_int_equal(npg_cpuset_count(&set), 1);
	assert_int_equal(npg_cpulist_parse(text, 3, &set), 0);
	assert_int_equal(npg_cpuset_count(&set), 3);
}

static void cuts_at_a_comma(void **state)
{
	struct npg_cpuset set;
	char text[8];

	(void)state;
	assert_int_equal(npg_cpulist_parse("10-12,20,30", 11, &set), 0);
	assert_int_equal(npg_cpulist_format(&set, text, sizeof(text)), 11);
	assert_string_equal(text, "10-12");
	assert_int_equal(npg_cpulist_format(&set, text, 1), 11);
	assert_string_equal(text, "");
	assert_int_equal(npg_cpulist_format(&set, text, 0), 11);
}

static void longest_list_fits_its_size(void **state)
{
	struct npg_cpuset set;
	char text[NPG_CPULIST_SIZE];

	(void)state;
	npg_cpuset_clear(&set);
	for (int cpu = 0; cpu < NPG_CPUSET_SIZE; cpu++)
		if (cpu % 3 != 2)
			npg_cpuset_add(&set, cpu);
	assert_true(npg_cpulist_format(&set, text, sizeof(text)) < sizeof(text));
}

static void walks_and_intersects(void **state)
{
	struct npg_cpuset a, b;

	(void)state;
	npg_cpuset_clear(&a);
	npg_cpuset_clear(&b);
	npg_cpuset_add(&a, 0);
	npg_cpuset_add(&a, 64);
	npg_cpuset_add(&a, 4095);
	npg_cpuset_add(&a, 4096);
	npg_cpuset_add(&a, -1);
	npg_cpuset_add(&b, 64);
	npg_cpuset_add(&b, 65);
	assert_int_equal(npg_cpuset_count(&a), 3);
	assert_int_equal(npg_cpuset_next(&a, -1), 0);
	assert_int_equal(npg_cpuset_next(&a, 0), 64);
	assert_int_equal(npg_cpuset_next(&a, 64), 4095);
	assert_int_equal(npg_cpuset_next(&a, 4095), -1);
	assert_false(npg_cpuset_has(&a, 4096));
	npg_cpuset_and(&a, &b);
	assert_int_equal(npg_cpuset_count(&a), 1);
	assert_true(npg_cpuset_has(&a, 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_what_the_kernel_prints),
		cmocka_unit_test(refuses_what_is_no_list),
		cmocka_unit_test(needs_no_final_nul),
		cmocka_unit_test(cuts_at_a_comma),
		cmocka_unit_test(longest_list_fits_its_size),
		cmocka_unit_test(walks_and_intersects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
