/* The only includer of <sqlite3.h>; see db.h for the contract. */
#include <assert.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "lib/db.h"

struct npg_db {
	sqlite3 *handle;
	char *path;
};

struct npg_stmt {
	sqlite3_stmt *handle;
	struct npg_db *db;
	const char *tail;
};

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CORRUPT:
		return -EBADMSG;
	case SQLITE_NOTADB:
		return -ENOTSUP;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CANTOPEN:
		return -EACCES;
	default:
		return -EIO;
	}
}

static const char *advice_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return "; free some space, or write elsewhere with -o";
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return "; another process has it open for writing: wait for it to end";
	case SQLITE_CORRUPT:
		return "; the file is damaged: keep it, and try 'sqlite3 FILE .recover'";
	case SQLITE_NOTADB:
		return "; give a file made by 'numapgo record' or 'numapgo import'";
	default:
		return "";
	}
}

static int fail(struct npg_db *db, const char *sql, struct npg_error *err)
{
	int code = sqlite3_extended_errcode(db->handle);

	if ((code & 0xff) == SQLITE_NOTADB || (code & 0xff) == SQLITE_CORRUPT ||
	    (code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_BUSY || sql == NULL)
		return npg_error_set(err, errno_of(code), "%s: %s%s", db->path,
				     sqlite3_errmsg(db->handle), advice_of(code));
	return npg_error_set(err, errno_of(code), "%s: %s, in SQL '%.200s'%s", db->path,
			     sqlite3_errmsg(db->handle), sql, advice_of(code));
}

static int check_path(const char *path, enum npg_db_mode mode, struct npg_error *err)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno == ENOENT && mode == NPG_DB_CREATE)
			return 0;
		return npg_error_set(err, -errno, "%s: %s; 'numapgo record -- CMD' makes one", path,
				     strerror(errno));
	}
	if (mode == NPG_DB_CREATE)
		return npg_error_set(err, -EEXIST, "%s: exists already", path);
	if (!S_ISREG(st.st_mode))
		return npg_error_set(err, -ENOTSUP,
				     "%s: not a regular file; give a recording's path", path);
	if (st.st_size == 0)
		return npg_error_set(err, -ENOTSUP, "%s: the file is empty, not a recording", path);
	if (access(path, R_OK) < 0)
		return npg_error_set(err, -errno, "%s: %s; check its owner and mode", path,
				     strerror(errno));
	return 0;
}

int npg_db_open(const char *path, enum npg_db_mode mode, struct npg_db **db, struct npg_error *err)
{
	static const int flags[] = {
		[NPG_DB_READ] = SQLITE_OPEN_READONLY,
		[NPG_DB_WRITE] = SQLITE_OPEN_READWRITE,
		[NPG_DB_CREATE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
	};
	struct npg_db *new_db;
	int ret = check_path(path, mode, err);

	if (ret < 0)
		return ret;
	new_db = calloc(1, sizeof(*new_db));
	if (new_db == NULL || (new_db->path = strdup(path)) == NULL) {
		free(new_db);
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	}
	if (sqlite3_open_v2(path, &new_db->handle, flags[mode], NULL) != SQLITE_OK) {
		ret = fail(new_db, NULL, err);
		npg_db_close(new_db);
		return ret;
	}
	sqlite3_extended_result_codes(new_db->handle, 1);
	sqlite3_busy_timeout(new_db->handle, 5000);
	sqlite3_db_config(new_db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(new_db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	ret = npg_db_exec(new_db, "PRAGMA user_version", err); /* reads the header */
	if (ret < 0) {
		npg_db_close(new_db);
		return ret;
	}
	*db = new_db;
	return 0;
}

void npg_db_close(struct npg_db *db)
{
	if (db == NULL)
		return;
	sqlite3_close_v2(db->handle);
	free(db->path);
	free(db);
}

const char *npg_db_path(const struct npg_db *db)
{
	return db->path;
}

int npg_db_exec(struct npg_db *db, const char *sql, struct npg_error *err)
{
	if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fail(db, sql, err);
	return 0;
}

int npg_db_prepare(struct npg_db *db, const char *sql, struct npg_stmt **stmt,
		   struct npg_error *err)
{
	struct npg_stmt *new_stmt = calloc(1, sizeof(*new_stmt));

	if (new_stmt == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", db->path);
	new_stmt->db = db;
	if (sqlite3_prepare_v2(db->handle, sql, -1, &new_stmt->handle, &new_stmt->tail) !=
	    SQLITE_OK) {
		free(new_stmt);
		return fail(db, sql, err);
	}
	*stmt = new_stmt;
	return 0;
}

int npg_db_query_i64(struct npg_db *db, const char *sql, int64_t missing, int64_t *value,
		     struct npg_error *err)
{
	struct npg_stmt *stmt;
	int ret = npg_db_prepare(db, sql, &stmt, err);

	if (ret < 0)
		return ret;
	ret = npg_stmt_step(stmt, err);
	if (ret >= 0) {
		*value = missing;
		if (ret == 1 && npg_stmt_column_type(stmt, 0) != NPG_DB_NULL)
			*value = npg_stmt_column_i64(stmt, 0);
		ret = 0;
	}
	npg_stmt_finalize(stmt);
	return ret;
}

bool npg_db_is_readonly(const struct npg_db *db)
{
	return sqlite3_db_readonly(db->handle, "main") == 1;
}

int64_t npg_db_last_id(const struct npg_db *db)
{
	return sqlite3_last_insert_rowid(db->handle);
}

void npg_stmt_finalize(struct npg_stmt *stmt)
{
	if (stmt == NULL)
		return;
	sqlite3_finalize(stmt->handle);
	free(stmt);
}

static void check_bind(int code)
{
	if (code != SQLITE_OK && code != SQLITE_NOMEM && code != SQLITE_TOOBIG)
		abort(); /* a parameter that the statement does not have, or a busy statement */
}

void npg_stmt_bind_i64(struct npg_stmt *stmt, int i_parameter, int64_t value)
{
	check_bind(sqlite3_bind_int64(stmt->handle, i_parameter, value));
}

void npg_stmt_bind_real(struct npg_stmt *stmt, int i_parameter, double value)
{
	check_bind(sqlite3_bind_double(stmt->handle, i_parameter, value));
}

void npg_stmt_bind_text(struct npg_stmt *stmt, int i_parameter, const char *text)
{
	check_bind(sqlite3_bind_text(stmt->handle, i_parameter, text, -1, SQLITE_TRANSIENT));
}

void npg_stmt_bind_blob(struct npg_stmt *stmt, int i_parameter, const void *data, size_t size)
{
	check_bind(sqlite3_bind_blob64(stmt->handle, i_parameter, data, size, SQLITE_TRANSIENT));
}

void npg_stmt_bind_null(struct npg_stmt *stmt, int i_parameter)
{
	check_bind(sqlite3_bind_null(stmt->handle, i_parameter));
}

int npg_stmt_step(struct npg_stmt *stmt, struct npg_error *err)
{
	int code = sqlite3_step(stmt->handle);
	int ret;

	if (code == SQLITE_ROW)
		return 1;
	ret = code == SQLITE_DONE ? 0 : fail(stmt->db, sqlite3_sql(stmt->handle), err);
	sqlite3_reset(stmt->handle);
	return ret;
}

int npg_stmt_run(struct npg_stmt *stmt, struct npg_error *err)
{
	int ret = npg_stmt_step(stmt, err);

	if (ret == 1) {
		npg_stmt_reset(stmt);
		ret = 0;
	}
	return ret;
}

void npg_stmt_reset(struct npg_stmt *stmt)
{
	sqlite3_reset(stmt->handle);
}

int npg_stmt_nr_columns(const struct npg_stmt *stmt)
{
	return sqlite3_column_count(stmt->handle);
}

bool npg_stmt_is_readonly(const struct npg_stmt *stmt)
{
	return sqlite3_stmt_readonly(stmt->handle) != 0;
}

const char *npg_stmt_tail(const struct npg_stmt *stmt)
{
	return stmt->tail;
}

const char *npg_stmt_column_name(struct npg_stmt *stmt, int i_column)
{
	return sqlite3_column_name(stmt->handle, i_column);
}

enum npg_db_type npg_stmt_column_type(struct npg_stmt *stmt, int i_column)
{
	switch (sqlite3_column_type(stmt->handle, i_column)) {
	case SQLITE_INTEGER:
		return NPG_DB_INTEGER;
	case SQLITE_FLOAT:
		return NPG_DB_REAL;
	case SQLITE_TEXT:
		return NPG_DB_TEXT;
	case SQLITE_BLOB:
		return NPG_DB_BLOB;
	default:
		return NPG_DB_NULL;
	}
}

int64_t npg_stmt_column_i64(struct npg_stmt *stmt, int i_column)
{
	return sqlite3_column_int64(stmt->handle, i_column);
}

double npg_stmt_column_real(struct npg_stmt *stmt, int i_column)
{
	return sqlite3_column_double(stmt->handle, i_column);
}

const char *npg_stmt_column_text(struct npg_stmt *stmt, int i_column)
{
	return (const char *)sqlite3_column_text(stmt->handle, i_column);
}

const void *npg_stmt_column_blob(struct npg_stmt *stmt, int i_column, size_t *size)
{
	const void *data = sqlite3_column_blob(stmt->handle, i_column);

	*size = (size_t)sqlite3_column_bytes(stmt->handle, i_column);
	return data;
}
