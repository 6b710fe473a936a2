/*
 * Starting a program and ending as it ended. What the child inherits is prepared before the fork;
 * from there to exec it makes system calls only, because this process may have threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <paths.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/launch.h"
#include "lib/launch_state.h"

#define NR_SIGNALS 65
#define FIRST_FD   10 /* ours are kept away from the numbers that shells and programs use */

/* What npg_launch_check() found and the child gets back. */
static struct {
	struct sigaction actions[NR_SIGNALS];
	sigset_t mask;
	struct rlimit limits[RLIM_NLIMITS];
} saved;

void npg_launch_save_state(void)
{
	for (int sig = 1; sig < NR_SIGNALS; sig++)
		if (sigaction(sig, NULL, &saved.actions[sig]) != 0)
			saved.actions[sig].sa_handler = SIG_DFL;
	pthread_sigmask(SIG_SETMASK, NULL, &saved.mask);
	for (unsigned int i = 0; i < RLIM_NLIMITS; i++)
		if (getrlimit((__rlimit_resource_t)i, &saved.limits[i]) != 0)
			saved.limits[i].rlim_cur = saved.limits[i].rlim_max = RLIM_INFINITY;
}

/* Everything the child needs, made before the fork. */
struct start {
	const char *path;
	char *const *argv;
	char **shell_argv; /* /bin/sh PATH ARGS...: for a file without "#!" */
	char **envp;
	char *preload; /* "LD_PRELOAD=..." in new memory, or NULL */
	char *asan;    /* "ASAN_OPTIONS=..." in new memory, or NULL */
	int go_fd;
	int status_fd;
};

static size_t count(char *const *list)
{
	size_t nr = 0;

	while (list[nr] != NULL)
		nr++;
	return nr;
}

static bool is_named(const char *entry, const char *name, size_t length)
{
	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* "NAME=" with @first and the variable's old value, in this order or the other way round. */
static int extend(char **entry, const char *name, const char *text, bool text_first)
{
	const char *old = getenv(name);
	const char *first = text_first ? text : old, *second = text_first ? old : text;
	int length;

	if (old == NULL || old[0] == '\0')
		length = asprintf(entry, "%s=%s", name, text);
	else
		length = asprintf(entry, "%s=%s:%s", name, first, second);
	if (length < 0)
		*entry = NULL;
	return length < 0 ? -ENOMEM : 0;
}

/* The environment with the entries of @added (NULL ones are left out) replaced or added. */
static int make_environment(struct start *start, char *const *added, size_t nr_added)
{
	size_t nr = 0;

	start->envp = calloc(count(environ) + nr_added + 1, sizeof(*start->envp));
	if (start->envp == NULL)
		return -ENOMEM;
	for (char **entry = environ; *entry != NULL; entry++) {
		bool is_replaced = false;

		for (size_t i = 0; i < nr_added; i++)
			if (added[i] != NULL && is_named(*entry, added[i], strcspn(added[i], "=")))
				is_replaced = true;
		if (!is_replaced)
			start->envp[nr++] = *entry;
	}
	for (size_t i = 0; i < nr_added; i++)
		if (added[i] != NULL)
			start->envp[nr++] = added[i];
	return 0;
}

static int make_preload(struct start *start, const struct npg_launch *launch, const char *preload)
{
	int status = extend(&start->preload, "LD_PRELOAD", preload, true);

	if (status == 0 && launch->preloads_children)
		status = extend(&start->asan, "ASAN_OPTIONS", "verify_asan_link_order=0", false);
	return status;
}

static int make_shell_argv(struct start *start)
{
	static char shell[] = _PATH_BSHELL;
	size_t nr = count(start->argv);

	start->shell_argv = calloc(nr + 2, sizeof(*start->shell_argv));
	if (start->shell_argv == NULL)
		return -ENOMEM;
	start->shell_argv[0] = shell;
	memcpy(start->shell_argv + 1, start->argv, nr * sizeof(*start->argv));
	return 0;
}

/* Two ends that are closed on exec and stay clear of the standard descriptors; sockets, because
 * writing to one whose other end is gone need not raise SIGPIPE. */
static int make_pair(int ends[2])
{
	int low[2], status = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) != 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, FIRST_FD);
		if (ends[i] < 0) /* EINVAL: the limit of open files is below FIRST_FD */
			status = errno == EINVAL ? -EMFILE : -errno;
		close(low[i]);
	}
	for (int i = 0; i < 2; i++)
		if (status != 0 && ends[i] >= 0)
			close(ends[i]);
	return status;
}

static void restore_state(void)
{
	for (int sig = 1; sig < NR_SIGNALS; sig++) {
		struct sigaction action = { .sa_handler = saved.actions[sig].sa_handler };

		/* a handler is reset by exec; until then it must not run here */
		if (action.sa_handler != SIG_IGN)
			action.sa_handler = SIG_DFL;
		sigaction(sig, &action, NULL);
	}
	for (unsigned int i = 0; i < RLIM_NLIMITS; i++)
		setrlimit((__rlimit_resource_t)i, &saved.limits[i]);
	sigprocmask(SIG_SETMASK, &saved.mask, NULL);
}

/* The child. System calls only. */
static NPG_NORETURN void run_child(const struct start *start)
{
	ssize_t nr_read;
	int status;
	char go;

	restore_state();
	do {
		nr_read = read(start->go_fd, &go, 1);
	} while (nr_read < 0 && errno == EINTR);
	if (nr_read != 1) /* numapgo gave up or died */
		_exit(125);
	execve(start->path, start->argv, start->envp);
	if (errno == ENOEXEC)
		execve(start->shell_argv[0], start->shell_argv, start->envp);
	status = errno;
	while (write(start->status_fd, &status, sizeof(status)) < 0 && errno == EINTR)
		;
	_exit(status == ENOENT ? 127 : 126);
}

static int fork_child(struct npg_launch *launch, struct start *start)
{
	sigset_t all, mask;
	int go[2], status[2], result = make_pair(go);

	if (result != 0)
		return result;
	result = make_pair(status);
	if (result != 0) {
		close(go[0]);
		close(go[1]);
		return result;
	}
	start->go_fd = go[0];
	start->status_fd = status[1];
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask); /* no handler of ours runs in the child */
	launch->pid = fork();
	if (launch->pid == 0) {
		close(go[1]);
		close(status[0]);
		run_child(start);
	}
	result = launch->pid < 0 ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	close(go[0]);
	close(status[1]);
	launch->go_fd = go[1];
	launch->status_fd = status[0];
	return result;
}

int npg_launch_prepare(struct npg_launch *launch, char *const argv[], const char *preload,
		       const char *variable, struct npg_error *err)
{
	struct start start = { .path = launch->path, .argv = argv };
	bool is_plain = launch->kind == NPG_LAUNCH_SANITIZED || launch->kind == NPG_LAUNCH_FOREIGN;
	char *entry = is_plain || variable == NULL ? NULL : strdup(variable);
	int status = !is_plain && variable != NULL && entry == NULL ? -ENOMEM : 0;

	if (status == 0 && !is_plain && preload != NULL)
		status = make_preload(&start, launch, preload);
	if (status == 0)
		status = make_environment(&start,
					  (char *const[]){ start.preload, start.asan, entry }, 3);
	if (status == 0)
		status = make_shell_argv(&start);
	if (status == 0)
		status = fork_child(launch, &start);
	free(start.envp);
	free(start.preload);
	free(start.asan);
	free(start.shell_argv);
	free(entry);
	if (status != 0)
		npg_error_set(err, status,
			      "cannot start '%s': %s; try again with fewer processes "
			      "or higher limits (ulimit -u, ulimit -n)",
			      launch->path, strerror(-status));
	return status;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int npg_launch_go(struct npg_launch *launch, struct npg_error *err)
{
	const char go = 1;
	int status = 0;
	ssize_t nr_read;
	pid_t reaped;

	/* fails only if the child is gone; then its wait status tells how */
	while (send(launch->go_fd, &go, 1, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
	close_fd(&launch->go_fd);
	do {
		nr_read = read(launch->status_fd, &status, sizeof(status));
	} while (nr_read < 0 && errno == EINTR);
	close_fd(&launch->status_fd);
	if (nr_read != (ssize_t)sizeof(status))
		return 0;
	do {
		reaped = waitpid(launch->pid, NULL, 0);
	} while (reaped < 0 && errno == EINTR);
	launch->pid = -1;
	return npg_error_set(err, -status, "cannot run '%s': %s%s", launch->path, strerror(status),
			     status == ENOENT ? "; its interpreter is missing" : "");
}

static volatile pid_t forward_pid;

/* Stop as a job does, which the default action alone can: in an orphaned group it does nothing. */
static void stop_as_job(void)
{
	struct sigaction handler, action = { .sa_handler = SIG_DFL };
	sigset_t set, mask;

	sigaction(SIGTSTP, &action, &handler);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &set, &mask); /* here it stops, until SIGCONT */
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGTSTP, &handler, NULL);
}

static void forward(int sig, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)context;
	/* sent by a process, not by the terminal, which sends to the program as well */
	if (info->si_code <= 0 && forward_pid > 0)
		kill(forward_pid, sig);
	if (sig == SIGTSTP)
		stop_as_job();
	errno = saved_errno;
}

void npg_launch_forward_signals(const struct npg_launch *launch)
{
	static const int signals[] = { SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
				       SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };
	struct sigaction action = { .sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART };

	forward_pid = launch->pid;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(signals); i++)
		if (saved.actions[signals[i]].sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

int npg_launch_exit_like(int wait_status)
{
	const struct rlimit no_core = { 0, 0 };
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t set;
	int sig;

	forward_pid = 0;
	if (!WIFSIGNALED(wait_status))
		return WEXITSTATUS(wait_status);
	sig = WTERMSIG(wait_status);
	fflush(NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* a core handler program ignores the limit */
	sigaction(sig, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

void npg_launch_release(struct npg_launch *launch)
{
	forward_pid = 0;
	close_fd(&launch->go_fd);
	close_fd(&launch->status_fd);
	free(launch->path);
	launch->path = NULL;
}

int npg_launch_find_object(const char *name, char *path, size_t size, struct npg_error *err)
{
	static const char *const places[] = { "", "../lib/numapgo/" };
	char directory[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
	int written;

	if (length < 0)
		return npg_error_set(err, -ENOENT,
				     "cannot find %s: /proc/self/exe cannot be read: %s; is /proc "
				     "mounted?",
				     name, strerror(errno));
	directory[length] = '\0';
	*(strrchr(directory, '/') + 1) = '\0';
	for (size_t i = 0; i < NPG_ARRAY_SIZE(places); i++) {
		written = snprintf(path, size, "%s%s%s", directory, places[i], name);
		if (written < 0 || (size_t)written >= size)
			return npg_error_set(err, -ENAMETOOLONG, "the path of %s is too long",
					     name);
		if (access(path, R_OK) == 0)
			return 0;
	}
	return npg_error_set(err, -ENOENT,
			     "cannot find %s, neither in %s nor in %s../lib/numapgo; is numapgo "
			     "installed completely?",
			     name, directory, directory);
}
