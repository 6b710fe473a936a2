/*
 * Putting policies on memory: pages by mbind(2), page-table pages by the task's policy while one
 * page of each 2 MiB region is touched (the kernel takes page-table pages by the task's policy and
 * data pages by the mapping's).
 */
#ifndef NPG_REPLAYER_PRELOAD_PLACE_H
#define NPG_REPLAYER_PRELOAD_PLACE_H

#include "replayer/preload/state.h"

#define NPG_REGION_BYTES ((size_t)2 << 20)

/* Memory of one object. */
struct npg_memory {
	uintptr_t start; /* first byte */
	size_t size_bytes;
	uintptr_t limit; /* end of what may get a policy, whole pages; beyond the object's end if
			  * it may grow there */
	uint64_t planned_bytes; /* ranges scale by size_bytes / planned_bytes */
	uint32_t plan_index;
	bool is_fresh;    /* nobody has touched it: page-table pages can be placed */
	bool moves_pages; /* pages that are there already are to be moved */
};

/**
 * npg_place_ranges() - give the object's ranges their policies.
 *
 * What the kernel refuses, or what would take too many mappings, is counted and left.
 *
 * Return: bytes that have their policy now. MT-Safe. AS-Safe.
 */
size_t npg_place_ranges(const struct npg_memory *memory, const struct npg_wire_range *ranges,
			uint32_t nr_ranges);

/**
 * npg_place_tables() - place the page-table pages of regions that have none yet; after
 * npg_place_ranges(). The calling thread's own memory policy is restored.
 *
 * MT-Safe. AS-Safe, but a signal handler that interrupts it allocates by the plan's policy.
 */
void npg_place_tables(const struct npg_memory *memory, const struct npg_wire_range *tables,
		      uint32_t nr_tables);

/** npg_place_reset() - back to the default policy. MT-Safe. AS-Safe. */
void npg_place_reset(uintptr_t start, size_t size_bytes);

/**
 * npg_place_forget() - the memory is unmapped or used anew: list it no longer.
 * MT-Safe. AS-Safe.
 */
void npg_place_forget(uintptr_t start, size_t size_bytes);

/** npg_place_look() - compare some pages of listed ranges with their policy. MT-Safe. AS-Safe. */
void npg_place_look(void);

#endif
