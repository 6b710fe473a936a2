/*
 * What the recorder knows about the recorded program at one moment: processes, threads, mappings,
 * objects. Shared by process.c, space.c, site.c, attribute.c and live_map.c, and by nobody else.
 */
#ifndef NPG_PROFILER_LIVE_TYPES_H
#define NPG_PROFILER_LIVE_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/live_map.h"
#include "profiler/module.h"
#include "profiler/range_map.h"
#include "profiler/table.h"
#include "profiler/writer.h"

struct npg_thread {
	struct npg_thread *next; /* of its process */
	struct npg_process *process;
	int64_t id;
	int64_t parent_id; /* thread row */
	pid_t tid;
	char *path; /* creation path */
	uint32_t nr_children;
	int64_t name_id;
	uint64_t start_routine; /* 0: unknown */
	int64_t start_ns;
	int64_t end_ns;
	int64_t cpu_ns;       /* by clock samples */
	uint64_t stack_start; /* of the mapping that holds its stack pointer */
	uint64_t stack_end;
	bool is_row_written;
	bool is_row_dirty;
};

/* Something that an address can belong to; counted by the ranges that have it. */
struct npg_object {
	uint32_t nr_ranges;
	struct npg_process *process;
	struct npg_thread *thread;
	struct npg_site *site;
	struct npg_module *module;
	struct npg_object_row row; /* row.id 0: not written yet */
};

/* A mapping as the kernel has it; pieces of a split mapping share one. */
struct npg_vma {
	uint32_t nr_ranges;
	uint32_t protection;
	bool is_shared;
	bool has_blocks; /* an allocator's: reported heap blocks are in it */
	bool is_row_written;
	int64_t name_id;           /* as the kernel names it; NPG_NULL: anonymous */
	char kind;                 /* see enum npg_vma_kind */
	uint64_t bias;             /* file offset minus address */
	struct npg_module *module; /* of a mapped file */
	struct npg_thread *stack_of;
	bool is_many_stacks;       /* two living threads have their stack pointers in it */
	struct npg_object *object; /* made on the first sample */
};

enum npg_vma_kind {
	NPG_VMA_ANONYMOUS,
	NPG_VMA_FILE,
	NPG_VMA_SHARED, /* memory that processes share: memfd, System V, /dev/shm, /dev/zero */
	NPG_VMA_HEAP,
	NPG_VMA_STACK,
	NPG_VMA_KERNEL, /* vdso, vvar */
};

/* An ELF module loaded at a place. */
struct npg_load {
	uint32_t nr_ranges;
	struct npg_module *module;
	uint64_t bias; /* address minus ELF virtual address */
};

struct npg_small_site {
	struct npg_site *site;
	uint64_t nr_objects;
	uint64_t size_bytes;
};

/* One image of a process: from fork or exec to exec or exit. */
struct npg_process {
	struct npg_live_map *live;
	struct npg_process *next;
	struct npg_process **link; /* that points to it */
	int64_t id;
	int64_t parent_id;
	pid_t pid;
	struct npg_thread *threads;
	uint32_t nr_living;
	int64_t exe_id;
	int64_t comm_id;
	int64_t start_ns;
	int64_t end_ns;
	const char *agent; /* NULL: none seen */
	struct npg_module *exe;
	uint64_t exe_end; /* the heap begins behind it */
	bool is_row_written;
	bool was_maps_read;
	int64_t maps_read_ns;
	struct npg_range_map vmas;    /* struct npg_vma */
	struct npg_range_map areas;   /* struct npg_object: what the agent saw mapped */
	struct npg_range_map blocks;  /* struct npg_object: heap blocks */
	struct npg_range_map loads;   /* struct npg_load */
	struct npg_table statics;     /* (vaddr, load) to struct npg_object */
	struct npg_table ordinals;    /* (site, thread or 0) to allocations so far */
	struct npg_table site_cache;  /* (hash of addresses, number) to struct npg_site */
	struct npg_table touched;     /* page to 1 (only read) or 2 (written), while hints are on */
	struct npg_table small_index; /* site to place in small_sites + 1 */
	struct npg_small_site *small_sites;
	size_t nr_small_sites;
};

struct npg_site {
	int64_t id;
	bool is_row_written;
	uint64_t hash;
	int nr_frames;
	size_t frames[]; /* places in live->frames */
};

struct npg_frame {
	int64_t id;                /* NPG_NULL: not written yet */
	struct npg_module *module; /* NULL: code outside any file */
	uint64_t vaddr;
};

struct npg_live_map {
	struct npg_live_options options;
	struct npg_writer *writer;
	struct npg_modules modules;
	struct npg_process *processes;
	struct npg_table by_pid;
	struct npg_table by_tid;
	struct npg_table sites;     /* (hash, number of frames) to struct npg_site */
	struct npg_table frame_ids; /* (module, vaddr) to place in frames + 1 */
	struct npg_frame *frames;
	size_t nr_frames;
	struct npg_site **all_sites;
	size_t nr_sites;
	struct npg_source_count counts[NPG_NR_SOURCES];
	struct npg_table counted; /* --keep counts: key to place in count_rows + 1 */
	struct npg_count_row *count_rows;
	size_t nr_count_rows;
	size_t count_rows_size;
	int64_t epoch;
	int64_t now_ns; /* of the record being handled */
	bool is_out_of_memory;
};

/* process.c */
struct npg_process *npg_process_new(struct npg_live_map *live, pid_t pid, int64_t parent_id,
				    int64_t time_ns);
struct npg_process *npg_process_of_pid(struct npg_live_map *live, pid_t pid);
struct npg_process *npg_process_need(struct npg_live_map *live, pid_t pid, int64_t time_ns);
void npg_process_end(struct npg_process *process, int64_t time_ns);
void npg_process_row(struct npg_process *process);
struct npg_thread *npg_thread_new(struct npg_process *process, pid_t tid, struct npg_thread *parent,
				  int64_t ordinal, int64_t time_ns);
struct npg_thread *npg_thread_of_tid(struct npg_live_map *live, pid_t tid);
struct npg_thread *npg_thread_need(struct npg_live_map *live, pid_t pid, pid_t tid,
				   int64_t time_ns);
void npg_thread_set_ordinal(struct npg_thread *thread, struct npg_thread *parent, uint32_t ordinal);
void npg_thread_end(struct npg_thread *thread, int64_t time_ns);
int64_t npg_thread_row(struct npg_thread *thread); /* id; written on first use */

/* space.c */
void npg_space_init(struct npg_process *process);
void npg_space_release(struct npg_process *process);
void npg_space_copy(struct npg_process *child, const struct npg_process *parent);
void npg_space_read_maps(struct npg_process *process, int64_t time_ns);

struct npg_vma_event {
	uint64_t start;
	uint64_t end;
	uint64_t file_offset;
	uint64_t inode;
	uint32_t protection;
	bool is_shared;
	const char *name;
	const uint8_t *build_id;
	size_t build_id_size;
};

/* also space.c */
void npg_space_mapped(struct npg_process *process, const struct npg_vma_event *event);
void npg_space_unmapped(struct npg_process *process, uint64_t start, uint64_t end);
struct npg_object *npg_object_new(struct npg_process *process, enum npg_object_kind kind,
				  uint64_t start, uint64_t size_bytes);
void npg_object_row(struct npg_object *object); /* written on first use */
void npg_object_drop(struct npg_process *process, struct npg_object *object);
struct npg_range *npg_space_vma(struct npg_process *process, uint64_t address);

/* site.c */
struct npg_site *npg_site_get(struct npg_process *process, const uint64_t *frames, int nr_frames);
int64_t npg_site_row(struct npg_live_map *live, struct npg_site *site); /* on first use */
void npg_site_number(struct npg_object *object);
void npg_sites_name(struct npg_live_map *live);
void npg_sites_release(struct npg_live_map *live);

/* sample.c */
void npg_live_flush_counts(struct npg_live_map *live);

/* attribute.c */
struct npg_object *npg_attribute(struct npg_process *process, uint64_t address);
void npg_attribute_stack(struct npg_thread *thread, uint64_t stack_pointer);
const struct npg_insn *npg_attribute_insn(struct npg_process *process, uint64_t ip, bool is_64,
					  struct npg_insn *scratch);
const struct npg_recovery *npg_attribute_recover(struct npg_process *process, uint64_t ip);

#endif
