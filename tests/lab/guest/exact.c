/*
 * exact [PAGES]: accesses whose numbers are known in closed form, from each CPU to each node.
 *
 * For every CPU c and every node n with memory, in a region of its own: PAGES
 * pages bound to n; 64 x (n + 1) loads and 64 x (c + 1) stores to each page, and one 8-byte
 * read-modify-write to every cache line of it. Prints the expected rows of the plugin's file:
 * "access CPU NODE LOADS STORES". Nothing else of the program touches memory meanwhile.
 */
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lab/guest/lab.h"

#define PAGE 4096u

static uint64_t nr_pages = 16;

/* @nr_loads and @nr_stores to each page, then a read-modify-write per line, as one
 * region without any other access */
static void use_pages(char *page, uint64_t nr, uint64_t nr_loads, uint64_t nr_stores)
{
	uint64_t i, value;

	__asm__ volatile(LAB_MARK_BYTES(3) "\n"
					   "1:\n\t"
					   "movq %[loads], %[i]\n"
					   "2:\n\tmovq (%[page]), %[value]\n\t"
					   "decq %[i]\n\tjnz 2b\n\t"
					   "movq %[stores], %[i]\n"
					   "3:\n\tmovl $1, 8(%[page])\n\t"
					   "decq %[i]\n\tjnz 3b\n\t"
					   "movq $64, %[i]\n"
					   "4:\n\tincq 16(%[page])\n\t"
					   "addq $64, %[page]\n\t"
					   "decq %[i]\n\tjnz 4b\n\t"
					   "decq %[nr]\n\tjnz 1b\n\t" LAB_MARK_BYTES(4)
			 : [page] "+r"(page), [nr] "+r"(nr), [i] "=&r"(i), [value] "=&r"(value)
			 : [loads] "r"(nr_loads), [stores] "r"(nr_stores)
			 : "memory", "cc");
}

static char *pages_on(int node)
{
	unsigned long mask = 1ul << node;
	size_t size = nr_pages * PAGE;
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mbind(pages, size, MPOL_BIND, &mask, 64, 0) != 0) {
		perror("exact: memory on a node");
		exit(1);
	}
	memset(pages, 0, size);
	return pages;
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0) {
		perror("exact: pin");
		exit(1);
	}
	for (int node = 0; node <= numa_max_node(); node++) {
		uint64_t nr_loads = 64u * ((uint64_t)node + 1);
		uint64_t nr_stores = 64u * ((uint64_t)cpu + 1);
		char *pages;

		if (numa_node_size64(node, NULL) <= 0)
			continue;
		pages = pages_on(node);
		use_pages(pages, nr_pages, nr_loads, nr_stores);
		munmap(pages, nr_pages * PAGE);
		printf("access %d %d %llu %llu\n", cpu, node,
		       (unsigned long long)(nr_pages * (nr_loads + 64)),
		       (unsigned long long)(nr_pages * (nr_stores + 64)));
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		nr_pages = strtoull(argv[1], NULL, 10);
	for (int cpu = 0; cpu < numa_num_configured_cpus(); cpu++)
		on_cpu(cpu);
	return 0;
}
