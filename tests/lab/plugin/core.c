#include "tests/lab/plugin/core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct model model;

static struct core cores[LAB_MAX_CPUS];
static struct cache llc[LAB_MAX_NODES];
static pthread_mutex_t llc_lock[LAB_MAX_NODES];
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t clock_offset_ns;

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void core_set_clock(uint64_t guest_ns)
{
	atomic_store(&clock_offset_ns, (int64_t)(guest_ns - host_ns()));
}

static bool init_private(struct core *core)
{
	return cache_init(&core->l1, model.l1.nr_entries, model.l1.nr_ways) &&
	       cache_init(&core->l2, model.l2.nr_entries, model.l2.nr_ways) &&
	       cache_init(&core->dtlb, model.dtlb.nr_entries, model.dtlb.nr_ways) &&
	       cache_init(&core->stlb, model.stlb.nr_entries, model.stlb.nr_ways);
}

const char *core_init_all(void)
{
	for (int i = 0; i < model.nr_nodes; i++) {
		pthread_mutex_init(&llc_lock[i], NULL);
		if (!cache_init(&llc[i], model.llc.nr_entries, model.llc.nr_ways))
			return "last-level cache: sets must be a power of two";
	}
	for (int i = 0; i < model.nr_cpus; i++) {
		cores[i].cpu = i;
		cores[i].node = model.node_of_cpu[i];
		cores[i].until_load = cores[i].until_walk = model.period;
		if (!init_private(&cores[i]))
			return "private caches and TLBs: sets must be a power of two";
	}
	if (model.trace != NULL)
		fprintf(model.trace, "numalab-trace 1 %" PRIu64 "\n", model.period);
	return NULL;
}

struct core *core_of(unsigned vcpu, unsigned epoch)
{
	struct core *core = &cores[vcpu];

	if (__builtin_expect(core->epoch == epoch, 1))
		return core;
	core->epoch = epoch;
	core->nr_instructions = core->nr_elsewhere = core->nr_dtlb_misses = core->nr_walks = 0;
	core->l1_hits = core->l2_hits = core->llc_hits = 0;
	memset(core->accesses, 0, sizeof(core->accesses));
	memset(core->memory, 0, sizeof(core->memory));
	table_clear(&core->pages);
	table_clear(&core->regions);
	return core;
}

static int node_of(uint64_t number)
{
	for (int i = 0; i < model.nr_nodes; i++) {
		if (number >= model.memory_start[i] && number < model.memory_end[i])
			return i;
	}
	return -1;
}

static void trace(const struct core *core, const char *kind, uint64_t address, uint64_t ip,
		  int node, bool is_store, double cycles)
{
	uint64_t now = host_ns() + (uint64_t)atomic_load(&clock_offset_ns);

	pthread_mutex_lock(&trace_lock);
	fprintf(model.trace, "%s %" PRIu64 " %d %" PRIx64 " %" PRIx64 " %c %d %.0f\n", kind, now,
		core->cpu, address, ip, is_store ? 'W' : 'R', node, cycles);
	pthread_mutex_unlock(&trace_lock);
}

static bool is_sample(uint64_t *until)
{
	if (model.period == 0 || --*until > 0)
		return false;
	*until = model.period;
	return true;
}

/* A 2 MiB page is one entry: its virtual and physical address agree in the low 21 bits, which
 * happens by chance for one 4 KiB page in 512. Return: true if page tables had to be walked. */
static bool translate(struct core *core, uint64_t address, uint64_t number, uint64_t ip, int node,
		      bool is_store)
{
	bool is_huge = ((address ^ number) & ((1u << LAB_REGION_SHIFT) - 1)) == 0;
	int shift = is_huge ? LAB_REGION_SHIFT : LAB_PAGE_SHIFT;
	uint64_t key = (address >> shift) << 1 | is_huge;

	if (cache_use(&core->dtlb, key))
		return false;
	core->nr_dtlb_misses++;
	if (cache_use(&core->stlb, key))
		return false;
	core->nr_walks++;
	if (!is_huge)
		table_at(&core->regions, address >> LAB_REGION_SHIFT)->walks++;
	if (is_sample(&core->until_walk))
		trace(core, "walk", address, ip, node, is_store, 0.0);
	return true;
}

/* Return: true if the access went to memory. */
static bool use_caches(struct core *core, uint64_t line)
{
	bool is_hit;

	if (cache_use(&core->l1, line)) {
		core->l1_hits++;
		return false;
	}
	if (cache_use(&core->l2, line)) {
		core->l2_hits++;
		return false;
	}
	pthread_mutex_lock(&llc_lock[core->node]);
	is_hit = cache_use(&llc[core->node], line);
	pthread_mutex_unlock(&llc_lock[core->node]);
	core->llc_hits += is_hit;
	return !is_hit;
}

static void count_page(struct core *core, uint64_t address, int node, bool is_store, bool is_memory,
		       bool is_walk)
{
	struct page_counts *row = table_at(&core->pages, address >> LAB_PAGE_SHIFT);

	row->loads += !is_store;
	row->stores += is_store;
	row->memory_loads += !is_store && is_memory;
	row->memory_stores += is_store && is_memory;
	row->walks += is_walk;
	row->node = node;
}

void core_access(struct core *core, uint64_t address, uint64_t number, uint64_t ip, bool is_store)
{
	int node = node_of(number);
	bool is_memory = false, is_walk = false;

	if (node < 0) {
		core->nr_elsewhere++;
		return;
	}
	core->accesses[node][is_store]++;
	if (model.has_caches) {
		/* what the low bits of the number are relative to is a multiple of 2 MiB */
		is_walk =
		    translate(core, address, number - model.memory_start[node], ip, node, is_store);
		is_memory = use_caches(core, number >> LAB_LINE_SHIFT);
		core->memory[node][is_store] += is_memory;
		if (is_memory && !is_store && is_sample(&core->until_load))
			trace(core, "load", address, ip, node, false,
			      LAB_GHZ * model.latency_ns[core->node][node]);
	}
	if (model.has_pages)
		count_page(core, address, node, is_store, is_memory, is_walk);
}

static void write_tables(FILE *out, const struct core *core)
{
	for (size_t i = 0; i < core->regions.size; i++) {
		const struct page_counts *row = &core->regions.rows[i];

		if (row->key_plus_one != 0)
			fprintf(out, "walks %d %" PRIx64 " %" PRIu64 "\n", core->cpu,
				(row->key_plus_one - 1) << LAB_REGION_SHIFT, row->walks);
	}
	for (size_t i = 0; i < core->pages.size; i++) {
		const struct page_counts *row = &core->pages.rows[i];

		if (row->key_plus_one != 0)
			fprintf(out,
				"page %d %" PRIx64 " %d %" PRIu64 " %" PRIu64 " %" PRIu64
				" %" PRIu64 " %" PRIu64 "\n",
				core->cpu, (row->key_plus_one - 1) << LAB_PAGE_SHIFT, row->node,
				row->loads, row->stores, row->memory_loads, row->memory_stores,
				row->walks);
	}
}

void core_write(void)
{
	FILE *out = fopen(model.out, "w");

	if (out == NULL)
		return;
	fprintf(out, "numalab-counts 1\n");
	for (int c = 0; c < model.nr_cpus; c++) {
		const struct core *core = &cores[c];

		fprintf(out,
			"cpu %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu64 " %" PRIu64 "\n",
			core->cpu, core->node, core->nr_instructions, core->l1_hits, core->l2_hits,
			core->llc_hits, core->nr_dtlb_misses, core->nr_walks, core->nr_elsewhere);
		for (int n = 0; n < model.nr_nodes; n++)
			fprintf(out,
				"access %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				core->cpu, n, core->accesses[n][0], core->accesses[n][1],
				core->memory[n][0], core->memory[n][1]);
		write_tables(out, core);
	}
	fclose(out);
	if (model.trace != NULL)
		fclose(model.trace);
}
