/*
 * The real functions behind the hooks: what the program would have called without this object.
 *
 * Every pointer can be called at any time. Before resolution the pointers lead to functions that
 * resolve first; the map and shared-memory ones use raw system calls until then, because an
 * allocator may be starting up through them. While dlsym() itself runs, its allocations come from
 * a small static pool, whose blocks free() and realloc() know and which is never reused.
 */
#ifndef NPG_LIB_PRELOAD_REALS_H
#define NPG_LIB_PRELOAD_REALS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NPG_POOL_BYTES 16384

struct npg_reals {
	void *(*fn_malloc)(size_t);
	void *(*fn_calloc)(size_t, size_t);
	void *(*fn_realloc)(void *, size_t);
	void *(*fn_reallocarray)(void *, size_t, size_t);
	void *(*fn_aligned_alloc)(size_t, size_t);
	int (*fn_posix_memalign)(void **, size_t, size_t);
	void *(*fn_memalign)(size_t, size_t);
	void *(*fn_valloc)(size_t);
	void *(*fn_pvalloc)(size_t);
	void (*fn_free)(void *);
	size_t (*fn_malloc_usable_size)(void *);
	void *(*fn_mmap)(void *, size_t, int, int, int, off_t);
	void *(*fn_mmap64)(void *, size_t, int, int, int, off64_t);
	int (*fn_munmap)(void *, size_t);
	void *(*fn_mremap)(void *, size_t, size_t, int, ...);
	void *(*fn_shmat)(int, const void *, int);
	int (*fn_shmdt)(const void *);
	int (*fn_brk)(void *);
	void *(*fn_sbrk)(intptr_t);
	int (*fn_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
};

/* Read-only for all but reals.c. */
extern struct npg_reals npg_reals;

/**
 * npg_reals_resolve() - find all real functions; does nothing when that is done.
 *
 * Called by the object's constructor and by the first hooked call, whichever is first.
 *
 * Return: false while the calling thread is inside the resolution itself (a call made by dlsym).
 * errno is kept. MT-Safe. Not AS-Safe (dlsym).
 */
bool npg_reals_resolve(void);

extern char npg_pool[NPG_POOL_BYTES];

/* Is it a block of the static pool? MT-Safe. AS-Safe. */
static inline bool npg_pool_owns(const void *block)
{
	return (uintptr_t)block - (uintptr_t)npg_pool < NPG_POOL_BYTES;
}

/** npg_pool_usable_size() - size of a pool block, for malloc_usable_size(). MT-Safe. AS-Safe. */
size_t npg_pool_usable_size(const void *block);

/**
 * npg_pool_realloc() - realloc() of a pool block: a new block from the real malloc (or from the
 * pool, inside the resolution) with the old content.
 *
 * Return: as realloc(3). MT-Safe.
 */
void *npg_pool_realloc(void *block, size_t size);

#endif
