/* A growing hash table from a page or region number to counters. One owner, no locks. */
#ifndef NPG_LAB_TABLE_H
#define NPG_LAB_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct page_counts {
	uint64_t key_plus_one; /* 0: free */
	uint64_t loads, stores, memory_loads, memory_stores, walks;
	int node; /* memory node at the last access */
};

struct table {
	size_t nr, size; /* used, allocated (a power of two) */
	struct page_counts *rows;
};

/** table_at() - the row of @key, new ones zero. Aborts when memory runs out. */
struct page_counts *table_at(struct table *table, uint64_t key);

/** table_clear() - forget all rows. */
void table_clear(struct table *table);

#endif
