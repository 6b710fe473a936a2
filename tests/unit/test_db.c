/* The SQLite wrapper: modes, values, errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/db.h"

static char directory[64];
static struct npg_error err;

static const char *in_directory(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/numapgo-test-db.XXXXXX");
	return mkdtemp(directory) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static struct npg_db *create(void)
{
	struct npg_db *db;

	assert_int_equal(npg_db_open(in_directory("a.db"), NPG_DB_CREATE, &db, &err), 0);
	assert_int_equal(
	    npg_db_exec(db, "CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB)", &err), 0);
	return db;
}

static void insert_row(struct npg_db *db)
{
	struct npg_stmt *stmt;

	assert_int_equal(npg_db_prepare(db, "INSERT INTO t VALUES (?, ?, ?, ?)", &stmt, &err), 0);
	assert_false(npg_stmt_is_readonly(stmt));
	assert_int_equal(npg_stmt_nr_columns(stmt), 0);
	npg_stmt_bind_i64(stmt, 1, INT64_MIN);
	npg_stmt_bind_real(stmt, 2, 0.5);
	npg_stmt_bind_text(stmt, 3, "text");
	npg_stmt_bind_blob(stmt, 4, "\0\1", 2);
	assert_int_equal(npg_stmt_run(stmt, &err), 0);
	npg_stmt_bind_text(stmt, 3, NULL);
	npg_stmt_bind_null(stmt, 4);
	assert_int_equal(npg_stmt_run(stmt, &err), 0);
	npg_stmt_finalize(stmt);
	assert_int_equal(npg_db_last_id(db), 2);
}

static void values_come_back(void **state)
{
	struct npg_db *db = create();
	struct npg_stmt *stmt;
	size_t size;

	(void)state;
	insert_row(db);
	assert_int_equal(npg_db_prepare(db, "SELECT i, r, s, b FROM t; SELECT 2", &stmt, &err), 0);
	assert_string_equal(npg_stmt_tail(stmt), " SELECT 2");
	assert_int_equal(npg_stmt_nr_columns(stmt), 4);
	assert_string_equal(npg_stmt_column_name(stmt, 2), "s");
	assert_int_equal(npg_stmt_step(stmt, &err), 1);
	assert_int_equal(npg_stmt_column_type(stmt, 0), NPG_DB_INTEGER);
	assert_true(npg_stmt_column_i64(stmt, 0) == INT64_MIN);
	assert_int_equal(npg_stmt_column_type(stmt, 1), NPG_DB_REAL);
	assert_true(npg_stmt_column_real(stmt, 1) > 0.4);
	assert_string_equal(npg_stmt_column_text(stmt, 2), "text");
	assert_memory_equal(npg_stmt_column_blob(stmt, 3, &size), "\0\1", 2);
	assert_int_equal(size, 2);
	assert_int_equal(npg_stmt_step(stmt, &err), 1);
	assert_int_equal(npg_stmt_column_type(stmt, 2), NPG_DB_NULL);
	assert_null(npg_stmt_column_text(stmt, 2));
	assert_int_equal(npg_stmt_step(stmt, &err), 0);
	assert_int_equal(npg_stmt_step(stmt, &err), 1); /* reset by itself */
	npg_stmt_finalize(stmt);
	npg_db_close(db);
}

static void queries_give_a_default(void **state)
{
	struct npg_db *db = create();
	int64_t value = 0;

	(void)state;
	assert_int_equal(npg_db_query_i64(db, "SELECT i FROM t", -5, &value, &err), 0);
	assert_int_equal(value, -5);
	assert_int_equal(npg_db_query_i64(db, "SELECT max(i) FROM t", -6, &value, &err), 0);
	assert_int_equal(value, -6);
	assert_int_equal(npg_db_query_i64(db, "SELECT 17", -6, &value, &err), 0);
	assert_int_equal(value, 17);
	npg_db_close(db);
}

static void errors_name_file_and_sql(void **state)
{
	struct npg_db *db = create();
	struct npg_stmt *stmt;

	(void)state;
	assert_true(npg_db_exec(db, "INSERT INTO nowhere VALUES (1)", &err) < 0);
	assert_non_null(strstr(err.text, "a.db"));
	assert_non_null(strstr(err.text, "nowhere VALUES"));
	assert_true(npg_db_prepare(db, "SELEKT", &stmt, &err) < 0);
	assert_non_null(strstr(err.text, "SELEKT"));
	npg_db_close(db);
}

static void reading_never_writes(void **state)
{
	struct npg_db *db = create();

	(void)state;
	assert_false(npg_db_is_readonly(db));
	npg_db_close(db);
	assert_int_equal(npg_db_open(in_directory("a.db"), NPG_DB_READ, &db, &err), 0);
	assert_true(npg_db_is_readonly(db));
	assert_string_equal(npg_db_path(db), in_directory("a.db"));
	assert_int_equal(npg_db_exec(db, "DELETE FROM t", &err), -EROFS);
	npg_db_close(db);
}

static void modes_check_the_file(void **state)
{
	struct npg_db *db = create();
	FILE *file;

	(void)state;
	npg_db_close(db);
	assert_int_equal(npg_db_open(in_directory("a.db"), NPG_DB_CREATE, &db, &err), -EEXIST);
	assert_int_equal(npg_db_open(in_directory("b.db"), NPG_DB_READ, &db, &err), -ENOENT);
	assert_int_equal(npg_db_open(in_directory("b.db"), NPG_DB_WRITE, &db, &err), -ENOENT);
	assert_int_equal(npg_db_open(directory, NPG_DB_READ, &db, &err), -ENOTSUP);
	file = fopen(in_directory("text"), "we");
	assert_non_null(file);
	assert_int_equal(npg_db_open(in_directory("text"), NPG_DB_READ, &db, &err), -ENOTSUP);
	for (int i = 0; i < 200; i++)
		fputs("no database\n", file);
	fclose(file);
	assert_int_equal(npg_db_open(in_directory("text"), NPG_DB_READ, &db, &err), -ENOTSUP);
	assert_int_equal(npg_db_open("/proc/nowhere/x.db", NPG_DB_CREATE, &db, &err), -EACCES);
	npg_db_close(NULL);
	npg_stmt_finalize(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(queries_give_a_default, set_up, tear_down),
		cmocka_unit_test_setup_teardown(errors_name_file_and_sql, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reading_never_writes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(modes_check_the_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
