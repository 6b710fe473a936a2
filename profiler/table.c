/* Open addressing with linear probing; removal shifts back, so there are no tombstones. */
#include <errno.h>
#include <stdlib.h>

#include "profiler/table.h"

static size_t home_of(const struct npg_table *table, uint64_t key0, uint64_t key1)
{
	uint64_t h = (key0 ^ (key1 * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xff51afd7ed558ccd);

	h ^= h >> 32;
	h *= UINT64_C(0xc4ceb9fe1a85ec53);
	h ^= h >> 29;
	return (size_t)h & (table->nr_slots - 1);
}

static struct npg_table_slot *find(const struct npg_table *table, uint64_t key0, uint64_t key1)
{
	size_t i = home_of(table, key0, key1);

	while (table->slots[i].value != 0 &&
	       (table->slots[i].key[0] != key0 || table->slots[i].key[1] != key1))
		i = (i + 1) & (table->nr_slots - 1);
	return &table->slots[i];
}

uint64_t npg_table_get(const struct npg_table *table, uint64_t key0, uint64_t key1)
{
	return table->nr_slots == 0 ? 0 : find(table, key0, key1)->value;
}

static int grow(struct npg_table *table)
{
	struct npg_table bigger = { .nr_slots = table->nr_slots == 0 ? 16 : table->nr_slots * 2,
				    .nr_used = table->nr_used };

	bigger.slots = calloc(bigger.nr_slots, sizeof(*bigger.slots));
	if (bigger.slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < table->nr_slots; i++)
		if (table->slots[i].value != 0)
			*find(&bigger, table->slots[i].key[0], table->slots[i].key[1]) =
			    table->slots[i];
	free(table->slots);
	*table = bigger;
	return 0;
}

int npg_table_put(struct npg_table *table, uint64_t key0, uint64_t key1, uint64_t value)
{
	struct npg_table_slot *slot;

	if (table->nr_used * 4 >= table->nr_slots * 3) {
		int ret = grow(table);

		if (ret < 0)
			return ret;
	}
	slot = find(table, key0, key1);
	if (slot->value == 0)
		table->nr_used++;
	slot->key[0] = key0;
	slot->key[1] = key1;
	slot->value = value;
	return 0;
}

void npg_table_remove(struct npg_table *table, uint64_t key0, uint64_t key1)
{
	size_t mask = table->nr_slots - 1, hole, i;
	struct npg_table_slot *slot;

	if (table->nr_slots == 0)
		return;
	slot = find(table, key0, key1);
	if (slot->value == 0)
		return;
	table->nr_used--;
	hole = (size_t)(slot - table->slots);
	for (i = (hole + 1) & mask; table->slots[i].value != 0; i = (i + 1) & mask) {
		size_t home = home_of(table, table->slots[i].key[0], table->slots[i].key[1]);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue; /* it is between its home and the hole: may stay */
		table->slots[hole] = table->slots[i];
		hole = i;
	}
	table->slots[hole].value = 0;
}

void npg_table_release(struct npg_table *table)
{
	free(table->slots);
	*table = (struct npg_table){ 0 };
}
