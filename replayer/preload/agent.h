/*
 * The placing object inside the program: life cycle, and what a hook asks before the real call.
 *
 * npg_replay_min_bytes is what a hook compares sizes with: 0 until the first try to become active,
 * then the table's min_bytes, or SIZE_MAX while it is inactive.
 */
#ifndef NPG_REPLAYER_PRELOAD_AGENT_H
#define NPG_REPLAYER_PRELOAD_AGENT_H

#include "replayer/preload/state.h"

extern size_t npg_replay_min_bytes;

/** npg_replay_start() - become active if that is due. MT-Safe. errno is kept. */
void npg_replay_start(void);

/** npg_replay_is_active() - MT-Safe. AS-Safe. */
bool npg_replay_is_active(void);

/**
 * npg_replay_alloc() - a heap block for the calling function's call site, if it is planned.
 *
 * Return: the block; NULL: the real function is due. errno is kept. MT-Safe.
 */
void *npg_replay_alloc(size_t size, size_t align, bool is_zero);

/** npg_replay_free() - free a block of the arena; false: it is none. errno is kept. MT-Safe. */
bool npg_replay_free(void *block);

/**
 * npg_replay_realloc() - realloc() of a block of the arena, with the real functions if need be.
 *
 * Return: as realloc(3). MT-Safe.
 */
void *npg_replay_realloc(void *block, size_t size);

/**
 * npg_replay_mapped() - after a successful mmap() or shmat(): place it if its call site is planned.
 * @is_fresh: private, anonymous and writable, so that page-table pages can be placed.
 * errno is kept. MT-Safe.
 */
void npg_replay_mapped(void *address, size_t size, bool is_fresh);

/** npg_replay_unmap() - before munmap() and relatives. errno is kept. MT-Safe. */
void npg_replay_unmap(const void *address, size_t size);

#endif
