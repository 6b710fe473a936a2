/*
 * Reserve by compare-and-swap on head, fill, publish by the sequence number. Between the two there
 * are a copy and nothing else, so a thread that is killed leaves a hole very seldom.
 */
#include "profiler/preload/ring.h"
#include "lib/preload/rules.h"

#define MAX_TRIES 4096

bool npg_ring_init(struct npg_ring *ring, void *memory, size_t size_bytes)
{
	struct npg_wire_channel *channel = memory;
	uint32_t nr_slots, max_frames;

	if (size_bytes < sizeof(*channel))
		return false;
	nr_slots = channel->nr_slots;
	max_frames = channel->max_frames;
	if (nr_slots == 0 || (nr_slots & (nr_slots - 1)) != 0 || max_frames > NPG_WIRE_MAX_FRAMES ||
	    nr_slots > (size_bytes - sizeof(*channel)) / NPG_WIRE_SLOT_BYTES)
		return false;
	ring->channel = channel;
	ring->slots = (void *)(channel + 1);
	ring->nr_slots = nr_slots;
	ring->max_frames = max_frames;
	return true;
}

bool npg_ring_is_open(const struct npg_ring *ring)
{
	return __atomic_load_n(&ring->channel->is_enabled, __ATOMIC_RELAXED) != 0;
}

void npg_ring_count_lost(const struct npg_ring *ring)
{
	__atomic_fetch_add(&ring->channel->nr_lost, 1, __ATOMIC_RELAXED);
}

void npg_ring_count_fault(const struct npg_ring *ring)
{
	__atomic_fetch_add(&ring->channel->nr_faults, 1, __ATOMIC_RELAXED);
}

bool npg_ring_has_room(const struct npg_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->channel->head, __ATOMIC_RELAXED);
	uint64_t tail = __atomic_load_n(&ring->channel->tail, __ATOMIC_RELAXED);

	if ((int64_t)(head - tail) < (int64_t)ring->nr_slots)
		return true;
	npg_ring_count_lost(ring);
	return false;
}

/* Return: 0 with a slot number; -ENOSPC; -EIO. */
static int reserve(const struct npg_ring *ring, uint64_t *number)
{
	struct npg_wire_channel *channel = ring->channel;
	uint64_t head = __atomic_load_n(&channel->head, __ATOMIC_RELAXED), tail;

	for (int i = 0; i < MAX_TRIES; i++) {
		tail = __atomic_load_n(&channel->tail, __ATOMIC_ACQUIRE);
		if ((int64_t)(head - tail) < 0) { /* an old head: others went on meanwhile */
			head = __atomic_load_n(&channel->head, __ATOMIC_RELAXED);
			continue;
		}
		if (head - tail >= ring->nr_slots)
			return -ENOSPC;
		if (__atomic_compare_exchange_n(&channel->head, &head, head + 1, true,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			*number = head;
			return 0;
		}
	}
	return -EIO;
}

int npg_ring_put(const struct npg_ring *ring, const struct npg_wire_record *record)
{
	struct npg_wire_record *slot;
	uint64_t number;
	int status = reserve(ring, &number);

	if (status == -ENOSPC)
		npg_ring_count_lost(ring);
	if (status != 0)
		return status;
	slot = &ring->slots[number & (ring->nr_slots - 1)];
	memcpy((char *)slot + sizeof(slot->sequence), (const char *)record + sizeof(slot->sequence),
	       sizeof(*slot) - sizeof(slot->sequence));
	__atomic_store_n(&slot->sequence, number + 1, __ATOMIC_RELEASE);
	return 0;
}
