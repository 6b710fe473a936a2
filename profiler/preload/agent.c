/* The recording agent: life cycle and records. The exported hooks are in interpose.c. */
#include <time.h>

#include "lib/preload/attach.h"
#include "lib/preload/callsite.h"
#include "lib/preload/reals.h"
#include "lib/preload/threads.h"
#include "profiler/preload/agent.h"
#include "profiler/preload/blocks.h"
#include "profiler/preload/ring.h"

#define SMALL_INTERVAL 4096 /* mean number of small allocations per sample, a power of two */

enum state {
	STATE_UNTRIED,
	STATE_STARTING,
	STATE_ACTIVE,
	STATE_OFF,
};

size_t npg_agent_threshold_bytes;
static uint32_t state;
static struct npg_ring ring; /* written before STATE_ACTIVE */
static bool follows_children;

static void switch_off(void)
{
	__atomic_store_n(&state, STATE_OFF, __ATOMIC_RELEASE);
	__atomic_store_n(&npg_agent_threshold_bytes, SIZE_MAX, __ATOMIC_RELAXED);
}

bool npg_agent_is_active(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_ACTIVE;
}

static bool attach(void)
{
	size_t size_bytes = 0;
	void *memory =
	    npg_attach_map(NPG_WIRE_RECORD_ENV, true, sizeof(struct npg_wire_channel), &size_bytes);

	return memory != NULL && npg_ring_init(&ring, memory, size_bytes) &&
	       npg_ring_is_open(&ring);
}

void npg_agent_start(void)
{
	const struct npg_agent_event start = { .type = NPG_WIRE_PROCESS_START };
	uint32_t untried = STATE_UNTRIED;
	uint64_t frame;
	int saved_errno;

	if (__atomic_load_n(&state, __ATOMIC_RELAXED) != STATE_UNTRIED || npg_is_inside() ||
	    !npg_attach_has_environment() || !npg_reals_resolve() ||
	    !__atomic_compare_exchange_n(&state, &untried, STATE_STARTING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	saved_errno = npg_enter();
	if (attach()) {
		follows_children = ring.channel->follows_children != 0;
		if (!follows_children)
			npg_attach_leave_environment(NPG_WIRE_RECORD_ENV);
		npg_threads_init();
		npg_callsite_capture(&frame, 1); /* the unwinder's one-time initialisation */
		__atomic_store_n(&state, STATE_ACTIVE, __ATOMIC_RELEASE);
		__atomic_store_n(&npg_agent_threshold_bytes, ring.channel->min_object_bytes,
				 __ATOMIC_RELAXED);
	} else {
		switch_off();
	}
	npg_leave(saved_errno);
	npg_agent_send(&start);
}

NPG_CONSTRUCTOR static void construct(void)
{
	npg_agent_start();
	if (__atomic_load_n(&state, __ATOMIC_RELAXED) == STATE_UNTRIED)
		switch_off(); /* no environment even now */
}

/* The body of npg_agent_send(), also for calls from inside own work. */
NPG_NOINLINE static void send_record(const struct npg_agent_event *event)
{
	struct npg_wire_record record;
	const struct npg_thread *self;
	struct timespec now;
	int nr_frames = 0;

	if (!npg_ring_is_open(&ring) || !npg_ring_has_room(&ring))
		return;
	self = npg_thread_self();
	if (event->has_stack)
		nr_frames = npg_callsite_capture(record.frames, (int)ring.max_frames);
	for (int i = nr_frames; i < NPG_WIRE_MAX_FRAMES; i++)
		record.frames[i] = 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	record.type = (uint16_t)event->type;
	record.nr_frames = (uint16_t)nr_frames;
	record.pid = self->pid;
	record.time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	record.tid = self->tid;
	record.reserved = 0;
	record.address = event->address;
	record.size_bytes = event->size_bytes;
	record.value = event->value;
	record.value2 = event->value2;
	record.padding[0] = record.padding[1] = 0;
	if (npg_ring_put(&ring, &record) == -EIO) {
		npg_ring_count_fault(&ring);
		switch_off();
	}
}

void npg_agent_send(const struct npg_agent_event *event)
{
	int saved_errno;

	if (!npg_agent_is_active() || npg_is_inside())
		return;
	saved_errno = npg_enter();
	send_record(event);
	npg_leave(saved_errno);
}

void npg_agent_alloc(const void *block, size_t size)
{
	const struct npg_agent_event event = {
		.type = NPG_WIRE_ALLOC,
		.has_stack = true,
		.address = (uintptr_t)block,
		.size_bytes = size,
	};

	if (block == NULL || !npg_agent_is_active() || npg_is_inside() ||
	    size < __atomic_load_n(&npg_agent_threshold_bytes, __ATOMIC_RELAXED))
		return;
	switch (npg_blocks_add(block)) {
	case NPG_BLOCKS_ADDED:
		npg_agent_send(&event);
		break;
	case NPG_BLOCKS_PRESENT: /* reported by a nested hook: one allocator call used another */
		break;
	case NPG_BLOCKS_FULL:
		npg_ring_count_lost(&ring);
		break;
	}
}

bool npg_agent_free(const void *block)
{
	const struct npg_agent_event event = {
		.type = NPG_WIRE_FREE,
		.address = (uintptr_t)block,
	};

	if (!npg_blocks_remove(block))
		return false;
	npg_agent_send(&event);
	return true;
}

void npg_agent_sample_small(size_t size)
{
	struct npg_thread *self = &npg_thread;
	const struct npg_agent_event event = {
		.type = NPG_WIRE_SMALL_SITES,
		.has_stack = true,
		.value = SMALL_INTERVAL,
		.value2 = SMALL_INTERVAL * (uint64_t)size,
	};

	if (!npg_agent_is_active()) {
		self->countdown = UINT32_MAX;
		return;
	}
	if (self->random == 0) /* a new thread: its first interval begins */
		self->random = npg_thread_self()->tid;
	else
		npg_agent_send(&event);
	/* spread evenly over half to one and a half intervals, so that no period of the program
	 * is met */
	self->random = self->random * 1664525 + 1013904223;
	self->countdown = SMALL_INTERVAL / 2 + (self->random >> 16) % SMALL_INTERVAL;
}

void npg_on_thread_create(const struct npg_thread_birth *birth)
{
	const struct npg_agent_event event = {
		.type = NPG_WIRE_THREAD_CREATE,
		.has_stack = true,
		.value = (uintptr_t)birth->start,
		.value2 = birth->ordinal,
	};

	if (npg_agent_is_active())
		send_record(&event);
}

void npg_on_thread_start(const struct npg_thread_birth *birth)
{
	const struct npg_agent_event event = {
		.type = NPG_WIRE_THREAD_START,
		.address = birth->creator_tid,
		.value = (uintptr_t)birth->start,
		.value2 = birth->ordinal,
	};

	if (npg_agent_is_active())
		send_record(&event);
}

void npg_on_thread_exit(void)
{
	const struct npg_agent_event event = { .type = NPG_WIRE_THREAD_EXIT };

	if (npg_agent_is_active())
		send_record(&event);
}

/* A forked child is announced in any case; it is recorded only if children are followed. */
void npg_on_fork(void)
{
	const struct npg_agent_event event = { .type = NPG_WIRE_PROCESS_START };

	if (!npg_agent_is_active())
		return;
	send_record(&event);
	if (!follows_children)
		switch_off();
}
