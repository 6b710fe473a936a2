/*
 * The recording agent: starts itself when the environment names a channel, turns what the hooks
 * see into records. Inactive it does nothing at all. Functions here keep errno and may be called
 * from any thread, in any state; they do nothing inside own work (npg_is_inside()).
 */
#ifndef NPG_PROFILER_PRELOAD_AGENT_H
#define NPG_PROFILER_PRELOAD_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schemas/wire.h"

/*
 * Heap requests below it need no look at anything else: 0 until the agent has tried to start,
 * then the channel's min_object_bytes, or SIZE_MAX while it is inactive.
 */
extern size_t npg_agent_threshold_bytes;

struct npg_agent_event {
	enum npg_wire_type type;
	bool has_stack; /* capture the caller's stack */
	uint64_t address;
	uint64_t size_bytes;
	uint64_t value;
	uint64_t value2;
};

/**
 * npg_agent_start() - attach to the channel, at the first call at which the process has its
 * environment; later calls return at once. MT-Safe.
 */
void npg_agent_start(void);

/** npg_agent_is_active() - are records wanted? MT-Safe. AS-Safe. */
bool npg_agent_is_active(void);

/** npg_agent_send() - put one record into the channel. MT-Safe. AS-Safe. */
void npg_agent_send(const struct npg_agent_event *event);

/** npg_agent_alloc() - a heap block now belongs to the program. NULL and small ones: nothing. */
void npg_agent_alloc(const void *block, size_t size);

/** npg_agent_free() - the block is about to be freed. Return: true if it had been reported. */
bool npg_agent_free(const void *block);

/**
 * npg_agent_sample_small() - npg_thread.countdown has come to its end: report this small
 * allocation for all of those since the last, and set the countdown anew.
 */
void npg_agent_sample_small(size_t size);

#endif
