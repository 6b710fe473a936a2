/*
 * Whose an address is, and which thread ran on a CPU, by the recording of the same run.
 */
#ifndef NPG_PROFILER_IMPORT_MATCH_H
#define NPG_PROFILER_IMPORT_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/db.h"

struct npg_import_match; /* opaque */

/**
 * npg_import_match_new() - read objects and the CPUs of all samples.
 * @match: result, to be ended with npg_import_match_free().
 *
 * Return: as npg_db_exec(), -ENOMEM.
 */
NPG_MUST_CHECK int npg_import_match_new(struct npg_db *recording, struct npg_import_match **match,
					struct npg_error *err);

/** npg_import_match_free() - NULL is allowed. */
void npg_import_match_free(struct npg_import_match *match);

/**
 * npg_import_thread() - the thread that ran on @cpu.
 * @time_ns: the nearest sample on that CPU decides; 0: the thread with most samples on it does.
 * @process_id: of the thread.
 *
 * Return: thread id; 0 if no thread was seen there.
 */
int64_t npg_import_thread(const struct npg_import_match *match, int cpu, int64_t time_ns,
			  int64_t *process_id);

/**
 * npg_import_object() - the object of @process_id that has @address; of several the one that
 * starts last. @time_ns: it must have existed then; 0: whenever.
 *
 * Return: object id; 0 if there is none.
 */
int64_t npg_import_object(const struct npg_import_match *match, int64_t process_id, int64_t address,
			  int64_t time_ns);

#endif
