/* Reported heap blocks: compare-and-swap on one word per change. */
#include "profiler/preload/blocks.h"
#include "lib/preload/rules.h"

_Static_assert(NPG_BLOCKS_LINES == 1 << 16, "npg_blocks_line() takes 16 bits of the hash");

_Alignas(64) uint64_t npg_blocks_table[NPG_BLOCKS_LINES][NPG_BLOCKS_PER_LINE];
uint32_t npg_blocks_any;

enum npg_blocks_result npg_blocks_add(const void *block)
{
	uint64_t *line = npg_blocks_line((uintptr_t)block), mark = (uintptr_t)block + 1;

	if (npg_blocks_has(block))
		return NPG_BLOCKS_PRESENT;
	if (__atomic_load_n(&npg_blocks_any, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&npg_blocks_any, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < NPG_BLOCKS_PER_LINE; i++) {
		uint64_t empty = 0;

		if (__atomic_compare_exchange_n(&line[i], &empty, mark, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return NPG_BLOCKS_ADDED;
	}
	return NPG_BLOCKS_FULL;
}

bool npg_blocks_remove(const void *block)
{
	uint64_t *line = npg_blocks_line((uintptr_t)block);

	for (int i = 0; i < NPG_BLOCKS_PER_LINE; i++) {
		uint64_t mark = (uintptr_t)block + 1;

		if (__atomic_load_n(&line[i], __ATOMIC_RELAXED) == mark &&
		    __atomic_compare_exchange_n(&line[i], &mark, 0, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}
