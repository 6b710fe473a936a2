/*
 * SQLite, behind one file: db.c alone includes <sqlite3.h>.
 *
 * A struct npg_db is one open database file, a struct npg_stmt one prepared statement of it.
 * Neither may be used by two threads at once. Parameters are numbered from 1, columns from 0, as
 * in SQLite. Errors name the file and the SQL text that failed.
 */
#ifndef NPG_LIB_DB_H
#define NPG_LIB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/error.h"

struct npg_db;
struct npg_stmt;

enum npg_db_mode {
	NPG_DB_READ,   /* the file must exist; nothing is ever written to it */
	NPG_DB_WRITE,  /* the file must exist; a hot journal of a killed writer is rolled back */
	NPG_DB_CREATE, /* a new file; an existing one is an error */
};

enum npg_db_type {
	NPG_DB_NULL,
	NPG_DB_INTEGER,
	NPG_DB_REAL,
	NPG_DB_TEXT,
	NPG_DB_BLOB,
};

/**
 * npg_db_open() - open or create a database file.
 * @db: result, to be closed with npg_db_close().
 *
 * trusted_schema is off and defensive mode on, so a hostile file cannot run functions of its
 * choice. No WAL: recordings live on shared file systems.
 *
 * Return: 0; -ENOENT, -EACCES, -EEXIST (create), -ENOTSUP (not a database), -EIO, -ENOMEM; @err
 * set. MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_db_open(const char *path, enum npg_db_mode mode, struct npg_db **db,
			       struct npg_error *err);

/** npg_db_close() - close; NULL is allowed. Open statements of it must be finalised before. */
void npg_db_close(struct npg_db *db);

/** npg_db_path() - the path as given to npg_db_open(), owned by @db. */
const char *npg_db_path(const struct npg_db *db);

/**
 * npg_db_exec() - run one or several statements without parameters and results.
 *
 * Return: 0; -ENOSPC when the disk or quota is full; -EROFS; -EBUSY; -EBADMSG when the file is
 * malformed; else -EIO; @err set.
 */
NPG_MUST_CHECK int npg_db_exec(struct npg_db *db, const char *sql, struct npg_error *err);

/**
 * npg_db_prepare() - compile one statement.
 * @stmt: result, to be ended with npg_stmt_finalize().
 *
 * Return: as npg_db_exec().
 */
NPG_MUST_CHECK int npg_db_prepare(struct npg_db *db, const char *sql, struct npg_stmt **stmt,
				  struct npg_error *err);

/**
 * npg_db_query_i64() - run a query and return the first column of its first row.
 * @missing: returned in @value when there is no row or the value is NULL.
 *
 * Return: as npg_db_exec().
 */
NPG_MUST_CHECK int npg_db_query_i64(struct npg_db *db, const char *sql, int64_t missing,
				    int64_t *value, struct npg_error *err);

/** npg_db_is_readonly() - true if statements that write must fail. */
bool npg_db_is_readonly(const struct npg_db *db);

/** npg_db_last_id() - rowid of the newest inserted row. */
int64_t npg_db_last_id(const struct npg_db *db);

/** npg_stmt_finalize() - end a statement; NULL is allowed. */
void npg_stmt_finalize(struct npg_stmt *stmt);

/**
 * npg_stmt_bind_i64() and relatives - set a parameter until it is set again.
 * @i_parameter: from 1; a number that the statement does not have is a bug and aborts.
 *
 * Text and blobs are copied. A NULL text binds SQL NULL.
 */
void npg_stmt_bind_i64(struct npg_stmt *stmt, int i_parameter, int64_t value);
void npg_stmt_bind_real(struct npg_stmt *stmt, int i_parameter, double value);
void npg_stmt_bind_text(struct npg_stmt *stmt, int i_parameter, const char *text);
void npg_stmt_bind_blob(struct npg_stmt *stmt, int i_parameter, const void *data, size_t size);
void npg_stmt_bind_null(struct npg_stmt *stmt, int i_parameter);

/**
 * npg_stmt_step() - run to the next row.
 *
 * Return: 1 a row is there, 0 done (the statement is reset by itself and can be bound and stepped
 * again), negative as npg_db_exec() with @err set.
 */
NPG_MUST_CHECK int npg_stmt_step(struct npg_stmt *stmt, struct npg_error *err);

/** npg_stmt_run() - step a statement that gives no rows. Return: 0 or negative, @err set. */
NPG_MUST_CHECK int npg_stmt_run(struct npg_stmt *stmt, struct npg_error *err);

/** npg_stmt_reset() - forget the rest of the rows; parameters stay bound. */
void npg_stmt_reset(struct npg_stmt *stmt);

/** npg_stmt_nr_columns() - number of result columns; 0 for a statement that gives none. */
int npg_stmt_nr_columns(const struct npg_stmt *stmt);

/** npg_stmt_is_readonly() - true if running it cannot change the database. */
bool npg_stmt_is_readonly(const struct npg_stmt *stmt);

/** npg_stmt_tail() - the rest of the SQL text after the statement, owned by the caller's text. */
const char *npg_stmt_tail(const struct npg_stmt *stmt);

/**
 * npg_stmt_column_*() - a column of the current row.
 *
 * Text and blob stay valid until the next step, reset or finalise. A NULL column gives 0, 0.0 or a
 * NULL pointer.
 */
const char *npg_stmt_column_name(struct npg_stmt *stmt, int i_column);
enum npg_db_type npg_stmt_column_type(struct npg_stmt *stmt, int i_column);
int64_t npg_stmt_column_i64(struct npg_stmt *stmt, int i_column);
double npg_stmt_column_real(struct npg_stmt *stmt, int i_column);
const char *npg_stmt_column_text(struct npg_stmt *stmt, int i_column);
const void *npg_stmt_column_blob(struct npg_stmt *stmt, int i_column, size_t *size);

#endif
