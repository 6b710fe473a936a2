/*
 * Rows of a recording: batched, in large transactions, committed from time to time so that a
 * recorder killed at any moment loses little.
 *
 * Ids are given out here, before rows are written. The first failure (disk full) is kept, later
 * calls do nothing: callers look at npg_writer_status() once in a while.
 */
#ifndef NPG_PROFILER_WRITER_H
#define NPG_PROFILER_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/db.h"
#include "lib/error.h"

#define NPG_NULL INT64_MIN /* SQL NULL in any integer column below */

struct npg_writer;

enum npg_object_kind { /* object.kind */
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
};

struct npg_process_row {
	int64_t id, pid, parent_id, exe_id, comm_id, start_ns, end_ns;
	const char *agent;
};

struct npg_thread_row {
	int64_t id, process_id, tid, parent_id, name_id, start_module_id, start_offset_bytes;
	int64_t start_ns, end_ns, cpu_ns;
	const char *path;
};

struct npg_mapping_row {
	int64_t process_id, start_address, size_bytes, file_offset_bytes, module_id, start_ns;
	const char *protection;
};

struct npg_object_row {
	int64_t id, process_id, name_id, module_id, offset_bytes, callsite_id, thread_id;
	int64_t site_ordinal, thread_ordinal, start_address, size_bytes, start_ns, end_ns;
	enum npg_object_kind kind;
};

struct npg_sample_row { /* in the table's order */
	int64_t time_ns, thread_id, source_id, cpu, access, address, ip, object_id, weight;
	int64_t latency_cycles, data_source, memory_node, resolved;
};

struct npg_count_row {
	int64_t epoch, thread_id, source_id, object_id, page, nr_reads, nr_writes, nr_unknown;
	int64_t weight;
};

struct npg_source_row {
	int64_t id, period, nr_records, nr_samples, nr_no_operand, nr_undecoded, nr_unmatched;
	int64_t nr_lost, nr_throttled;
	const char *name, *event, *state, *reason, *period_unit;
};

/**
 * npg_writer_open() - prepare statements on a recording that is being made; its run has id 1.
 * @writer: result, to be ended with npg_writer_close().
 *
 * Return: 0; -ENOMEM or as npg_db_exec(); @err set.
 * MT-Unsafe: one thread per writer.
 */
NPG_MUST_CHECK int npg_writer_open(struct npg_db *db, struct npg_writer **writer,
				   struct npg_error *err);

/** npg_writer_close() - free it; what is not committed is lost. NULL is allowed. */
void npg_writer_close(struct npg_writer *writer);

/** npg_writer_status() - 0, or the first failure with its text in @err. */
NPG_MUST_CHECK int npg_writer_status(const struct npg_writer *writer, struct npg_error *err);

/** npg_writer_commit() - write what is pending and commit. Return: npg_writer_status(). */
NPG_MUST_CHECK int npg_writer_commit(struct npg_writer *writer, struct npg_error *err);

/** npg_writer_new_id() - a number for a process, thread or object row. */
int64_t npg_writer_new_id(struct npg_writer *writer);

/** npg_writer_string() - id of an interned text; NPG_NULL for NULL. */
int64_t npg_writer_string(struct npg_writer *writer, const char *text);

/** npg_writer_module() - add a module. Return: its id. */
int64_t npg_writer_module(struct npg_writer *writer, const char *path, const char *build_id);

/** npg_writer_frame() - add a code location. Return: its id. */
int64_t npg_writer_frame(struct npg_writer *writer, int64_t module_id, int64_t offset_bytes);
void npg_writer_frame_function(struct npg_writer *writer, int64_t frame_id, int64_t function_id);

/** npg_writer_callsite() - add a call site of @nr_frames frames. */
void npg_writer_callsite(struct npg_writer *writer, int64_t id, uint64_t hash,
			 const int64_t *frame_ids, int nr_frames);

/** npg_writer_site_name() - name the objects of a call site that have none. */
void npg_writer_site_name(struct npg_writer *writer, int64_t callsite_id, int64_t name_id);

/** npg_writer_*(): add a row, or replace the one with the same id. */
void npg_writer_process(struct npg_writer *writer, const struct npg_process_row *row);
void npg_writer_thread(struct npg_writer *writer, const struct npg_thread_row *row);
void npg_writer_object(struct npg_writer *writer, const struct npg_object_row *row);
void npg_writer_source(struct npg_writer *writer, const struct npg_source_row *row);

/** npg_writer_*(): add a row. */
void npg_writer_mapping(struct npg_writer *writer, const struct npg_mapping_row *row);
void npg_writer_sample(struct npg_writer *writer, const struct npg_sample_row *row);
void npg_writer_count(struct npg_writer *writer, const struct npg_count_row *row);
void npg_writer_small_site(struct npg_writer *writer, int64_t process_id, int64_t callsite_id,
			   int64_t nr_objects, int64_t size_bytes);
void npg_writer_gap(struct npg_writer *writer, int64_t source_id, int64_t cpu, int64_t time_ns,
		    const char *kind, int64_t nr_records);
void npg_writer_note(struct npg_writer *writer, const char *text);
void npg_writer_meta(struct npg_writer *writer, const char *key, const char *value);

#endif
