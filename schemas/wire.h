/*
 * Memory shared between numapgo and its preload objects inside the user's program.
 *
 * Data formats only: fixed sizes, no pointers, no code. Everything in it may be written by a
 * hostile or dying program, so readers check every index and count.
 *
 * The recording channel is one memfd: struct npg_wire_channel, then nr_slots records of
 * NPG_WIRE_SLOT_BYTES each. Any number of threads in any number of processes produce; one
 * recorder consumes. A producer reserves a slot by compare-and-swap on head while
 * head - tail < nr_slots (else it adds to nr_lost and goes on), fills the slot, and publishes it
 * by storing slot number + 1 into .sequence with release order. A producer that dies in between
 * leaves a hole; the consumer steps over it after a while and counts it as lost.
 */
#ifndef NPG_SCHEMAS_WIRE_H
#define NPG_SCHEMAS_WIRE_H

#include <stdint.h>

/* The preload objects find the channel by this variable: "PID:FD", opened as /proc/PID/fd/FD. */
#define NPG_WIRE_RECORD_ENV "NUMAPGO_RECORD"
#define NPG_WIRE_REPLAY_ENV "NUMAPGO_REPLAY"

#define NPG_WIRE_MAGIC      UINT32_C(0x4e504757) /* "NPGW" */
#define NPG_WIRE_VERSION    UINT32_C(1)
#define NPG_WIRE_SLOT_BYTES 256
#define NPG_WIRE_MAX_FRAMES 22

enum npg_wire_type {
	NPG_WIRE_NONE,
	NPG_WIRE_PROCESS_START, /* an agent became active: after exec, or in a forked child */
	NPG_WIRE_ALLOC,         /* address, size: heap block, returned by the real allocator */
	NPG_WIRE_FREE,          /* address; sent before the real free */
	NPG_WIRE_MMAP,          /* address, size, value = protection | flags << 32 */
	NPG_WIRE_MUNMAP,        /* address, size */
	NPG_WIRE_MREMAP,        /* address = old, size = old size, value = new, value2 = new size */
	NPG_WIRE_SHMAT,         /* address, size, value = shmid */
	NPG_WIRE_SHMDT,         /* address */
	NPG_WIRE_BRK,           /* address = new break */
	NPG_WIRE_THREAD_CREATE, /* value = start routine, value2 = child ordinal of the creator,
	                         * from 0; sent by the creator */
	NPG_WIRE_THREAD_START,  /* sent by the new thread; value = start routine, value2 = child
	                         * ordinal, address = creator's tid */
	NPG_WIRE_THREAD_EXIT,
	NPG_WIRE_SMALL_SITES,   /* value = nr of small allocations, value2 = bytes, frames */
	NPG_WIRE_NR_TYPES,
};

struct npg_wire_record {
	uint64_t sequence; /* slot number + 1, stored last */
	uint16_t type;     /* enum npg_wire_type */
	uint16_t nr_frames;
	uint32_t pid;
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint32_t tid;
	uint32_t reserved;
	uint64_t address;
	uint64_t size_bytes;
	uint64_t value;
	uint64_t value2;
	uint64_t frames[NPG_WIRE_MAX_FRAMES]; /* return addresses, caller first */
	uint64_t padding[2];
};

_Static_assert(sizeof(struct npg_wire_record) == NPG_WIRE_SLOT_BYTES, "slot size");

struct npg_wire_channel {
	uint32_t magic;
	uint32_t version;
	uint32_t nr_slots;         /* a power of two */
	uint32_t is_enabled;       /* cleared by the recorder when it stops; producers then pass */
	uint64_t min_object_bytes; /* smaller heap blocks are not reported one by one */
	uint32_t max_frames;       /* at most NPG_WIRE_MAX_FRAMES */
	uint32_t follows_children; /* 0: the agent takes itself out of the environment */
	uint64_t padding0[4];
	uint64_t head;             /* next slot number to reserve */
	uint64_t padding1[7];
	uint64_t tail;             /* next slot number to consume */
	uint64_t padding2[7];
	uint64_t nr_lost;          /* records given up because the ring was full */
	uint64_t nr_faults;        /* internal faults after which an agent stopped recording */
	uint64_t padding3[6];
};

_Static_assert(sizeof(struct npg_wire_channel) == 256, "channel header size");

/*
 * The placing table (launcher to replay preload object) follows; see the structs' comments.
 */

#endif
