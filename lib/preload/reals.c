/* Real functions by RTLD_NEXT, the functions that stand in until then, and dlsym's pool. */
#define NPG_RULES_INTERPOSER
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "lib/preload/reals.h"
#include "lib/preload/rules.h"

#define POOL_ALIGN 16

_Alignas(64) char npg_pool[NPG_POOL_BYTES];
static size_t pool_used;

/* A block is preceded by its size, in one unit of alignment. Blocks are never given back. */
static void *pool_take(size_t align, size_t size)
{
	size_t start, pad = align > POOL_ALIGN ? align : 0;
	char *block;

	if (size <= NPG_POOL_BYTES && pad <= NPG_POOL_BYTES) {
		size_t need =
		    POOL_ALIGN + pad + ((size + POOL_ALIGN - 1) & ~(size_t)(POOL_ALIGN - 1));

		start = __atomic_fetch_add(&pool_used, need, __ATOMIC_RELAXED);
		if (start <= NPG_POOL_BYTES && need <= NPG_POOL_BYTES - start) {
			block = npg_pool + start + POOL_ALIGN;
			if (pad != 0)
				block += (pad - (uintptr_t)block % pad) % pad;
			memcpy(block - POOL_ALIGN, &size, sizeof(size));
			return block;
		}
		__atomic_fetch_sub(&pool_used, need, __ATOMIC_RELAXED);
	}
	errno = ENOMEM;
	return NULL;
}

size_t npg_pool_usable_size(const void *block)
{
	size_t size;

	memcpy(&size, (const char *)block - POOL_ALIGN, sizeof(size));
	return size;
}

void *npg_pool_realloc(void *block, size_t size)
{
	size_t old = npg_pool_usable_size(block);
	void *new_block = npg_reals.fn_malloc(size);

	if (new_block != NULL)
		memcpy(new_block, block, old < size ? old : size);
	return new_block;
}

/*
 * The functions called before resolution: resolve, then call the real one. Where that is not
 * possible, because dlsym() itself is the caller or the C library lacks the function, the heap
 * ones use the pool.
 */
static void *early_malloc(size_t size)
{
	if (npg_reals_resolve() && npg_reals.fn_malloc != early_malloc)
		return npg_reals.fn_malloc(size);
	return pool_take(POOL_ALIGN, size);
}

static void *early_calloc(size_t nr, size_t size)
{
	size_t total;

	if (npg_reals_resolve() && npg_reals.fn_calloc != early_calloc)
		return npg_reals.fn_calloc(nr, size);
	if (__builtin_mul_overflow(nr, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return pool_take(POOL_ALIGN, total); /* zero: the pool is never reused */
}

static void *early_realloc(void *block, size_t size)
{
	if (npg_reals_resolve() && npg_reals.fn_realloc != early_realloc)
		return npg_reals.fn_realloc(block, size);
	return block == NULL ? pool_take(POOL_ALIGN, size) : NULL;
}

static void *early_reallocarray(void *block, size_t nr, size_t size)
{
	size_t total;

	if (npg_reals_resolve() && npg_reals.fn_reallocarray != early_reallocarray)
		return npg_reals.fn_reallocarray(block, nr, size);
	if (__builtin_mul_overflow(nr, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return npg_reals.fn_realloc(block, total);
}

static void *early_aligned_alloc(size_t align, size_t size)
{
	if (npg_reals_resolve() && npg_reals.fn_aligned_alloc != early_aligned_alloc)
		return npg_reals.fn_aligned_alloc(align, size);
	return pool_take(align, size);
}

static int early_posix_memalign(void **block, size_t align, size_t size)
{
	void *taken;

	if (npg_reals_resolve() && npg_reals.fn_posix_memalign != early_posix_memalign)
		return npg_reals.fn_posix_memalign(block, align, size);
	taken = pool_take(align, size);
	if (taken == NULL)
		return ENOMEM;
	*block = taken;
	return 0;
}

static void *early_memalign(size_t align, size_t size)
{
	if (npg_reals_resolve() && npg_reals.fn_memalign != early_memalign)
		return npg_reals.fn_memalign(align, size);
	return pool_take(align, size);
}

static void *early_valloc(size_t size)
{
	if (npg_reals_resolve() && npg_reals.fn_valloc != early_valloc)
		return npg_reals.fn_valloc(size);
	return pool_take(4096, size);
}

static void *early_pvalloc(size_t size)
{
	if (npg_reals_resolve() && npg_reals.fn_pvalloc != early_pvalloc)
		return npg_reals.fn_pvalloc(size);
	return pool_take(4096, size);
}

static void early_free(void *block)
{
	if (npg_reals_resolve() && npg_reals.fn_free != early_free)
		npg_reals.fn_free(block);
}

static size_t early_usable_size(void *block)
{
	if (npg_reals_resolve() && npg_reals.fn_malloc_usable_size != early_usable_size)
		return npg_reals.fn_malloc_usable_size(block);
	return 0;
}

/* An allocator may be starting up through these, so they look nothing up. */
static void *early_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static int early_munmap(void *address, size_t size)
{
	return (int)syscall(SYS_munmap, address, size);
}

static void *early_mremap(void *address, size_t old_size, size_t new_size, int flags, ...)
{
	void *new_address = NULL;
	va_list args;

	va_start(args, flags);
	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
		new_address = va_arg(args, void *);
	va_end(args);
	return (void *)syscall(SYS_mremap, address, old_size, new_size, flags, new_address);
}

static void *early_shmat(int id, const void *address, int flags)
{
	return (void *)syscall(SYS_shmat, id, address, flags);
}

static int early_shmdt(const void *address)
{
	return (int)syscall(SYS_shmdt, address);
}

/* The C library keeps the current break, so there is no way around it. */
static int early_brk(void *address)
{
	if (npg_reals_resolve() && npg_reals.fn_brk != early_brk)
		return npg_reals.fn_brk(address);
	errno = ENOMEM;
	return -1;
}

static void *early_sbrk(intptr_t increment)
{
	if (npg_reals_resolve() && npg_reals.fn_sbrk != early_sbrk)
		return npg_reals.fn_sbrk(increment);
	errno = ENOMEM;
	return (void *)-1;
}

static int early_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
				void *(*start)(void *), void *arg)
{
	if (npg_reals_resolve() && npg_reals.fn_pthread_create != early_pthread_create)
		return npg_reals.fn_pthread_create(thread, attr, start, arg);
	return EAGAIN;
}

struct npg_reals npg_reals = {
	.fn_malloc = early_malloc,
	.fn_calloc = early_calloc,
	.fn_realloc = early_realloc,
	.fn_reallocarray = early_reallocarray,
	.fn_aligned_alloc = early_aligned_alloc,
	.fn_posix_memalign = early_posix_memalign,
	.fn_memalign = early_memalign,
	.fn_valloc = early_valloc,
	.fn_pvalloc = early_pvalloc,
	.fn_free = early_free,
	.fn_malloc_usable_size = early_usable_size,
	.fn_mmap = early_mmap,
	.fn_mmap64 = early_mmap,
	.fn_munmap = early_munmap,
	.fn_mremap = early_mremap,
	.fn_shmat = early_shmat,
	.fn_shmdt = early_shmdt,
	.fn_brk = early_brk,
	.fn_sbrk = early_sbrk,
	.fn_pthread_create = early_pthread_create,
};

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
#define SYMBOL(name)                                                                               \
	{                                                                                          \
#name, offsetof(struct npg_reals, fn_##name)                                       \
	}
	SYMBOL(malloc),
	SYMBOL(calloc),
	SYMBOL(realloc),
	SYMBOL(reallocarray),
	SYMBOL(aligned_alloc),
	SYMBOL(posix_memalign),
	SYMBOL(memalign),
	SYMBOL(valloc),
	SYMBOL(pvalloc),
	SYMBOL(free),
	SYMBOL(malloc_usable_size),
	SYMBOL(mmap),
	SYMBOL(mmap64),
	SYMBOL(munmap),
	SYMBOL(mremap),
	SYMBOL(shmat),
	SYMBOL(shmdt),
	SYMBOL(brk),
	SYMBOL(sbrk),
	SYMBOL(pthread_create),
#undef SYMBOL
};

bool npg_reals_resolve(void)
{
	static bool is_resolved;
	int saved_errno = errno;

	if (__atomic_load_n(&is_resolved, __ATOMIC_ACQUIRE))
		return true;
	if (npg_thread.is_resolving)
		return false;
	/* Several threads may do this at once: each finds the same and stores whole pointers. */
	npg_thread.is_resolving = 1;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(symbols); i++) {
		void *found = dlsym(RTLD_NEXT, symbols[i].name);

		if (found != NULL)
			memcpy((char *)&npg_reals + symbols[i].offset, &found, sizeof(found));
	}
	npg_thread.is_resolving = 0;
	__atomic_store_n(&is_resolved, true, __ATOMIC_RELEASE);
	errno = saved_errno;
	return true;
}
