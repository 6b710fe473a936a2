/*
 * What a recording says about one program, in memory: its threads, objects and accesses.
 *
 * One program is looked at: the process with the most samples, or all processes that ran the same
 * executable; other processes are only counted. Threads of several processes with the same
 * creation path are one thread here, since a plan names threads by their paths.
 */
#ifndef NPG_ANALYZER_PROFILE_H
#define NPG_ANALYZER_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/arena.h"
#include "lib/compiler.h"
#include "lib/db.h"
#include "lib/error.h"

#define NPG_NONE (-1) /* index of nothing */

enum npg_object_kind {
	NPG_OBJECT_STATIC,
	NPG_OBJECT_HEAP,
	NPG_OBJECT_MMAP,
	NPG_OBJECT_FILE,
	NPG_OBJECT_SHARED,
	NPG_OBJECT_STACK,
	NPG_OBJECT_SMALL_HEAP,
	NPG_OBJECT_ANONYMOUS,
	NPG_OBJECT_CODE,
	NPG_OBJECT_KERNEL,
	NPG_OBJECT_NR_KINDS,
};

enum npg_source_role {
	NPG_ROLE_TOUCH,    /* first-touch page faults */
	NPG_ROLE_SOFTWARE, /* clock samples, NUMA hint faults */
	NPG_ROLE_HARDWARE, /* loads that a PMU sampled */
	NPG_ROLE_WALK,     /* accesses that missed the TLB */
};

struct npg_profile_source {
	int64_t id;
	const char *name;
	const char *state;
	const char *reason;
	enum npg_source_role role;
	bool is_clock;
	bool is_used; /* its samples are among the accesses */
	double period;
	const char *period_unit;
	int64_t nr_records, nr_samples, nr_no_operand, nr_undecoded, nr_unmatched, nr_lost,
	    nr_throttled;
	double seen;    /* samples of the program */
	double matched; /* of these, in some object */
	double used;    /* of these, in data */
	double weight;  /* sum of the samples' weights */
};

struct npg_profile_module {
	int64_t id;
	const char *path;
	const char *build_id; /* "" if there is none */
};

struct npg_profile_frame {
	int module; /* or NPG_NONE */
	uint64_t offset_bytes;
	const char *function; /* or NULL */
};

struct npg_profile_site {
	int64_t id;
	size_t nr_frames;
	struct npg_profile_frame *frames; /* caller of the allocation first */
};

struct npg_profile_thread {
	const char *path;
	const char *name; /* or NULL */
	int start_module; /* or NPG_NONE */
	uint64_t start_offset_bytes;
	double cpu_ns; /* 0: not known */
	double samples;
	double busy;       /* CPUs that it wants, 0..1: of the busiest thread's time */
	int recorded_node; /* the system's number of the node where it ran most, or NPG_NONE */
};

struct npg_profile_object {
	int64_t id;
	enum npg_object_kind kind;
	int process;      /* index into .process_ids */
	const char *name; /* or NULL */
	int module;       /* or NPG_NONE */
	uint64_t offset_bytes;
	int site;               /* or NPG_NONE */
	int thread;             /* creator or owner, or NPG_NONE */
	int64_t site_ordinal;   /* -1: not known */
	int64_t thread_ordinal; /* -1: not known */
	uint64_t start_address;
	uint64_t size_bytes;
	int64_t start_ns;     /* 0: not known */
	int64_t end_ns;       /* INT64_MAX: lived to the end */
	int64_t first_use_ns; /* end of its initialisation by one thread; INT64_MIN: none seen */
	int initialiser;      /* that thread, or NPG_NONE */
};

/* Accesses of one thread to one page. Pages are counted from the object's start. */
struct npg_access {
	uint64_t page;
	uint32_t object;
	uint32_t thread;
	uint32_t nr_samples;
	float weight;     /* samples by importance; their mean is 1 within a source */
	uint8_t source;   /* index into .sources */
	uint8_t half;     /* 0 or 1: samples are split at random for cross-validation */
	uint8_t is_start; /* during the object's initialisation, by its initialiser */
};

/* The first touch of a page. */
struct npg_touch {
	uint64_t page;
	uint32_t object;
	uint32_t thread;
	int64_t time_ns;
	int node; /* system's number of the node of the CPU at that moment, or NPG_NONE */
};

/* Observed while recording: node of the CPU x node of the page; systems' numbers as in .nodes. */
struct npg_observed {
	int nr_nodes;
	int nodes[64];
	double counts[64 * 64];
	double total;
};

struct npg_profile {
	struct npg_arena arena;
	const char *command;
	const char *program; /* path of the executable, "" if not known */
	const char *program_build_id;
	int program_pid;
	int64_t run_id;
	const char *hwloc_xml; /* of the recorded machine, or NULL */
	const char *fingerprint;
	const char *thp_mode;
	uint64_t page_bytes;
	bool is_complete;
	double program_cpu_ns, recorder_cpu_ns, interrupt_ns; /* negative: not known */
	size_t nr_sources;
	struct npg_profile_source *sources;
	size_t nr_processes; /* of the program */
	int64_t *process_ids;
	const char *agent; /* 'active', or why allocations are not known */
	size_t nr_other_processes;
	double other_samples;        /* of other processes */
	double same_program_samples; /* of these, by the same executable */
	size_t nr_modules;
	struct npg_profile_module *modules;
	size_t nr_sites;
	struct npg_profile_site *sites;
	size_t nr_threads;
	struct npg_profile_thread *threads;
	size_t nr_objects;
	struct npg_profile_object *objects; /* by id */
	size_t nr_accesses;
	struct npg_access *accesses; /* of sources in use; by object, page, thread */
	size_t nr_touches;
	struct npg_touch *touches; /* by object, page */
	double nr_samples;         /* address samples used, of the program */
	double nr_text_samples;    /* left out: in program text or the kernel; no plan moves those
				    * pages, and caches keep what is used of them */
	double nr_start_samples;   /* of these, during initialisations */
	double access_scale;       /* accesses that one unit of weight stands for */
	bool access_is_time;       /* .access_scale is CPU time in ns, not a number of accesses */
	struct npg_observed observed;
	size_t nr_notes;
	const char **notes;
};

struct npg_profile_options {
	const char *process; /* NULL: the busiest; "all": all of its executable; or a pid */
};

/**
 * npg_profile_load() - read what is needed of a recording.
 * @profile: result, to be ended with npg_profile_free().
 *
 * Return: 0; -ENOENT: no such process; -ENODATA: the recording has no process; as npg_db_exec();
 * -ENOMEM; @err set. A program without samples is no error here: see .nr_samples.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_profile_load(struct npg_db *db, const struct npg_profile_options *options,
				    struct npg_profile **profile, struct npg_error *err);

/** npg_profile_free() - NULL is allowed. */
void npg_profile_free(struct npg_profile *profile);

/** npg_object_kind_name() - as in the column object.kind. MT-Safe. */
const char *npg_object_kind_name(enum npg_object_kind kind);

/**
 * npg_object_is_movable() - can the replayer choose the object's address? Then it begins at a
 * multiple of 2 MiB. MT-Safe.
 */
bool npg_object_is_movable(enum npg_object_kind kind);

/** npg_object_page() - page of an address in an object, counted from its start. MT-Safe. */
uint64_t npg_object_page(const struct npg_profile_object *object, uint64_t address,
			 uint64_t page_bytes);

/** npg_object_region() - 2 MiB region of a page of an object; see lib/plan.h. MT-Safe. */
uint64_t npg_object_region(const struct npg_profile_object *object, uint64_t page,
			   uint64_t page_bytes);

/** npg_object_nr_pages() - pages that an object covers, at least 1. MT-Safe. */
uint64_t npg_object_nr_pages(const struct npg_profile_object *object, uint64_t page_bytes);

#endif
