/*
 * Starting the user's program under numapgo, for record and replay.
 *
 * The program is prepared stopped: fork, then the child waits on a pipe until
 * npg_launch_go(), then execs. Between fork and exec the child makes system calls only.
 */
#ifndef NPG_LIB_LAUNCH_H
#define NPG_LIB_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/error.h"

/* What kind of program it is, found before it runs. */
enum npg_launch_kind {
	NPG_LAUNCH_DYNAMIC,    /* ELF of this machine with an interpreter: can be preloaded */
	NPG_LAUNCH_SCRIPT,     /* "#!": its interpreter is what gets preloaded */
	NPG_LAUNCH_NO_SHEBANG, /* text without "#!": execvp runs it with /bin/sh */
	NPG_LAUNCH_STATIC,     /* ELF without interpreter: cannot be preloaded */
	NPG_LAUNCH_PRIVILEGED, /* setuid, setgid or file capabilities: the loader ignores preloads
				*/
	NPG_LAUNCH_FOREIGN,    /* ELF of another machine or class */
	NPG_LAUNCH_SANITIZED, /* built with AddressSanitizer or the like: must load its own first */
};

struct npg_launch {
	char *path; /* the file that will be run, resolved by PATH */
	enum npg_launch_kind kind;
	const char *why_no_preload; /* a phrase, or NULL if it can be preloaded */
	bool preloads_children;     /* set by the caller: what the program execs is preloaded too */
	pid_t pid;
	int go_fd;     /* npg_launch_go() writes here */
	int status_fd; /* the child's exec error arrives here */
};

/**
 * npg_launch_check() - find the program and look at it, without running it.
 * @argv: NULL-terminated; argv[0] is looked up as execvp(3) does.
 *
 * Return: 0; -ENOENT (not found: exit status 127), -EACCES or -ENOEXEC (cannot be run: 126), with
 * @err set.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_launch_check(struct npg_launch *launch, char *const argv[],
				    struct npg_error *err);

/**
 * npg_launch_prepare() - fork; the child waits.
 * @preload: absolute path put in front of LD_PRELOAD, or NULL. A user's own LD_PRELOAD stays.
 * @variable: "NAME=VALUE" added to the environment, or NULL.
 *
 * Signal dispositions, mask, descriptors and limits of the child are the caller's own at the time
 * of npg_launch_check(): nothing is left blocked, ignored or open in it.
 *
 * With .preloads_children, ASAN_OPTIONS is extended by verify_asan_link_order=0: a child built with
 * AddressSanitizer refuses to start if another library is loaded before its runtime.
 *
 * A sanitized or foreign program gets neither @preload nor @variable: it could not start with them.
 *
 * Return: 0; -EAGAIN, -ENOMEM, -EMFILE; @err set.
 * MT-Unsafe (fork). Not AS-Safe.
 */
NPG_MUST_CHECK int npg_launch_prepare(struct npg_launch *launch, char *const argv[],
				      const char *preload, const char *variable,
				      struct npg_error *err);

/**
 * npg_launch_go() - let the child exec, and wait until it has.
 *
 * Return: 0 (the program runs); the negative errno of execve with @err set (exit status 126/127).
 */
NPG_MUST_CHECK int npg_launch_go(struct npg_launch *launch, struct npg_error *err);

/**
 * npg_launch_forward_signals() - from now until the program ends, numapgo does not end before it:
 * SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that a process sent are handed on; those
 * of the terminal are not, since the program has them too. SIGTSTP and SIGCONT work as in a shell
 * job. A signal that was ignored at npg_launch_check() stays ignored.
 *
 * Handlers restart system calls, but not poll(2) and sleeps. MT-Unsafe.
 */
void npg_launch_forward_signals(const struct npg_launch *launch);

/**
 * npg_launch_exit_like() - end as the program ended: the same exit status; its fatal signal is
 * raised again with the default disposition (without a second core file).
 * @wait_status: as given by waitpid(2).
 *
 * Return: the exit status to end with, if the signal did not end us.
 */
int npg_launch_exit_like(int wait_status);

/** npg_launch_release() - free what belongs to it; the child is not waited for. */
void npg_launch_release(struct npg_launch *launch);

/**
 * npg_launch_find_object() - absolute path of a preload object, beside the running numapgo or in
 * ../lib/numapgo.
 * @name: "libnumapgo-record.so"
 * @path: @size bytes.
 *
 * Return: 0; -ENOENT, -ENAMETOOLONG; @err set.
 */
NPG_MUST_CHECK int npg_launch_find_object(const char *name, char *path, size_t size,
					  struct npg_error *err);

#endif
