/*
 * many_objects: many heap objects of medium size from three call sites.
 *
 * The main thread allocates and fills everything: at one site the private matrices, object n for
 * thread n mod T; at the second the halos, object n for the threads n mod T and n + 1 mod T; at the
 * third shared tables for all. Objects of one site need different nodes, so a placement by call
 * site alone is not enough: the n-th allocation at the site decides. Best placement: matrices with
 * their thread, halos with either of the two, tables interleaved.
 */
#include "workload.h"

enum { MATRIX_KIB = 192, HALO_KIB = 80, TABLE_KIB = 320 };

static const struct workload workload = {
	.name = "many_objects",
	.summary = "Many medium heap objects from three call sites, one owner each.",
	.size_mib = 128,
	.nr_threads = 4,
	.nr_iterations = 420,
};

struct cell {
	uint64_t value, step;
};

struct object {
	struct cell *cells;
	uint64_t length;
};

static struct object *matrices, *halos, *tables;
static uint64_t nr_matrices, nr_halos, nr_tables;

static void add_to(struct object *object, uint64_t begin, uint64_t step)
{
	for (uint64_t i = begin; i < object->length; i += step)
		object->cells[i].value += object->cells[i].step;
}

static void check(struct worker *w, const struct object *object)
{
	for (uint64_t i = 0; i < object->length; i++) {
		w->nr_wrong += object->cells[i].value != nr_iterations * (i % 7);
		w->sum += object->cells[i].value;
	}
}

static void work(struct worker *w)
{
	for (uint64_t pass = 0; pass < nr_iterations; pass++) {
		for (uint64_t n = w->index; n < nr_matrices; n += w->nr_workers)
			add_to(&matrices[n], 0, 1);
		for (uint64_t n = w->index; n < nr_halos; n += w->nr_workers)
			add_to(&halos[n], 0, 2);
		for (uint64_t n = (w->index + 1) % w->nr_workers; n < nr_halos; n += w->nr_workers)
			add_to(&halos[n], 1, 2);
		for (uint64_t n = 0; n < nr_tables; n++)
			add_to(&tables[n], w->index, w->nr_workers);
	}
	pthread_barrier_wait(&barrier);
	for (uint64_t n = w->index; n < nr_matrices; n += w->nr_workers)
		check(w, &matrices[n]);
	for (uint64_t n = w->index; n < nr_halos; n += w->nr_workers)
		check(w, &halos[n]);
	for (uint64_t n = w->index; n < nr_tables; n += w->nr_workers)
		check(w, &tables[n]);
}

static struct object fill(void *memory, uint64_t size_kib)
{
	struct object object = { check_memory(memory), (size_kib << 10) / sizeof(struct cell) };

	for (uint64_t i = 0; i < object.length; i++)
		object.cells[i] = (struct cell){ 0, i % 7 };
	return object;
}

int main(int argc, char **argv)
{
	workload_arguments(&workload, argc, argv);
	nr_matrices = (size_mib << 10) * 6 / 8 / MATRIX_KIB;
	nr_halos = (size_mib << 10) / 8 / HALO_KIB;
	nr_tables = (size_mib << 10) / 8 / TABLE_KIB;
	matrices = check_memory(calloc(nr_matrices + 1, sizeof(*matrices)));
	halos = check_memory(calloc(nr_halos + 1, sizeof(*halos)));
	tables = check_memory(calloc(nr_tables + 1, sizeof(*tables)));
	for (uint64_t n = 0; n < nr_matrices; n++)
		matrices[n] = fill(malloc(MATRIX_KIB << 10), MATRIX_KIB);
	for (uint64_t n = 0; n < nr_halos; n++)
		halos[n] = fill(malloc(HALO_KIB << 10), HALO_KIB);
	for (uint64_t n = 0; n < nr_tables; n++)
		tables[n] = fill(malloc(TABLE_KIB << 10), TABLE_KIB);
	return workload_run(&workload, work);
}
