/*
 * Rows of a recording, see the header.
 *
 * Rows are kept in memory and written in one short transaction per commit: while a transaction is
 * open a rollback journal lies beside the file, and a reader that may not write could not open the
 * recording of a recorder that was killed in the middle of it.
 */
#include <errno.h>

#include "lib/preload/hash.h"
#include "profiler/table.h"
#include "profiler/writer.h"

#define SAMPLE_COLUMNS 13
#define PENDING_BYTES  (4 << 20) /* written early when it grows beyond */
#define SAMPLE_BATCH   16

enum statement {
	INSERT_STRING,
	INSERT_MODULE,
	INSERT_FRAME,
	UPDATE_FRAME,
	INSERT_SITE,
	INSERT_SITE_FRAME,
	INSERT_SITE_FRAMES,
	NAME_SITE,
	INSERT_PROCESS,
	INSERT_THREAD,
	INSERT_MAPPING,
	INSERT_OBJECT,
	INSERT_SAMPLE,
	INSERT_SAMPLES,
	INSERT_COUNT,
	INSERT_SMALL_SITE,
	INSERT_SOURCE,
	INSERT_GAP,
	INSERT_NOTE,
	INSERT_META,
	NR_STATEMENTS,
};

#define SITE_FRAME_INSERT "INSERT INTO callsite_frame (callsite_id, position, frame_id) VALUES "
#define SITE_FRAME_BATCH  8
#define SAMPLE_VALUES     "(?,?,?,?,?,?,?,?,?,?,?,?,?)"
#define SAMPLE_VALUES_4   SAMPLE_VALUES "," SAMPLE_VALUES "," SAMPLE_VALUES "," SAMPLE_VALUES
#define SAMPLE_INSERT                                                                              \
	"INSERT INTO sample (time_ns, thread_id, source_id, cpu, access, address, ip, object_id, " \
	"weight, latency_cycles, data_source, memory_node, resolved) VALUES "

static const char *const texts[NR_STATEMENTS] = {
	[INSERT_STRING] = "INSERT INTO string (id, text) VALUES (?,?)",
	[INSERT_MODULE] = "INSERT INTO module (id, path_id, build_id) VALUES (?,?,?)",
	[INSERT_FRAME] = "INSERT INTO frame (id, module_id, offset_bytes) VALUES (?,?,?)",
	[UPDATE_FRAME] = "UPDATE frame SET function_id = ?2 WHERE id = ?1",
	[INSERT_SITE] = "INSERT INTO callsite (id, hash) VALUES (?,?)",
	[INSERT_SITE_FRAME] = SITE_FRAME_INSERT "(?,?,?)",
	[INSERT_SITE_FRAMES] = SITE_FRAME_INSERT "(?,?,?),(?,?,?),(?,?,?),(?,?,?),"
						 "(?,?,?),(?,?,?),(?,?,?),(?,?,?)",
	[NAME_SITE] = "INSERT INTO temp.site_name (callsite_id, name_id) VALUES (?,?)",
	[INSERT_PROCESS] = "INSERT OR REPLACE INTO process (id, pid, parent_id, exe_id, comm_id, "
			   "start_ns, end_ns, agent, run_id) VALUES (?,?,?,?,?,?,?,?,1)",
	[INSERT_THREAD] = "INSERT OR REPLACE INTO thread (id, process_id, tid, parent_id, name_id, "
			  "start_module_id, start_offset_bytes, start_ns, end_ns, cpu_ns, path) "
			  "VALUES (?,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_MAPPING] = "INSERT INTO mapping (process_id, start_address, size_bytes, "
			   "file_offset_bytes, module_id, start_ns, protection) "
			   "VALUES (?,?,?,?,?,?,?)",
	[INSERT_OBJECT] = "INSERT OR REPLACE INTO object (id, process_id, name_id, module_id, "
			  "offset_bytes, callsite_id, thread_id, site_ordinal, thread_ordinal, "
			  "start_address, size_bytes, start_ns, end_ns, kind) "
			  "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[INSERT_SAMPLE] = SAMPLE_INSERT SAMPLE_VALUES,
	[INSERT_SAMPLES] = SAMPLE_INSERT SAMPLE_VALUES_4 "," SAMPLE_VALUES_4 "," SAMPLE_VALUES_4
							 "," SAMPLE_VALUES_4,
	[INSERT_COUNT] = "INSERT INTO page_count (epoch, thread_id, source_id, object_id, page, "
			 "nr_reads, nr_writes, nr_unknown, weight) VALUES (?,?,?,?,?,?,?,?,?)",
	[INSERT_SMALL_SITE] = "INSERT INTO small_site (process_id, callsite_id, nr_objects, "
			      "size_bytes) VALUES (?,?,?,?)",
	[INSERT_SOURCE] = "INSERT OR REPLACE INTO source (id, period, nr_records, nr_samples, "
			  "nr_no_operand, nr_undecoded, nr_unmatched, nr_lost, nr_throttled, name, "
			  "event, state, reason, period_unit, run_id) "
			  "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,1)",
	[INSERT_GAP] = "INSERT INTO gap (source_id, cpu, time_ns, nr_records, kind) "
		       "VALUES (?,?,?,?,?)",
	[INSERT_NOTE] = "INSERT INTO note (run_id, text) VALUES (1,?)",
	[INSERT_META] = "INSERT OR REPLACE INTO meta (key, value) VALUES (?,?)",
};

static const char *const kind_names[] = {
	[NPG_OBJECT_STATIC] = "static",
	[NPG_OBJECT_HEAP] = "heap",
	[NPG_OBJECT_MMAP] = "mmap",
	[NPG_OBJECT_FILE] = "file",
	[NPG_OBJECT_SHARED] = "shared",
	[NPG_OBJECT_STACK] = "stack",
	[NPG_OBJECT_SMALL_HEAP] = "small-heap",
	[NPG_OBJECT_ANONYMOUS] = "anonymous",
	[NPG_OBJECT_CODE] = "code",
	[NPG_OBJECT_KERNEL] = "kernel",
};

struct row_header {
	uint32_t statement; /* enum statement */
	uint32_t nr_values;
	uint32_t nr_strings;
	uint32_t size_bytes; /* of the whole row, a multiple of 8 */
};

struct npg_writer {
	struct npg_db *db;
	struct npg_stmt *stmts[NR_STATEMENTS];
	int status; /* 0, or the first failure; then nothing is written any more */
	struct npg_error error;
	unsigned char *pending; /* rows: struct row_header, integers, texts */
	size_t nr_pending_bytes;
	size_t pending_size;
	bool has_site_names;
	int64_t last_id;
	struct npg_table strings; /* (hash, length and attempt) to place in string_texts + 1 */
	char **string_texts;
	size_t nr_strings;
	size_t strings_size;
	struct npg_sample_row samples[SAMPLE_BATCH];
	int nr_samples;
};

static void fail(struct npg_writer *w, int status)
{
	if (w->status == 0 && status < 0)
		w->status = status;
}

static void exec(struct npg_writer *w, const char *sql)
{
	if (w->status == 0)
		fail(w, npg_db_exec(w->db, sql, &w->error));
}

static void bind_integers(struct npg_stmt *stmt, const int64_t *values, int nr)
{
	for (int i = 0; i < nr; i++) {
		if (values[i] == NPG_NULL)
			npg_stmt_bind_null(stmt, i + 1);
		else
			npg_stmt_bind_i64(stmt, i + 1, values[i]);
	}
}

/* Integers first, then texts, in the order of the statement's parameters. */
static void run_row(struct npg_writer *w, const struct row_header *row, const unsigned char *data)
{
	struct npg_stmt *stmt = w->stmts[row->statement];
	int64_t values[SAMPLE_BATCH * SAMPLE_COLUMNS];
	const char *text = (const char *)data + row->nr_values * sizeof(*values);

	memcpy(values, data, row->nr_values * sizeof(*values));
	bind_integers(stmt, values, (int)row->nr_values);
	for (uint32_t i = 0; i < row->nr_strings; i++) {
		bool is_null = *text++ == '\0';

		npg_stmt_bind_text(stmt, (int)(row->nr_values + i + 1), is_null ? NULL : text);
		text += is_null ? 0 : strlen(text) + 1;
	}
	fail(w, npg_stmt_run(stmt, &w->error));
}

static void name_objects(struct npg_writer *w)
{
	exec(w, "UPDATE object SET name_id = (SELECT name_id FROM temp.site_name s "
		"WHERE s.callsite_id = object.callsite_id) "
		"WHERE callsite_id IS NOT NULL AND name_id IS NULL");
	exec(w, "DELETE FROM temp.site_name");
	w->has_site_names = false;
}

static void write_pending(struct npg_writer *w)
{
	struct row_header row;

	if (w->nr_pending_bytes == 0 || w->status < 0)
		return;
	exec(w, "BEGIN");
	for (size_t at = 0; at < w->nr_pending_bytes && w->status == 0; at += row.size_bytes) {
		memcpy(&row, w->pending + at, sizeof(row));
		run_row(w, &row, w->pending + at + sizeof(row));
	}
	w->nr_pending_bytes = 0;
	if (w->has_site_names)
		name_objects(w);
	exec(w, "COMMIT");
	if (w->status < 0 && npg_db_exec(w->db, "ROLLBACK", NULL) < 0) {
		/* SQLite has rolled back by itself */
	}
}

static unsigned char *reserve(struct npg_writer *w, size_t size)
{
	if (w->nr_pending_bytes + size > w->pending_size) {
		size_t bigger = 2 * (w->nr_pending_bytes + size);
		unsigned char *grown = realloc(w->pending, bigger);

		if (grown == NULL) {
			fail(w, npg_error_set(&w->error, -ENOMEM, "out of memory"));
			return NULL;
		}
		w->pending = grown;
		w->pending_size = bigger;
	}
	w->nr_pending_bytes += size;
	return w->pending + w->nr_pending_bytes - size;
}

static void put(struct npg_writer *w, enum statement which, const int64_t *values, int nr_values,
		const char *const *strings, int nr_strings)
{
	struct row_header row = { .statement = which,
				  .nr_values = (uint32_t)nr_values,
				  .nr_strings = (uint32_t)nr_strings };
	size_t size = sizeof(row) + (size_t)nr_values * sizeof(*values);
	unsigned char *at;

	for (int i = 0; i < nr_strings; i++)
		size += 1 + (strings[i] != NULL ? strlen(strings[i]) + 1 : 0);
	row.size_bytes = (uint32_t)((size + 7) & ~(size_t)7);
	at = w->status == 0 ? reserve(w, row.size_bytes) : NULL;
	if (at == NULL)
		return;
	memcpy(at, &row, sizeof(row));
	at += sizeof(row);
	if (nr_values > 0)
		memcpy(at, values, (size_t)nr_values * sizeof(*values));
	at += (size_t)nr_values * sizeof(*values);
	for (int i = 0; i < nr_strings; i++) { /* a mark, and the text unless it is NULL */
		*at++ = strings[i] != NULL;
		if (strings[i] != NULL)
			at = (unsigned char *)stpcpy((char *)at, strings[i]) + 1;
	}
	if (w->nr_pending_bytes > PENDING_BYTES)
		write_pending(w);
}

int npg_writer_open(struct npg_db *db, struct npg_writer **writer, struct npg_error *err)
{
	struct npg_writer *w = calloc(1, sizeof(*w));
	int ret = 0;

	if (w == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", npg_db_path(db));
	w->db = db;
	ret = npg_db_exec(
	    db, "CREATE TEMP TABLE site_name (callsite_id INTEGER PRIMARY KEY, name_id)", err);
	for (int i = 0; i < NR_STATEMENTS && ret == 0; i++)
		ret = npg_db_prepare(db, texts[i], &w->stmts[i], err);
	if (ret < 0) {
		npg_writer_close(w);
		return ret;
	}
	*writer = w;
	return 0;
}

void npg_writer_close(struct npg_writer *writer)
{
	if (writer == NULL)
		return;
	for (int i = 0; i < NR_STATEMENTS; i++)
		npg_stmt_finalize(writer->stmts[i]);
	for (size_t i = 0; i < writer->nr_strings; i++)
		free(writer->string_texts[i]);
	free(writer->string_texts);
	free(writer->pending);
	npg_table_release(&writer->strings);
	free(writer);
}

int npg_writer_status(const struct npg_writer *writer, struct npg_error *err)
{
	if (writer->status < 0 && err != NULL)
		*err = writer->error;
	return writer->status;
}

static void flush_samples(struct npg_writer *w)
{
	if (w->nr_samples == SAMPLE_BATCH) {
		put(w, INSERT_SAMPLES, &w->samples[0].time_ns, SAMPLE_BATCH * SAMPLE_COLUMNS, NULL,
		    0);
	} else {
		for (int i = 0; i < w->nr_samples; i++)
			put(w, INSERT_SAMPLE, &w->samples[i].time_ns, SAMPLE_COLUMNS, NULL, 0);
	}
	w->nr_samples = 0;
}

int npg_writer_commit(struct npg_writer *writer, struct npg_error *err)
{
	flush_samples(writer);
	write_pending(writer);
	return npg_writer_status(writer, err);
}

int64_t npg_writer_new_id(struct npg_writer *writer)
{
	return ++writer->last_id;
}

static int keep_string(struct npg_writer *w, uint64_t key0, uint64_t key1, const char *text)
{
	if (w->nr_strings == w->strings_size) {
		size_t size = w->strings_size == 0 ? 64 : w->strings_size * 2;
		char **bigger = reallocarray(w->string_texts, size, sizeof(char *));

		if (bigger == NULL)
			return -ENOMEM;
		w->string_texts = bigger;
		w->strings_size = size;
	}
	w->string_texts[w->nr_strings] = strdup(text);
	if (w->string_texts[w->nr_strings] == NULL)
		return -ENOMEM;
	w->nr_strings++;
	return npg_table_put(&w->strings, key0, key1, w->nr_strings);
}

int64_t npg_writer_string(struct npg_writer *writer, const char *text)
{
	size_t length;
	uint64_t key0, key1, at;
	int64_t id;

	if (text == NULL)
		return NPG_NULL;
	length = strlen(text);
	key0 = npg_hash_bytes(NPG_HASH_SEED, text, length);
	for (key1 = length;; key1 += UINT64_C(1) << 32) { /* equal hash, other text: next key */
		at = npg_table_get(&writer->strings, key0, key1);
		if (at == 0)
			break;
		if (strcmp(writer->string_texts[at - 1], text) == 0)
			return (int64_t)at;
	}
	if (keep_string(writer, key0, key1, text) < 0) {
		fail(writer, -ENOMEM);
		npg_error_set(&writer->error, -ENOMEM, "out of memory");
		return NPG_NULL;
	}
	id = (int64_t)writer->nr_strings;
	put(writer, INSERT_STRING, &id, 1, &text, 1);
	return id;
}

int64_t npg_writer_module(struct npg_writer *writer, const char *path, const char *build_id)
{
	int64_t values[2] = { npg_writer_new_id(writer), npg_writer_string(writer, path) };

	put(writer, INSERT_MODULE, values, 2, &build_id, 1);
	return values[0];
}

int64_t npg_writer_frame(struct npg_writer *writer, int64_t module_id, int64_t offset_bytes)
{
	int64_t values[3] = { npg_writer_new_id(writer), module_id, offset_bytes };

	put(writer, INSERT_FRAME, values, 3, NULL, 0);
	return values[0];
}

void npg_writer_frame_function(struct npg_writer *writer, int64_t frame_id, int64_t function_id)
{
	int64_t values[2] = { frame_id, function_id };

	put(writer, UPDATE_FRAME, values, 2, NULL, 0);
}

void npg_writer_callsite(struct npg_writer *writer, int64_t id, uint64_t hash,
			 const int64_t *frame_ids, int nr_frames)
{
	int64_t values[2] = { id, (int64_t)hash };

	put(writer, INSERT_SITE, values, 2, NULL, 0);
	for (int i = 0; i < nr_frames;) {
		int nr = nr_frames - i >= SITE_FRAME_BATCH ? SITE_FRAME_BATCH : 1;
		int64_t rows[3 * SITE_FRAME_BATCH];

		for (int k = 0; k < nr; k++, i++) {
			rows[3 * k] = id;
			rows[3 * k + 1] = i;
			rows[3 * k + 2] = frame_ids[i];
		}
		put(writer, nr == 1 ? INSERT_SITE_FRAME : INSERT_SITE_FRAMES, rows, 3 * nr, NULL,
		    0);
	}
}

void npg_writer_site_name(struct npg_writer *writer, int64_t callsite_id, int64_t name_id)
{
	int64_t values[2] = { callsite_id, name_id };

	writer->has_site_names = true;
	put(writer, NAME_SITE, values, 2, NULL, 0);
}

void npg_writer_process(struct npg_writer *writer, const struct npg_process_row *row)
{
	int64_t values[7] = { row->id,      row->pid,      row->parent_id, row->exe_id,
			      row->comm_id, row->start_ns, row->end_ns };

	put(writer, INSERT_PROCESS, values, 7, &row->agent, 1);
}

void npg_writer_thread(struct npg_writer *writer, const struct npg_thread_row *row)
{
	int64_t values[10] = { row->id,
			       row->process_id,
			       row->tid,
			       row->parent_id,
			       row->name_id,
			       row->start_module_id,
			       row->start_offset_bytes,
			       row->start_ns,
			       row->end_ns,
			       row->cpu_ns };

	put(writer, INSERT_THREAD, values, 10, &row->path, 1);
}

void npg_writer_mapping(struct npg_writer *writer, const struct npg_mapping_row *row)
{
	int64_t values[6] = { row->process_id,        row->start_address, row->size_bytes,
			      row->file_offset_bytes, row->module_id,     row->start_ns };

	put(writer, INSERT_MAPPING, values, 6, &row->protection, 1);
}

void npg_writer_object(struct npg_writer *writer, const struct npg_object_row *row)
{
	int64_t values[13] = { row->id,
			       row->process_id,
			       row->name_id,
			       row->module_id,
			       row->offset_bytes,
			       row->callsite_id,
			       row->thread_id,
			       row->site_ordinal,
			       row->thread_ordinal,
			       row->start_address,
			       row->size_bytes,
			       row->start_ns,
			       row->end_ns };

	put(writer, INSERT_OBJECT, values, 13, &kind_names[row->kind], 1);
}

void npg_writer_sample(struct npg_writer *writer, const struct npg_sample_row *row)
{
	writer->samples[writer->nr_samples++] = *row;
	if (writer->nr_samples == SAMPLE_BATCH)
		flush_samples(writer);
}

void npg_writer_count(struct npg_writer *writer, const struct npg_count_row *row)
{
	int64_t values[9] = { row->epoch,     row->thread_id,  row->source_id,
			      row->object_id, row->page,       row->nr_reads,
			      row->nr_writes, row->nr_unknown, row->weight };

	put(writer, INSERT_COUNT, values, 9, NULL, 0);
}

void npg_writer_small_site(struct npg_writer *writer, int64_t process_id, int64_t callsite_id,
			   int64_t nr_objects, int64_t size_bytes)
{
	int64_t values[4] = { process_id, callsite_id, nr_objects, size_bytes };

	put(writer, INSERT_SMALL_SITE, values, 4, NULL, 0);
}

void npg_writer_source(struct npg_writer *writer, const struct npg_source_row *row)
{
	int64_t values[9] = { row->id,           row->period,        row->nr_records,
			      row->nr_samples,   row->nr_no_operand, row->nr_undecoded,
			      row->nr_unmatched, row->nr_lost,       row->nr_throttled };
	const char *strings[5] = { row->name, row->event, row->state, row->reason,
				   row->period_unit };

	put(writer, INSERT_SOURCE, values, 9, strings, 5);
}

void npg_writer_gap(struct npg_writer *writer, int64_t source_id, int64_t cpu, int64_t time_ns,
		    const char *kind, int64_t nr_records)
{
	int64_t values[4] = { source_id, cpu, time_ns, nr_records };

	put(writer, INSERT_GAP, values, 4, &kind, 1);
}

void npg_writer_note(struct npg_writer *writer, const char *text)
{
	put(writer, INSERT_NOTE, NULL, 0, &text, 1);
}

void npg_writer_meta(struct npg_writer *writer, const char *key, const char *value)
{
	const char *strings[2] = { key, value };

	put(writer, INSERT_META, NULL, 0, strings, 2);
}
