/*
 * The plan: what analyze writes and replay applies. JSON by schemas/plan.schema.json; this is its
 * form in memory, with reader, writer and checks.
 *
 * Pages in a plan are counted from the object's start (page 0 holds its first byte), in units of
 * .page_size_bytes. Nodes are logical: 0 .. nr_nodes - 1 of the machine that the plan was made for.
 */
#ifndef NPG_LIB_PLAN_H
#define NPG_LIB_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/elf_file.h"
#include "lib/error.h"

#define NPG_PLAN_DEFAULT   "numapgo.plan"
#define NPG_PLAN_MAX_NODES 64
#define NPG_PLAN_FORMAT    "numapgo-plan" /* the entry "format" of the file */
#define NPG_PLAN_VERSION   1

enum npg_plan_policy {
	NPG_POLICY_BIND,       /* to nodes[0]; falls back to others only when it is full */
	NPG_POLICY_INTERLEAVE, /* over nodes[], by weights[] if given */
};

/* How an object's instances are told apart. */
enum npg_plan_which {
	NPG_PLAN_ALL,            /* every allocation at the site */
	NPG_PLAN_SITE_ORDINAL,   /* the n-th at the site */
	NPG_PLAN_THREAD_ORDINAL, /* the n-th at the site by a thread of .creator */
};

struct npg_plan_range {
	uint64_t first_page;
	uint64_t nr_pages;
	enum npg_plan_policy policy;
	int nr_nodes;
	uint8_t nodes[NPG_PLAN_MAX_NODES];
	uint8_t weights[NPG_PLAN_MAX_NODES]; /* all 0: equal */
};

struct npg_plan_table_range {  /* page-table pages: one per 2 MiB region of the object */
	uint64_t first_region; /* from the 2 MiB-aligned address at or below the object's start */
	uint64_t nr_regions;
	uint8_t node;
};

struct npg_plan_module {
	char *path;
	char build_id[2 * NPG_BUILD_ID_MAX + 1];
};

struct npg_plan_frame {
	int module; /* index into the plan's modules; -1: generated code, in no module */
	uint64_t offset_bytes;
	char *function; /* for people; may be NULL */
};

struct npg_plan_object {
	char *kind; /* "static", "heap", "mmap", "shared" */
	char *name; /* symbol, or a call site's function; for people and for static symbols */
	int module; /* static: index into modules; else -1 */
	uint64_t offset_bytes; /* static: vaddr of the symbol */
	uint64_t size_bytes;   /* as recorded */
	size_t nr_frames;
	struct npg_plan_frame *frames;
	enum npg_plan_which which;
	uint64_t ordinal;
	char *creator; /* thread path, or NULL */
	size_t nr_ranges;
	struct npg_plan_range *ranges; /* by first_page, not overlapping; pages outside: default */
	size_t nr_table_ranges;
	struct npg_plan_table_range *table_ranges;
	double confidence; /* 0..1 */
	double share;      /* of the samples, 0..1 */
	char *reason;      /* one sentence */
};

struct npg_plan_thread {
	char *path;       /* creation path */
	char *name;       /* may be NULL */
	int start_module; /* -1: unknown */
	uint64_t start_offset_bytes;
	int node;
	double share; /* of the samples */
};

struct npg_plan_node {
	uint64_t memory_bytes;
	int nr_cpus;
};

struct npg_plan_prediction {
	char *placement;     /* "first touch", "interleave", "single node", "plan" */
	double lar;          /* 0..1 */
	double memory_ns;    /* modelled time of the sampled accesses */
	double walk_ns;      /* modelled time of page walks */
	double remote_walks; /* share of page walks to a remote table, 0..1 */
};

struct npg_plan {
	char *command; /* recorded command line */
	char *program; /* path of the executable */
	char program_build_id[2 * NPG_BUILD_ID_MAX + 1];
	char *recording; /* name of the database it was made from */
	char *objective; /* "throughput" or "makespan" */
	char *machine;   /* name of the machine it was made for */
	char fingerprint[33];
	uint64_t page_size_bytes;
	uint64_t min_object_bytes; /* smaller allocations were not recorded, so not counted by
				    * ordinals; 0: unknown */
	int nr_nodes;
	struct npg_plan_node *nodes;
	double *distance_ns; /* nr_nodes x nr_nodes, row = CPUs' node: to map nodes on others */
	bool leave;          /* the plan says: leave everything as it is */
	char *leave_reason;
	size_t nr_modules;
	struct npg_plan_module *modules;
	size_t nr_threads;
	struct npg_plan_thread *threads;
	size_t nr_objects;
	struct npg_plan_object *objects;
	size_t nr_predictions;
	struct npg_plan_prediction *predictions;
};

/** npg_plan_new() - an empty plan; NULL when out of memory. */
struct npg_plan *npg_plan_new(void);

/** npg_plan_free() - the plan and everything it points to; NULL is allowed. */
void npg_plan_free(struct npg_plan *plan);

/**
 * npg_plan_read() - read and check a plan file.
 *
 * Return: 0; -ENOENT, -EACCES; -EINVAL: not a plan, wrong version, or a value out of range (@err
 * says which, with its place in the file); -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_plan_read(const char *path, struct npg_plan **plan, struct npg_error *err);

/** npg_plan_from_text() - the same from memory; @origin is used in errors. Fuzzed. */
NPG_MUST_CHECK int npg_plan_from_text(const char *text, size_t length, const char *origin,
				      struct npg_plan **plan, struct npg_error *err);

/**
 * npg_plan_write() - write a plan: the same plan gives the same bytes, one entry per line, so that
 * it can be committed and compared. Written beside @path and renamed.
 *
 * Numbers keep 6 significant digits where they are not whole. Bytes in names that are not UTF-8
 * become U+FFFD. A plan that npg_plan_read() would refuse is refused here.
 *
 * Return: 0; -EINVAL; -EACCES, -ENOSPC, ...; -ENOMEM; @err set.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_plan_write(const struct npg_plan *plan, const char *path,
				  struct npg_error *err);

/**
 * npg_plan_module_key() - identity of a module, as lib/preload/hash.h defines it: its build ID, or
 * its file name if it has none or is the C library.
 */
uint64_t npg_plan_module_key(const struct npg_plan_module *module);

/**
 * npg_plan_to_text() - the text that npg_plan_write() writes.
 * @text: result, NUL-terminated, to be ended with free().
 */
NPG_MUST_CHECK int npg_plan_to_text(const struct npg_plan *plan, char **text, size_t *length,
				    struct npg_error *err);

/** npg_plan_site_hash() - identity of an object's call site, as lib/preload/hash.h defines it. */
uint64_t npg_plan_site_hash(const struct npg_plan *plan, const struct npg_plan_object *object);

#endif
