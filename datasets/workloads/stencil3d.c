/*
 * stencil3d: a 7-point stencil on a cube, two grids in turn, each thread a slab of planes.
 *
 * The main thread initialises the first grid. A thread reads its slab and one plane of each
 * neighbour. Best placement: both grids in slabs, slab i on the node of thread i, threads in order
 * on neighbouring nodes; only the planes between two slabs are shared.
 *
 * The start value x^2 + 2 y^2 + 3 z^2 has the discrete Laplacian 12 everywhere, so after each step
 * every point has grown by 12.
 */
#include "workload.h"

enum { LAPLACIAN = 12 };

static const struct workload workload = {
	.name = "stencil3d",
	.summary = "A 7-point stencil on a cube, slabs of planes by thread.",
	.size_mib = 160,
	.nr_threads = 4,
	.nr_iterations = 300,
};

static uint64_t edge;
static int64_t *grid[2];

static int64_t start_value(uint64_t x, uint64_t y, uint64_t z)
{
	return (int64_t)(x * x + 2 * y * y + 3 * z * z);
}

static void step_row(const int64_t *old, int64_t *new, bool is_border)
{
	uint64_t plane = edge * edge;

	for (uint64_t x = 0; x < edge; x++)
		new[x] = old[x] + LAPLACIAN;
	if (is_border)
		return;
	for (uint64_t x = 1; x < edge - 1; x++)
		new[x] = old[x - 1] + old[x + 1] + *(old + x - edge) + old[x + edge] +
			 *(old + x - plane) + old[x + plane] - 5 * old[x];
}

static void work(struct worker *w)
{
	uint64_t first = block_start(edge, w->index, w->nr_workers);
	uint64_t end = block_start(edge, w->index + 1, w->nr_workers);

	for (uint64_t pass = 0; pass < nr_iterations; pass++) {
		for (uint64_t row = first * edge; row < end * edge; row++) {
			uint64_t y = row % edge, z = row / edge;
			bool is_border = y == 0 || y == edge - 1 || z == 0 || z == edge - 1;

			step_row(grid[pass % 2] + row * edge, grid[(pass + 1) % 2] + row * edge,
				 is_border);
		}
		pthread_barrier_wait(&barrier);
	}
	for (uint64_t i = first * edge * edge; i < end * edge * edge; i++) {
		int64_t start = start_value(i % edge, i / edge % edge, i / edge / edge);

		w->nr_wrong +=
		    grid[nr_iterations % 2][i] != start + (int64_t)nr_iterations * LAPLACIAN;
		w->sum += (uint64_t)grid[nr_iterations % 2][i];
	}
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	for (edge = 3; (edge + 1) * (edge + 1) * (edge + 1) * 16 <= size_mib << 20;)
		edge++;
	for (int i = 0; i < 2; i++)
		grid[i] = check_memory(calloc(edge * edge * edge, sizeof(**grid)));
	for (uint64_t z = 0; z < edge; z++)
		for (uint64_t y = 0; y < edge; y++)
			for (uint64_t x = 0; x < edge; x++)
				grid[0][(z * edge + y) * edge + x] = start_value(x, y, z);
	return workload_run(&workload, work);
}
