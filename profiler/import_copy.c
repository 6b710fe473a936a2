#include "profiler/import_copy.h"

#include <stdio.h>

#define MAX_COLUMNS 32

static const char *const tables[] = {
	"meta WHERE key <> 'complete'",
	"string",
	"run",
	"machine",
	"node",
	"node_distance",
	"cpu",
	"module",
	"process",
	"thread",
	"mapping",
	"frame",
	"callsite",
	"callsite_frame",
	"object",
	"small_site",
	"source",
	"note",
	"sample WHERE source_id IN (SELECT id FROM source WHERE name = 'fault')",
	"page_count WHERE source_id IN (SELECT id FROM source WHERE name = 'fault')",
};

static void bind_column(struct npg_stmt *from, struct npg_stmt *to, int i)
{
	const void *blob;
	size_t size;

	switch (npg_stmt_column_type(from, i)) {
	case NPG_DB_NULL:
		npg_stmt_bind_null(to, i + 1);
		break;
	case NPG_DB_INTEGER:
		npg_stmt_bind_i64(to, i + 1, npg_stmt_column_i64(from, i));
		break;
	case NPG_DB_REAL:
		npg_stmt_bind_real(to, i + 1, npg_stmt_column_real(from, i));
		break;
	case NPG_DB_TEXT:
		npg_stmt_bind_text(to, i + 1, npg_stmt_column_text(from, i));
		break;
	case NPG_DB_BLOB:
		blob = npg_stmt_column_blob(from, i, &size);
		npg_stmt_bind_blob(to, i + 1, blob, size);
		break;
	}
}

static int copy_rows(struct npg_stmt *from, struct npg_stmt *to, struct npg_error *err)
{
	int ret;

	while ((ret = npg_stmt_step(from, err)) == 1) {
		for (int i = 0; i < npg_stmt_nr_columns(from); i++)
			bind_column(from, to, i);
		ret = npg_stmt_run(to, err);
		if (ret < 0)
			break;
	}
	return ret;
}

static int copy_table(struct npg_db *from, struct npg_db *to, const char *table,
		      struct npg_error *err)
{
	struct npg_stmt *rows = NULL, *insert = NULL;
	char sql[256], places[2 * MAX_COLUMNS + 1] = "?";
	int ret, nr;

	snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
	ret = npg_db_prepare(from, sql, &rows, err);
	if (ret < 0)
		return ret;
	nr = npg_stmt_nr_columns(rows);
	for (int i = 1; i < nr && i < MAX_COLUMNS; i++)
		memcpy(places + 2 * i - 1, ",?", 3);
	snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO %.*s VALUES (%s)",
		 (int)strcspn(table, " "), table, places);
	ret = npg_db_prepare(to, sql, &insert, err);
	if (ret == 0)
		ret = copy_rows(rows, insert, err);
	npg_stmt_finalize(insert);
	npg_stmt_finalize(rows);
	return ret;
}

int npg_import_copy(struct npg_db *from, struct npg_db *to, struct npg_error *err)
{
	for (size_t i = 0; i < NPG_ARRAY_SIZE(tables); i++) {
		int ret = copy_table(from, to, tables[i], err);

		if (ret < 0)
			return ret;
	}
	return npg_db_exec(to,
			   "UPDATE source SET state = 'not asked', reason = 'left out by import', "
			   "nr_records = 0, nr_samples = 0, nr_no_operand = 0, nr_undecoded = 0, "
			   "nr_unmatched = 0, nr_lost = 0, nr_throttled = 0 "
			   "WHERE name IN ('clock', 'hint')",
			   err);
}
