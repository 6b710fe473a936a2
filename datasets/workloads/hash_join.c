/*
 * hash_join: a hash table is built from one relation and probed by the rows of another.
 *
 * The main thread builds the table; the threads read the probe rows in blocks and the table at
 * random. Best placement: probe rows in blocks, block i on the node of thread i; the table, which
 * all threads use evenly, interleaved over the threads' nodes.
 */
#include "workload.h"

static const struct workload workload = {
	.name = "hash_join",
	.summary = "Hash join: a shared table built by one thread, probe rows in blocks.",
	.size_mib = 192,
	.nr_threads = 4,
	.nr_iterations = 10,
};

struct slot {
	uint64_t key; /* 0: free */
	uint64_t payload;
};

static struct slot *table;
static uint64_t *probe;
static uint64_t nr_slots, nr_build, nr_probe; /* nr_slots is a power of two */

static uint64_t find(uint64_t key)
{
	uint64_t i = mix(key) & (nr_slots - 1);

	while (table[i].key != key && table[i].key != 0)
		i = (i + 1) & (nr_slots - 1);
	return i;
}

static uint64_t probe_key(uint64_t row)
{
	return mix(row) % (2 * nr_build) + 1; /* every second one has no partner */
}

static void work(struct worker *w)
{
	uint64_t first = block_start(nr_probe, w->index, w->nr_workers);
	uint64_t end = block_start(nr_probe, w->index + 1, w->nr_workers);
	uint64_t want = 0;

	for (uint64_t pass = 0; pass < nr_iterations; pass++)
		for (uint64_t row = first; row < end; row++)
			w->sum += table[find(probe[row])].payload;
	for (uint64_t row = first; row < end; row++)
		if (probe_key(row) <= nr_build)
			want += 3 * probe_key(row);
	w->nr_wrong = w->sum != want * nr_iterations;
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	for (nr_slots = 1024; 2 * nr_slots * sizeof(*table) <= (size_mib << 20) * 2 / 3;)
		nr_slots *= 2;
	nr_build = nr_slots / 2;
	nr_probe = ((size_mib << 20) - nr_slots * sizeof(*table)) / sizeof(*probe);
	table = check_memory(calloc(nr_slots, sizeof(*table)));
	probe = check_memory(malloc(nr_probe * sizeof(*probe)));
	for (uint64_t key = 1; key <= nr_build; key++)
		table[find(key)] = (struct slot){ key, 3 * key };
	for (uint64_t row = 0; row < nr_probe; row++)
		probe[row] = probe_key(row);
	return workload_run(&workload, work);
}
