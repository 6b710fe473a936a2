/*
 * A set-associative store of keys with least-recently-used replacement: the model of a cache (key
 * = line number) and of a TLB (key = page number).
 */
#ifndef NPG_LAB_CACHE_H
#define NPG_LAB_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct cache {
	uint64_t nr_sets; /* a power of two */
	uint64_t nr_ways;
	uint64_t *keys; /* nr_sets x nr_ways, each set most recently used first; key + 1, 0 empty */
};

/** cache_init() - empty, of @nr_entries keys. Return: false if the sizes do not fit or no memory.
 */
static inline bool cache_init(struct cache *cache, uint64_t nr_entries, uint64_t nr_ways)
{
	if (nr_ways == 0 || nr_entries % nr_ways != 0)
		return false;
	*cache = (struct cache){ .nr_sets = nr_entries / nr_ways, .nr_ways = nr_ways };
	if (cache->nr_sets == 0 || (cache->nr_sets & (cache->nr_sets - 1)) != 0)
		return false;
	cache->keys = calloc(nr_entries, sizeof(*cache->keys));
	return cache->keys != NULL;
}

/** cache_use() - look @key up and make it the newest of its set. Return: true if it was there. */
static inline bool cache_use(struct cache *cache, uint64_t key)
{
	uint64_t *set = cache->keys + (key & (cache->nr_sets - 1)) * cache->nr_ways;
	uint64_t wanted = key + 1;
	uint64_t moved = wanted;

	for (uint64_t i = 0; i < cache->nr_ways; i++) {
		uint64_t old = set[i];

		set[i] = moved;
		if (old == wanted)
			return true;
		moved = old;
	}
	return false;
}

#endif
