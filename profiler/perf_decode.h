/*
 * Records of the perf ring, bytes to struct. Pure: no I/O, no state; every length is checked.
 */
#ifndef NPG_PROFILER_PERF_DECODE_H
#define NPG_PROFILER_PERF_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

#define NPG_PERF_NR_REGS      24 /* PERF_REG_X86_64_MAX; index = PERF_REG_X86_* */
#define NPG_PERF_BUILD_ID_MAX 20

enum npg_perf_kind {
	NPG_PERF_OTHER, /* a sound record of a kind that is of no use here */
	NPG_PERF_SAMPLE,
	NPG_PERF_MMAP,
	NPG_PERF_COMM,
	NPG_PERF_FORK,
	NPG_PERF_EXIT,
	NPG_PERF_LOST,
	NPG_PERF_THROTTLE,
};

/* What the events of a ring were opened with; all events of one ring share it. */
struct npg_perf_layout {
	uint64_t sample_type; /* PERF_SAMPLE_*; IDENTIFIER, TID and TIME must be in it */
	uint64_t regs_mask;   /* of PERF_SAMPLE_REGS_USER, bits below NPG_PERF_NR_REGS */
};

struct npg_perf_record {
	enum npg_perf_kind kind;
	uint64_t id; /* of the event, as from PERF_EVENT_IOC_ID */
	uint64_t time_ns;
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
	uint32_t parent_pid; /* fork */
	uint32_t parent_tid;
	bool is_user;                    /* sample: the processor was in user mode */
	bool is_exec;                    /* comm: by execve */
	uint64_t ip;                     /* sample */
	uint64_t address;                /* sample, PERF_SAMPLE_ADDR; mmap: start */
	uint64_t period;                 /* sample: events it stands for */
	uint64_t regs_abi;               /* PERF_SAMPLE_REGS_ABI_*; 0: no registers */
	uint64_t regs[NPG_PERF_NR_REGS]; /* those of the mask, others 0 */
	uint64_t size_bytes;             /* mmap */
	uint64_t file_offset;            /* mmap */
	uint64_t inode;                  /* mmap, when the kernel gave no build ID; else 0 */
	uint64_t device;                 /* the same: major << 32 | minor */
	uint32_t protection;             /* mmap: PROT_* */
	uint32_t flags;                  /* mmap: MAP_* */
	uint8_t build_id_size;           /* mmap; 0: none given */
	uint8_t build_id[NPG_PERF_BUILD_ID_MAX];
	uint64_t nr_lost; /* lost */
	const char *name; /* mmap: path, comm: name; NUL-terminated, inside the data; or NULL */
};

/**
 * npg_perf_decode() - decode one record.
 * @data: @size_bytes bytes, starting with the record's header; more bytes may follow it.
 * @record: result; .name points into @data.
 *
 * Return: the record's length in bytes; -EBADMSG (a length that cannot be, or a record cut short).
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_perf_decode(const struct npg_perf_layout *layout, const void *data,
				   size_t size_bytes, struct npg_perf_record *record);

#endif
