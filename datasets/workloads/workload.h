/*
 * What the workloads share: arguments, threads, a random generator and the result line.
 *
 * Every workload is called as NAME [options] [SIZE_MIB [THREADS [ITERATIONS]]], checks its own
 * result, prints one line that depends on the arguments only, and ends with status 1 if the
 * result is wrong.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct workload {
	const char *name;
	const char *summary;
	uint64_t size_mib, nr_threads, nr_iterations; /* defaults */
	uint64_t max_size_mib;                        /* 0: no limit */
	const char *own; /* what --own does; NULL if there is no such option */
};

struct worker {
	uint64_t index;      /* 0 .. nr_workers - 1 */
	uint64_t nr_workers; /* = THREADS */
	uint64_t sum;        /* added up by workload_run() */
	uint64_t nr_wrong;
	pthread_t thread;
	void (*body)(struct worker *);
};

static uint64_t size_mib, nr_threads, nr_iterations; /* the arguments */
static bool own;                                     /* --own */
static pthread_barrier_t barrier;                    /* of all workers of one workload_run() */

/* splitmix64's finaliser: a fixed, well mixed function of the index */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* first element of block @i if @nr elements are cut into @nr_blocks equal blocks */
static inline uint64_t block_start(uint64_t nr, uint64_t i, uint64_t nr_blocks)
{
	return nr / nr_blocks * i + (nr % nr_blocks) * i / nr_blocks;
}

static inline void *check_memory(void *memory)
{
	if (memory == NULL) {
		fprintf(stderr, "out of memory; try a smaller SIZE_MIB\n");
		exit(2);
	}
	return memory;
}

static inline void workload_usage(const struct workload *w, FILE *out)
{
	fprintf(out,
		"usage: %s [--help]%s [SIZE_MIB [THREADS [ITERATIONS]]]\n\n%s\n\n"
		"defaults: SIZE_MIB %ju, THREADS %ju, ITERATIONS %ju\n",
		w->name, w->own != NULL ? " [--own]" : "", w->summary, (uintmax_t)w->size_mib,
		(uintmax_t)w->nr_threads, (uintmax_t)w->nr_iterations);
	if (w->own != NULL)
		fprintf(out, "--own: %s\n", w->own);
	if (w->max_size_mib != 0)
		fprintf(out, "SIZE_MIB is at most %ju\n", (uintmax_t)w->max_size_mib);
}

static inline void workload_arguments(const struct workload *w, int argc, char **argv)
{
	uint64_t *const value[] = { &size_mib, &nr_threads, &nr_iterations };
	int i_value = 0;

	size_mib = w->size_mib;
	nr_threads = w->nr_threads;
	nr_iterations = w->nr_iterations;
	for (int i = 1; i < argc; i++) {
		char *end = NULL;

		if (strcmp(argv[i], "--help") == 0) {
			workload_usage(w, stdout);
			exit(0);
		}
		if (strcmp(argv[i], "--own") == 0 && w->own != NULL) {
			own = true;
			continue;
		}
		if (i_value < 3)
			*value[i_value] = strtoull(argv[i], &end, 10);
		if (i_value == 3 || *end != '\0' || argv[i][0] == '-' || *value[i_value] == 0 ||
		    *value[i_value] > 1u << 30) {
			fprintf(stderr, "%s: bad argument '%s'\n", w->name, argv[i]);
			workload_usage(w, stderr);
			exit(2);
		}
		i_value++;
	}
	if (w->max_size_mib != 0 && size_mib > w->max_size_mib) {
		fprintf(stderr, "%s: SIZE_MIB is at most %ju\n", w->name,
			(uintmax_t)w->max_size_mib);
		exit(2);
	}
}

static inline void *worker_start(void *arg)
{
	struct worker *w = arg;

	w->body(w);
	return NULL;
}

/* Run @body in THREADS new threads, wait for them, and print the result line. */
static inline int workload_run(const struct workload *workload, void (*body)(struct worker *))
{
	struct worker *workers = check_memory(calloc(nr_threads, sizeof(*workers)));
	uint64_t sum = 0, nr_wrong = 0;

	pthread_barrier_init(&barrier, NULL, (unsigned)nr_threads);
	for (uint64_t i = 0; i < nr_threads; i++) {
		workers[i] = (struct worker){ .index = i, .nr_workers = nr_threads, .body = body };
		if (pthread_create(&workers[i].thread, NULL, worker_start, &workers[i]) != 0) {
			fprintf(stderr, "%s: cannot start thread %ju\n", workload->name,
				(uintmax_t)i);
			exit(2);
		}
	}
	for (uint64_t i = 0; i < nr_threads; i++) {
		pthread_join(workers[i].thread, NULL);
		sum += workers[i].sum;
		nr_wrong += workers[i].nr_wrong;
	}
	free(workers);
	if (nr_wrong != 0)
		printf("%s: WRONG, %ju elements\n", workload->name, (uintmax_t)nr_wrong);
	else
		printf("%s: ok, sum %016jx\n", workload->name, (uintmax_t)sum);
	return nr_wrong == 0 && fflush(stdout) == 0 ? 0 : 1;
}

#endif
