/* Launching: what a program is, what it inherits, how its end is passed on. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/launch.h"

static char directory[] = "/tmp/test_launch.XXXXXX";

static const char *in_directory(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const void *data, size_t size, mode_t mode)
{
	int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void write_text(const char *name, const char *text, mode_t mode)
{
	write_file(name, text, strlen(text), mode);
}

/* A copy of /bin/true, with one byte of the ELF header changed. */
static void copy_true(const char *name, size_t offset, unsigned char value, mode_t mode)
{
	static char bytes[1 << 20];
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, bytes, sizeof(bytes));

	assert_true(size > 64);
	close(fd);
	if (offset != 0)
		bytes[offset] = (char)value;
	write_file(name, bytes, (size_t)size, mode);
}

static int check(struct npg_launch *launch, const char *program, struct npg_error *err)
{
	char *argv[] = { strdup(program), NULL };
	int status;

	assert_non_null(argv[0]);
	status = npg_launch_check(launch, argv, err);
	free(argv[0]);
	return status;
}

static enum npg_launch_kind kind_of(const char *program)
{
	struct npg_launch launch;
	enum npg_launch_kind kind;

	assert_int_equal(check(&launch, program, NULL), 0);
	kind = launch.kind;
	assert_int_equal(launch.why_no_preload == NULL, kind <= NPG_LAUNCH_NO_SHEBANG);
	npg_launch_release(&launch);
	return kind;
}

static void test_not_found_or_not_executable(void **state)
{
	struct npg_launch launch;
	struct npg_error err = { "" };

	(void)state;
	assert_int_equal(check(&launch, "no-such-program-anywhere", &err), -ENOENT);
	assert_non_null(strstr(err.text, "no-such-program-anywhere"));
	assert_int_equal(check(&launch, "", &err), -ENOENT);
	assert_int_equal(check(&launch, "/no/such/program", &err), -ENOENT);
	assert_int_equal(check(&launch, directory, &err), -EACCES);
	write_text("plain", "text\n", 0600);
	assert_int_equal(check(&launch, in_directory("plain"), &err), -EACCES);
}

static void test_path_is_searched_as_execvp_does(void **state)
{
	char old[4096], path[4096];
	struct npg_launch launch;

	(void)state;
	snprintf(old, sizeof(old), "%s", getenv("PATH"));
	snprintf(path, sizeof(path), "/no/such:%s:/bin:/usr/bin", directory);
	assert_int_equal(setenv("PATH", path, 1), 0);
	write_text("true", "text\n", 0600); /* remembered, but the next one is executable */
	assert_int_equal(check(&launch, "true", NULL), 0);
	assert_string_equal(launch.path, "/bin/true");
	npg_launch_release(&launch);
	write_text("only-here", "text\n", 0600);
	assert_int_equal(check(&launch, "only-here", NULL), -EACCES);
	assert_int_equal(setenv("PATH", old, 1), 0);
}

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(kind_of("/bin/true"), NPG_LAUNCH_DYNAMIC);
	write_text("script", "#! /bin/sh -e\nexit 0\n", 0700);
	assert_int_equal(kind_of(in_directory("script")), NPG_LAUNCH_SCRIPT);
	write_text("text", "exit 0\n", 0700);
	assert_int_equal(kind_of(in_directory("text")), NPG_LAUNCH_NO_SHEBANG);
	write_text("empty", "", 0700);
	assert_int_equal(kind_of(in_directory("empty")), NPG_LAUNCH_NO_SHEBANG);
	write_text("broken", "\177ELFbroken", 0700);
	assert_int_equal(kind_of(in_directory("broken")), NPG_LAUNCH_FOREIGN);
	copy_true("foreign", offsetof(Elf64_Ehdr, e_machine), EM_SPARC, 0700);
	assert_int_equal(kind_of(in_directory("foreign")), NPG_LAUNCH_FOREIGN);
#ifdef __SANITIZE_ADDRESS__
	assert_int_equal(kind_of("/proc/self/exe"), NPG_LAUNCH_SANITIZED);
#endif
}

static void test_static_and_privileged(void **state)
{
	(void)state;
	if (access("/sbin/ldconfig", X_OK) == 0)
		assert_int_equal(kind_of("/sbin/ldconfig"), NPG_LAUNCH_STATIC);
	if (geteuid() != 0)
		skip();
	copy_true("suid", 0, 0, 0700);
	assert_int_equal(chown(in_directory("suid"), 12345, (gid_t)-1), 0);
	assert_int_equal(chmod(in_directory("suid"), 04755), 0);
	assert_int_equal(kind_of(in_directory("suid")), NPG_LAUNCH_PRIVILEGED);
	assert_int_equal(chown(in_directory("suid"), 0, (gid_t)-1), 0);
	assert_int_equal(chmod(in_directory("suid"), 04755), 0); /* ours: no change of rights */
	assert_int_equal(kind_of(in_directory("suid")), NPG_LAUNCH_DYNAMIC);
}

/* Run a shell command line; Return: its wait status. @between runs after the check. */
static int run_shell(const char *command, const char *variable, void (*between)(void))
{
	char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = { shell, option, strdup(command), NULL };
	struct npg_launch launch;
	struct npg_error err = { "" };
	int status = -1;

	assert_int_equal(npg_launch_check(&launch, argv, &err), 0);
	if (between != NULL)
		between();
	assert_int_equal(npg_launch_prepare(&launch, argv, NULL, variable, &err), 0);
	assert_int_equal(npg_launch_go(&launch, &err), 0);
	assert_int_equal(waitpid(launch.pid, &status, 0), launch.pid);
	npg_launch_release(&launch);
	free(argv[2]);
	return status;
}

static int exit_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void test_environment(void **state)
{
	(void)state;
	assert_int_equal(setenv("NPG_TEST", "old", 1), 0);
	assert_int_equal(exit_of(run_shell("test \"$NPG_TEST\" = new", "NPG_TEST=new", NULL)), 0);
	assert_int_equal(exit_of(run_shell("test \"$NPG_TEST\" = old", "NPG_TES=1", NULL)), 0);
	assert_int_equal(exit_of(run_shell("exit 42", NULL, NULL)), 42);
	assert_int_equal(unsetenv("NPG_TEST"), 0);
}

/* The loader says on stderr that it cannot preload these, and goes on; sent to a file here. */
static void test_preload_goes_in_front(void **state)
{
	char shell[] = "/bin/sh", option[] = "-c",
	     command[] = "test \"$LD_PRELOAD\" = /no/such/ours.so:/no/such/users.so";
	char *argv[] = { shell, option, command, NULL };
	struct npg_launch launch;
	int status, saved = dup(2);

	(void)state;
	assert_int_equal(setenv("LD_PRELOAD", "/no/such/users.so", 1), 0);
	assert_non_null(freopen(in_directory("stderr"), "w", stderr));
	assert_int_equal(npg_launch_check(&launch, argv, NULL), 0);
	assert_int_equal(npg_launch_prepare(&launch, argv, "/no/such/ours.so", NULL, NULL), 0);
	assert_int_equal(npg_launch_go(&launch, NULL), 0);
	assert_int_equal(waitpid(launch.pid, &status, 0), launch.pid);
	npg_launch_release(&launch);
	dup2(saved, 2);
	close(saved);
	assert_int_equal(unsetenv("LD_PRELOAD"), 0);
	assert_int_equal(status, 0);
}

static void disturb(void)
{
	struct rlimit limit;
	sigset_t all;

	assert_true(signal(SIGPIPE, SIG_IGN) == SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 77;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_state_of_the_caller_is_inherited(void **state)
{
	struct rlimit limit;
	char command[200];
	sigset_t none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	snprintf(command, sizeof(command),
		 "test \"$(ulimit -n)\" = %lu && test ! -e /proc/$$/fd/11 && kill -PIPE $$; exit 9",
		 (unsigned long)limit.rlim_cur);
	assert_int_equal(exit_of(run_shell(command, NULL, disturb)), 1000 + SIGPIPE);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN); /* an ignored signal stays ignored */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(exit_of(run_shell("kill -PIPE $$; exit 9", NULL, NULL)), 9);
	signal(SIGPIPE, SIG_DFL);
}

static void prepare(struct npg_launch *launch, const char *name)
{
	char *argv[] = { strdup(in_directory(name)), NULL };

	assert_int_equal(npg_launch_check(launch, argv, NULL), 0);
	assert_int_equal(npg_launch_prepare(launch, argv, NULL, NULL, NULL), 0);
	free(argv[0]);
}

static void test_exec_errors_are_reported(void **state)
{
	struct npg_launch launch;
	struct npg_error err = { "" };
	int status;

	(void)state;
	write_text("bad-shebang", "#!/no/such/interpreter\n", 0700);
	prepare(&launch, "bad-shebang");
	assert_int_equal(npg_launch_go(&launch, &err), -ENOENT);
	assert_non_null(strstr(err.text, "interpreter is missing"));
	npg_launch_release(&launch);
	write_text("no-shebang", "exit 5\n", 0700); /* run by /bin/sh, as execvp does */
	prepare(&launch, "no-shebang");
	assert_int_equal(npg_launch_go(&launch, &err), 0);
	assert_int_equal(waitpid(launch.pid, &status, 0), launch.pid);
	assert_int_equal(exit_of(status), 5);
	npg_launch_release(&launch);
}

static void test_given_up_before_go(void **state)
{
	struct npg_launch launch;
	int status;

	(void)state;
	write_text("never-run", "touch $0.ran\n", 0700);
	prepare(&launch, "never-run");
	npg_launch_release(&launch);
	assert_int_equal(waitpid(launch.pid, &status, 0), launch.pid);
	assert_int_equal(exit_of(status), 125);
	assert_int_not_equal(access(in_directory("never-run.ran"), F_OK), 0);
	prepare(&launch, "never-run"); /* the child is killed: its wait status says so */
	assert_int_equal(kill(launch.pid, SIGKILL), 0);
	assert_int_equal(npg_launch_go(&launch, NULL), 0);
	assert_int_equal(waitpid(launch.pid, &status, 0), launch.pid);
	assert_int_equal(exit_of(status), 1000 + SIGKILL);
	npg_launch_release(&launch);
}

static void test_exit_like(void **state)
{
	static const int signals[] = { SIGTERM, SIGSEGV, SIGKILL, SIGQUIT };
	int status;

	(void)state;
	assert_int_equal(npg_launch_exit_like(7 << 8), 7);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(signals); i++) {
		pid_t child = fork();

		if (child == 0)
			_Exit(npg_launch_exit_like(signals[i] | 0x80)); /* it dumped a core */
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(exit_of(status), 1000 + signals[i]);
		assert_false(WCOREDUMP(status));
	}
}

/* In a process of its own: a launcher whose program ends with 3 on SIGTERM. Both say when they are
 * ready. */
static void run_launcher(int ready_fd)
{
	char shell[] = "/bin/sh", option[] = "-c", command[100];
	char *argv[] = { shell, option, command, NULL };
	struct npg_launch launch;
	int status;

	snprintf(command, sizeof(command),
		 "trap 'exit 3' TERM; printf x >&%d; while :; do sleep 0.01; done", ready_fd);
	if (npg_launch_check(&launch, argv, NULL) != 0 ||
	    npg_launch_prepare(&launch, argv, NULL, NULL, NULL) != 0 ||
	    npg_launch_go(&launch, NULL) != 0)
		_Exit(99);
	npg_launch_forward_signals(&launch);
	if (write(ready_fd, "x", 1) != 1)
		_Exit(98);
	while (waitpid(launch.pid, &status, 0) < 0)
		;
	_Exit(npg_launch_exit_like(status));
}

static void test_signals_are_forwarded(void **state)
{
	int ready[2], status;
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0)
		run_launcher(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(exit_of(status), 3);
}

static void test_object_is_beside_the_program(void **state)
{
	char path[4096];
	struct npg_error err = { "" };

	(void)state;
	assert_int_equal(npg_launch_find_object("test_launch", path, sizeof(path), &err), 0);
	assert_int_equal(access(path, X_OK), 0);
	assert_int_equal(npg_launch_find_object("no-object.so", path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "no-object.so"));
	assert_int_equal(npg_launch_find_object("test_launch", path, 10, &err), -ENAMETOOLONG);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(directory) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_found_or_not_executable),
		cmocka_unit_test(test_path_is_searched_as_execvp_does),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_static_and_privileged),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_preload_goes_in_front),
		cmocka_unit_test(test_state_of_the_caller_is_inherited),
		cmocka_unit_test(test_exec_errors_are_reported),
		cmocka_unit_test(test_given_up_before_go),
		cmocka_unit_test(test_exit_like),
		cmocka_unit_test(test_signals_are_forwarded),
		cmocka_unit_test(test_object_is_beside_the_program),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
