/*
 * Allocates in four ways and prints where pages and page-table pages really are.
 * usage: placement [THREADS]; page-table pages are counted only for root, from /proc/kpageflags
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB       ((size_t)1 << 20)
#define MAX_NODES 8
#define PGTABLE   26 /* bit in /proc/kpageflags */

static char numbers[16 * MIB];
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

/* Frames used as page tables, by node; nodes' memory lies in blocks, in order. */
static int count_tables(long tables[MAX_NODES])
{
	FILE *file = fopen("/sys/devices/system/memory/block_size_bytes", "r");
	int flags = open("/proc/kpageflags", O_RDONLY);
	unsigned long block = 0;
	static uint64_t frames[32768];

	memset(tables, 0, MAX_NODES * sizeof(long));
	if (file == NULL || flags < 0 || fscanf(file, "%lx", &block) != 1)
		return -1;
	fclose(file);
	for (int node = 0; node < MAX_NODES; node++)
		for (unsigned long b = 0; b < 1024; b++) {
			char path[128];

			snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/memory%lu",
				 node, b);
			if (access(path, F_OK) != 0)
				continue;
			for (unsigned long at = 0; at < block / 4096; at += 32768) {
				ssize_t n = pread(flags, frames, sizeof(frames),
						  (off_t)((b * (block / 4096) + at) * 8));

				for (ssize_t i = 0; i < n / 8; i++)
					tables[node] += (long)(frames[i] >> PGTABLE & 1);
			}
		}
	close(flags);
	return 0;
}

static void print_nodes(const char *what, char *start, size_t size)
{
	long nr[MAX_NODES] = { 0 };

	for (size_t i = 0; i < size; i += 4096) {
		void *page = start + i;
		int node = -1;

		if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0) == 0 && node >= 0 &&
		    node < MAX_NODES)
			nr[node]++;
	}
	printf("%s:", what);
	for (int node = 0; node < MAX_NODES; node++)
		if (nr[node] > 0)
			printf(" %d=%ld", node, nr[node]);
	puts("");
}

/* What programs that this thread starts may use. */
static void print_children(void)
{
	cpu_set_t cpus;

	fflush(stdout);
	if (fork() == 0) {
		sched_getaffinity(0, sizeof(cpus), &cpus);
		printf("CPUs of a forked child: %d\n", CPU_COUNT(&cpus));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	if (system(
		"sed -n 's/^Cpus_allowed_list:[^0-9]*/CPUs of a program: /p' /proc/self/status") !=
	    0)
		puts("no shell");
}

static void *work(void *arg)
{
	int number = *(int *)arg;
	char *own = malloc(8 * MIB), what[32];
	cpu_set_t cpus;

	memset(own, 1, 8 * MIB);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	pthread_mutex_lock(&output);
	snprintf(what, sizeof(what), "thread %d", number);
	print_nodes(what, own, 8 * MIB);
	printf("CPUs of thread %d: %d\n", number, CPU_COUNT(&cpus));
	if (number == 0)
		print_children();
	pthread_mutex_unlock(&output);
	free(own);
	return NULL;
}

static void run_threads(int nr)
{
	pthread_t threads[64];
	int numbers_of[64];

	for (int i = 0; i < nr; i++) {
		numbers_of[i] = i;
		pthread_create(&threads[i], NULL, work, &numbers_of[i]);
	}
	for (int i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
	}
}

int main(int argc, char **argv)
{
	int nr_threads = argc > 1 ? atoi(argv[1]) : 4;
	long before[MAX_NODES], after[MAX_NODES];
	int has_tables = count_tables(before) == 0;
	char *heap = malloc(64 * MIB), *map;

	memset(heap, 1, 64 * MIB);
	map = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(map, 1, 32 * MIB);
	memset(numbers, 1, sizeof(numbers));
	print_nodes("heap", heap, 64 * MIB);
	print_nodes("map", map, 32 * MIB);
	print_nodes("static", numbers, sizeof(numbers));
	if (has_tables && count_tables(after) == 0) {
		printf("page tables:");
		for (int node = 0; node < MAX_NODES; node++)
			printf(" %d=%ld", node, after[node] - before[node]);
		puts("");
	}
	run_threads(nr_threads);
	free(heap);
	return 0;
}
