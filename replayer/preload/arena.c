/* Slots of the arena: taking, recycling, resizing. */
#include <sys/syscall.h>

#include "replayer/preload/arena.h"
#include "replayer/preload/place.h"

#define MIN_OFFSET 16 /* the C library's chunk header */
#define IS_MMAPPED 2  /* in a chunk's size, as malloc.c of the C library has it */
#define NR_CLASSES 96
#define KEEP_BYTES ((uint64_t)32 << 20) /* memory kept in free slots */
#define KEEP_EACH  ((uint64_t)8 << 20)
#define SMALLEST   ((size_t)1 << 30)

/* A run of regions; kept in a table by its first region. */
struct slot {
	uint32_t is_live;
	uint32_t next; /* free list: slot number + 1 */
	uint32_t class;
	uint32_t object;  /* index in the table */
	uint64_t mapped;  /* bytes from the slot's start that are mapped for use */
	uint64_t total;   /* of these, used by the block and its header; whole pages */
	uint64_t touched; /* of these, may have content: the largest total since it was dropped */
	uint64_t kept;    /* counted in kept_bytes, while the slot is free */
	uint64_t placed_for; /* size that the policies were set for; 0: never */
	uint32_t offset;     /* of the block in the slot */
	uint8_t is_dirty;    /* free, with old content */
	uint8_t is_placed;   /* the last try to place it succeeded */
	uint16_t padding;
};

uintptr_t npg_arena_start;
size_t npg_arena_bytes;

static struct slot *slots;
static uint64_t *heads; /* by pool and class: counter << 32 | slot number + 1 */
static uint32_t nr_regions;
static uint32_t next_region;
static uint64_t kept_bytes;

static void *map(size_t size, int protection)
{
	return (void *)syscall(SYS_mmap, NULL, size, protection,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
}

/* Reserve with the start on a region's boundary. Return: 0 if there is no room. */
static uintptr_t reserve(size_t size)
{
	char *start = map(size + NPG_REGION_BYTES, PROT_NONE);
	uintptr_t aligned;

	if (start == MAP_FAILED)
		return 0;
	aligned = ((uintptr_t)start + NPG_REGION_BYTES - 1) & ~(NPG_REGION_BYTES - 1);
	if (aligned > (uintptr_t)start)
		syscall(SYS_munmap, start, aligned - (uintptr_t)start);
	if (aligned - (uintptr_t)start < NPG_REGION_BYTES)
		syscall(SYS_munmap, aligned + size,
			NPG_REGION_BYTES - (aligned - (uintptr_t)start));
	return aligned;
}

void npg_arena_init(void)
{
	size_t size = (size_t)npg_state.table->arena_bytes & ~(NPG_REGION_BYTES - 1);
	uintptr_t start = 0;

	if (size == 0)
		return;
	while (start == 0 && size >= SMALLEST) {
		start = reserve(size);
		if (start == 0)
			size /= 2;
	}
	if (start == 0) {
		npg_refuse(NPG_WIRE_NO_ADDRESS_SPACE, ENOMEM);
		return;
	}
	nr_regions = (uint32_t)(size / NPG_REGION_BYTES);
	slots = map(nr_regions * sizeof(*slots), PROT_READ | PROT_WRITE);
	heads = map((size_t)npg_state.table->nr_pools * NR_CLASSES * sizeof(*heads),
		    PROT_READ | PROT_WRITE);
	if (slots == MAP_FAILED || heads == MAP_FAILED) {
		syscall(SYS_munmap, start, size);
		npg_refuse(NPG_WIRE_NO_MEMORY, ENOMEM);
		return;
	}
	npg_arena_start = start;
	__atomic_store_n(&npg_arena_bytes, size, __ATOMIC_RELEASE);
}

/* Size classes: 1, 2, 3, 4, then four steps in each doubling. @regions is rounded up to its class'.
 */
static uint32_t class_of(uint32_t *regions)
{
	uint32_t n = *regions, power, step, nr_steps;

	if (n <= 4)
		return n - 1;
	power = 31 - (uint32_t)__builtin_clz(n - 1); /* 2^power < n <= 2^(power + 1) */
	step = UINT32_C(1) << (power - 2);
	nr_steps = (n - (UINT32_C(1) << power) + step - 1) / step;
	*regions = (UINT32_C(1) << power) + nr_steps * step;
	return 4 + (power - 2) * 4 + nr_steps - 1;
}

static size_t bytes_of_class(uint32_t class)
{
	uint32_t power;

	if (class < 4)
		return (class + 1) * NPG_REGION_BYTES;
	power = 2 + (class - 4) / 4;
	return (((size_t)1 << power) + ((class - 4) % 4 + 1) * ((size_t)1 << (power - 2))) *
	       NPG_REGION_BYTES;
}

static uint64_t *head_of(uint32_t pool, uint32_t class)
{
	return &heads[((size_t)pool * NR_CLASSES) + class];
}

static struct slot *pop(uint64_t *head)
{
	uint64_t old = __atomic_load_n(head, __ATOMIC_ACQUIRE), new;
	struct slot *slot;

	do {
		if ((uint32_t)old == 0)
			return NULL;
		slot = &slots[(uint32_t)old - 1];
		new = ((old >> 32) + 1) << 32 | __atomic_load_n(&slot->next, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(head, &old, new, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return slot;
}

static void push(uint64_t *head, struct slot *slot)
{
	uint64_t old = __atomic_load_n(head, __ATOMIC_RELAXED), new;

	do {
		__atomic_store_n(&slot->next, (uint32_t)old, __ATOMIC_RELAXED);
		new = ((old >> 32) + 1) << 32 | (uint32_t)(slot - slots + 1);
	} while (!__atomic_compare_exchange_n(head, &old, new, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
}

static struct slot *fresh(uint32_t regions)
{
	uint32_t at = __atomic_load_n(&next_region, __ATOMIC_RELAXED);

	do {
		if (regions > nr_regions - at)
			return NULL;
	} while (!__atomic_compare_exchange_n(&next_region, &at, at + regions, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return &slots[at];
}

static uintptr_t start_of(const struct slot *slot)
{
	return npg_arena_start + ((size_t)(slot - slots) * NPG_REGION_BYTES);
}

static uint64_t whole_pages(uint64_t bytes)
{
	uint64_t page = npg_state.table->page_size_bytes;

	return (bytes + page - 1) & ~(page - 1);
}

/* Map the slot for use: all of it, or where the kernel refuses that, what is needed. */
static bool map_slot(struct slot *slot, uint64_t need)
{
	uint64_t sizes[] = { bytes_of_class(slot->class), need };

	for (int i = 0; i < 2; i++) {
		if (syscall(SYS_mmap, start_of(slot), sizes[i], PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L) == -1)
			continue;
		slot->mapped = sizes[i];
		slot->placed_for = slot->touched = 0;
		slot->is_dirty = 0;
		return true;
	}
	npg_refuse(NPG_WIRE_NO_MEMORY, errno);
	return false;
}

/* Policies for a block of @size bytes, unless the slot has them already. */
static void place(struct slot *slot, const struct npg_wire_object *object, size_t size)
{
	uintptr_t start = start_of(slot);
	struct npg_memory memory = {
		.start = start + slot->offset,
		.size_bytes = size,
		.limit = start + (object->is_uniform ? slot->mapped : slot->total),
		.planned_bytes = object->size_bytes,
		.plan_index = object->plan_index,
		.is_fresh = slot->is_dirty == 0,
	};
	bool is_known = slot->placed_for != 0 && (object->is_uniform || slot->placed_for == size);

	if (!is_known) {
		if (slot->placed_for != 0)
			npg_place_reset(start, slot->mapped);
		slot->placed_for = size;
		slot->is_placed = npg_place_ranges(&memory, &npg_state.ranges[object->first_range],
						   object->nr_ranges) > 0;
	}
	if (slot->is_dirty == 0)
		npg_place_tables(&memory, &npg_state.tables[object->first_table],
				 object->nr_tables);
	if (slot->is_placed && npg_outcomes != NULL) {
		npg_count(&npg_outcomes[object->plan_index].nr_placed, 1);
		npg_count(&npg_outcomes[object->plan_index].placed_bytes, size);
	}
}

/* The header that the C library's own mapped chunks have. */
static void make_header(const struct slot *slot, size_t header[2])
{
	header[0] = slot->offset - MIN_OFFSET;
	header[1] = (slot->total - header[0]) | IS_MMAPPED;
}

static void write_header(const struct slot *slot)
{
	size_t header[2];

	make_header(slot, header);
	memcpy((void *)(start_of(slot) + header[0]), header, sizeof(header));
}

static void set_total(struct slot *slot, uint64_t total)
{
	slot->total = total;
	if (slot->touched < total)
		slot->touched = total;
}

static struct slot *take(const struct npg_wire_object *object, uint64_t total)
{
	uint32_t regions = (uint32_t)((total + NPG_REGION_BYTES - 1) / NPG_REGION_BYTES);
	uint32_t class = class_of(&regions);
	struct slot *slot = pop(head_of(object->pool, class));

	if (slot == NULL) {
		slot = fresh(regions);
		if (slot == NULL) {
			npg_refuse(NPG_WIRE_NO_ADDRESS_SPACE, 0);
			return NULL;
		}
		slot->class = class;
	}
	__atomic_fetch_sub(&kept_bytes, slot->kept, __ATOMIC_RELAXED);
	slot->kept = 0;
	if (slot->mapped < total && !map_slot(slot, total)) {
		push(head_of(object->pool, class), slot);
		return NULL;
	}
	return slot;
}

void *npg_arena_alloc(const struct npg_wire_object *object, size_t size, size_t align, bool is_zero)
{
	size_t offset = align > MIN_OFFSET ? align : MIN_OFFSET;
	struct slot *slot;
	void *block;

	if (align > NPG_REGION_BYTES) {
		npg_refuse(NPG_WIRE_ALIGNMENT, 0);
		return NULL;
	}
	if (size >= npg_arena_bytes)
		return NULL;
	slot = take(object, whole_pages(offset + size));
	if (slot == NULL)
		return NULL;
	slot->offset = (uint32_t)offset;
	set_total(slot, whole_pages(offset + size));
	slot->object = (uint32_t)(object - npg_state.objects);
	place(slot, object, size);
	block = (void *)(start_of(slot) + offset);
	if (is_zero && slot->is_dirty)
		memset(block, 0, size);
	slot->is_dirty = 0;
	write_header(slot);
	__atomic_store_n(&slot->is_live, 1, __ATOMIC_RELEASE);
	return block;
}

/* The slot whose block starts at @block, or NULL. */
static struct slot *find(const void *block)
{
	/* a block starts at most at the end of its slot's first region */
	size_t distance = (uintptr_t)block - npg_arena_start, header[2], want[2];
	struct slot *slot = &slots[distance == 0 ? 0 : (distance - 1) / NPG_REGION_BYTES];

	if (__atomic_load_n(&slot->is_live, __ATOMIC_ACQUIRE) == 0 ||
	    start_of(slot) + slot->offset != (uintptr_t)block)
		return NULL;
	memcpy(header, (const char *)block - MIN_OFFSET, sizeof(header));
	make_header(slot, want);
	return memcmp(header, want, sizeof(want)) == 0 ? slot : NULL;
}

size_t npg_arena_size(const void *block)
{
	const struct slot *slot = find(block);

	return slot == NULL ? 0 : (size_t)slot->total - slot->offset;
}

/* Keep the memory for the next block, if it is little; the program may have protected it. */
static bool keep_content(struct slot *slot)
{
	if (slot->touched > KEEP_EACH ||
	    mprotect((void *)start_of(slot), slot->mapped, PROT_READ | PROT_WRITE) != 0)
		return false;
	if (__atomic_add_fetch(&kept_bytes, slot->touched, __ATOMIC_RELAXED) > KEEP_BYTES) {
		__atomic_fetch_sub(&kept_bytes, slot->touched, __ATOMIC_RELAXED);
		return false;
	}
	slot->kept = slot->touched;
	slot->is_dirty = 1;
	return true;
}

/* Back to reserved address space: no memory, no page tables, nothing that the program set. */
static void drop_content(struct slot *slot)
{
	npg_place_forget(start_of(slot), slot->mapped);
	if (syscall(SYS_mmap, start_of(slot), slot->mapped, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0L) == -1) {
		slot->is_dirty = 1; /* too many mappings: it stays as it is */
		return;
	}
	slot->mapped = slot->touched = slot->placed_for = 0;
	slot->is_dirty = 0;
}

bool npg_arena_free(void *block)
{
	struct slot *slot = find(block);
	uint32_t live = 1;

	if (slot == NULL || !__atomic_compare_exchange_n(&slot->is_live, &live, 0, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	if (!keep_content(slot))
		drop_content(slot);
	push(head_of(npg_state.objects[slot->object].pool, slot->class), slot);
	return true;
}

/* Shrink or grow inside the slot. */
static void resize_here(struct slot *slot, uint64_t total)
{
	if (total < slot->total)
		madvise((void *)(start_of(slot) + total), slot->total - total, MADV_DONTNEED);
	set_total(slot, total);
	write_header(slot);
}

/* Do both have the same policy everywhere, so that pages keep theirs when they move? */
static bool is_same_policy(const struct slot *a, const struct slot *b)
{
	const struct npg_wire_object *x = &npg_state.objects[a->object],
				     *y = &npg_state.objects[b->object];

	return x->is_uniform && y->is_uniform && x->pool == y->pool;
}

/*
 * Move the pages of @old under the new block, page tables and all; the old slot stays mapped, and
 * empty. What cannot be moved is copied.
 */
static void move_content(void *to, const void *block, const struct slot *old)
{
	const struct slot *new_slot = find(to);

	if (new_slot->offset == old->offset && is_same_policy(old, new_slot) &&
	    syscall(SYS_mremap, start_of(old), old->total, old->total,
		    MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, start_of(new_slot)) != -1) {
		write_header(new_slot);
		return;
	}
	memcpy(to, block, (size_t)old->total - old->offset);
}

void *npg_arena_resize(void *block, size_t size, const struct npg_wire_object *object)
{
	struct slot *slot = find(block);
	const struct npg_wire_object *old_object = &npg_state.objects[slot->object];
	uint64_t total;
	void *new_block;

	if (size >= npg_arena_bytes)
		return NULL;
	total = whole_pages(slot->offset + size);
	if (total <= slot->mapped &&
	    (object == NULL || object == old_object || object->pool == old_object->pool)) {
		resize_here(slot, total);
		return block;
	}
	new_block =
	    npg_arena_alloc(object != NULL ? object : old_object, size, slot->offset, false);
	if (new_block == NULL)
		return NULL;
	if (total >= slot->total)
		move_content(new_block, block, slot);
	else
		memcpy(new_block, block, size);
	npg_arena_free(block);
	return new_block;
}
