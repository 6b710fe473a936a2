/*
 * Rules for code that runs inside the user's program (this directory, profiler/preload and
 * replayer/preload), and what every hook needs first.
 *
 * 1. Libc, schemas/wire.h and lib/preload only. No SQLite, no stdio, no message to anybody: what
 *    goes wrong is counted in shared memory, then the real function is called.
 * 2. No lock, no wait, no heap in a hook. State is written by single atomic operations, so a fork
 *    or a signal at any instruction leaves it usable. Memory is static or mapped once at start.
 * 3. Real functions come from lib/preload/reals.h (RTLD_NEXT): whatever would have been called
 *    without us is called, with the same arguments, and its result and errno go back untouched.
 *    Blocks keep size, alignment and content; nothing is put in front of or behind them.
 * 4. Own work runs between npg_enter() and npg_leave(): what it calls is not recorded, errno is
 *    kept. Signal handlers, dispositions, masks, timers and descriptors are the program's.
 * 5. A hook may run before any constructor, in a signal handler, in a vfork child, on a stack of
 *    64 KiB, and while the process ends. There is no shutdown: a process is over when it is gone.
 * 6. Less than 2 KiB of stack in a hook, 64 bytes of initial-exec TLS in an object.
 * 7. Exports are the names in the object's .map, with the default version.
 *
 * Files that define an interposed function say so by NPG_RULES_INTERPOSER before including this.
 */
#ifndef NPG_LIB_PRELOAD_RULES_H
#define NPG_LIB_PRELOAD_RULES_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "lib/compiler.h"

#undef printf
#undef fprintf
#undef dprintf
#ifndef NPG_LIB_BANNED_H /* which a unit test of these modules has included */
#undef sprintf
#endif
#undef snprintf
#undef asprintf
#pragma GCC poison printf fprintf vfprintf dprintf sprintf snprintf vsnprintf puts fputs fopen     \
    fclose
#pragma GCC poison fwrite fread fgets getline perror strerror getenv setenv unsetenv
#pragma GCC poison putenv exit _exit abort system popen strdup strndup asprintf strcpy strcat strtok
#ifndef NPG_RULES_INTERPOSER
#pragma GCC poison malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign
#pragma GCC poison mmap mmap64 munmap mremap shmat shmdt brk sbrk pthread_create
#endif

#define NPG_THREAD_PATH_SIZE 24

/* What is known of the calling thread. The whole thread-local storage of a preload object. */
struct npg_thread {
	uint32_t pid; /* process in which .tid was found; another or 0: not identified yet */
	uint32_t tid;
	uint16_t nr_guards;    /* > 0: inside own work, hooks pass everything through */
	uint16_t is_resolving; /* inside npg_reals_resolve(): dlsym's calls are served by a pool */
	uint32_t nr_children;  /* threads that it created, as pthread_create() counts them */
	uint64_t path_hash;    /* npg_hash_bytes() of .path as if it had no limit; 0: unknown */
	char path[NPG_THREAD_PATH_SIZE]; /* creation path "0.1.0"; empty: unknown or longer */
	uint32_t countdown;              /* the recording object's: until the next small sample */
	uint32_t random;
};

_Static_assert(sizeof(struct npg_thread) <= 64, "thread-local storage of a preload object");

extern _Thread_local struct npg_thread npg_thread;

/* Is the caller already inside own work of this thread? Then only the real call is due. */
static inline bool npg_is_inside(void)
{
	return npg_thread.nr_guards != 0;
}

/* Begin own work. Return: errno, for npg_leave(). AS-Safe. */
static inline int npg_enter(void)
{
	npg_thread.nr_guards++;
	return errno;
}

static inline void npg_leave(int saved_errno)
{
	npg_thread.nr_guards--;
	errno = saved_errno;
}

#endif
