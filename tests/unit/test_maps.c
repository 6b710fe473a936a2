/* /proc/PID/maps: lines as the kernel writes them, and lines that it would not write. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "profiler/maps.h"

static const char text[] =
    "55d0c2a00000-55d0c2a28000 r--p 00000000 fe:00 1579123                    /usr/bin/a b\n"
    "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
    "7f1000000000-7f1000001000 rwxs 00002000 00:01 2051                       /dev/zero (deleted)\n"
    "7ffd40cc1000-7ffd40ce2000 rw-p 00000000 00:00 0                          [stack]";

static void test_lines(void **state)
{
	struct npg_maps_entry e;
	size_t at = 0;

	(void)state;
	assert_int_equal(npg_maps_next(text, strlen(text), &at, &e), 1);
	assert_int_equal(e.start, 0x55d0c2a00000);
	assert_int_equal(e.end, 0x55d0c2a28000);
	assert_int_equal(e.protection, PROT_READ);
	assert_int_equal(e.device, (uint64_t)0xfe << 32);
	assert_int_equal(e.inode, 1579123);
	assert_int_equal(e.name_length, strlen("/usr/bin/a b"));
	assert_memory_equal(e.name, "/usr/bin/a b", e.name_length);
	assert_int_equal(npg_maps_next(text, strlen(text), &at, &e), 1);
	assert_int_equal(e.name_length, 0);
	assert_false(e.is_shared);
	assert_int_equal(npg_maps_next(text, strlen(text), &at, &e), 1);
	assert_int_equal(e.protection, PROT_READ | PROT_WRITE | PROT_EXEC);
	assert_int_equal(e.file_offset, 0x2000);
	assert_true(e.is_shared);
	assert_int_equal(npg_maps_next(text, strlen(text), &at, &e), 1);
	assert_memory_equal(e.name, "[stack]", e.name_length);
	assert_int_equal(npg_maps_next(text, strlen(text), &at, &e), 0);
}

static void test_broken_lines_are_stepped_over(void **state)
{
	static const char *const broken[] = {
		"",
		"hello",
		"10-",
		"20-10 r--p 0 0:0 0",
		"10-20",
		"10-20 r--p",
		"10-20 r--p 0 0:0 ",
		"11112222333344445-2 r--p 0 0:0 0",
		"10-20 r--p 0 00 0",
	};
	struct npg_maps_entry e;

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		char lines[256];
		size_t at = 0;

		snprintf(lines, sizeof(lines), "%s\n10-20 r--p 0 0:0 0 x\n", broken[i]);
		assert_int_equal(npg_maps_next(lines, strlen(lines), &at, &e), -EBADMSG);
		assert_int_equal(npg_maps_next(lines, strlen(lines), &at, &e), 1);
		assert_int_equal(e.name_length, 1);
	}
}

static void test_cut_anywhere(void **state)
{
	struct npg_maps_entry e;

	(void)state;
	for (size_t length = 0; length < strlen(text); length++) {
		size_t at = 0;

		while (npg_maps_next(text, length, &at, &e) != 0)
			assert_true(at <= length);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_broken_lines_are_stepped_over),
		cmocka_unit_test(test_cut_anywhere),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
