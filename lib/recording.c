/*
 * Creating, finishing and opening recordings.
 *
 * While it is written, a recording holds SQLite's exclusive lock on PATH.partial from creation to
 * the end: the lock dies with its process, so it tells a live recorder from a left-over file, and
 * SQLite needs no lock calls in between. A database and its rollback journal belong together by
 * name, so before a file is moved aside its journal is rolled back into it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/recording.h"
#include "lib/schemas.h"

/* What the analyzer and the v_* views look up by; made at the end, when it costs least. */
#define NPG_RECORDING_MARK "NPG1" /* the application ID, in the header of the file */

static const char index_sql[] =
    "BEGIN;"
    "CREATE INDEX sample_object ON sample (object_id, address);"
    "CREATE INDEX sample_thread ON sample (thread_id);"
    "CREATE INDEX page_count_object ON page_count (object_id, page);"
    "CREATE INDEX object_process ON object (process_id, start_address);"
    "CREATE INDEX object_callsite ON object (callsite_id);"
    "CREATE INDEX mapping_process ON mapping (process_id, start_address);"
    "CREATE INDEX callsite_hash ON callsite (hash);"
    "INSERT OR REPLACE INTO meta (key, value) VALUES ('complete', 1);"
    "COMMIT";

static char *join(const char *path, const char *suffix)
{
	size_t length = strlen(path), more = strlen(suffix) + 1;
	char *joined = malloc(length + more);

	if (joined != NULL) {
		memcpy(joined, path, length);
		memcpy(joined + length, suffix, more);
	}
	return joined;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool has_suffix_file(const char *path, const char *suffix)
{
	char *name = join(path, suffix);
	bool result = name != NULL && exists(name);

	free(name);
	return result;
}

/* Roll back what a killed writer left. Whatever is no database is left as it is. */
static int settle_journal(const char *path, struct npg_error *err)
{
	struct npg_error ignored;
	struct npg_db *db = NULL;
	char *journal = join(path, "-journal");
	int ret;

	if (journal == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	if (!exists(journal)) {
		free(journal);
		return 0;
	}
	ret = npg_db_open(path, NPG_DB_WRITE, &db, &ignored);
	npg_db_close(db);
	if (ret == 0)
		unlink(journal); /* used up */
	free(journal);
	if (ret == -EBUSY)
		return npg_error_set(err, ret, "%s", ignored.text);
	return 0;
}

/* Rename FROM to TO together with a journal that could not be settled; TO is replaced. */
static int move_aside(const char *from, const char *to, struct npg_error *err)
{
	char *from_journal = join(from, "-journal");
	char *to_journal = join(to, "-journal");
	int ret = -ENOMEM;

	if (from_journal == NULL || to_journal == NULL) {
		npg_error_set(err, ret, "%s: out of memory", from);
		goto out;
	}
	ret = settle_journal(from, err);
	if (ret < 0)
		goto out;
	if (exists(from_journal))
		rename(from_journal, to_journal);
	else
		unlink(to_journal); /* it must not be applied to another database */
	if (rename(from, to) < 0)
		ret = npg_error_set(err, -errno, "%s: cannot be renamed to %s: %s", from, to,
				    strerror(errno));
out:
	free(from_journal);
	free(to_journal);
	return ret;
}

/* -EBUSY if another process holds a lock on the file, which every live recorder does. */
static int check_not_in_use(const char *path, struct npg_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_locked;

	if (fd < 0)
		return 0;
	is_locked = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	if (is_locked)
		return npg_error_set(err, -EBUSY,
				     "%s: another numapgo is recording into it; wait for its end "
				     "or give another name with -o",
				     path);
	return 0;
}

/* Files that would be moved or replaced, now or at the end, must be ours. */
static int check_ours(const char *path, struct npg_error *err)
{
	static const char *const suffixes[] = { "", ".old", ".partial", ".partial.old" };

	for (size_t i = 0; i < NPG_ARRAY_SIZE(suffixes); i++) {
		char *name = join(path, suffixes[i]);
		bool is_foreign;

		if (name == NULL)
			return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
		is_foreign = npg_output_is_foreign(name, NPG_RECORDING_MARK);
		if (is_foreign)
			npg_error_set(err, -EEXIST,
				      "%s: is there and is no recording, and would have to be "
				      "replaced; move it, or give another name with -o",
				      name);
		free(name);
		if (is_foreign)
			return -EEXIST;
	}
	return 0;
}

static int prepare_names(const char *path, struct npg_recording *r, struct npg_error *err)
{
	char *old = NULL;
	struct stat st;
	int ret;

	if (path[0] == '\0')
		return npg_error_set(err, -ENOENT, "the name of the recording is empty");
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return npg_error_set(err, -EEXIST,
				     "%s: exists and is not a regular file; give another name "
				     "with -o",
				     path);
	ret = check_ours(path, err);
	if (ret < 0)
		return ret;
	r->path = strdup(path);
	r->partial_path = join(path, ".partial");
	old = join(path, ".partial.old");
	if (r->path == NULL || r->partial_path == NULL || old == NULL) {
		free(old);
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	}
	ret = check_not_in_use(r->partial_path, err);
	if (ret == 0 && exists(r->partial_path))
		ret = move_aside(r->partial_path, old, err);
	free(old);
	return ret;
}

static int load_schemas(struct npg_db *db, struct npg_error *err)
{
	static const char begin[] = "PRAGMA page_size = 4096; PRAGMA locking_mode = EXCLUSIVE;"
				    "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF;"
				    "PRAGMA foreign_keys = OFF; BEGIN EXCLUSIVE";
	int ret = npg_db_exec(db, begin, err);

	if (ret == 0)
		ret = npg_db_exec(db, npg_recording_sql, err);
	if (ret == 0)
		ret = npg_db_exec(db, npg_analysis_sql, err);
	if (ret == 0)
		ret = npg_db_exec(
		    db, "INSERT OR REPLACE INTO meta (key, value) VALUES ('complete', 0); COMMIT",
		    err);
	return ret;
}

/* Why a file cannot be made there, better than SQLite's "unable to open database file". */
static int check_directory(const char *path, struct npg_error *err)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash == NULL   ? strdup(".")
			  : slash == path ? strdup("/")
					  : strndup(path, (size_t)(slash - path));
	struct stat st;
	int ret = 0;

	if (directory == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	if (stat(directory, &st) < 0)
		ret = npg_error_set(err, -errno, "%s: its directory %s: %s", path, directory,
				    strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		ret = npg_error_set(err, -ENOTDIR, "%s: %s is not a directory", path, directory);
	else if (access(directory, W_OK | X_OK) < 0)
		ret = npg_error_set(err, -errno,
				    "%s: its directory %s cannot be written: %s; give another "
				    "name with -o",
				    path, directory, strerror(errno));
	free(directory);
	return ret;
}

/* Remove a new file in which nothing is yet. */
static void discard(struct npg_recording *r)
{
	char *journal = join(r->partial_path, "-journal");

	npg_db_close(r->db);
	r->db = NULL;
	unlink(r->partial_path);
	if (journal != NULL)
		unlink(journal);
	free(journal);
}

int npg_recording_create(const char *path, struct npg_recording *recording, struct npg_error *err)
{
	struct npg_recording r = { .is_writable = true };
	bool is_ours = false;
	int ret = check_directory(path, err);

	if (ret == 0)
		ret = prepare_names(path, &r, err);
	if (ret == 0)
		ret = npg_db_open(r.partial_path, NPG_DB_CREATE, &r.db, err);
	if (ret == 0) {
		ret = load_schemas(r.db, err);
		is_ours = ret != -EBUSY;
	}
	if (ret < 0) {
		if (is_ours)
			discard(&r);
		npg_recording_close(&r);
		return ret;
	}
	*recording = r;
	return 0;
}

/* The recording is complete under its partial name; give it its final one. */
static int take_final_name(const struct npg_recording *r, struct npg_error *err)
{
	char *old = join(r->path, ".old");
	int ret = 0;

	if (old == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", r->path);
	if (exists(r->path))
		ret = move_aside(r->path, old, err);
	if (ret == 0)
		ret = move_aside(r->partial_path, r->path, err);
	free(old);
	return ret;
}

int npg_recording_finish(struct npg_recording *recording, struct npg_error *err)
{
	int ret = npg_db_exec(recording->db, index_sql, err);

	npg_db_close(recording->db);
	recording->db = NULL;
	if (ret == 0) {
		recording->is_complete = true;
		ret = take_final_name(recording, err);
	}
	if (ret < 0)
		npg_error_prefix(err, ret, "the recording stays in %s", recording->partial_path);
	return ret;
}

/* Every table and view that schemas/recording.sql creates. */
static int check_tables(struct npg_db *db, struct npg_error *err)
{
	static const char create[] = "\nCREATE ";
	struct npg_stmt *stmt;
	int ret = npg_db_prepare(
	    db, "SELECT 1 FROM sqlite_schema WHERE lower(type) = lower(?) AND name = ?", &stmt,
	    err);

	for (const char *at = npg_recording_sql; ret >= 0;) {
		char type[16], name[64];

		at = strstr(at, create);
		if (at == NULL)
			break;
		at += sizeof(create) - 1;
		if (sscanf(at, "%15s %63[a-z_]", type, name) != 2)
			continue;
		npg_stmt_bind_text(stmt, 1, type);
		npg_stmt_bind_text(stmt, 2, name);
		ret = npg_stmt_step(stmt, err);
		npg_stmt_reset(stmt);
		if (ret == 0)
			ret = npg_error_set(err, -EBADMSG,
					    "%s: the %s '%s' is missing; the file was changed or "
					    "is damaged: record again, or try 'sqlite3 FILE "
					    ".recover'",
					    npg_db_path(db),
					    strcmp(type, "VIEW") == 0 ? "view" : "table", name);
	}
	npg_stmt_finalize(stmt);
	return ret < 0 ? ret : 0;
}

/* SQLite notices missing pages, but not that the last one is cut short. */
static int check_length(struct npg_db *db, struct npg_error *err)
{
	int64_t nr_pages = 0, page_bytes = 0;
	struct stat st;
	int ret = npg_db_query_i64(db, "PRAGMA page_count", 0, &nr_pages, err);

	if (ret == 0)
		ret = npg_db_query_i64(db, "PRAGMA page_size", 0, &page_bytes, err);
	if (ret == 0 && stat(npg_db_path(db), &st) == 0 && st.st_size / page_bytes < nr_pages)
		ret = npg_error_set(err, -EBADMSG,
				    "%s: the file is cut short; keep it, and try 'sqlite3 FILE "
				    ".recover'",
				    npg_db_path(db));
	return ret;
}

static int check_identity(struct npg_db *db, bool *is_complete, struct npg_error *err)
{
	int64_t application = 0, version = 0, complete = 0;
	int ret = npg_db_query_i64(db, "PRAGMA application_id", 0, &application, err);

	if (ret == 0)
		ret = npg_db_query_i64(db, "PRAGMA user_version", 0, &version, err);
	if (ret < 0)
		return ret;
	if (application != NPG_APPLICATION_ID)
		return npg_error_set(err, -ENOTSUP,
				     "%s: a database of another application, not a recording; give "
				     "a file made by 'numapgo record'",
				     npg_db_path(db));
	if (version != NPG_RECORDING_VERSION)
		return npg_error_set(
		    err, -ENOTSUP,
		    "%s: made by %s numapgo (format %lld, this one reads format "
		    "%d); %s",
		    npg_db_path(db), version > NPG_RECORDING_VERSION ? "a newer" : "an older",
		    (long long)version, NPG_RECORDING_VERSION,
		    version > NPG_RECORDING_VERSION ? "update numapgo" : "record again");
	ret = check_length(db, err);
	if (ret == 0)
		ret = check_tables(db, err);
	if (ret == 0)
		ret = npg_db_query_i64(db, "SELECT value FROM meta WHERE key = 'complete'", 0,
				       &complete, err);
	if (ret == 0)
		*is_complete = complete == 1;
	return ret;
}

static bool can_be_written(const char *path)
{
	struct npg_error ignored;

	return access(path, W_OK) == 0 && check_directory(path, &ignored) == 0;
}

static int open_file(const char *path, bool want_write, struct npg_db **db, struct npg_error *err)
{
	bool is_writable = can_be_written(path);
	int ret;

	if (is_writable && !want_write) {
		ret = settle_journal(path, err);
		if (ret < 0)
			return ret;
	}
	ret = npg_db_open(path, want_write && is_writable ? NPG_DB_WRITE : NPG_DB_READ, db, err);
	if (ret == -EROFS && has_suffix_file(path, "-journal"))
		return npg_error_set(err, -EACCES,
				     "%s: its writer was killed, and it cannot be read before "
				     "%s-journal is rolled back into it, which needs write "
				     "permission; copy both files to a directory of yours and open "
				     "the copy",
				     path, path);
	return ret;
}

int npg_recording_open(const char *path, bool want_write, struct npg_recording *recording,
		       struct npg_error *err)
{
	struct npg_recording r = { .db = NULL };
	int ret;

	if (path == NULL)
		path = NPG_RECORDING_DEFAULT;
	if (!exists(path) && has_suffix_file(path, ".partial"))
		return npg_error_set(err, -ENOENT,
				     "%s: does not exist, but %s.partial does: a recording that is "
				     "still running or was killed; give that name to read what it "
				     "has",
				     path, path);
	ret = open_file(path, want_write, &r.db, err);
	if (ret == 0)
		ret = check_identity(r.db, &r.is_complete, err);
	if (ret == 0 && (r.path = strdup(path)) == NULL)
		ret = npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	if (ret < 0) {
		npg_recording_close(&r);
		return ret;
	}
	r.is_writable = !npg_db_is_readonly(r.db);
	*recording = r;
	return 0;
}

void npg_recording_close(struct npg_recording *recording)
{
	npg_db_close(recording->db);
	free(recording->path);
	free(recording->partial_path);
	*recording = (struct npg_recording){ .db = NULL };
}
