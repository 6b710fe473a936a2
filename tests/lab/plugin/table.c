#include "tests/lab/plugin/table.h"

#include <stdlib.h>

static size_t slot_of(const struct table *table, uint64_t key)
{
	size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (table->size - 1);

	while (table->rows[i].key_plus_one != 0 && table->rows[i].key_plus_one != key + 1)
		i = (i + 1) & (table->size - 1);
	return i;
}

static void grow(struct table *table)
{
	struct table bigger = { .nr = table->nr, .size = table->size ? 2 * table->size : 1024 };

	bigger.rows = calloc(bigger.size, sizeof(*bigger.rows));
	if (bigger.rows == NULL)
		abort();
	for (size_t i = 0; i < table->size; i++) {
		if (table->rows[i].key_plus_one != 0)
			bigger.rows[slot_of(&bigger, table->rows[i].key_plus_one - 1)] =
			    table->rows[i];
	}
	free(table->rows);
	*table = bigger;
}

struct page_counts *table_at(struct table *table, uint64_t key)
{
	struct page_counts *row;

	if (4 * (table->nr + 1) > 3 * table->size)
		grow(table);
	row = &table->rows[slot_of(table, key)];
	if (row->key_plus_one == 0) {
		row->key_plus_one = key + 1;
		table->nr++;
	}
	return row;
}

void table_clear(struct table *table)
{
	free(table->rows);
	*table = (struct table){ 0 };
}
