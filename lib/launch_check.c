/* Looking at a program before it runs: where it is, what kind, and if it can be preloaded. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <paths.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/elf_file.h"
#include "lib/launch.h"
#include "lib/launch_state.h"

#define MAX_INTERPRETERS 4   /* as the kernel: a script may be run by a script */
#define HEAD_BYTES       256 /* BINPRM_BUF_SIZE: the kernel reads no more of a "#!" line */

static const char *reason_of(enum npg_launch_kind kind)
{
	switch (kind) {
	case NPG_LAUNCH_STATIC:
		return "it is statically linked";
	case NPG_LAUNCH_PRIVILEGED:
		return "it runs with privileges of its own (setuid, setgid or capabilities), so "
		       "the "
		       "loader ignores preloads";
	case NPG_LAUNCH_FOREIGN:
		return "it is not an ELF file of this machine";
	case NPG_LAUNCH_SANITIZED:
		return "it is built with a sanitizer, whose runtime must be loaded first";
	case NPG_LAUNCH_DYNAMIC:
	case NPG_LAUNCH_SCRIPT:
	case NPG_LAUNCH_NO_SHEBANG:
		break;
	}
	return NULL;
}

/* Can @path be executed? Return: 0; -ENOENT, -EACCES, or what else stat(2) says. */
static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
		return -EACCES;
	return 0;
}

/* One element of PATH and the name, in new memory. An empty element is the current directory. */
static char *join(const char *directory, size_t length, const char *name)
{
	char *path;

	if (length == 0)
		return asprintf(&path, "./%s", name) < 0 ? NULL : path;
	return asprintf(&path, "%.*s/%s", (int)length, directory, name) < 0 ? NULL : path;
}

/* As execvp(3): a file that may not be executed does not end the search, but is remembered. */
static int search_path(const char *name, char **found)
{
	const char *list = getenv("PATH");
	int status, result = -ENOENT;

	if (list == NULL)
		list = _PATH_DEFPATH;
	for (;;) {
		size_t length = strcspn(list, ":");
		char *path = join(list, length, name);

		if (path == NULL)
			return -ENOMEM;
		status = check_executable(path);
		if (status == 0) {
			*found = path;
			return 0;
		}
		free(path);
		if (status == -EACCES)
			result = -EACCES;
		if (list[length] == '\0')
			return result;
		list += length + 1;
	}
}

static int find_program(const char *name, char **path)
{
	int status;

	if (name[0] == '\0')
		return -ENOENT;
	if (strchr(name, '/') == NULL)
		return search_path(name, path);
	status = check_executable(name);
	if (status != 0)
		return status;
	*path = strdup(name);
	return *path == NULL ? -ENOMEM : 0;
}

/* Will the kernel give it other rights than ours, so that the loader turns careful? */
static bool is_privileged(const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID)))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
		return true;
	return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static enum npg_launch_kind kind_of_elf(const char *path)
{
	enum npg_launch_kind kind = NPG_LAUNCH_DYNAMIC;
	struct npg_elf_file *file = NULL;

	if (npg_elf_file_open(path, &file, NULL) != 0 || !file->is_native)
		kind = NPG_LAUNCH_FOREIGN;
	else if (file->is_sanitized)
		kind = NPG_LAUNCH_SANITIZED;
	else if (!file->has_interpreter)
		kind = NPG_LAUNCH_STATIC;
	else if (is_privileged(path))
		kind = NPG_LAUNCH_PRIVILEGED;
	npg_elf_file_free(file);
	return kind;
}

static size_t read_head(const char *path, char head[HEAD_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t nr_read = 0;

	if (fd >= 0) {
		nr_read = read(fd, head, HEAD_BYTES - 1);
		close(fd);
	}
	nr_read = nr_read > 0 ? nr_read : 0;
	head[nr_read] = '\0';
	return (size_t)nr_read;
}

static enum npg_launch_kind kind_of(const char *path)
{
	char heads[2][HEAD_BYTES];
	const char *name = path;

	for (int depth = 0; depth <= MAX_INTERPRETERS; depth++) {
		char *head = heads[depth % 2]; /* @name points into the other one */
		size_t size = read_head(name, head);
		enum npg_launch_kind kind;

		if (size >= 4 && memcmp(head, "\177ELF", 4) == 0) {
			kind = kind_of_elf(name);
			return kind == NPG_LAUNCH_DYNAMIC && depth > 0 ? NPG_LAUNCH_SCRIPT : kind;
		}
		if (size < 2 || head[0] != '#' || head[1] != '!')
			break;
		head += 2 + strspn(head + 2, " \t");
		head[strcspn(head, " \t\n")] = '\0';
		name = head;
	}
	if (name != path)
		return NPG_LAUNCH_SCRIPT;
	/* nothing to be read: executable but not readable, which the loader does not mind */
	return access(path, R_OK) == 0 ? NPG_LAUNCH_NO_SHEBANG : NPG_LAUNCH_DYNAMIC;
}

int npg_launch_check(struct npg_launch *launch, char *const argv[], struct npg_error *err)
{
	char *path = NULL;
	int status = find_program(argv[0], &path);

	npg_launch_save_state();
	if (status == -ENOMEM)
		return npg_error_set(err, status, "out of memory");
	if (status == -EACCES)
		return npg_error_set(err, status,
				     "cannot run '%s': it is not an executable file, or not for "
				     "this user; try 'ls -l' on it",
				     argv[0]);
	if (status != 0)
		return npg_error_set(
		    err, status, "cannot find '%s': %s%s", argv[0], strerror(-status),
		    strchr(argv[0], '/') == NULL ? "; is it in a directory of PATH?" : "");
	*launch = (struct npg_launch){
		.path = path,
		.kind = kind_of(path),
		.pid = -1,
		.go_fd = -1,
		.status_fd = -1,
	};
	launch->why_no_preload = reason_of(launch->kind);
	return 0;
}
