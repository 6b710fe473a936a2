/* Numbers and names as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzer/text.h"

static void test_numbers(void **state)
{
	char text[NPG_TEXT_SIZE];

	(void)state;
	assert_string_equal(npg_text_bytes(0, text), "0 B");
	assert_string_equal(npg_text_bytes(1536, text), "1.5 KiB");
	assert_string_equal(npg_text_bytes(UINT64_C(128) << 20, text), "128 MiB");
	assert_string_equal(npg_text_bytes(UINT64_MAX, text), "16 EiB");
	assert_string_equal(npg_text_ns(0.0, text), "0.00 ns");
	assert_string_equal(npg_text_ns(1234.0, text), "1.23 us");
	assert_string_equal(npg_text_ns(45.6e6, text), "45.6 ms");
	assert_string_equal(npg_text_ns(5056e6, text), "5.06 s");
	assert_string_equal(npg_text_percent(0.9734, text), "97.3 %");
}

static void test_elide(void **state)
{
	char text[64];

	(void)state;
	assert_string_equal(npg_text_elide("short", 8, text, sizeof(text)), "short");
	assert_string_equal(npg_text_elide("0123456789", 8, text, sizeof(text)), "012..789");
	assert_string_equal(npg_text_elide("a\033b\n", 8, text, sizeof(text)), "a?b?");
	assert_string_equal(
	    npg_text_elide("\303\244\303\266\303\274\303\237xyz", 6, text, sizeof(text)),
	    "\303\244\303\266..yz"); /* never cut inside a character */
	assert_string_equal(npg_text_elide("0123456789", 8, text, 4), "012"); /* bounded */
	assert_string_equal(npg_text_elide("0123456789", 2, text, sizeof(text)), "..");
}

static void test_file_name(void **state)
{
	(void)state;
	assert_string_equal(npg_text_file_name("/usr/lib/x.so"), "x.so");
	assert_string_equal(npg_text_file_name("main"), "main");
	assert_string_equal(npg_text_file_name("/a/"), "/a/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_elide),
		cmocka_unit_test(test_file_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
