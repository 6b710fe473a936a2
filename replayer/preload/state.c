/* The launcher's table, checked before anything relies on it. */
#include <sys/syscall.h>

#include "replayer/preload/state.h"

#define SYSTEM_PAGE 4096

struct npg_state npg_state;

static struct npg_wire_status nobody; /* counts what nobody reads; its pages are never touched
				       * unless something is counted */
struct npg_wire_status *npg_status = &nobody;
struct npg_wire_outcome *npg_outcomes;

static const void *find_list(const struct npg_wire_table *table, const struct npg_wire_list *list,
			     size_t item_size)
{
	uint64_t end = list->offset_bytes + ((uint64_t)list->nr * item_size);

	if (list->offset_bytes % 8 != 0 || end > table->status_offset_bytes)
		return NULL;
	return (const char *)table + list->offset_bytes;
}

static bool find_lists(const struct npg_wire_table *t)
{
	npg_state.sites = find_list(t, &t->sites, sizeof(*npg_state.sites));
	npg_state.objects = find_list(t, &t->objects, sizeof(*npg_state.objects));
	npg_state.statics = find_list(t, &t->statics, sizeof(*npg_state.statics));
	npg_state.ranges = find_list(t, &t->ranges, sizeof(*npg_state.ranges));
	npg_state.tables = find_list(t, &t->tables, sizeof(*npg_state.tables));
	npg_state.policies = find_list(t, &t->policies, sizeof(*npg_state.policies));
	npg_state.pins = find_list(t, &t->threads, sizeof(*npg_state.pins));
	npg_state.cpusets = find_list(t, &t->cpusets, sizeof(*npg_state.cpusets));
	return npg_state.sites != NULL && npg_state.objects != NULL && npg_state.statics != NULL &&
	       npg_state.ranges != NULL && npg_state.tables != NULL && npg_state.policies != NULL &&
	       npg_state.pins != NULL && npg_state.cpusets != NULL;
}

static bool lies_within(uint32_t first, uint32_t nr, uint32_t limit)
{
	return first <= limit && nr <= limit - first;
}

static bool check_ranges(const struct npg_wire_range *ranges, uint32_t nr, uint32_t nr_policies)
{
	for (uint32_t i = 0; i < nr; i++)
		if (ranges[i].policy >= nr_policies)
			return false;
	return true;
}

static bool check_objects(const struct npg_wire_table *t)
{
	for (uint32_t i = 0; i < t->objects.nr; i++) {
		const struct npg_wire_object *o = &npg_state.objects[i];

		if (!lies_within(o->first_range, o->nr_ranges, t->ranges.nr) ||
		    !lies_within(o->first_table, o->nr_tables, t->tables.nr) ||
		    o->plan_index >= t->nr_plan_objects || o->pool >= t->nr_pools ||
		    o->size_bytes == 0 ||
		    (o->counter != NPG_WIRE_NONE_INDEX && o->counter >= t->nr_counters) ||
		    (o->is_uniform && o->nr_ranges != 1))
			return false;
	}
	for (uint32_t i = 0; i < t->statics.nr; i++) {
		const struct npg_wire_static *s = &npg_state.statics[i];

		if (!lies_within(s->first_range, s->nr_ranges, t->ranges.nr) ||
		    !lies_within(s->first_table, s->nr_tables, t->tables.nr) ||
		    s->plan_index >= t->nr_plan_objects)
			return false;
	}
	return true;
}

static bool check_indexes(const struct npg_wire_table *t)
{
	for (uint32_t i = 0; i < t->sites.nr; i++)
		if (!lies_within(npg_state.sites[i].first_object, npg_state.sites[i].nr_objects,
				 t->objects.nr))
			return false;
	for (uint32_t i = 0; i < t->threads.nr; i++)
		if (npg_state.pins[i].cpuset >= t->cpusets.nr)
			return false;
	return check_ranges(npg_state.ranges, t->ranges.nr, t->policies.nr) &&
	       check_ranges(npg_state.tables, t->tables.nr, t->policies.nr) && check_objects(t);
}

/* Counters of this process, zero; shared with nobody, copied by fork. */
static bool map_counters(const struct npg_wire_table *t)
{
	size_t size = ((size_t)t->sites.nr + t->nr_counters) * sizeof(uint32_t);
	long memory;

	if (size == 0)
		return true;
	memory = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0L);
	npg_state.counters = (uint32_t *)memory;
	return memory != -1;
}

bool npg_state_init(void *memory, size_t size_bytes)
{
	const struct npg_wire_table *t = memory;
	size_t need;

	if (size_bytes < sizeof(*t) || t->status_offset_bytes < sizeof(*t) ||
	    t->status_offset_bytes % SYSTEM_PAGE != 0)
		return false;
	need = t->status_offset_bytes + sizeof(struct npg_wire_status) +
	       ((size_t)t->nr_plan_objects * sizeof(struct npg_wire_outcome));
	if (size_bytes < need || t->page_size_bytes != (uint32_t)sysconf(_SC_PAGESIZE) ||
	    !find_lists(t) || !check_indexes(t) || !map_counters(t))
		return false;
	mprotect(memory, t->status_offset_bytes, PROT_READ);
	npg_state.table = t;
	npg_status = (void *)((char *)memory + t->status_offset_bytes);
	npg_outcomes = (struct npg_wire_outcome *)(npg_status + 1);
	return true;
}

void npg_state_stop_reporting(void)
{
	npg_status = &nobody;
	npg_outcomes = NULL;
}

void npg_refuse(enum npg_wire_refusal refusal, int error)
{
	uint32_t none = 0;

	npg_count(&npg_status->refused[refusal], 1);
	if (error != 0)
		__atomic_compare_exchange_n(&npg_status->first_errno[refusal], &none,
					    (uint32_t)error, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}
