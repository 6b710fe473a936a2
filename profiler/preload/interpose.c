/*
 * The exported names of the recording object, and nothing that thinks. Each hook calls the real
 * function with the program's own arguments and gives back its result and errno. A free is told
 * before it happens and an allocation after, so that another thread that gets the same address at
 * once is never told first.
 */
#define NPG_RULES_INTERPOSER
#include <malloc.h>
#include <stdarg.h>

#include "lib/preload/reals.h"
#include "lib/preload/threads.h"
#include "profiler/preload/agent.h"
#include "profiler/preload/blocks.h"

/* Is it a small request, which nobody reports one by one? */
static inline bool is_small(size_t size)
{
	if (NPG_UNLIKELY(size >= __atomic_load_n(&npg_agent_threshold_bytes, __ATOMIC_RELAXED)))
		return false;
	if (NPG_UNLIKELY(npg_thread.countdown-- == 0))
		npg_agent_sample_small(size);
	return true;
}

/* After the real call: tell the block, if it is one worth telling. */
static void *tell(void *block, size_t size)
{
	npg_agent_alloc(block, size);
	return block;
}

NPG_EXPORT void *malloc(size_t size)
{
	if (NPG_LIKELY(is_small(size)))
		return npg_reals.fn_malloc(size);
	npg_agent_start();
	return tell(npg_reals.fn_malloc(size), size);
}

NPG_EXPORT void *calloc(size_t nr, size_t size)
{
	size_t total;

	if (NPG_UNLIKELY(__builtin_mul_overflow(nr, size, &total)) || NPG_LIKELY(is_small(total)))
		return npg_reals.fn_calloc(nr, size);
	npg_agent_start();
	return tell(npg_reals.fn_calloc(nr, size), total);
}

/* After the real call for a block that had been told as freed: it may have failed. */
static void *tell_moved(void *old, bool was_told, void *block, size_t size)
{
	if (block != NULL)
		return tell(block, size);
	if (was_told && size != 0)
		npg_agent_alloc(old, npg_reals.fn_malloc_usable_size(old));
	return NULL;
}

NPG_EXPORT void *realloc(void *old, size_t size)
{
	bool was_told;

	if (NPG_UNLIKELY(npg_pool_owns(old)))
		return npg_pool_realloc(old, size);
	if (NPG_LIKELY(!npg_blocks_has(old)) && NPG_LIKELY(is_small(size)))
		return npg_reals.fn_realloc(old, size);
	npg_agent_start();
	was_told = npg_agent_free(old);
	return tell_moved(old, was_told, npg_reals.fn_realloc(old, size), size);
}

NPG_EXPORT void *reallocarray(void *old, size_t nr, size_t size)
{
	size_t total;
	bool was_told;

	if (NPG_UNLIKELY(__builtin_mul_overflow(nr, size, &total)))
		return npg_reals.fn_reallocarray(old, nr, size);
	if (NPG_UNLIKELY(npg_pool_owns(old)))
		return npg_pool_realloc(old, total);
	/* The C library's calls realloc(), where the new block is told first; another may not. */
	npg_agent_start();
	was_told = npg_agent_free(old);
	return tell_moved(old, was_told, npg_reals.fn_reallocarray(old, nr, size), total);
}

NPG_EXPORT void *aligned_alloc(size_t align, size_t size)
{
	if (NPG_LIKELY(is_small(size)))
		return npg_reals.fn_aligned_alloc(align, size);
	npg_agent_start();
	return tell(npg_reals.fn_aligned_alloc(align, size), size);
}

NPG_EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
	int status;

	if (NPG_LIKELY(is_small(size)))
		return npg_reals.fn_posix_memalign(block, align, size);
	npg_agent_start();
	status = npg_reals.fn_posix_memalign(block, align, size);
	if (status == 0)
		tell(*block, size);
	return status;
}

NPG_EXPORT void *memalign(size_t align, size_t size)
{
	if (NPG_LIKELY(is_small(size)))
		return npg_reals.fn_memalign(align, size);
	npg_agent_start();
	return tell(npg_reals.fn_memalign(align, size), size);
}

NPG_EXPORT void *valloc(size_t size)
{
	if (NPG_LIKELY(is_small(size)))
		return npg_reals.fn_valloc(size);
	npg_agent_start();
	return tell(npg_reals.fn_valloc(size), size);
}

NPG_EXPORT void *pvalloc(size_t size)
{
	if (NPG_LIKELY(is_small(size)))
		return npg_reals.fn_pvalloc(size);
	npg_agent_start();
	return tell(npg_reals.fn_pvalloc(size), size);
}

NPG_EXPORT void free(void *block)
{
	if (NPG_UNLIKELY(npg_blocks_has(block)))
		npg_agent_free(block);
	else if (NPG_UNLIKELY(npg_pool_owns(block)))
		return;
	npg_reals.fn_free(block);
}

static void tell_mmap(const void *address, size_t size, int protection, int flags)
{
	npg_agent_send(&(struct npg_agent_event){
	    .type = NPG_WIRE_MMAP,
	    .has_stack = true,
	    .address = (uintptr_t)address,
	    .size_bytes = size,
	    .value = (uint32_t)protection | (uint64_t)(uint32_t)flags << 32,
	});
}

NPG_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *mapped;

	npg_agent_start();
	mapped = npg_reals.fn_mmap(address, size, protection, flags, fd, offset);
	if (mapped != MAP_FAILED)
		tell_mmap(mapped, size, protection, flags);
	return mapped;
}

NPG_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd,
			off64_t offset)
{
	void *mapped;

	npg_agent_start();
	mapped = npg_reals.fn_mmap64(address, size, protection, flags, fd, offset);
	if (mapped != MAP_FAILED)
		tell_mmap(mapped, size, protection, flags);
	return mapped;
}

NPG_EXPORT int munmap(void *address, size_t size)
{
	if ((uintptr_t)address % 4096 == 0 && size != 0) /* else it fails */
		npg_agent_send(&(struct npg_agent_event){
		    .type = NPG_WIRE_MUNMAP,
		    .address = (uintptr_t)address,
		    .size_bytes = size,
		});
	return npg_reals.fn_munmap(address, size);
}

NPG_EXPORT void *mremap(void *address, size_t old_size, size_t new_size, int flags, ...)
{
	void *new_address = NULL, *mapped;
	va_list args;

	va_start(args, flags);
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
		new_address = va_arg(args, void *);
	va_end(args);
	mapped = npg_reals.fn_mremap(address, old_size, new_size, flags, new_address);
	if (mapped != MAP_FAILED)
		npg_agent_send(&(struct npg_agent_event){
		    .type = NPG_WIRE_MREMAP,
		    .has_stack = true,
		    .address = (uintptr_t)address,
		    .size_bytes = old_size,
		    .value = (uintptr_t)mapped,
		    .value2 = new_size,
		});
	return mapped;
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

	if (mapped != (void *)-1 && npg_agent_is_active())
		npg_agent_send(&(struct npg_agent_event){
		    .type = NPG_WIRE_SHMAT,
		    .has_stack = true,
		    .address = (uintptr_t)mapped,
		    .size_bytes = segment_size(id),
		    .value = (uint32_t)id,
		});
	return mapped;
}

NPG_EXPORT int shmdt(const void *address)
{
	npg_agent_send(&(struct npg_agent_event){
	    .type = NPG_WIRE_SHMDT,
	    .address = (uintptr_t)address,
	});
	return npg_reals.fn_shmdt(address);
}

static void tell_break(const void *address)
{
	npg_agent_send(&(struct npg_agent_event){
	    .type = NPG_WIRE_BRK,
	    .has_stack = true,
	    .address = (uintptr_t)address,
	});
}

NPG_EXPORT int brk(void *address)
{
	int status = npg_reals.fn_brk(address);

	if (status == 0)
		tell_break(address);
	return status;
}

NPG_EXPORT void *sbrk(intptr_t increment)
{
	void *before = npg_reals.fn_sbrk(increment);

	if (before != (void *)-1 && increment != 0)
		tell_break((char *)before + increment);
	return before;
}

NPG_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			      void *arg)
{
	npg_agent_start();
	if (!npg_agent_is_active())
		return npg_reals.fn_pthread_create(thread, attr, start, arg);
	return npg_threads_create(thread, attr, start, arg);
}
