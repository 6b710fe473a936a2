/*
 * static_arrays: vector triad on arrays with static storage, and a table that all threads read.
 *
 * The main thread initialises everything. Best placement: sum, left and right in blocks, block i on
 * the node of thread i; scale_table, which all threads read evenly, interleaved (it is small, so it
 * matters little). The arrays have fixed addresses in the program's .bss: what is placed is a
 * symbol, not an allocation.
 */
#include "workload.h"

enum { MAX_MIB = 192, TABLE_LENGTH = 1 << 17 };

static const struct workload workload = {
	.name = "static_arrays",
	.summary = "Vector triad on three static arrays in blocks, and a shared static table.",
	.size_mib = 144,
	.nr_threads = 4,
	.nr_iterations = 650,
	.max_size_mib = MAX_MIB,
};

static uint64_t sum[MAX_MIB * (1 << 20) / 24];
static uint64_t left[MAX_MIB * (1 << 20) / 24];
static uint64_t right[MAX_MIB * (1 << 20) / 24];
static uint64_t scale_table[TABLE_LENGTH];
static uint64_t nr_elements;

static void work(struct worker *w)
{
	uint64_t first = block_start(nr_elements, w->index, w->nr_workers);
	uint64_t end = block_start(nr_elements, w->index + 1, w->nr_workers);

	for (uint64_t pass = 0; pass < nr_iterations; pass++) {
		for (uint64_t i = first; i < end; i += 512) {
			uint64_t scale = scale_table[mix(i + pass) % TABLE_LENGTH];

			for (uint64_t j = i; j < end && j < i + 512; j++)
				sum[j] = left[j] + scale * right[j];
		}
		pthread_barrier_wait(&barrier);
	}
	for (uint64_t i = first; i < end; i++) {
		uint64_t start = first + (i - first) / 512 * 512;
		uint64_t scale = mix(start + nr_iterations - 1) % TABLE_LENGTH * 5;

		w->nr_wrong += sum[i] != i + scale * 2 * i;
		w->sum += sum[i] - scale * 2 * i; /* the part that does not depend on THREADS */
	}
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	nr_elements = (size_mib << 20) / 24;
	for (uint64_t i = 0; i < TABLE_LENGTH; i++)
		scale_table[i] = i * 5;
	for (uint64_t i = 0; i < nr_elements; i++) {
		sum[i] = 0;
		left[i] = i;
		right[i] = 2 * i;
	}
	return workload_run(&workload, work);
}
