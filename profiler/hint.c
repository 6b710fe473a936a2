/* Switching kernel.numa_balancing on and back; see the header. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <unistd.h>

#include "profiler/hint.h"
#include "profiler/proc_file.h"

#define STATE_PATH  "/run/numapgo-numa-balancing"
#define DEBUG_PATH  "/sys/kernel/debug/sched/numa_balancing/"
#define SYSCTL_PATH "/proc/sys/kernel/numa_balancing"

/* The pace makes a run of seconds enough; both its places are tried, by age of the kernel. */
static const struct {
	const char *path;
	int64_t wanted;
} settings[NPG_HINT_NR_SETTINGS] = {
	{ DEBUG_PATH "scan_delay_ms", 100 },
	{ DEBUG_PATH "scan_period_min_ms", 500 },
	{ DEBUG_PATH "scan_period_max_ms", 2000 },
	{ SYSCTL_PATH "_scan_delay_ms", 100 },
	{ SYSCTL_PATH "_scan_period_min_ms", 500 },
	{ SYSCTL_PATH "_scan_period_max_ms", 2000 },
	{ SYSCTL_PATH, 1 },
};

static void full_path(const char *root, const char *path, char *full)
{
	snprintf(full, PATH_MAX, "%s%s", root, path);
}

static int64_t get(const char *root, const char *path)
{
	char full[PATH_MAX];

	full_path(root, path, full);
	return npg_proc_read_i64(full, -1);
}

static int put(const char *root, const char *path, int64_t value)
{
	char full[PATH_MAX], text[32];
	int length = snprintf(text, sizeof(text), "%" PRId64 "\n", value);
	int fd, ret = 0;

	full_path(root, path, full);
	fd = open(full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)length) != length)
		ret = errno != 0 ? -errno : -EIO;
	close(fd);
	return ret;
}

/* Lines "VALUE PATH"; only paths of the table are believed. */
static bool put_back_line(const char *root, const char *line)
{
	char *path;
	long long value = strtoll(line, &path, 10);

	if (path == line || *path != ' ' || value < 0)
		return false;
	for (int i = 0; i < NPG_HINT_NR_SETTINGS; i++)
		if (strcmp(path + 1, settings[i].path) == 0)
			return put(root, settings[i].path, value) == 0;
	return false;
}

static bool put_back_left_over(const char *root, int fd)
{
	char text[2048], *line = text;
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
	bool is_any = false;

	text[got > 0 ? got : 0] = '\0';
	while (*line != '\0') {
		char *end = line + strcspn(line, "\n");
		bool is_last = *end == '\0';

		*end = '\0';
		is_any |= put_back_line(root, line);
		line = is_last ? end : end + 1;
	}
	return is_any;
}

/* The state file, locked; -EAGAIN: another recorder has it. */
static int open_state(const char *root, int flags)
{
	char full[PATH_MAX];
	int fd;

	full_path(root, STATE_PATH, full);
	fd = open(full, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}

static void remove_state(const char *root, int fd)
{
	char full[PATH_MAX];

	full_path(root, STATE_PATH, full);
	unlink(full);
	close(fd);
}

static void repair(struct npg_hint *hint)
{
	int fd = open_state(hint->root, 0);

	if (fd < 0)
		return;
	if (put_back_left_over(hint->root, fd))
		snprintf(hint->message, sizeof(hint->message),
			 "a recorder that was killed had left kernel.numa_balancing changed; it is "
			 "%" PRId64 " again, as before",
			 get(hint->root, SYSCTL_PATH));
	remove_state(hint->root, fd);
}

static int save_state(struct npg_hint *hint)
{
	char text[2048] = "";
	size_t used = 0;

	for (int i = 0; i < NPG_HINT_NR_SETTINGS; i++) {
		hint->found[i] = get(hint->root, settings[i].path);
		if (hint->found[i] == settings[i].wanted)
			hint->found[i] = -1;
		if (hint->found[i] >= 0)
			used +=
			    (size_t)snprintf(text + used, sizeof(text) - used, "%" PRId64 " %s\n",
					     hint->found[i], settings[i].path);
	}
	if (ftruncate(hint->state_fd, 0) < 0 ||
	    pwrite(hint->state_fd, text, used, 0) != (ssize_t)used)
		return -EIO;
	return fsync(hint->state_fd) < 0 && errno != EINVAL ? -errno : 0;
}

static int switch_on(struct npg_hint *hint)
{
	int64_t before = get(hint->root, SYSCTL_PATH);
	int ret = open_state(hint->root, O_CREAT);

	if (ret < 0)
		return ret;
	hint->state_fd = ret;
	ret = save_state(hint);
	for (int i = 0; i < NPG_HINT_NR_SETTINGS && ret == 0; i++)
		if (hint->found[i] >= 0 &&
		    put(hint->root, settings[i].path, settings[i].wanted) < 0)
			ret = strcmp(settings[i].path, SYSCTL_PATH) == 0 ? -EACCES : 0;
	if (ret < 0) {
		npg_hint_end(hint);
		return ret;
	}
	if (before != 1)
		snprintf(hint->message, sizeof(hint->message),
			 "kernel.numa_balancing is 1 while this runs and is put back afterwards; "
			 "if numapgo is killed (-9): sysctl kernel.numa_balancing=%" PRId64
			 ", or just record again",
			 before);
	return 0;
}

int npg_hint_begin(const char *root, bool is_asked, struct npg_hint *hint, struct npg_error *err)
{
	int ret;

	*hint = (struct npg_hint){ .root = root, .state_fd = -1 };
	for (int i = 0; i < NPG_HINT_NR_SETTINGS; i++)
		hint->found[i] = -1;
	repair(hint);
	hint->is_on = get(root, SYSCTL_PATH) > 0;
	if (!is_asked)
		return 0;
	if (get(root, SYSCTL_PATH) < 0)
		return npg_error_set(err, -ENOENT,
				     "hint: this kernel has no NUMA balancing "
				     "(no /proc/sys/kernel/numa_balancing)");
	ret = switch_on(hint);
	if (ret == 0 || hint->is_on) { /* on already, if only at its own pace */
		hint->is_on = true;
		return 0;
	}
	if (ret == -EAGAIN)
		return npg_error_set(err, ret,
				     "hint: another recorder is switching "
				     "kernel.numa_balancing right now; try again");
	return npg_error_set(err, ret,
			     "hint: kernel.numa_balancing is 0 and cannot be changed: %s; as root: "
			     "sysctl kernel.numa_balancing=1",
			     strerror(-ret));
}

void npg_hint_end(struct npg_hint *hint)
{
	if (hint->root == NULL || hint->state_fd < 0)
		return;
	for (int i = 0; i < NPG_HINT_NR_SETTINGS; i++)
		if (hint->found[i] >= 0 && put(hint->root, settings[i].path, hint->found[i]) < 0)
			hint->is_on = true; /* it went away meanwhile: nothing to be put back */
	remove_state(hint->root, hint->state_fd);
	hint->state_fd = -1;
}
