/*
 * The addresses of heap blocks that were reported, so that free() of another one costs one look.
 *
 * A fixed table of cache lines, found by the block's page: blocks of one page share a line, which
 * therefore is about as hot as the page's own heap headers. Lock-free; a fork at any instruction
 * leaves a usable copy.
 */
#ifndef NPG_PROFILER_PRELOAD_BLOCKS_H
#define NPG_PROFILER_PRELOAD_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define NPG_BLOCKS_PER_LINE 8
#define NPG_BLOCKS_LINES    65536

enum npg_blocks_result {
	NPG_BLOCKS_ADDED,
	NPG_BLOCKS_PRESENT, /* it was there already */
	NPG_BLOCKS_FULL,
};

extern uint64_t npg_blocks_table[NPG_BLOCKS_LINES][NPG_BLOCKS_PER_LINE];
extern uint32_t npg_blocks_any; /* 0 until the first block is added */

static inline uint64_t *npg_blocks_line(uintptr_t block)
{
	return npg_blocks_table[(block >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

/* Is @block in the table? NULL never is. MT-Safe. AS-Safe. */
static inline bool npg_blocks_has(const void *block)
{
	uint64_t *line, mark = (uintptr_t)block + 1; /* 0 is an empty place */
	bool has = false;

	if (__atomic_load_n(&npg_blocks_any, __ATOMIC_RELAXED) == 0)
		return false;
	line = npg_blocks_line((uintptr_t)block);
	for (int i = 0; i < NPG_BLOCKS_PER_LINE; i++)
		has |= __atomic_load_n(&line[i], __ATOMIC_RELAXED) == mark;
	return has;
}

/** npg_blocks_add() - note a block that the program does not have yet. MT-Safe. AS-Safe. */
enum npg_blocks_result npg_blocks_add(const void *block);

/** npg_blocks_remove() - forget a block. Return: true if it was there. MT-Safe. AS-Safe. */
bool npg_blocks_remove(const void *block);

#endif
