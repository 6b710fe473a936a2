/*
 * transpose: a square matrix is transposed from one array into another and back.
 *
 * All-to-all: a thread writes its block of rows of the destination and reads a block of columns of
 * the source, a part of every other thread's rows. As source and destination change places, best
 * is: rows in blocks, block i on the node of thread i. All writes are then local and 1/T of the
 * reads; the rest is spread evenly over all links, which interleaving does not improve.
 */
#include "workload.h"

enum { TILE = 16 };

static const struct workload workload = {
	.name = "transpose",
	.summary = "Matrix transposition back and forth: every thread reads from all others.",
	.size_mib = 128,
	.nr_threads = 4,
	.nr_iterations = 180,
};

static uint64_t edge; /* a multiple of TILE */
static uint64_t *matrix[2];

static void transpose_rows(const uint64_t *from, uint64_t *to, uint64_t first, uint64_t end)
{
	for (uint64_t row0 = first; row0 < end; row0 += TILE)
		for (uint64_t column0 = 0; column0 < edge; column0 += TILE)
			for (uint64_t row = row0; row < row0 + TILE; row++)
				for (uint64_t column = column0; column < column0 + TILE; column++)
					to[row * edge + column] = from[column * edge + row] + 1;
}

static void work(struct worker *w)
{
	uint64_t first = block_start(edge / TILE, w->index, w->nr_workers) * TILE;
	uint64_t end = block_start(edge / TILE, w->index + 1, w->nr_workers) * TILE;

	for (uint64_t pass = 0; pass < nr_iterations; pass++) {
		transpose_rows(matrix[pass % 2], matrix[(pass + 1) % 2], first, end);
		pthread_barrier_wait(&barrier);
	}
	for (uint64_t i = first * edge; i < end * edge; i++) {
		uint64_t start = nr_iterations % 2 == 0 ? i : i % edge * edge + i / edge;

		w->nr_wrong += matrix[nr_iterations % 2][i] != start + nr_iterations;
		w->sum += matrix[nr_iterations % 2][i] * (i | 1);
	}
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	while ((edge + TILE) * (edge + TILE) * 16 <= size_mib << 20)
		edge += TILE;
	for (int i = 0; i < 2; i++)
		matrix[i] = check_memory(calloc(edge * edge, sizeof(**matrix)));
	for (uint64_t i = 0; i < edge * edge; i++)
		matrix[0][i] = i;
	return workload_run(&workload, work);
}
