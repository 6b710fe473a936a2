/*
 * csr_spmv: sparse matrix times vector, the matrix in compressed rows (CSR), y = A x repeated.
 *
 * The main thread assembles the matrix. The columns of a row lie in a band around the diagonal, so
 * a thread that owns a block of rows uses that block of column, value and y, and nearly that block
 * of x. Best placement: all five arrays in blocks, block i on the node of thread i.
 */
#include "workload.h"

enum { ROW_LENGTH = 16, BAND = 2048 };

static const struct workload workload = {
	.name = "csr_spmv",
	.summary = "Sparse matrix-vector product, rows in blocks by thread.",
	.size_mib = 160,
	.nr_threads = 4,
	.nr_iterations = 300,
};

static uint64_t nr_rows;
static uint64_t *row_start;
static uint32_t *column;
static uint32_t *value;
static uint64_t *x, *y;

static uint32_t column_of(uint64_t row, uint64_t k)
{
	uint64_t c = row + mix(row * ROW_LENGTH + k) % BAND;

	c = c < BAND / 2 ? 0 : c - BAND / 2;
	return (uint32_t)(c < nr_rows ? c : nr_rows - 1);
}

static uint32_t value_of(uint64_t row, uint64_t k)
{
	return (uint32_t)(row + 3 * k) & 1023;
}

static void work(struct worker *w)
{
	uint64_t first = block_start(nr_rows, w->index, w->nr_workers);
	uint64_t end = block_start(nr_rows, w->index + 1, w->nr_workers);

	for (uint64_t pass = 0; pass < nr_iterations; pass++) {
		for (uint64_t row = first; row < end; row++) {
			uint64_t sum = 0;

			for (uint64_t k = row_start[row]; k < row_start[row + 1]; k++)
				sum += value[k] * x[column[k]];
			y[row] = sum + pass;
		}
		pthread_barrier_wait(&barrier);
	}
	for (uint64_t row = first; row < end; row++) {
		uint64_t sum = nr_iterations - 1;

		for (uint64_t k = 0; k < ROW_LENGTH; k++)
			sum += value_of(row, k) * (mix(column_of(row, k)) >> 32);
		w->nr_wrong += y[row] != sum;
		w->sum += y[row];
	}
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	nr_rows = (size_mib << 20) / (ROW_LENGTH * 8 + 3 * 8);
	row_start = check_memory(malloc((nr_rows + 1) * sizeof(*row_start)));
	column = check_memory(malloc(nr_rows * ROW_LENGTH * sizeof(*column)));
	value = check_memory(malloc(nr_rows * ROW_LENGTH * sizeof(*value)));
	x = check_memory(malloc(nr_rows * sizeof(*x)));
	y = check_memory(calloc(nr_rows, sizeof(*y)));
	for (uint64_t row = 0; row < nr_rows; row++) {
		row_start[row] = row * ROW_LENGTH;
		x[row] = mix(row) >> 32;
		for (uint64_t k = 0; k < ROW_LENGTH; k++) {
			column[row * ROW_LENGTH + k] = column_of(row, k);
			value[row * ROW_LENGTH + k] = value_of(row, k);
		}
	}
	row_start[nr_rows] = nr_rows * ROW_LENGTH;
	return workload_run(&workload, work);
}
