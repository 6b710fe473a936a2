/*
 * serial_init: an array that one thread initialises and all threads then use in blocks.
 *
 * The commonest NUMA fault: first touch puts every page on the node of the main thread, so of T
 * threads on T nodes only one works locally. Best placement: block i on the node of thread i; then
 * nearly all accesses are local (only the initialisation is not).
 */
#include "workload.h"

static const struct workload workload = {
	.name = "serial_init",
	.summary = "One thread initialises an array; then each thread works on its own block.",
	.size_mib = 128,
	.nr_threads = 4,
	.nr_iterations = 600,
};

static struct {
	uint64_t value, step;
} * array;
static uint64_t nr_elements;

static void work(struct worker *w)
{
	uint64_t first = block_start(nr_elements, w->index, w->nr_workers);
	uint64_t end = block_start(nr_elements, w->index + 1, w->nr_workers);

	for (uint64_t pass = 0; pass < nr_iterations; pass++) {
		for (uint64_t i = first; i < end; i++)
			array[i].value += array[i].step;
		pthread_barrier_wait(&barrier);
	}
	for (uint64_t i = first; i < end; i++) {
		w->nr_wrong += array[i].value != i + nr_iterations * (i % 7);
		w->sum += array[i].value;
	}
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	nr_elements = (size_mib << 20) / sizeof(*array);
	array = check_memory(malloc(nr_elements * sizeof(*array)));
	for (uint64_t i = 0; i < nr_elements; i++) {
		array[i].value = i;
		array[i].step = i % 7;
	}
	return workload_run(&workload, work);
}
