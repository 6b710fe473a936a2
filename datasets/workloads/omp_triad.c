/*
 * omp_triad: vector triad with OpenMP, arrays initialised outside of the parallel region.
 *
 * As serial_init, but the threads belong to the compiler's OpenMP runtime (libgomp or libomp), the
 * main thread is one of them, and OMP_PLACES and OMP_PROC_BIND may pin them. Best placement: all
 * three arrays in blocks, block i on the node of thread i (static schedule).
 */
#include <omp.h>

#include "workload.h"

static const struct workload workload = {
	.name = "omp_triad",
	.summary = "Vector triad with OpenMP, arrays initialised by the main thread.",
	.size_mib = 144,
	.nr_threads = 4,
	.nr_iterations = 650,
};

static void triad(double *sum, const double *left, const double *right, int64_t nr, double scale)
{
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < nr; i++)
		sum[i] = left[i] + scale * right[i];
}

int main(int argc, char **argv)
{
	uint64_t nr_wrong = 0, total = 0;
	double *sum, *left, *right;
	int64_t nr;

	workload_arguments(&workload, argc, argv);
	omp_set_dynamic(0);
	omp_set_num_threads((int)nr_threads);
	nr = (int64_t)((size_mib << 20) / 24);
	sum = check_memory(calloc((size_t)nr, sizeof(*sum)));
	left = check_memory(calloc((size_t)nr, sizeof(*left)));
	right = check_memory(calloc((size_t)nr, sizeof(*right)));
	for (int64_t i = 0; i < nr; i++) {
		left[i] = (double)i;
		right[i] = (double)(i % 1024);
	}
	for (uint64_t pass = 0; pass < nr_iterations; pass++)
		triad(sum, left, right, nr, (double)pass);
#pragma omp parallel for schedule(static) reduction(+ : nr_wrong, total)
	for (int64_t i = 0; i < nr; i++) {
		double want = (double)i + (double)(nr_iterations - 1) * (double)(i % 1024);

		nr_wrong += sum[i] < want || sum[i] > want;
		total += (uint64_t)sum[i];
	}
	printf(nr_wrong != 0 ? "%s: WRONG, %ju elements\n" : "%s: ok, sum %016jx\n", workload.name,
	       (uintmax_t)(nr_wrong != 0 ? nr_wrong : total));
	free(sum);
	free(left);
	free(right);
	return nr_wrong == 0 && fflush(stdout) == 0 ? 0 : 1;
}
