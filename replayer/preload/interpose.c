/*
 * The exported names of the placing object, and nothing that thinks. Requests below the smallest
 * planned size go to the real function after one comparison.
 */
#define NPG_RULES_INTERPOSER
#include <malloc.h>
#include <stdarg.h>

#include "lib/preload/reals.h"
#include "lib/preload/threads.h"
#include "replayer/preload/agent.h"
#include "replayer/preload/arena.h"

#define DEFAULT_ALIGN 16

static inline bool is_small(size_t size)
{
	return NPG_LIKELY(size < __atomic_load_n(&npg_replay_min_bytes, __ATOMIC_RELAXED));
}

static inline bool is_power_of_two(size_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

NPG_EXPORT void *malloc(size_t size)
{
	void *block = is_small(size) ? NULL : npg_replay_alloc(size, DEFAULT_ALIGN, false);

	return block != NULL ? block : npg_reals.fn_malloc(size);
}

NPG_EXPORT void *calloc(size_t nr, size_t size)
{
	void *block = NULL;
	size_t total;

	if (!__builtin_mul_overflow(nr, size, &total) && !is_small(total))
		block = npg_replay_alloc(total, DEFAULT_ALIGN, true);
	return block != NULL ? block : npg_reals.fn_calloc(nr, size);
}

/* A block of the real allocator that grows to a planned size at a planned site. */
static void *move_in(void *old, size_t size)
{
	void *block = npg_replay_alloc(size, DEFAULT_ALIGN, false);
	size_t old_size;

	if (block == NULL)
		return npg_reals.fn_realloc(old, size);
	if (old != NULL) {
		old_size = npg_reals.fn_malloc_usable_size(old);
		memcpy(block, old, old_size < size ? old_size : size);
		npg_reals.fn_free(old);
	}
	return block;
}

NPG_EXPORT void *realloc(void *old, size_t size)
{
	if (NPG_UNLIKELY(npg_pool_owns(old)))
		return npg_pool_realloc(old, size);
	if (NPG_UNLIKELY(npg_arena_owns(old)))
		return npg_replay_realloc(old, size);
	return is_small(size) ? npg_reals.fn_realloc(old, size) : move_in(old, size);
}

NPG_EXPORT void *reallocarray(void *old, size_t nr, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(nr, size, &total))
		return npg_reals.fn_reallocarray(old, nr, size);
	if (NPG_UNLIKELY(npg_pool_owns(old)))
		return npg_pool_realloc(old, total);
	if (NPG_UNLIKELY(npg_arena_owns(old)))
		return npg_replay_realloc(old, total);
	return npg_reals.fn_reallocarray(old, nr, size); /* the C library's calls realloc() */
}

NPG_EXPORT void *aligned_alloc(size_t align, size_t size)
{
	void *block = NULL;

	if (!is_small(size) && is_power_of_two(align))
		block = npg_replay_alloc(size, align, false);
	return block != NULL ? block : npg_reals.fn_aligned_alloc(align, size);
}

NPG_EXPORT int posix_memalign(void **result, size_t align, size_t size)
{
	void *block = NULL;

	if (!is_small(size) && is_power_of_two(align) && align % sizeof(void *) == 0)
		block = npg_replay_alloc(size, align, false);
	if (block == NULL)
		return npg_reals.fn_posix_memalign(result, align, size);
	*result = block;
	return 0;
}

NPG_EXPORT void *memalign(size_t align, size_t size)
{
	void *block = NULL;

	if (!is_small(size) && is_power_of_two(align))
		block = npg_replay_alloc(size, align, false);
	return block != NULL ? block : npg_reals.fn_memalign(align, size);
}

NPG_EXPORT void *valloc(size_t size)
{
	void *block = NULL;

	if (!is_small(size))
		block = npg_replay_alloc(size, (size_t)sysconf(_SC_PAGESIZE), false);
	return block != NULL ? block : npg_reals.fn_valloc(size);
}

NPG_EXPORT void *pvalloc(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *block = NULL;

	if (!is_small(size) && size <= SIZE_MAX - page)
		block = npg_replay_alloc((size + page - 1) & ~(page - 1), page, false);
	return block != NULL ? block : npg_reals.fn_pvalloc(size);
}

NPG_EXPORT void free(void *block)
{
	if (NPG_UNLIKELY(npg_arena_owns(block)) && npg_replay_free(block))
		return;
	if (NPG_UNLIKELY(npg_pool_owns(block)))
		return;
	npg_reals.fn_free(block);
}

NPG_EXPORT size_t malloc_usable_size(void *block)
{
	size_t size = 0;

	if (NPG_UNLIKELY(npg_pool_owns(block)))
		return npg_pool_usable_size(block);
	if (NPG_UNLIKELY(npg_arena_owns(block)))
		size = npg_arena_size(block);
	return size != 0 ? size : npg_reals.fn_malloc_usable_size(block);
}

/* Can its page-table pages be placed: by touching it, with nobody else seeing that? */
static bool is_fresh(int protection, int flags)
{
	const int kinds = MAP_TYPE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_GROWSDOWN | MAP_POPULATE;

	return (flags & kinds) == (MAP_PRIVATE | MAP_ANONYMOUS) && (protection & PROT_WRITE);
}

NPG_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *mapped;

	if (is_small(size))
		return npg_reals.fn_mmap(address, size, protection, flags, fd, offset);
	npg_replay_start();
	if (flags & MAP_FIXED)
		npg_replay_unmap(address, size);
	mapped = npg_reals.fn_mmap(address, size, protection, flags, fd, offset);
	if (mapped != MAP_FAILED)
		npg_replay_mapped(mapped, size, is_fresh(protection, flags));
	return mapped;
}

NPG_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd,
			off64_t offset)
{
	void *mapped;

	if (is_small(size))
		return npg_reals.fn_mmap64(address, size, protection, flags, fd, offset);
	npg_replay_start();
	if (flags & MAP_FIXED)
		npg_replay_unmap(address, size);
	mapped = npg_reals.fn_mmap64(address, size, protection, flags, fd, offset);
	if (mapped != MAP_FAILED)
		npg_replay_mapped(mapped, size, is_fresh(protection, flags));
	return mapped;
}

NPG_EXPORT int munmap(void *address, size_t size)
{
	npg_replay_unmap(address, size);
	return npg_reals.fn_munmap(address, size);
}

NPG_EXPORT void *mremap(void *address, size_t old_size, size_t new_size, int flags, ...)
{
	void *new_address = NULL;
	va_list args;

	va_start(args, flags);
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
		new_address = va_arg(args, void *);
	va_end(args);
	npg_replay_unmap(address, old_size);
	return npg_reals.fn_mremap(address, old_size, new_size, flags, new_address);
}

/* Size of a shared memory segment, 0 if it is not to be known. errno is kept. */
static size_t segment_size(int id)
{
	int saved_errno = errno;
	struct shmid_ds segment;
	size_t size = shmctl(id, IPC_STAT, &segment) == 0 ? segment.shm_segsz : 0;

	errno = saved_errno;
	return size;
}

NPG_EXPORT void *shmat(int id, const void *address, int flags)
{
	void *mapped = npg_reals.fn_shmat(id, address, flags);

	if (mapped != (void *)-1 && npg_replay_is_active())
		npg_replay_mapped(mapped, segment_size(id), false);
	return mapped;
}

NPG_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			      void *arg)
{
	npg_replay_start();
	if (!npg_replay_is_active())
		return npg_reals.fn_pthread_create(thread, attr, start, arg);
	return npg_threads_create(thread, attr, start, arg);
}
