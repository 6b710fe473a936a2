/*
 * table_random: independent reads at random places of a large table.
 *
 * Nearly every read misses the TLB, and with 4 KiB pages the leaf page-table page is often not in
 * the caches either: where the page-table pages are counts as much as where the data is. The main
 * thread fills the table, so all of both is on its node. Evenly shared, best is: table and
 * page-table pages interleaved. With --own, 15 of 16 reads are in the thread's own part: best is
 * part i and its page-table pages on the node of thread i.
 */
#include "workload.h"

static const struct workload workload = {
	.name = "table_random",
	.summary = "Random reads of a large table, bound by page walks.",
	.size_mib = 192,
	.nr_threads = 4,
	.nr_iterations = 48,
	.own = "15 of 16 reads are in the thread's own part (else all are anywhere)",
};

static uint64_t *table;
static uint64_t nr_entries;

static void work(struct worker *w)
{
	uint64_t first = block_start(nr_entries, w->index, w->nr_workers);
	uint64_t nr_own = block_start(nr_entries, w->index + 1, w->nr_workers) - first;
	uint64_t nr_reads = nr_iterations << 20;

	for (uint64_t i = 0; i < nr_reads; i++) {
		uint64_t random = mix(w->index * nr_reads + i);
		uint64_t place = own && random % 16 != 0 ? first + (random >> 4) % nr_own
							 : (random >> 4) % nr_entries;

		w->nr_wrong += table[place] != place * 3;
		w->sum += place;
	}
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	nr_entries = (size_mib << 20) / sizeof(*table);
	table = check_memory(malloc(nr_entries * sizeof(*table)));
	for (uint64_t i = 0; i < nr_entries; i++)
		table[i] = i * 3;
	return workload_run(&workload, work);
}
