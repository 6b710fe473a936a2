/* Error texts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/error.h"

static void hands_back_status_and_keeps_errno(void **state)
{
	struct npg_error err = { "" };

	(void)state;
	errno = EAGAIN;
	assert_int_equal(npg_error_set(&err, -ENOENT, "%s: missing", "file"), -ENOENT);
	assert_int_equal(errno, EAGAIN);
	assert_string_equal(err.text, "file: missing");
	assert_int_equal(npg_error_set(NULL, -EIO, "nobody asks"), -EIO);
	assert_int_equal(npg_error_prefix(NULL, -EIO, "nobody asks"), -EIO);
}

static void puts_context_in_front(void **state)
{
	struct npg_error err = { "" };

	(void)state;
	npg_error_set(&err, -1, "inner %d%%", 5);
	assert_int_equal(npg_error_prefix(&err, -1, "outer %s", "x"), -1);
	assert_string_equal(err.text, "outer x: inner 5%");
}

static void cuts_what_is_too_long(void **state)
{
	struct npg_error err = { "" };
	char text[3000];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	npg_error_set(&err, -1, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	npg_error_prefix(&err, -1, "front");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "front: aaa", 10);
	npg_error_prefix(&err, -1, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hands_back_status_and_keeps_errno),
		cmocka_unit_test(puts_context_in_front),
		cmocka_unit_test(cuts_what_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
