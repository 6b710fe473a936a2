/* mbind(2), set_mempolicy(2) and the list of what was placed. */
#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include "lib/preload/threads.h"
#include "replayer/preload/place.h"

#define MAX_NODE  ((unsigned long)NPG_WIRE_NODE_WORDS * 64 + 1)
#define LOOK_EACH 4   /* pages of a range that are looked at */
#define LOOK_MAX  256 /* in one look */

static uint32_t nr_mappings; /* that this process' placing may have added */
static uint32_t nr_listed;   /* live entries of this process */
static uintptr_t listed_low = UINTPTR_MAX, listed_high; /* bounds of all that was ever listed */

static bool take_mappings(uint32_t nr)
{
	uint32_t before = __atomic_fetch_add(&nr_mappings, nr, __ATOMIC_RELAXED);

	if (before + nr <= npg_state.table->max_mappings) {
		npg_count(&npg_status->nr_mappings, nr);
		return true;
	}
	__atomic_fetch_sub(&nr_mappings, nr, __ATOMIC_RELAXED);
	npg_refuse(NPG_WIRE_MAPPING_BUDGET, 0);
	return false;
}

static void give_mappings(uint32_t nr)
{
	__atomic_fetch_sub(&nr_mappings, nr, __ATOMIC_RELAXED);
}

static void widen(uintptr_t start, uintptr_t end)
{
	uintptr_t low = __atomic_load_n(&listed_low, __ATOMIC_RELAXED);
	uintptr_t high = __atomic_load_n(&listed_high, __ATOMIC_RELAXED);

	while (start < low && !__atomic_compare_exchange_n(&listed_low, &low, start, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	while (end > high && !__atomic_compare_exchange_n(&listed_high, &high, end, true,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Lists a range; the oldest entry that is over is used anew, a live one is never. */
static void list(const struct npg_memory *memory, uintptr_t start, size_t size, uint32_t policy)
{
	uint64_t at = __atomic_fetch_add(&npg_status->nr_ranges, 1, __ATOMIC_RELAXED);
	struct npg_wire_placed *entry = &npg_status->ranges[at % NPG_WIRE_STATUS_RANGES];

	if (__atomic_load_n(&entry->start, __ATOMIC_RELAXED) != 0)
		return;
	entry->size_bytes = size;
	entry->pid = npg_thread_self()->pid;
	entry->policy = policy;
	entry->plan_index = memory->plan_index;
	widen(start, start + size);
	__atomic_store_n(&entry->start, start, __ATOMIC_RELEASE);
	__atomic_fetch_add(&nr_listed, 1, __ATOMIC_RELAXED);
}

/* Return: bytes that have the policy now. */
static size_t bind_range(const struct npg_memory *memory, uintptr_t start, uintptr_t end,
			 uint32_t policy)
{
	const struct npg_wire_policy *p = &npg_state.policies[policy];
	unsigned long flags = memory->moves_pages ? MPOL_MF_MOVE : 0;

	if (end <= start || !take_mappings(2))
		return 0;
	if (syscall(SYS_mbind, start, end - start, (unsigned long)p->mode, p->nodes, MAX_NODE,
		    flags) != 0) {
		/* pages that could not be moved (EIO) have the policy all the same */
		npg_refuse(NPG_WIRE_POLICY_FAILED, errno);
		if (errno != EIO) {
			give_mappings(2);
			return 0;
		}
	}
	list(memory, start, end - start, policy);
	return end - start;
}

static uint64_t scale(const struct npg_memory *memory, uint64_t position)
{
	if (memory->size_bytes == memory->planned_bytes)
		return position;
	return (uint64_t)((double)position * (double)memory->size_bytes /
			  (double)memory->planned_bytes);
}

size_t npg_place_ranges(const struct npg_memory *memory, const struct npg_wire_range *ranges,
			uint32_t nr_ranges)
{
	size_t placed = 0;
	uintptr_t page = npg_state.table->page_size_bytes;
	uintptr_t base = memory->start & ~(page - 1);
	uint64_t nr_planned = memory->planned_bytes / page;

	for (uint32_t i = 0; i < nr_ranges; i++) {
		uintptr_t start = base + (scale(memory, ranges[i].first) * page);
		uintptr_t end = base + (scale(memory, ranges[i].first + ranges[i].nr) * page);

		/* the last range reaches to the end, rounding or not */
		if (end > memory->limit || ranges[i].first + ranges[i].nr >= nr_planned)
			end = memory->limit;
		placed += bind_range(memory, start, end, ranges[i].policy);
	}
	return placed;
}

struct task_policy {
	int mode;
	unsigned long nodes[NPG_WIRE_NODE_WORDS];
};

static bool save_policy(struct task_policy *own)
{
	memset(own, 0, sizeof(*own));
	if (syscall(SYS_get_mempolicy, &own->mode, own->nodes, MAX_NODE - 1, NULL, 0UL) == 0)
		return true;
	npg_refuse(NPG_WIRE_POLICY_FAILED, errno);
	return false;
}

static void restore_policy(const struct task_policy *own)
{
	if (syscall(SYS_set_mempolicy, own->mode, own->nodes, MAX_NODE) != 0)
		syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
}

/* Is no page of the region present, so that it most likely has no page-table page? */
static bool is_untouched(uintptr_t start)
{
	unsigned char pages[NPG_REGION_BYTES / 4096];
	size_t nr = NPG_REGION_BYTES / npg_state.table->page_size_bytes;

	if (syscall(SYS_mincore, start, NPG_REGION_BYTES, pages) != 0)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (pages[i] & 1)
			return false;
	return true;
}

static bool take_page(void)
{
	uint64_t before = __atomic_fetch_add(&npg_status->nr_populated_pages, 1, __ATOMIC_RELAXED);

	if (before < npg_state.table->max_populate_pages)
		return true;
	__atomic_fetch_sub(&npg_status->nr_populated_pages, 1, __ATOMIC_RELAXED);
	return false;
}

/* Touch one page of each region from @region on, below @end. */
static void touch_regions(const struct npg_memory *memory, uintptr_t region, uintptr_t end)
{
	for (; region < end; region += NPG_REGION_BYTES) {
		uintptr_t at = region;

		if (at < memory->start)
			at = memory->start & ~((uintptr_t)npg_state.table->page_size_bytes - 1);
		if ((!memory->is_fresh &&
		     (at != region || region + NPG_REGION_BYTES > end || !is_untouched(region))) ||
		    !take_page()) {
			npg_refuse(NPG_WIRE_TABLE_SKIPPED, 0);
			continue;
		}
		__atomic_fetch_or((unsigned char *)at, 0, __ATOMIC_RELAXED);
		npg_count(&npg_status->nr_table_regions, 1);
	}
}

void npg_place_tables(const struct npg_memory *memory, const struct npg_wire_range *tables,
		      uint32_t nr_tables)
{
	uintptr_t base = memory->start & ~(NPG_REGION_BYTES - 1);
	uintptr_t object_end = memory->start + memory->size_bytes;
	struct task_policy own;

	if (nr_tables == 0 || (npg_state.table->flags & NPG_WIRE_NO_TABLES) || !save_policy(&own))
		return;
	for (uint32_t i = 0; i < nr_tables; i++) {
		const struct npg_wire_policy *p = &npg_state.policies[tables[i].policy];
		uintptr_t start = base + (scale(memory, tables[i].first) * NPG_REGION_BYTES);
		uint64_t last = tables[i].first + tables[i].nr;
		uintptr_t end = base + (scale(memory, last) * NPG_REGION_BYTES);

		if (end > object_end || last >= memory->planned_bytes / NPG_REGION_BYTES)
			end = object_end;
		if (syscall(SYS_set_mempolicy, (unsigned long)p->mode, p->nodes, MAX_NODE) != 0) {
			npg_refuse(NPG_WIRE_POLICY_FAILED, errno);
			break;
		}
		touch_regions(memory, start, end);
	}
	restore_policy(&own);
}

void npg_place_reset(uintptr_t start, size_t size_bytes)
{
	npg_place_forget(start, size_bytes);
	syscall(SYS_mbind, start, size_bytes, (unsigned long)MPOL_DEFAULT, NULL, 0UL, 0UL);
}

static uint32_t nr_entries(void)
{
	uint64_t nr = __atomic_load_n(&npg_status->nr_ranges, __ATOMIC_RELAXED);

	return nr < NPG_WIRE_STATUS_RANGES ? (uint32_t)nr : NPG_WIRE_STATUS_RANGES;
}

/* An entry of this process, or NULL. */
static struct npg_wire_placed *own_entry(uint32_t i, uintptr_t *start)
{
	struct npg_wire_placed *entry = &npg_status->ranges[i];

	*start = (uintptr_t)__atomic_load_n(&entry->start, __ATOMIC_ACQUIRE);
	return *start != 0 && entry->pid == npg_thread_self()->pid ? entry : NULL;
}

void npg_place_forget(uintptr_t start, size_t size_bytes)
{
	if (__atomic_load_n(&nr_listed, __ATOMIC_RELAXED) == 0 ||
	    start >= __atomic_load_n(&listed_high, __ATOMIC_RELAXED) ||
	    start + size_bytes <= __atomic_load_n(&listed_low, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < nr_entries(); i++) {
		uintptr_t at;
		struct npg_wire_placed *entry = own_entry(i, &at);
		uint64_t listed = at;

		if (entry == NULL || at >= start + size_bytes || at + entry->size_bytes <= start ||
		    !__atomic_compare_exchange_n(&entry->start, &listed, 0, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_fetch_sub(&nr_listed, 1, __ATOMIC_RELAXED);
		give_mappings(2);
	}
}

static void look_at(const struct npg_wire_placed *entry, uintptr_t start)
{
	const struct npg_wire_policy *p = &npg_state.policies[entry->policy];
	uintptr_t page = npg_state.table->page_size_bytes;
	size_t nr_pages = (size_t)entry->size_bytes / page;
	void *pages[LOOK_EACH];
	int nodes[LOOK_EACH];

	for (size_t i = 0; i < LOOK_EACH; i++) {
		pages[i] = (void *)(start + (nr_pages * i / LOOK_EACH * page));
		nodes[i] = -1;
	}
	if (syscall(SYS_move_pages, 0, (unsigned long)LOOK_EACH, pages, NULL, nodes, 0) != 0)
		return;
	for (int i = 0; i < LOOK_EACH; i++) {
		if (nodes[i] < 0 || nodes[i] >= NPG_WIRE_NODE_WORDS * 64)
			continue; /* not resident */
		npg_count(&npg_status->nr_sampled_pages, 1);
		if (p->nodes[nodes[i] / 64] >> (nodes[i] % 64) & 1)
			npg_count(&npg_status->nr_sampled_on_node, 1);
	}
}

void npg_place_look(void)
{
	int left = LOOK_MAX / LOOK_EACH;

	for (uint32_t i = 0; i < nr_entries() && left > 0; i++) {
		uintptr_t at;
		const struct npg_wire_placed *entry = own_entry(i, &at);

		if (entry != NULL) {
			look_at(entry, at);
			left--;
		}
	}
}
