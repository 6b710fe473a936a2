/*
 * Run a command with some system calls refused, as a container's seccomp profile would.
 * usage: deny CALL[,CALL...] COMMAND [ARGS...]; ends with 77 if filters are not allowed here
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
	unsigned error;
} calls[] = {
	{ "perf_event_open", SYS_perf_event_open, EACCES }, /* as perf_event_paranoid 3 does */
	{ "mbind", SYS_mbind, EPERM },
	{ "set_mempolicy", SYS_set_mempolicy, EPERM },
	{ "get_mempolicy", SYS_get_mempolicy, EPERM },
	{ "move_pages", SYS_move_pages, EPERM },
	{ "sched_setaffinity", SYS_sched_setaffinity, EPERM },
	{ "ptrace", SYS_ptrace, EPERM },
	{ "process_vm_readv", SYS_process_vm_readv, EPERM },
	{ "memfd_create", SYS_memfd_create, EPERM },
};

enum { NR_CALLS = sizeof(calls) / sizeof(calls[0]) };

static int is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *p = list; p != NULL; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, name, length) == 0 && (p[length] == ',' || p[length] == '\0'))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sock_filter filter[2 * NR_CALLS + 2] = { BPF_STMT(
	    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { 1, filter };

	if (argc < 3)
		return 2;
	for (int i = 0; i < NR_CALLS; i++) {
		if (!is_listed(argv[1], calls[i].name))
			continue;
		filter[program.len++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
		filter[program.len++] = (struct sock_filter)BPF_STMT(
		    BPF_RET | BPF_K, SECCOMP_RET_ERRNO | calls[i].error);
	}
	filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		perror("seccomp");
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
