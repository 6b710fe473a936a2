/*
 * pin.so, preloaded: the n-th thread that a program starts is bound to the n-th CPU of LAB_PIN (CPU
 * numbers separated by commas, used again from the start when there are more threads), so that
 * runs without numapgo are the same each time. In OpenMP programs the first thread works as well
 * and has the first place; elsewhere it waits for the others and has a place of its own,
 * LAB_PIN_MAIN.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static int cpus[64];
static int nr_cpus;
static atomic_int nr_started;

static void pin(pthread_t thread, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	pthread_setaffinity_np(thread, sizeof(set), &set);
}

__attribute__((constructor)) static void read_places(void)
{
	const char *text = getenv("LAB_PIN"), *first = getenv("LAB_PIN_MAIN");

	while (text != NULL && *text != '\0' && nr_cpus < 64) {
		char *end;

		cpus[nr_cpus++] = (int)strtol(text, &end, 10);
		text = *end == ',' ? end + 1 : "";
	}
	if (nr_cpus == 0)
		return;
	if (dlsym(RTLD_DEFAULT, "GOMP_parallel") != NULL ||
	    dlsym(RTLD_DEFAULT, "__kmpc_fork_call") != NULL) {
		atomic_store(&nr_started, 1);
		first = NULL;
	}
	pin(pthread_self(), first != NULL ? (int)strtol(first, NULL, 10) : cpus[0]);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
		   void *argument)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int status;

	if (next == NULL) {
		void *symbol = dlsym(RTLD_NEXT, "pthread_create");

		__builtin_memcpy(&next, &symbol, sizeof(next));
	}
	status = next(thread, attributes, body, argument);
	if (status == 0 && nr_cpus > 0)
		pin(*thread, cpus[atomic_fetch_add(&nr_started, 1) % nr_cpus]);
	return status;
}
