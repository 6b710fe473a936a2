/* Shared by profile.c, profile_tables.c and profile_samples.c only. */
#ifndef NPG_ANALYZER_PROFILE_INTERNAL_H
#define NPG_ANALYZER_PROFILE_INTERNAL_H

#include "analyzer/grow.h"
#include "analyzer/profile.h"

/* A thread row of the database, of any process. */
struct npg_thread_row {
	int64_t id;
	int64_t process_id;
	int thread; /* index into profile->threads, or NPG_NONE: another program's */
	double samples;
};

struct npg_string_row {
	int64_t id;
	const char *text;
};

struct npg_frame_row {
	int64_t id;
	struct npg_profile_frame frame;
};

struct npg_loader {
	struct npg_db *db;
	struct npg_profile *profile;
	size_t nr_thread_rows;
	struct npg_thread_row *thread_rows; /* by id */
	size_t nr_strings;
	struct npg_string_row *strings; /* by id */
	struct {                        /* of the arrays here and in the profile, in items */
		size_t strings, thread_rows, sources, modules, frames, sites, threads, objects,
		    processes, notes, cpus, accesses, touches;
	} capacity;
	size_t nr_frames;
	struct npg_frame_row *frames; /* by id */
	size_t merge_at;              /* accesses held before they are merged */
	int nr_cpus;
	int *cpu_nodes; /* system's node of each CPU, or NPG_NONE */
};

/**
 * npg_for_each_row() - call @row for each row of a query; a negative result, -ENOMEM, ends it.
 */
NPG_MUST_CHECK int npg_for_each_row(struct npg_loader *loader, const char *sql,
				    int (*row)(struct npg_loader *loader, struct npg_stmt *stmt),
				    struct npg_error *err);

/** npg_find_id() - index of @id in an ascending array of structs that begin with an int64_t id. */
int npg_find_id(const void *rows, size_t nr, size_t row_bytes, int64_t id);

/** npg_profile_load_common() - strings, sources, modules, call sites, all thread rows. */
NPG_MUST_CHECK int npg_profile_load_common(struct npg_loader *loader, struct npg_error *err);

/** npg_profile_load_program() - what belongs to the chosen processes, but no samples. */
NPG_MUST_CHECK int npg_profile_load_program(struct npg_loader *loader, struct npg_error *err);

/**
 * npg_profile_count_samples() - samples per thread row, and the program's share of every source.
 */
NPG_MUST_CHECK int npg_profile_count_samples(struct npg_loader *loader, struct npg_error *err);

/** npg_profile_load_samples() - touches and accesses. Threads and objects are there. */
NPG_MUST_CHECK int npg_profile_load_samples(struct npg_loader *loader, struct npg_error *err);

#endif
