/*
 * Threads and processes of the user's program: who is who.
 *
 * A thread's identity is its creation path: the main thread is "0", its children are "0.0", "0.1"
 * and so on in the order of successful pthread_create() calls, their children "0.1.0". It is the
 * same in each run of a program that creates its threads in the same order. Threads that were not
 * created by pthread_create() have no path. In a forked child the surviving thread is "0" again.
 *
 * Ends of threads are seen after the start routine returned, and by a cancellation clean-up
 * handler for pthread_exit() and pthread_cancel(); no key destructor is used and pthread_exit()
 * is not wrapped, so the program's own order of clean-up stays.
 */
#ifndef NPG_LIB_PRELOAD_THREADS_H
#define NPG_LIB_PRELOAD_THREADS_H

#include <pthread.h>
#include <stdint.h>

#include "lib/preload/rules.h"

/* A new thread, as its creator sees it before, and the thread itself at its start. */
struct npg_thread_birth {
	void *(*start)(void *); /* the program's start routine */
	void *arg;
	uint32_t creator_tid;
	uint32_t ordinal; /* among the creator's children, from 0 */
	uint64_t path_hash;
	char path[NPG_THREAD_PATH_SIZE];
};

/* What each preload object supplies; called inside own work (npg_enter() was called). */
void npg_on_thread_create(const struct npg_thread_birth *birth); /* in the creator, after success */
void npg_on_thread_start(const struct npg_thread_birth *birth);  /* in the thread, before start */
void npg_on_thread_exit(void);                                   /* in the thread, at most once */
void npg_on_fork(void); /* first own work in a forked child; npg_thread is up to date */

/**
 * npg_thread_self() - the calling thread, identified.
 *
 * Finds tid and pid by system calls when the thread is new or the process was forked (also by raw
 * clone(2)), else reads memory only. In a vfork child it is the parent's thread: memory is shared.
 *
 * MT-Safe. AS-Safe. errno is kept.
 */
struct npg_thread *npg_thread_self(void);

/**
 * npg_threads_init() - notice forks from now on; once, at start. Without it npg_thread_self()
 * works, but a forked child is noticed late. MT-Unsafe.
 */
void npg_threads_init(void);

/**
 * npg_threads_create() - body of the pthread_create() hook: the real call with a trampoline.
 *
 * No heap: births travel through a fixed table of 1024; when as many threads are created and not
 * yet running, or inside own work, the real function is called with the program's arguments and
 * the thread has no path.
 *
 * Return: as pthread_create(3). MT-Safe. Not AS-Safe.
 */
int npg_threads_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
		       void *arg);

#endif
