/*
 * A hash table from two 64-bit numbers to one: the index behind processes, threads, sites,
 * ordinals. Values are the caller's; a value of 0 means "absent" and cannot be stored.
 */
#ifndef NPG_PROFILER_TABLE_H
#define NPG_PROFILER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_table_slot {
	uint64_t key[2];
	uint64_t value; /* 0: free */
};

struct npg_table { /* all zero: empty */
	struct npg_table_slot *slots;
	size_t nr_slots; /* 0 or a power of two */
	size_t nr_used;
};

/** npg_table_get() - the value, or 0. MT-Safe for readers. */
uint64_t npg_table_get(const struct npg_table *table, uint64_t key0, uint64_t key1);

/**
 * npg_table_put() - set the value (not 0) of a key.
 *
 * Return: 0; -ENOMEM.
 */
NPG_MUST_CHECK int npg_table_put(struct npg_table *table, uint64_t key0, uint64_t key1,
				 uint64_t value);

/** npg_table_remove() - forget a key; absent keys are ignored. */
void npg_table_remove(struct npg_table *table, uint64_t key0, uint64_t key1);

/** npg_table_release() - free the memory; the table is empty then and can be used again. */
void npg_table_release(struct npg_table *table);

#endif
