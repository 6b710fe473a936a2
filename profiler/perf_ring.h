/*
 * The ring of one CPU: memory shared with the kernel, read without system calls.
 */
#ifndef NPG_PROFILER_PERF_RING_H
#define NPG_PROFILER_PERF_RING_H

#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_perf_ring {
	void *base; /* struct perf_event_mmap_page, then the data; NULL: not mapped */
	size_t data_bytes;
	unsigned char *scratch; /* room for one record that wraps around the end */
};

/**
 * npg_perf_ring_map() - map the ring of an event.
 * @nr_pages: of data, a power of two; halved until the locked-memory limit allows it.
 *
 * Return: 0; the negative errno of mmap(2) for even one page; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_perf_ring_map(int fd, size_t nr_pages, struct npg_perf_ring *ring);

/**
 * npg_perf_ring_drain() - hand every whole record that is there to @visit, then free the space.
 * @visit: gets the record's bytes, valid during the call only.
 *
 * A record with an impossible length ends the reading; everything up to the head is given up.
 *
 * Return: number of bytes that were in the ring.
 * One reader at a time.
 */
size_t npg_perf_ring_drain(struct npg_perf_ring *ring,
			   void (*visit)(void *context, const void *record, size_t size_bytes),
			   void *context);

/** npg_perf_ring_unmap() - safe on a zeroed struct. */
void npg_perf_ring_unmap(struct npg_perf_ring *ring);

#endif
