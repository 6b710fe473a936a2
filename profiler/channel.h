/*
 * The recorder's side of the recording channel (schemas/wire.h): makes the shared memory, takes
 * records out in the order of reservation. Whatever the programs write there is checked.
 */
#ifndef NPG_PROFILER_CHANNEL_H
#define NPG_PROFILER_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/error.h"
#include "schemas/wire.h"

#define NPG_CHANNEL_HOLE_NS UINT64_C(1000000000) /* patience with an unpublished record */

struct npg_channel_options {
	uint32_t nr_slots;         /* a power of two, at least 2; each takes 256 bytes */
	uint64_t min_object_bytes; /* smaller heap blocks are not reported one by one */
	uint32_t max_frames;       /* 0 .. NPG_WIRE_MAX_FRAMES */
	bool follows_children;     /* record children, and programs that they exec */
};

/* What was taken and what was not, since npg_channel_create(). */
struct npg_channel_stats {
	uint64_t nr_records;   /* handed to the callback */
	uint64_t nr_lost;      /* given up by programs, because the ring was full */
	uint64_t nr_holes;     /* reserved but never published: the program died in between */
	uint64_t nr_malformed; /* not a record: left out */
	uint64_t nr_faults;    /* agents that stopped recording after an internal fault */
};

struct npg_channel;

/**
 * npg_channel_create() - make an empty, enabled channel.
 * @channel: result, to be ended with npg_channel_close().
 *
 * The memory cannot be shrunk by anybody who opens it (file seals).
 *
 * Return: 0; -EINVAL (options), -ENOMEM, -EMFILE and others of memfd_create(2); @err set.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_channel_create(struct npg_channel **channel,
				      const struct npg_channel_options *options,
				      struct npg_error *err);

/** npg_channel_close() - unmap and close; NULL is allowed. Programs keep their own mappings. */
void npg_channel_close(struct npg_channel *channel);

/**
 * npg_channel_variable() - "NUMAPGO_RECORD=PID:FD" for the program's environment, valid while
 * this process lives and the channel is open. Owned by the channel.
 */
const char *npg_channel_variable(const struct npg_channel *channel);

/** npg_channel_stop() - tell all agents to stop sending. What is there can still be drained. */
void npg_channel_stop(struct npg_channel *channel);

/**
 * npg_channel_drain() - take out everything that is there.
 * @now_ns: CLOCK_MONOTONIC. A slot that is reserved but not published ends the drain, until
 *          NPG_CHANNEL_HOLE_NS have passed since it was first met; then it is a hole.
 * @is_over: no program writes any more: holes are stepped over at once.
 * @take: called for each record, which is a checked copy, valid during the call.
 *
 * Return: number of records taken.
 * MT-Unsafe (one consumer). Not AS-Safe.
 */
size_t npg_channel_drain(struct npg_channel *channel, uint64_t now_ns, bool is_over,
			 void (*take)(const struct npg_wire_record *record, void *arg), void *arg);

/** npg_channel_get_stats() - counters so far. */
void npg_channel_get_stats(const struct npg_channel *channel, struct npg_channel_stats *stats);

/**
 * npg_channel_decode() - check one slot's bytes.
 * @data: @size_bytes bytes, of any alignment and content.
 * @record: written only on success: type known, frame count within bounds, frames beyond it 0.
 *
 * Return: 0; -EINVAL.
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_channel_decode(const void *data, size_t size_bytes,
				      struct npg_wire_record *record);

#endif
