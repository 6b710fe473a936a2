/*
 * tables MIB: data on one node, its page-table pages on another, for each pair of following nodes.
 *
 * For every node k, MIB of memory are bound to node k+1 (mbind: the policy of the mapping) and
 * populated under the task policy of node k, which is what page-table pages follow. Then asks the
 * lab for a walk of its page tables and prints what it should have found, one line per range:
 * "range ADDRESS REGIONS TABLE-NODE DATA-NODE".
 */
#include <numa.h>
#include <numaif.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/lab/guest/lab.h"

#define REGION         (2ul << 20)
#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE, newer than Debian 12's headers of libc */

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void place(int data_node, int table_node, size_t size)
{
	unsigned long data_mask = 1ul << data_node, table_mask = 1ul << table_node;
	/* apart, so that two ranges share no table but the root */
	uintptr_t wanted = 0x600000000000u + ((uintptr_t)table_node << 39);
	char *p = mmap((void *)wanted, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		fail("tables: mmap");
	madvise(p, size, MADV_NOHUGEPAGE);
	if (mbind(p, size, MPOL_BIND, &data_mask, 64, 0) != 0)
		fail("tables: mbind");
	if (set_mempolicy(MPOL_BIND, &table_mask, 64) != 0)
		fail("tables: set_mempolicy");
	if (madvise(p, size, POPULATE_WRITE) != 0)
		fail("tables: populate");
	if (set_mempolicy(MPOL_DEFAULT, NULL, 0) != 0)
		fail("tables: set_mempolicy");
	printf("range %lx %zu %d %d\n", (unsigned long)wanted, size / REGION, table_node,
	       data_node);
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoul(argv[1], NULL, 10) : 8) << 20;
	int nr_nodes = numa_max_node() + 1;

	for (int k = 0; k < nr_nodes; k++)
		place((k + 1) % nr_nodes, k, size);
	if (lab_ask_for_walk() != 0)
		fail("tables: no lab to ask");
	return 0;
}
