/* Life cycle of the placing object, and the search for what an allocation is in the plan. */
#define NPG_RULES_INTERPOSER /* for the address of free(), see has_libc_malloc() */
#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>

#include "lib/preload/attach.h"
#include "lib/preload/callsite.h"
#include "lib/preload/hash.h"
#include "lib/preload/reals.h"
#include "lib/preload/threads.h"
#include "replayer/preload/agent.h"
#include "replayer/preload/arena.h"
#include "replayer/preload/pin.h"
#include "replayer/preload/place.h"
#include "replayer/preload/spawn.h"
#include "replayer/preload/statics.h"

#define MAX_FRAMES 64

enum activity {
	UNTRIED,
	STARTING,
	ACTIVE,
	OFF,
};

size_t npg_replay_min_bytes;
static uint32_t activity;
static bool has_arena; /* the C library's malloc is what the program uses */

bool npg_replay_is_active(void)
{
	return __atomic_load_n(&activity, __ATOMIC_ACQUIRE) == ACTIVE;
}

static void switch_off(void)
{
	__atomic_store_n(&activity, OFF, __ATOMIC_RELEASE);
	__atomic_store_n(&npg_replay_min_bytes, SIZE_MAX, __ATOMIC_RELAXED);
}

static bool is_in(const void *code, bool (*test)(const char *name))
{
	struct dl_find_object object;

	return _dl_find_object((void *)(uintptr_t)code, &object) == 0 &&
	       test(object.dlfo_link_map->l_name);
}

static bool is_system(const char *name)
{
	return npg_hash_is_system_module(name) != 0;
}

/*
 * May blocks come from the arena? Only if a free() by the program arrives here, and the allocator
 * behind us is the C library's, which has no other entry than those hooked.
 */
static bool has_libc_malloc(void)
{
	struct dl_find_object winner, own;
	void *real = NULL, *free_of_program = dlsym(RTLD_DEFAULT, "free");

	memcpy(&real, &npg_reals.fn_malloc, sizeof(real));
	return _dl_find_object(free_of_program, &winner) == 0 &&
	       _dl_find_object(&npg_replay_min_bytes, &own) == 0 &&
	       winner.dlfo_link_map == own.dlfo_link_map && is_in(real, is_system);
}

static bool attach(void)
{
	size_t size = 0;
	void *memory =
	    npg_attach_map(NPG_WIRE_REPLAY_ENV, true, sizeof(struct npg_wire_table), &size);

	return memory != NULL && npg_state_init(memory, size) &&
	       npg_state.table->max_frames <= MAX_FRAMES;
}

static void begin(void)
{
	uint64_t frame;

	if (!(npg_state.table->flags & NPG_WIRE_FOLLOW_CHILDREN))
		npg_attach_leave_environment(NPG_WIRE_REPLAY_ENV);
	npg_threads_init();
	npg_callsite_capture(&frame, 1); /* the unwinder's one-time initialisation */
	npg_count(&npg_status->nr_processes, 1);
	npg_pin_init();
	npg_spawn_resolve();
	if (npg_state.table->objects.nr > 0) {
		has_arena = has_libc_malloc();
		if (has_arena)
			npg_arena_init();
	}
	__atomic_store_n(&activity, ACTIVE, __ATOMIC_RELEASE);
	__atomic_store_n(&npg_replay_min_bytes, npg_state.table->min_bytes, __ATOMIC_RELAXED);
}

void npg_replay_start(void)
{
	uint32_t untried = UNTRIED;
	int saved_errno;

	if (__atomic_load_n(&activity, __ATOMIC_RELAXED) != UNTRIED || npg_is_inside() ||
	    !npg_attach_has_environment() || !npg_reals_resolve() ||
	    !__atomic_compare_exchange_n(&activity, &untried, STARTING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	saved_errno = npg_enter();
	if (attach())
		begin();
	else
		switch_off();
	npg_leave(saved_errno);
}

NPG_CONSTRUCTOR static void construct(void)
{
	int saved_errno;

	npg_replay_start();
	if (__atomic_load_n(&activity, __ATOMIC_RELAXED) == UNTRIED)
		switch_off(); /* no environment even now */
	if (!npg_replay_is_active())
		return;
	saved_errno = npg_enter();
	npg_statics_place();
	if (npg_state.table->threads.nr == 1)
		npg_pin_main();
	npg_leave(saved_errno);
}

/* The last look at what was placed, while it is still there. Many programs end without it. */
__attribute__((destructor)) static void destruct(void)
{
	int saved_errno;

	if (!npg_replay_is_active())
		return;
	saved_errno = npg_enter();
	npg_place_look();
	npg_leave(saved_errno);
}

static const struct npg_wire_site *find_site(uint64_t hash)
{
	uint32_t low = 0, high = npg_state.table->sites.nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (npg_state.sites[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < npg_state.table->sites.nr && npg_state.sites[low].hash == hash)
		return &npg_state.sites[low];
	return NULL;
}

/* The site's first object that is not before (which, creator, ordinal); NULL: none. */
static const struct npg_wire_object *find_from(const struct npg_wire_site *site, uint32_t which,
					       uint64_t creator, uint64_t ordinal)
{
	const struct npg_wire_object *objects = &npg_state.objects[site->first_object];
	uint32_t low = 0, high = site->nr_objects;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct npg_wire_object *o = &objects[middle];

		if (o->which < which ||
		    (o->which == which && (o->creator_hash < creator ||
					   (o->creator_hash == creator && o->ordinal < ordinal))))
			low = middle + 1;
		else
			high = middle;
	}
	return low < site->nr_objects ? &objects[low] : NULL;
}

static const struct npg_wire_object *find_exact(const struct npg_wire_site *site, uint32_t which,
						uint64_t creator, uint64_t ordinal)
{
	const struct npg_wire_object *o = find_from(site, which, creator, ordinal);

	return o != NULL && o->which == which && o->creator_hash == creator && o->ordinal == ordinal
		   ? o
		   : NULL;
}

/* What an allocation is in the plan: by its thread's count, by the site's, or in general. */
static const struct npg_wire_object *find_object(const struct npg_wire_site *site)
{
	uint64_t creator = npg_thread_self()->path_hash;
	const struct npg_wire_object *o, *found = NULL;
	uint32_t nr_at_site =
	    __atomic_fetch_add(&npg_state.counters[site - npg_state.sites], 1, __ATOMIC_RELAXED);

	o = find_from(site, NPG_WIRE_THREAD_ORDINAL, creator, 0);
	if (creator != 0 && o != NULL && o->creator_hash == creator &&
	    o->counter != NPG_WIRE_NONE_INDEX) {
		uint32_t *counter = &npg_state.counters[npg_state.table->sites.nr + o->counter];

		found = find_exact(site, NPG_WIRE_THREAD_ORDINAL, creator,
				   __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED));
	}
	if (found == NULL)
		found = find_exact(site, NPG_WIRE_SITE_ORDINAL, 0, nr_at_site);
	if (found == NULL && creator != 0)
		found = find_exact(site, NPG_WIRE_ALL, creator, 0);
	if (found == NULL)
		found = find_exact(site, NPG_WIRE_ALL, 0, 0);
	if (found != NULL && npg_outcomes != NULL)
		npg_count(&npg_outcomes[found->plan_index].nr_matched, 1);
	return found;
}

/* The planned object of the calling stack, counted; NULL: it is not planned. */
static const struct npg_wire_object *find_by_stack(void)
{
	uint64_t frames[MAX_FRAMES];
	int nr = npg_callsite_capture(frames, (int)npg_state.table->max_frames);
	const struct npg_wire_site *site = nr > 0 ? find_site(npg_callsite_hash(frames, nr)) : NULL;

	return site == NULL ? NULL : find_object(site);
}

void *npg_replay_alloc(size_t size, size_t align, bool is_zero)
{
	const struct npg_wire_object *object;
	void *block = NULL;
	int saved_errno;

	npg_replay_start();
	if (!npg_replay_is_active() || npg_is_inside() || npg_state.table->objects.nr == 0 ||
	    size < npg_state.table->min_bytes)
		return NULL;
	saved_errno = npg_enter();
	object = find_by_stack();
	if (object != NULL && !has_arena)
		npg_refuse(NPG_WIRE_OTHER_ALLOCATOR, 0);
	else if (object != NULL && npg_arena_bytes != 0)
		block = npg_arena_alloc(object, size, align, is_zero);
	npg_leave(saved_errno);
	return block;
}

bool npg_replay_free(void *block)
{
	int saved_errno = npg_enter();
	bool is_freed = npg_arena_free(block);

	npg_leave(saved_errno);
	return is_freed;
}

void *npg_replay_realloc(void *block, size_t size)
{
	const struct npg_wire_object *object = NULL;
	size_t old_size = npg_arena_size(block);
	void *new_block;
	int saved_errno;

	if (old_size == 0)
		return npg_reals.fn_realloc(block, size);
	saved_errno = npg_enter();
	if (size == 0) {
		npg_arena_free(block);
		npg_leave(saved_errno);
		return NULL;
	}
	if (size >= npg_state.table->min_bytes)
		object = find_by_stack();
	new_block = size >= npg_state.table->min_bytes || size > old_size / 2
			? npg_arena_resize(block, size, object)
			: NULL;
	npg_leave(saved_errno);
	if (new_block != NULL)
		return new_block;
	new_block = npg_reals.fn_malloc(size); /* small now, or the arena is full */
	if (new_block != NULL) {
		memcpy(new_block, block, size < old_size ? size : old_size);
		npg_replay_free(block);
	}
	return new_block;
}

void npg_replay_mapped(void *address, size_t size, bool is_fresh)
{
	const struct npg_wire_object *object;
	uintptr_t page;
	struct npg_memory memory;
	int saved_errno;

	if (!npg_replay_is_active() || npg_is_inside() || npg_state.table->objects.nr == 0 ||
	    size < npg_state.table->min_bytes)
		return;
	saved_errno = npg_enter();
	object = find_by_stack();
	if (object != NULL) {
		size_t placed;

		page = npg_state.table->page_size_bytes;
		memory = (struct npg_memory){
			.start = (uintptr_t)address,
			.size_bytes = size,
			.limit = ((uintptr_t)address + size + page - 1) & ~(page - 1),
			.planned_bytes = object->size_bytes,
			.plan_index = object->plan_index,
			.is_fresh = is_fresh,
		};
		placed = npg_place_ranges(&memory, &npg_state.ranges[object->first_range],
					  object->nr_ranges);
		if (is_fresh)
			npg_place_tables(&memory, &npg_state.tables[object->first_table],
					 object->nr_tables);
		if (npg_outcomes != NULL) {
			npg_count(&npg_outcomes[object->plan_index].nr_placed, placed > 0);
			npg_count(&npg_outcomes[object->plan_index].placed_bytes, placed);
		}
	}
	npg_leave(saved_errno);
}

void npg_replay_unmap(const void *address, size_t size)
{
	int saved_errno;

	if (!npg_replay_is_active() || npg_is_inside())
		return;
	saved_errno = npg_enter();
	npg_place_forget((uintptr_t)address, size);
	npg_leave(saved_errno);
}

void npg_on_thread_create(const struct npg_thread_birth *birth)
{
	(void)birth;
	if (npg_replay_is_active() && npg_thread_self()->tid == npg_thread_self()->pid)
		npg_pin_main();
}

void npg_on_thread_start(const struct npg_thread_birth *birth)
{
	if (npg_replay_is_active())
		npg_pin_thread(birth->path_hash);
}

void npg_on_thread_exit(void)
{
}

/* A forked child keeps what was placed; it is neither reported nor pinned with its parent. */
void npg_on_fork(void)
{
	if (!npg_replay_is_active() || (npg_state.table->flags & NPG_WIRE_FOLLOW_CHILDREN))
		return;
	npg_state_stop_reporting();
	npg_pin_thread(0);
}
