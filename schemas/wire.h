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
	NPG_WIRE_SMALL_SITES, /* value = nr of small allocations, value2 = bytes, frames */
	NPG_WIRE_NR_TYPES,
};

struct npg_wire_record {
	uint64_t sequence; /* slot number + 1, stored last */
	uint16_t type;     /* enum npg_wire_type */
	uint16_t nr_frames;
	uint32_t pid;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
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
	uint64_t head; /* next slot number to reserve */
	uint64_t padding1[7];
	uint64_t tail; /* next slot number to consume */
	uint64_t padding2[7];
	uint64_t nr_lost;   /* records given up because the ring was full */
	uint64_t nr_faults; /* internal faults after which an agent stopped recording */
	uint64_t padding3[6];
};

_Static_assert(sizeof(struct npg_wire_channel) == 256, "channel header size");

/*
 * The placing table: one memfd, sealed against a change of its size. First struct npg_wire_table
 * and the lists that it names, which the launcher writes before the program runs and the preload
 * object maps read-only; from status_offset_bytes on struct npg_wire_status, which the preload
 * object of each process writes by atomic operations and the launcher reads.
 */
#define NPG_WIRE_NONE_INDEX UINT32_MAX
#define NPG_WIRE_NODE_WORDS 16 /* nodes 0..1023, as many as Linux can have */
#define NPG_WIRE_CPU_WORDS  64 /* CPUs 0..4095 */

enum npg_wire_table_flags {
	NPG_WIRE_FOLLOW_CHILDREN = 1,   /* stay in the environment: programs that it starts, too */
	NPG_WIRE_OVERRIDE_AFFINITY = 2, /* pin also where the program has set a mask itself */
	NPG_WIRE_NO_TABLES = 4, /* huge pages are on for everything: no leaf tables to place */
};

struct npg_wire_list {
	uint32_t nr;
	uint32_t offset_bytes; /* from the start of the memfd */
};

struct npg_wire_table {
	uint32_t magic;
	uint32_t version;
	uint32_t flags;
	uint32_t page_size_bytes;
	uint64_t min_bytes;            /* smaller allocations are not looked at; UINT64_MAX: none */
	uint64_t arena_bytes;          /* address space to reserve for planned heap objects */
	uint64_t max_populate_pages;   /* touched ahead to place page-table pages */
	uint32_t max_mappings;         /* that placing may add */
	uint32_t max_frames;           /* of a call site */
	uint32_t nr_counters;          /* of npg_wire_object.counter */
	uint32_t nr_pools;             /* of npg_wire_object.pool */
	struct npg_wire_list sites;    /* npg_wire_site, by hash */
	struct npg_wire_list objects;  /* npg_wire_object, by site, then which, creator, ordinal */
	struct npg_wire_list statics;  /* npg_wire_static */
	struct npg_wire_list ranges;   /* npg_wire_range */
	struct npg_wire_list tables;   /* npg_wire_range, in regions of 2 MiB */
	struct npg_wire_list policies; /* npg_wire_policy */
	struct npg_wire_list threads;  /* npg_wire_pin, by path_hash */
	struct npg_wire_list cpusets;  /* npg_wire_cpuset */
	uint32_t status_offset_bytes;  /* a multiple of 64 KiB */
	uint32_t nr_plan_objects;      /* entries of npg_wire_status' object list */
	uint64_t padding[16];
};

_Static_assert(sizeof(struct npg_wire_table) == 256, "placing table header size");

struct npg_wire_site {
	uint64_t hash; /* lib/preload/hash.h */
	uint32_t first_object;
	uint32_t nr_objects;
};

enum npg_wire_which { /* as enum npg_plan_which */
		      NPG_WIRE_ALL,
		      NPG_WIRE_SITE_ORDINAL,
		      NPG_WIRE_THREAD_ORDINAL,
};

struct npg_wire_object {
	uint64_t creator_hash; /* of the creating thread's path; 0: any */
	uint64_t ordinal;
	uint64_t size_bytes; /* as planned; ranges scale with the real size */
	uint32_t which;      /* enum npg_wire_which */
	uint32_t counter;    /* counts (site, creator); NPG_WIRE_NONE_INDEX: not needed */
	uint32_t pool;       /* objects that may take each other's address range */
	uint32_t is_uniform; /* one policy, and one for page tables, for any size */
	uint32_t first_range;
	uint32_t nr_ranges;
	uint32_t first_table;
	uint32_t nr_tables;
	uint32_t plan_index; /* of the plan's objects, for the status */
	uint32_t padding;
};

struct npg_wire_static {
	uint64_t check; /* npg_hash_frame(NPG_HASH_SEED, key of the module, vaddr + 1) */
	uint64_t vaddr;
	uint64_t size_bytes;
	uint32_t first_range; /* in pages from the one that holds vaddr */
	uint32_t nr_ranges;
	uint32_t first_table;
	uint32_t nr_tables;
	uint32_t plan_index;
	uint32_t padding;
};

struct npg_wire_range {
	uint64_t first; /* page, or region */
	uint64_t nr;
	uint32_t policy;
	uint32_t padding;
};

struct npg_wire_policy {
	uint32_t mode; /* MPOL_BIND, ... of linux/mempolicy.h */
	uint32_t padding;
	uint64_t nodes[NPG_WIRE_NODE_WORDS];
};

struct npg_wire_pin {
	uint64_t path_hash;
	uint32_t cpuset;
	uint32_t plan_index; /* of the plan's threads */
};

struct npg_wire_cpuset {
	uint64_t cpus[NPG_WIRE_CPU_WORDS];
};

#define NPG_WIRE_STATUS_RANGES 4096

/* A range of memory that was placed; a writer takes the next one until none is left. */
struct npg_wire_placed {
	uint64_t start; /* 0: not written yet, or no longer mapped */
	uint64_t size_bytes;
	uint32_t pid;
	uint32_t policy;
	uint32_t plan_index;
	uint32_t padding;
};

/* What became of one object of the plan. */
struct npg_wire_outcome {
	uint64_t nr_matched; /* allocations at its site that it was for */
	uint64_t nr_placed;
	uint64_t placed_bytes; /* address space that got a policy, each time counted */
	uint64_t padding;
};

enum npg_wire_refusal {                            /* why something planned was not done */
			NPG_WIRE_POLICY_FAILED,    /* mbind or set_mempolicy; the errno is kept */
			NPG_WIRE_NO_ADDRESS_SPACE, /* the reserved range is used up, or could not be
						      had */
			NPG_WIRE_NO_MEMORY,        /* the kernel refused to map it */
			NPG_WIRE_MAPPING_BUDGET,   /* it would take too many mappings */
			NPG_WIRE_OTHER_ALLOCATOR,  /* the program's malloc is not the C library's */
			NPG_WIRE_ALIGNMENT,        /* above 2 MiB */
			NPG_WIRE_TABLE_SKIPPED,    /* page-table pages: exist already, or too many
						      pages to touch */
			NPG_WIRE_PIN_FAILED,       /* sched_setaffinity */
			NPG_WIRE_PIN_RESPECTED,    /* the program's own mask was left as it is */
			NPG_WIRE_NR_REFUSALS,
};

struct npg_wire_status {
	uint64_t nr_processes;     /* in which the object became active */
	uint64_t nr_pinned;        /* threads */
	uint64_t nr_table_regions; /* whose page-table page was placed */
	uint64_t nr_populated_pages;
	uint64_t nr_mappings; /* estimate of those that placing added, all processes */
	uint64_t nr_sampled_pages;
	uint64_t nr_sampled_on_node;
	uint64_t nr_ranges; /* taken; those beyond NPG_WIRE_STATUS_RANGES are not listed */
	uint64_t refused[NPG_WIRE_NR_REFUSALS];
	uint32_t first_errno[NPG_WIRE_NR_REFUSALS];
	uint32_t padding;
	struct npg_wire_placed ranges[NPG_WIRE_STATUS_RANGES];
	/* then npg_wire_table.nr_plan_objects times struct npg_wire_outcome */
};

_Static_assert(sizeof(struct npg_wire_status) % 8 == 0, "status size");

#endif
