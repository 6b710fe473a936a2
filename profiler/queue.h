/*
 * Records of several rings put into the order of their times: held back for a while, because a
 * record with an earlier time may still arrive from another ring.
 */
#ifndef NPG_PROFILER_QUEUE_H
#define NPG_PROFILER_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_queue_entry {
	uint64_t time_ns;
	uint64_t sequence; /* order of arrival, for equal times */
	size_t offset;     /* in .bytes */
	uint32_t size;
	int kind;
};

struct npg_queue { /* all zero: empty */
	struct npg_queue_entry *entries;
	size_t nr_entries;
	size_t entries_size;
	unsigned char *bytes;
	size_t nr_bytes;
	size_t bytes_size;
	uint64_t nr_pushed;
};

/**
 * npg_queue_push() - add a copy of a record.
 * @kind: the caller's, handed back by npg_queue_take().
 *
 * Return: 0; -ENOMEM.
 */
NPG_MUST_CHECK int npg_queue_push(struct npg_queue *queue, uint64_t time_ns, int kind,
				  const void *data, uint32_t size);

/**
 * npg_queue_take() - visit the records up to and with @until_ns in the order of their times, and
 * forget them.
 * @visit: gets the record, aligned to 8 bytes, valid during the call.
 */
void npg_queue_take(struct npg_queue *queue, uint64_t until_ns,
		    void (*visit)(void *context, int kind, const void *data, uint32_t size),
		    void *context);

/** npg_queue_release() - free the memory; the queue is empty then. */
void npg_queue_release(struct npg_queue *queue);

#endif
