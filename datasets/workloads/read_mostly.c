/*
 * read_mostly: a table that all threads read at random, with one write in 1024 accesses.
 *
 * Reads of a few entries are far more frequent than of others, as in a cache of sessions or routes.
 * No thread owns any part. Best placement without copies: interleaved over the threads' nodes, so
 * that no node's memory and no link is the bottleneck; a copy per node would be better still.
 *
 * An entry is a fixed value in its upper 48 bits and a count of writes in its lower 16.
 */
#include <stdatomic.h>

#include "workload.h"

static const struct workload workload = {
	.name = "read_mostly",
	.summary = "A shared table, read at random by all threads and seldom written.",
	.size_mib = 96,
	.nr_threads = 4,
	.nr_iterations = 50,
};

static _Atomic uint64_t *table;
static uint64_t nr_entries;

static uint64_t value_of(uint64_t place)
{
	return place * 7 << 16;
}

/* three of four accesses go to a sixteenth of the table */
static uint64_t choose(uint64_t random)
{
	return (random >> 8) % (random % 4 != 0 ? nr_entries / 16 : nr_entries);
}

static void work(struct worker *w)
{
	uint64_t nr_accesses = nr_iterations << 20;

	for (uint64_t i = 0; i < nr_accesses; i++) {
		uint64_t place = choose(mix(w->index * nr_accesses + i));
		uint64_t entry;

		if (i % 1024 == 1023)
			entry = atomic_fetch_add_explicit(&table[place], 1, memory_order_relaxed);
		else
			entry = atomic_load_explicit(&table[place], memory_order_relaxed);
		w->nr_wrong += entry >> 16 != value_of(place) >> 16;
		w->sum += entry >> 16;
	}
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	nr_entries = (size_mib << 20) / sizeof(*table);
	table = check_memory(malloc(nr_entries * sizeof(*table)));
	for (uint64_t i = 0; i < nr_entries; i++)
		atomic_init(&table[i], value_of(i));
	return workload_run(&workload, work);
}
