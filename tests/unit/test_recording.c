/* Recordings: creation, kills at any moment, finishing, refusal of what is none; output names. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/recording.h"

static struct npg_error err;

/* Every test has a directory of its own as the current one. */
static int set_up(void **state)
{
	static char directory[64];

	snprintf(directory, sizeof(directory), "/tmp/numapgo-test-rec.XXXXXX");
	if (mkdtemp(directory) == NULL || chdir(directory) < 0)
		return -1;
	*state = directory;
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
	return chdir("/") < 0 || system(command) != 0;
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static void add_strings(struct npg_db *db, int nr)
{
	char sql[300];

	snprintf(sql, sizeof(sql),
		 "INSERT INTO string (text) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT "
		 "i + 1 FROM n WHERE i < %d) SELECT hex(randomblob(8)) || i FROM n",
		 nr);
	assert_int_equal(npg_db_exec(db, sql, &err), 0);
}

static int64_t count_strings(const char *path, bool *is_complete)
{
	struct npg_recording r;
	int64_t nr = -1;

	if (npg_recording_open(path, false, &r, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(npg_db_query_i64(r.db, "SELECT count(*) FROM string", -1, &nr, &err), 0);
	*is_complete = r.is_complete;
	npg_recording_close(&r);
	return nr;
}

static void make_recording(const char *path, int nr_strings)
{
	struct npg_recording r;

	if (npg_recording_create(path, &r, &err) < 0)
		fail_msg("%s", err.text);
	add_strings(r.db, nr_strings);
	if (npg_recording_finish(&r, &err) < 0)
		fail_msg("%s", err.text);
	npg_recording_close(&r);
}

/* A recorder that commits 1000 strings, writes 200000 more (a spilled cache) and is killed. */
static void make_killed(const char *path, bool has_open_transaction)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct npg_recording r;

		if (npg_recording_create(path, &r, &err) == 0) {
			add_strings(r.db, 1000);
			if (has_open_transaction &&
			    npg_db_exec(r.db, "PRAGMA cache_size = 10; BEGIN", &err) == 0)
				add_strings(r.db, 200000);
		}
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void finished_one_is_complete(void **state)
{
	bool is_complete;

	(void)state;
	make_recording("a.db", 3);
	assert_false(is_there("a.db.partial"));
	assert_false(is_there("a.db.partial-journal"));
	assert_int_equal(count_strings("a.db", &is_complete), 3);
	assert_true(is_complete);
}

static void older_one_is_kept(void **state)
{
	bool is_complete;

	(void)state;
	make_recording("a.db", 1);
	make_recording("a.db", 2);
	assert_int_equal(count_strings("a.db", &is_complete), 2);
	assert_int_equal(count_strings("a.db.old", &is_complete), 1);
}

static void killed_one_keeps_what_was_committed(void **state)
{
	bool is_complete = true;

	(void)state;
	for (int open_transaction = 0; open_transaction < 2; open_transaction++) {
		make_killed("a.db", open_transaction != 0);
		if (open_transaction)
			assert_true(is_there("a.db.partial-journal"));
		assert_int_equal(count_strings("a.db.partial", &is_complete), 1000);
		assert_false(is_complete);
	}
	assert_int_equal(count_strings("a.db.partial.old", &is_complete), 1000);
}

static void killed_one_is_moved_with_its_journal(void **state)
{
	bool is_complete;

	(void)state;
	make_killed("a.db", true);
	make_recording("a.db", 5); /* nobody has opened the killed one in between */
	assert_int_equal(count_strings("a.db", &is_complete), 5);
	assert_int_equal(count_strings("a.db.partial.old", &is_complete), 1000);
	assert_false(is_complete);
}

static void live_one_is_not_touched(void **state)
{
	struct npg_recording r, other;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(npg_recording_create("a.db", &r, &err), 0);
	add_strings(r.db, 7);
	pid = fork();
	if (pid == 0)
		_exit(npg_recording_create("a.db", &other, &err) == -EBUSY &&
			      strstr(err.text, "a.db.partial") != NULL
			  ? 0
			  : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(npg_recording_finish(&r, &err), 0);
	npg_recording_close(&r);
	make_recording("b.db", 1); /* another name is free at any time */
}

static void finds_the_partial_one(void **state)
{
	struct npg_recording r;

	(void)state;
	assert_int_equal(npg_recording_open(NULL, false, &r, &err), -ENOENT);
	assert_null(strstr(err.text, ".partial"));
	make_killed(NPG_RECORDING_DEFAULT, false);
	assert_int_equal(npg_recording_open(NULL, false, &r, &err), -ENOENT);
	assert_non_null(strstr(err.text, NPG_RECORDING_DEFAULT ".partial"));
}

static void refuses_bad_places(void **state)
{
	struct npg_recording r;

	(void)state;
	assert_int_equal(npg_recording_create("no/a.db", &r, &err), -ENOENT);
	assert_int_equal(npg_recording_create("", &r, &err), -ENOENT);
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(npg_recording_create("d", &r, &err), -EEXIST);
	assert_int_equal(npg_recording_create("/dev/null", &r, &err), -EEXIST);
	assert_true(is_there("/dev/null"));
	if (geteuid() != 0) { /* root may write anywhere */
		assert_int_equal(chmod("d", 0500), 0);
		assert_int_equal(npg_recording_create("d/a.db", &r, &err), -EACCES);
	}
}

static void failed_finish_keeps_the_data(void **state)
{
	struct npg_recording r;
	bool is_complete;

	(void)state;
	assert_int_equal(npg_recording_create("a.db", &r, &err), 0);
	add_strings(r.db, 9);
	assert_int_equal(mkdir("a.db", 0700), 0); /* somebody took the name ... */
	assert_int_equal(mkdir("a.db.old", 0700), 0);
	assert_int_equal(mkdir("a.db.old/x", 0700), 0); /* ... and it cannot be moved away */
	assert_true(npg_recording_finish(&r, &err) < 0);
	assert_non_null(strstr(err.text, "a.db.partial"));
	npg_recording_close(&r);
	assert_int_equal(count_strings("a.db.partial", &is_complete), 9);
	assert_true(is_complete);
}

static void alter(const char *sql)
{
	struct npg_db *db;

	unlink("bad.db");
	make_recording("bad.db", 1);
	assert_int_equal(npg_db_open("bad.db", NPG_DB_WRITE, &db, &err), 0);
	assert_int_equal(npg_db_exec(db, sql, &err), 0);
	npg_db_close(db);
}

static void refuses_other_databases(void **state)
{
	struct npg_recording r;

	(void)state;
	alter("PRAGMA application_id = 5");
	assert_int_equal(npg_recording_open("bad.db", false, &r, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "another application"));
	alter("PRAGMA user_version = 2");
	assert_int_equal(npg_recording_open("bad.db", false, &r, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "newer numapgo"));
	alter("DROP VIEW v_source");
	assert_int_equal(npg_recording_open("bad.db", false, &r, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "view 'v_source' is missing"));
	alter("DROP TABLE gap; CREATE VIEW gap AS SELECT 1");
	assert_int_equal(npg_recording_open("bad.db", false, &r, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "table 'gap' is missing"));
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* What is no recording is neither replaced nor moved, under each name that would be. */
static void keeps_files_of_others(void **state)
{
	static const char *const names[] = { "a.db", "a.db.old", "a.db.partial",
					     "a.db.partial.old" };
	struct npg_recording r;
	char text[16] = "";
	FILE *file;

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(names); i++) {
		put(names[i], "precious");
		assert_int_equal(npg_recording_create("a.db", &r, &err), -EEXIST);
		assert_non_null(strstr(err.text, names[i]));
		file = fopen(names[i], "r");
		assert_non_null(file);
		assert_non_null(fgets(text, sizeof(text), file));
		fclose(file);
		assert_string_equal(text, "precious");
		unlink(names[i]);
	}
	put("a.db", ""); /* as mktemp(1) makes it */
	make_recording("a.db", 1);
}

static void refuses_damaged_files(void **state)
{
	struct npg_recording r;
	off_t size = 0;
	struct stat st;

	(void)state;
	make_recording("a.db", 1000);
	assert_int_equal(stat("a.db", &st), 0);
	for (size = st.st_size - 1; size >= 0; size = size >= 4096 ? size - 4096 : size - 512) {
		assert_int_equal(truncate("a.db", size), 0);
		err.text[0] = '\0';
		if (npg_recording_open("a.db", false, &r, &err) == 0)
			npg_recording_close(&r);
		else
			assert_true(err.text[0] != '\0');
		assert_true(size < 4096 || err.text[0] != '\0'); /* SQLite sees that pages lack */
	}
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(npg_recording_open("fifo", false, &r, &err), -ENOTSUP);
	assert_int_equal(npg_recording_open(".", false, &r, &err), -ENOTSUP);
}

static void reads_where_it_cannot_write(void **state)
{
	struct npg_recording r;

	(void)state;
	make_recording("a.db", 1);
	assert_int_equal(npg_recording_open("a.db", true, &r, &err), 0);
	assert_true(r.is_writable);
	npg_recording_close(&r);
	assert_int_equal(npg_recording_open("a.db", false, &r, &err), 0);
	assert_false(r.is_writable);
	assert_int_equal(npg_db_exec(r.db, "DELETE FROM string", &err), -EROFS);
	npg_recording_close(&r);
}

/* As another user, who may read but not write. */
static int open_as_nobody(const char *path, bool want_write)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct npg_recording r;
		int ret;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(99);
		ret = npg_recording_open(path, want_write, &r, &err);
		if (ret == 0)
			_exit(r.is_writable ? 1 : 0);
		_exit(ret == -EACCES && strstr(err.text, "-journal") != NULL ? 13 : 98);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void tells_a_reader_about_the_journal(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	make_recording("a.db", 1);
	assert_int_equal(chmod(".", 0755), 0);
	assert_int_equal(open_as_nobody("a.db", true), 0);
	make_killed("a.db", true);
	assert_int_equal(open_as_nobody("a.db.partial", false), 13);
}

static const char *expand(const char *pattern)
{
	static char path[64];
	int ret = npg_output_expand(pattern, "/usr/bin/app", 42, path, sizeof(path), &err);

	return ret == 0 ? path : ret == -ENAMETOOLONG ? "too long" : "invalid";
}

static void expands_names(void **state)
{
	char host[256], want[300];

	(void)state;
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	snprintf(want, sizeof(want), "%s", host);
	assert_string_equal(expand("%h"), want);
	assert_string_equal(expand("plain.db"), "plain.db");
	assert_string_equal(expand("%e-%p-%%.db"), "app-42-%.db");
	setenv("NPG_TEST", "x/y", 1);
	assert_string_equal(expand("a%q{NPG_TEST}b"), "ax/yb");
	assert_string_equal(expand("%q{NPG_NOT_SET}"), "invalid");
	assert_string_equal(expand("%q"), "invalid");
	assert_string_equal(expand("%q{}"), "invalid");
	assert_string_equal(expand("%q{NPG_TEST"), "invalid");
	assert_string_equal(expand("%z"), "invalid");
	assert_string_equal(expand("a%"), "invalid");
	assert_string_equal(expand(""), "invalid");
	assert_string_equal(
	    expand("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	assert_string_equal(
	    expand("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "too long");
}

static void finds_rank_and_job(void **state)
{
	static const char *const names[] = {
		"NUMAPGO_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
		"PMI_RANK",     "SLURM_PROCID",         "SLURM_JOB_ID"
	};

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	assert_string_equal(expand("%r"), "invalid");
	assert_non_null(strstr(err.text, "rank"));
	assert_string_equal(expand("%j"), "invalid");
	setenv("SLURM_PROCID", "0", 1);
	setenv("PMI_RANK", "3", 1);
	setenv("SLURM_JOB_ID", "77", 1);
	assert_string_equal(expand("%j-%r.db"), "77-3.db"); /* the batch script's 0 comes last */
	setenv("NUMAPGO_RANK", "9", 1);
	assert_string_equal(expand("%r"), "9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finished_one_is_complete, set_up, tear_down),
		cmocka_unit_test_setup_teardown(older_one_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(killed_one_keeps_what_was_committed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(killed_one_is_moved_with_its_journal, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(live_one_is_not_touched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(finds_the_partial_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refuses_bad_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failed_finish_keeps_the_data, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refuses_other_databases, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keeps_files_of_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refuses_damaged_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reads_where_it_cannot_write, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tells_a_reader_about_the_journal, set_up,
						tear_down),
		cmocka_unit_test(expands_names),
		cmocka_unit_test(finds_rank_and_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
