/* Producer's side of the recording channel (schemas/wire.h): any number of threads and processes.
 */
#ifndef NPG_PROFILER_PRELOAD_RING_H
#define NPG_PROFILER_PRELOAD_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "schemas/wire.h"

struct npg_ring {
	struct npg_wire_channel *channel;
	struct npg_wire_record *slots;
	uint32_t nr_slots; /* own copies: the shared ones may be overwritten at any time */
	uint32_t max_frames;
};

/**
 * npg_ring_init() - use a mapped channel.
 * @memory: @size_bytes bytes with the channel's header, magic and version checked already.
 *
 * Return: false if header and size do not fit each other. MT-Unsafe. AS-Safe.
 */
NPG_MUST_CHECK bool npg_ring_init(struct npg_ring *ring, void *memory, size_t size_bytes);

/**
 * npg_ring_is_open() - does the recorder still take records? AS-Safe. MT-Safe.
 */
bool npg_ring_is_open(const struct npg_ring *ring);

/**
 * npg_ring_has_room() - would npg_ring_put() probably succeed? A record that cannot be put is
 * counted as lost here, so that nobody works for it in vain. MT-Safe. AS-Safe.
 */
bool npg_ring_has_room(const struct npg_ring *ring);

/**
 * npg_ring_put() - hand over a copy of @record, whose sequence is set here.
 *
 * Return: 0; -ENOSPC the ring is full, the record is counted as lost; -EIO head and tail are
 * impossible: stop using the channel. Lock-free. MT-Safe. AS-Safe.
 */
int npg_ring_put(const struct npg_ring *ring, const struct npg_wire_record *record);

/** npg_ring_count_lost(), npg_ring_count_fault() - count for the recorder. MT-Safe. AS-Safe. */
void npg_ring_count_lost(const struct npg_ring *ring);
void npg_ring_count_fault(const struct npg_ring *ring);

#endif
