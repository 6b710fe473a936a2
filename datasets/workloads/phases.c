/*
 * phases: the affinity moves while the program runs.
 *
 * For the first half of the passes thread i works on block i, for the third quarter on block i + 1,
 * for the last on block i + 2. Each thread initialises its own block, so first touch is right for
 * the first half only. Best placement that stays: block i on the node of thread i, half of all
 * accesses local (plus what falls together when there are fewer than three threads). Better only by
 * moving pages, or threads, at the two changes: then nearly all are.
 */
#include "workload.h"

static const struct workload workload = {
	.name = "phases",
	.summary = "Blocks change their owner twice during the run.",
	.size_mib = 128,
	.nr_threads = 4,
	.nr_iterations = 800,
};

static struct {
	uint64_t value, step;
} * array;
static uint64_t nr_elements;

static uint64_t shift_of(uint64_t pass)
{
	uint64_t quarter = pass * 4 / nr_iterations;

	return quarter < 2 ? 0 : quarter - 1;
}

static void work(struct worker *w)
{
	uint64_t first = block_start(nr_elements, w->index, w->nr_workers);
	uint64_t end = block_start(nr_elements, w->index + 1, w->nr_workers);

	for (uint64_t i = first; i < end; i++) {
		array[i].value = i;
		array[i].step = i % 7;
	}
	pthread_barrier_wait(&barrier);
	for (uint64_t pass = 0; pass < nr_iterations; pass++) {
		uint64_t block = (w->index + shift_of(pass)) % w->nr_workers;

		first = block_start(nr_elements, block, w->nr_workers);
		end = block_start(nr_elements, block + 1, w->nr_workers);
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
	return workload_run(&workload, work);
}
