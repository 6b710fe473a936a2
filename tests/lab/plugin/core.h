/*
 * What the plugin keeps for each vCPU, and the machine that it models.
 *
 * A struct core is written by its vCPU's thread only and read after the machine has stopped. The
 * last-level caches are shared by the vCPUs of a node and locked.
 */
#ifndef NPG_LAB_CORE_H
#define NPG_LAB_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/lab/plugin/cache.h"
#include "tests/lab/plugin/table.h"

#define LAB_MAX_CPUS     64
#define LAB_MAX_NODES    16
#define LAB_GHZ          2.5 /* of the modelled CPUs: latencies in the trace are in their cycles */
#define LAB_LINE_SHIFT   6
#define LAB_PAGE_SHIFT   12
#define LAB_REGION_SHIFT 21 /* one leaf page-table page */

struct shape { /* of one cache or TLB */
	uint64_t nr_entries, nr_ways;
};

struct model {
	int nr_cpus, nr_nodes;
	int node_of_cpu[LAB_MAX_CPUS];
	uint64_t memory_start[LAB_MAX_NODES],
	    memory_end[LAB_MAX_NODES]; /* emulator's RAM numbers */
	double latency_ns[LAB_MAX_NODES][LAB_MAX_NODES];
	struct shape l1, l2, llc, dtlb, stlb;
	bool has_caches, has_pages;
	uint64_t period; /* of the trace, 0: none */
	FILE *trace;
	const char *out;
};

struct core {
	int cpu, node;
	unsigned epoch; /* counts of older epochs are forgotten */
	uint64_t nr_instructions;
	uint64_t accesses[LAB_MAX_NODES][2]; /* by memory node; loads, stores */
	uint64_t memory[LAB_MAX_NODES][2];   /* of these, missed by the node's last-level cache */
	uint64_t nr_elsewhere;               /* devices and ROM */
	uint64_t l1_hits, l2_hits, llc_hits;
	uint64_t nr_dtlb_misses, nr_walks;
	struct cache l1, l2, dtlb, stlb;
	struct table pages, regions;
	uint64_t until_load, until_walk; /* samples of the trace */
	int nr_digits;                   /* of a number being told, see guest/lab.h; 0: none */
	bool expects_digit;
	uint64_t number;
} __attribute__((aligned(128)));

extern struct model model;

/** core_init_all() - caches and counters for the machine in model. Return: an error text or NULL.
 */
const char *core_init_all(void);

/** core_of() - the vCPU's, emptied if counting began anew since its last use (@epoch). */
struct core *core_of(unsigned vcpu, unsigned epoch);

/**
 * core_access() - count one access of user mode.
 * @number: of the RAM byte accessed, in the emulator's numbering.
 */
void core_access(struct core *core, uint64_t address, uint64_t number, uint64_t ip, bool is_store);

/** core_write() - everything counted, as text, to model.out. */
void core_write(void);

/** core_set_clock() - the guest's CLOCK_MONOTONIC is @guest_ns now. */
void core_set_clock(uint64_t guest_ns);

#endif
