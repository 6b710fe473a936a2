/*
 * The rows that say what was run and where: run, machine, node, node_distance, cpu, meta.
 */
#ifndef NPG_PROFILER_RUN_INFO_H
#define NPG_PROFILER_RUN_INFO_H

#include <stdint.h>

#include "lib/compiler.h"
#include "lib/db.h"
#include "lib/error.h"
#include "profiler/writer.h"

struct npg_run_result {
	int64_t end_ns;
	int64_t exit_status; /* NPG_NULL: killed by a signal, or unknown */
	int64_t exit_signal; /* NPG_NULL: none */
	int64_t program_cpu_ns;
	int64_t recorder_cpu_ns;
	int64_t interrupt_ns;
};

/**
 * npg_run_info_begin() - write everything that is known at the start.
 * @argv: the program's, NULL-terminated; NULL when a running process is watched.
 * @pid:  of that process.
 *
 * Return: 0 or as npg_db_exec(); @err set. A machine that cannot be read gets no rows and a note.
 */
NPG_MUST_CHECK int npg_run_info_begin(struct npg_db *db, struct npg_writer *writer,
				      char *const *argv, int pid, int64_t start_ns,
				      struct npg_error *err);

/** npg_run_info_end() - how it ended. Return: as npg_run_info_begin(). */
NPG_MUST_CHECK int npg_run_info_end(struct npg_db *db, const struct npg_run_result *result,
				    struct npg_error *err);

#endif
