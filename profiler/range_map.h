/*
 * Ranges of addresses that do not overlap, each with a value: the mappings or the heap blocks of a
 * process. Look-up, insertion and removal take logarithmic time.
 *
 * Values are counted by their owner: a range that is split makes two of one (.keep is called), a
 * range that goes away gives its value back (.drop). Ranges are [start, end), end > start.
 */
#ifndef NPG_PROFILER_RANGE_MAP_H
#define NPG_PROFILER_RANGE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_range {
	uint64_t start;
	uint64_t end;
	void *value;
	struct npg_range *left; /* the rest is private */
	struct npg_range *right;
	uint32_t priority;
};

struct npg_range_map {
	struct npg_range *root;
	void (*keep)(void *value);                /* one more range has it */
	void (*drop)(void *context, void *value); /* one range less has it */
	void *context;
	size_t nr_ranges;
	uint32_t seed;
};

/** npg_range_map_init() - an empty map; @keep and @drop are called as ranges are split and die. */
void npg_range_map_init(struct npg_range_map *map, void (*keep)(void *value),
			void (*drop)(void *context, void *value), void *context);

/** npg_range_map_find() - the range that holds @address, or NULL. */
struct npg_range *npg_range_map_find(const struct npg_range_map *map, uint64_t address);

/** npg_range_map_next() - the first range that ends behind @address, or NULL. */
struct npg_range *npg_range_map_next(const struct npg_range_map *map, uint64_t address);

/**
 * npg_range_map_insert() - clear [start, end), then put a range there; the map takes over the
 * caller's count of @value.
 *
 * Return: 0; -EINVAL (empty range), -ENOMEM: the caller still has its count.
 */
NPG_MUST_CHECK int npg_range_map_insert(struct npg_range_map *map, uint64_t start, uint64_t end,
					void *value);

/**
 * npg_range_map_clear() - remove [start, end); ranges that reach out of it are cut.
 *
 * Return: 0; -ENOMEM when a range had to be split and its upper part was dropped instead.
 */
int npg_range_map_clear(struct npg_range_map *map, uint64_t start, uint64_t end);

/** npg_range_map_release() - drop everything. */
void npg_range_map_release(struct npg_range_map *map);

#endif
