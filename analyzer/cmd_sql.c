/* numapgo sql: one read-only query on a recording. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <strings.h>
#include <unistd.h>

#include <jansson.h>

#include "lib/command.h"
#include "lib/log.h"
#include "lib/recording.h"

#define MAX_CELL_CHARS  80  /* on a terminal; longer ones are cut */
#define ROWS_TO_MEASURE 500 /* columns are as wide as these need */

struct sql_options {
	struct npg_common common;
};

/* Blanks, semicolons and comments are no statement. */
static const char *skip_nothing(const char *sql)
{
	for (;;) {
		const char *end = NULL;

		if (isspace((unsigned char)*sql) || *sql == ';') {
			sql++;
			continue;
		}
		if (strncmp(sql, "--", 2) == 0)
			end = sql + strcspn(sql, "\n");
		else if (strncmp(sql, "/*", 2) == 0 && (end = strstr(sql + 2, "*/")) != NULL)
			end += 2;
		else
			return sql;
		sql = end;
	}
}

static int check_query(const char *sql, struct npg_error *err)
{
	static const char *const verbs[] = { "SELECT", "WITH", "VALUES", "EXPLAIN" };
	const char *start = skip_nothing(sql);

	if (*start == '\0')
		return npg_error_set(err, -1, "the query is empty");
	for (size_t i = 0; i < NPG_ARRAY_SIZE(verbs); i++) {
		size_t length = strlen(verbs[i]);

		if (strncasecmp(start, verbs[i], length) == 0 &&
		    !isalnum((unsigned char)start[length]) && start[length] != '_')
			return 0;
	}
	return npg_error_set(err, -1,
			     "'%.20s...' is no query: a recording is only read, by SELECT, WITH, "
			     "VALUES or EXPLAIN; 'SELECT sql FROM sqlite_schema' shows its tables",
			     start);
}

/* Distinct names, since they become the keys of JSON objects. */
static int check_names(struct npg_stmt *stmt, struct npg_error *err)
{
	int nr = npg_stmt_nr_columns(stmt);

	for (int i = 0; i < nr; i++)
		for (int j = 0; j < i; j++)
			if (strcmp(npg_stmt_column_name(stmt, i), npg_stmt_column_name(stmt, j)) ==
			    0)
				return npg_error_set(
				    err, -1, "two columns are named '%s'; give them names with AS",
				    npg_stmt_column_name(stmt, i));
	return 0;
}

static void print_escaped(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\t')
			fputs("\\t", out);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\\')
			fputs("\\\\", out);
		else if (iscntrl(c) && c < 0x80)
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
}

static void print_blob(struct npg_stmt *stmt, int i, FILE *out)
{
	size_t size;
	const unsigned char *bytes = npg_stmt_column_blob(stmt, i, &size);

	fputs("x'", out);
	for (size_t b = 0; b < size; b++)
		fprintf(out, "%02x", bytes[b]);
	putc('\'', out);
}

static void print_value(struct npg_stmt *stmt, int i, const char *null, FILE *out)
{
	switch (npg_stmt_column_type(stmt, i)) {
	case NPG_DB_NULL:
		fputs(null, out);
		break;
	case NPG_DB_INTEGER:
		fprintf(out, "%" PRId64, npg_stmt_column_i64(stmt, i));
		break;
	case NPG_DB_REAL:
		fprintf(out, "%.15g", npg_stmt_column_real(stmt, i));
		break;
	case NPG_DB_TEXT:
		print_escaped(npg_stmt_column_text(stmt, i), out);
		break;
	case NPG_DB_BLOB:
		print_blob(stmt, i, out);
		break;
	}
}

/* Lines with tabs between the values, for programs. */
static int print_tabs(struct npg_stmt *stmt, struct npg_error *err)
{
	int nr = npg_stmt_nr_columns(stmt);
	int ret;

	for (int i = 0; i < nr; i++) {
		print_escaped(npg_stmt_column_name(stmt, i), stdout);
		putchar(i + 1 < nr ? '\t' : '\n');
	}
	while ((ret = npg_stmt_step(stmt, err)) == 1)
		for (int i = 0; i < nr; i++) {
			print_value(stmt, i, "", stdout);
			putchar(i + 1 < nr ? '\t' : '\n');
		}
	return ret;
}

/* The text of all cells of some rows, for a table. */
struct table {
	char **cells;
	size_t nr_cells;
	size_t nr_columns;
	size_t *widths;
	bool *is_number;
	bool is_headed;
};

/* Characters of UTF-8, not bytes. */
static size_t nr_chars(const char *text)
{
	size_t nr = 0;

	for (; *text != '\0'; text++)
		nr += ((unsigned char)*text & 0xc0) != 0x80;
	return nr;
}

static void cut(char *text)
{
	size_t nr = 0;

	if (nr_chars(text) <= MAX_CELL_CHARS)
		return;
	for (; *text != '\0'; text++)
		if (((unsigned char)*text & 0xc0) != 0x80 && ++nr > MAX_CELL_CHARS - 3)
			break;
	memcpy(text, "...", 4);
}

static char *cell_text(struct npg_stmt *stmt, int i)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	print_value(stmt, i, "NULL", out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void print_cell(const char *text, size_t width, bool is_right, bool is_last)
{
	size_t length = nr_chars(text);
	int padding = length < width ? (int)(width - length) : 0;

	if (is_right)
		printf("%*s%s", padding, "", text);
	else
		printf("%s%*s", text, is_last ? 0 : padding, "");
	fputs(is_last ? "\n" : "  ", stdout);
}

/* Print what is there; the widths stay for the rows to come. */
static void flush_table(struct table *t, struct npg_stmt *stmt)
{
	size_t n = t->nr_columns;

	if (!t->is_headed) {
		for (size_t i = 0; i < t->nr_cells; i++)
			if (nr_chars(t->cells[i]) > t->widths[i % n])
				t->widths[i % n] = nr_chars(t->cells[i]);
		for (size_t i = 0; i < n; i++)
			print_cell(npg_stmt_column_name(stmt, (int)i), t->widths[i],
				   t->is_number[i], i + 1 == n);
		t->is_headed = true;
	}
	for (size_t i = 0; i < t->nr_cells; i++) {
		print_cell(t->cells[i], t->widths[i % n], t->is_number[i % n], i % n + 1 == n);
		free(t->cells[i]);
	}
	t->nr_cells = 0;
}

static int fill_table(struct table *t, struct npg_stmt *stmt, struct npg_error *err)
{
	size_t n = t->nr_columns;
	int ret;

	while ((ret = npg_stmt_step(stmt, err)) == 1) {
		for (size_t i = 0; i < n; i++) {
			enum npg_db_type type = npg_stmt_column_type(stmt, (int)i);
			char *text = cell_text(stmt, (int)i);

			if (text == NULL)
				return npg_error_set(err, -1, "out of memory");
			if (type == NPG_DB_TEXT || type == NPG_DB_BLOB)
				t->is_number[i] = false;
			cut(text);
			t->cells[t->nr_cells++] = text;
		}
		if (t->nr_cells == n * ROWS_TO_MEASURE)
			flush_table(t, stmt);
	}
	return ret;
}

/* Aligned columns, for people. */
static int print_table(struct npg_stmt *stmt, struct npg_error *err)
{
	struct table t = { .nr_columns = (size_t)npg_stmt_nr_columns(stmt) };
	size_t n = t.nr_columns;
	int ret = -1;

	t.cells = calloc(n * ROWS_TO_MEASURE, sizeof(*t.cells));
	t.widths = calloc(n, sizeof(*t.widths));
	t.is_number = calloc(n, sizeof(*t.is_number));
	if (t.cells == NULL || t.widths == NULL || t.is_number == NULL) {
		npg_error_set(err, ret, "out of memory");
	} else {
		for (size_t i = 0; i < n; i++) {
			t.widths[i] = nr_chars(npg_stmt_column_name(stmt, (int)i));
			t.is_number[i] = true;
		}
		ret = fill_table(&t, stmt, err);
		flush_table(&t, stmt);
	}
	free(t.cells);
	free(t.widths);
	free(t.is_number);
	return ret;
}

static json_t *text_to_json(const char *text)
{
	json_t *value = json_string(text);
	char *ascii;

	if (value != NULL)
		return value;
	ascii = strdup(text); /* not UTF-8: file names may be anything */
	for (char *c = ascii; ascii != NULL && *c != '\0'; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	value = json_string(ascii);
	free(ascii);
	return value;
}

static json_t *value_to_json(struct npg_stmt *stmt, int i)
{
	double real = npg_stmt_column_real(stmt, i);
	json_t *value;
	char *text;

	switch (npg_stmt_column_type(stmt, i)) {
	case NPG_DB_INTEGER:
		return json_integer(npg_stmt_column_i64(stmt, i));
	case NPG_DB_REAL:
		return isfinite(real) ? json_real(real) : json_null();
	case NPG_DB_TEXT:
		return text_to_json(npg_stmt_column_text(stmt, i));
	case NPG_DB_BLOB:
		text = cell_text(stmt, i);
		value = json_string(text);
		free(text);
		return value;
	case NPG_DB_NULL:
		break;
	}
	return json_null();
}

static int print_json(struct npg_stmt *stmt, struct npg_error *err)
{
	int nr = npg_stmt_nr_columns(stmt);
	const char *before = "\n";
	int ret = check_names(stmt, err);

	if (ret < 0)
		return ret;
	putchar('[');
	while ((ret = npg_stmt_step(stmt, err)) == 1) {
		json_t *row = json_object();

		for (int i = 0; i < nr; i++)
			json_object_set_new(row, npg_stmt_column_name(stmt, i),
					    value_to_json(stmt, i));
		fputs(before, stdout);
		json_dumpf(row, stdout, JSON_REAL_PRECISION(15));
		json_decref(row);
		before = ",\n";
	}
	puts("\n]");
	return ret;
}

static int run_query(struct npg_db *db, const char *sql, bool is_json, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret = check_query(sql, err);

	if (ret == 0)
		ret = npg_db_prepare(db, skip_nothing(sql), &stmt, err);
	if (ret < 0)
		return ret;
	if (!npg_stmt_is_readonly(stmt) || npg_stmt_nr_columns(stmt) == 0)
		ret = npg_error_set(err, -1, "the statement is no query; a recording is only read");
	else if (*skip_nothing(npg_stmt_tail(stmt)) != '\0')
		ret = npg_error_set(err, -1, "one query at a time; a second one begins at '%.40s'",
				    skip_nothing(npg_stmt_tail(stmt)));
	else if (is_json)
		ret = print_json(stmt, err);
	else
		ret = isatty(STDOUT_FILENO) ? print_table(stmt, err) : print_tabs(stmt, err);
	npg_stmt_finalize(stmt);
	return ret;
}

static int sql_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	const struct sql_options *o = options;
	struct npg_recording recording;
	struct npg_error err = { "" };
	int ret;

	if (argc != 2) {
		npg_error_print("%s: needs a recording and a query: numapgo sql numapgo.db "
				"'SELECT * FROM v_source'",
				command->name);
		return NPG_EXIT_USAGE;
	}
	ret = npg_recording_open(argv[0], false, &recording, &err);
	if (ret == 0) {
		if (!recording.is_complete)
			npg_warn("%s is incomplete: its recorder was killed", argv[0]);
		ret = run_query(recording.db, argv[1], o->common.json, &err);
		npg_recording_close(&recording);
	}
	if (ret < 0) {
		npg_error_print("%s", err.text);
		return NPG_EXIT_FAILED;
	}
	return NPG_EXIT_OK;
}

const struct npg_command npg_command_sql = {
	.name = "sql",
	.summary = "read-only query on a recording",
	.operands = "DB 'QUERY'",
	.description =
	    "Runs one query on a recording and prints a line of column names and its rows: in\n"
	    "aligned columns on a terminal (cells beyond 80 characters are cut), else with\n"
	    "tabs between the values, where NULL is an empty field and tab, newline and\n"
	    "backslash are written \\t, \\n and \\\\. With --json: a list of objects.\n"
	    "\n"
	    "Nothing is ever written. The tables and the v_* views are explained in\n"
	    "schemas/README.md; any other SQLite tool can open a recording too.",
	.examples = "  numapgo sql numapgo.db 'SELECT * FROM v_source'\n"
		    "  numapgo sql numapgo.db \"SELECT sql FROM sqlite_schema\"\n"
		    "  numapgo sql --json numapgo.db 'SELECT key, value FROM meta'\n",
	.options_size = sizeof(struct sql_options),
	.run = sql_run,
};
