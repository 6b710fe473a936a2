/*
 * producer_consumer: pairs of threads, one fills buffers, the other reads them.
 *
 * Threads 2 i and 2 i + 1 share a ring of buffers and nothing with the others. The main thread
 * clears all rings. Best placement: both threads of a pair on one node, with their ring; a pair
 * that is split over two nodes has half of its accesses remote wherever the ring is.
 */
#include <semaphore.h>

#include "workload.h"

enum { NR_BUFFERS = 16 };

static const struct workload workload = {
	.name = "producer_consumer",
	.summary = "Pairs of threads hand buffers over; THREADS is rounded up to pairs.",
	.size_mib = 64,
	.nr_threads = 4,
	.nr_iterations = 600,
};

struct pair {
	uint64_t *ring;
	sem_t nr_free, nr_full;
};

static struct pair *pairs;
static uint64_t buffer_length;

static void produce(struct pair *pair, uint64_t i_pair)
{
	for (uint64_t n = 0; n < nr_iterations * NR_BUFFERS; n++) {
		uint64_t *buffer = pair->ring + n % NR_BUFFERS * buffer_length;

		sem_wait(&pair->nr_free);
		for (uint64_t i = 0; i < buffer_length; i++)
			buffer[i] = n * buffer_length + i + i_pair;
		sem_post(&pair->nr_full);
	}
}

static void consume(struct pair *pair, struct worker *w)
{
	for (uint64_t n = 0; n < nr_iterations * NR_BUFFERS; n++) {
		const uint64_t *buffer = pair->ring + n % NR_BUFFERS * buffer_length;

		sem_wait(&pair->nr_full);
		for (uint64_t i = 0; i < buffer_length; i++) {
			w->nr_wrong += buffer[i] != n * buffer_length + i + w->index / 2;
			w->sum += buffer[i];
		}
		sem_post(&pair->nr_free);
	}
}

static void work(struct worker *w)
{
	struct pair *pair = &pairs[w->index / 2];

	if (w->index % 2 == 0)
		produce(pair, w->index / 2);
	else
		consume(pair, w);
}

int main(int argc, char **argv)
{
	uint64_t nr_pairs;

	workload_arguments(&workload, argc, argv);
	nr_pairs = (nr_threads + 1) / 2;
	nr_threads = 2 * nr_pairs;
	buffer_length = (size_mib << 20) / nr_pairs / NR_BUFFERS / sizeof(uint64_t);
	pairs = check_memory(calloc(nr_pairs, sizeof(*pairs)));
	for (uint64_t i = 0; i < nr_pairs; i++) {
		size_t size = NR_BUFFERS * buffer_length * sizeof(uint64_t);

		pairs[i].ring = check_memory(malloc(size));
		memset(pairs[i].ring, 0, size);
		sem_init(&pairs[i].nr_free, 0, NR_BUFFERS);
		sem_init(&pairs[i].nr_full, 0, 0);
	}
	return workload_run(&workload, work);
}
