/*
 * numapgo's own address range: planned heap objects live here, each in slots of whole 2 MiB
 * regions, so that objects with different policies share neither pages nor page-table pages.
 *
 * The range is reserved at once and costs nothing until used. A freed slot serves objects of the
 * same pool again; up to 32 MiB in all are kept with their policies in free slots, the rest goes
 * back to the kernel. A block looks to the C library like one that it has mapped itself
 * (struct malloc_chunk with IS_MMAPPED), so a free() that does not come here, as from a library
 * loaded with RTLD_DEEPBIND, does the right thing too.
 *
 * No locks: free lists are stacks with a counter against reuse (ABA), so a fork at any moment
 * leaves them whole. All functions: MT-Safe, not AS-Safe (as malloc), errno may change.
 */
#ifndef NPG_REPLAYER_PRELOAD_ARENA_H
#define NPG_REPLAYER_PRELOAD_ARENA_H

#include "replayer/preload/state.h"

extern uintptr_t npg_arena_start; /* 0 and 0: there is none */
extern size_t npg_arena_bytes;

/* Is it an address of the range? Then npg_arena_size() says if it is a block. */
static inline bool npg_arena_owns(const void *block)
{
	return (uintptr_t)block - npg_arena_start < npg_arena_bytes;
}

/** npg_arena_init() - reserve the range that the table asks for, or less. MT-Unsafe. */
void npg_arena_init(void);

/**
 * npg_arena_alloc() - a block for a planned object, placed.
 * @align: a power of two.
 * @is_zero: the content must be zero.
 *
 * Return: the block, or NULL (counted) when the real function is due.
 */
void *npg_arena_alloc(const struct npg_wire_object *object, size_t size, size_t align,
		      bool is_zero);

/**
 * npg_arena_free() - give back a block.
 *
 * Return: false if it is not a block of the arena (a foreign mapping, a wrong pointer).
 */
bool npg_arena_free(void *block);

/** npg_arena_size() - usable bytes of a block; 0: it is none. */
size_t npg_arena_size(const void *block);

/**
 * npg_arena_resize() - as realloc(3) for a block of the arena and a size from 1.
 * @object: what the new block is planned as; NULL: as the old one.
 *
 * Grown beyond its slot, the pages move to a new slot without being copied where that is possible.
 *
 * Return: the block, or NULL: the old one is as it was, and the caller copies it elsewhere.
 */
void *npg_arena_resize(void *block, size_t size, const struct npg_wire_object *object);

#endif
