/* Hint faults are switched on and back, on a make-believe /proc. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/hint.h"
#include "profiler/proc_file.h"

#define SYSCTL "/proc/sys/kernel/numa_balancing"
#define PERIOD "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms"
#define STATE  "/run/numapgo-numa-balancing"

static char root[64];

/* A shell command in the make-believe root. */
static void run(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd '%s' && %s", root, command);
	assert_int_equal(system(line), 0);
}

static int64_t value_of(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return npg_proc_read_i64(full, -1);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/numapgo-test.XXXXXX");
	if (mkdtemp(root) == NULL)
		return -1;
	run("mkdir -p run proc/sys/kernel sys/kernel/debug/sched/numa_balancing && "
	    "echo 0 > ." SYSCTL " && echo 1000 > ." PERIOD);
	return 0;
}

static int remove_root(void **state)
{
	(void)state;
	run("rm -rf \"$PWD\"");
	return 0;
}

static void test_asked_for(void **state)
{
	struct npg_hint hint;

	(void)state;
	assert_int_equal(npg_hint_begin(root, true, &hint, NULL), 0);
	assert_true(hint.is_on);
	assert_int_equal(value_of(SYSCTL), 1);
	assert_int_equal(value_of(PERIOD), 500);
	assert_non_null(strstr(hint.message, "sysctl kernel.numa_balancing=0"));
	npg_hint_end(&hint);
	assert_int_equal(value_of(SYSCTL), 0);
	assert_int_equal(value_of(PERIOD), 1000);
	assert_int_equal(value_of(STATE), -1);
	npg_hint_end(&hint);
	assert_int_equal(value_of(SYSCTL), 0);
}

static void test_not_asked_for(void **state)
{
	struct npg_hint hint;

	(void)state;
	assert_int_equal(npg_hint_begin(root, false, &hint, NULL), 0);
	assert_false(hint.is_on);
	npg_hint_end(&hint);
	run("echo 1 > ." SYSCTL);
	assert_int_equal(npg_hint_begin(root, false, &hint, NULL), 0);
	assert_true(hint.is_on);
	assert_int_equal(value_of(PERIOD), 1000);
	npg_hint_end(&hint);
	assert_int_equal(value_of(SYSCTL), 1);
}

static void test_left_over_is_put_back(void **state)
{
	struct npg_hint hint;
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) { /* a recorder that dies */
		if (npg_hint_begin(root, true, &hint, NULL) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(value_of(SYSCTL), 1);
	assert_int_equal(npg_hint_begin(root, false, &hint, NULL), 0);
	assert_false(hint.is_on);
	assert_non_null(strstr(hint.message, "killed"));
	assert_int_equal(value_of(SYSCTL), 0);
	assert_int_equal(value_of(PERIOD), 1000);
	assert_int_equal(value_of(STATE), -1);
	npg_hint_end(&hint);
}

static void test_live_recorder_is_left_alone(void **state)
{
	struct npg_hint first, second;

	(void)state;
	assert_int_equal(npg_hint_begin(root, true, &first, NULL), 0);
	assert_int_equal(npg_hint_begin(root, true, &second, NULL), 0);
	assert_true(second.is_on);
	npg_hint_end(&second);
	assert_int_equal(value_of(SYSCTL), 1);
	npg_hint_end(&first);
	assert_int_equal(value_of(SYSCTL), 0);
}

static void test_hostile_state_file(void **state)
{
	struct npg_hint hint;

	(void)state;
	run("printf '7 /etc/x\\n5\\n-1 " SYSCTL "\\nx\\n9 ../run/y' > ." STATE);
	assert_int_equal(npg_hint_begin(root, false, &hint, NULL), 0);
	assert_int_equal(hint.message[0], '\0');
	assert_int_equal(value_of(SYSCTL), 0);
	npg_hint_end(&hint);
}

static void test_no_such_kernel(void **state)
{
	struct npg_error err = { "" };
	struct npg_hint hint;

	(void)state;
	run("rm ." SYSCTL);
	assert_int_equal(npg_hint_begin(root, true, &hint, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no NUMA balancing"));
	npg_hint_end(&hint);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_asked_for),
		TEST(test_not_asked_for),
		TEST(test_left_over_is_put_back),
		TEST(test_live_recorder_is_left_alone),
		TEST(test_hostile_state_file),
		TEST(test_no_such_kernel),
	};

	return cmocka_run_group_tests_name("hint", tests, NULL, NULL);
}
