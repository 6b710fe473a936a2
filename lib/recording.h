/*
 * A recording: the database file of one or more runs, its creation and its opening.
 */
#ifndef NPG_LIB_RECORDING_H
#define NPG_LIB_RECORDING_H

#include <stdbool.h>

#include "lib/db.h"
#include "lib/error.h"

#define NPG_RECORDING_DEFAULT "numapgo.db"

struct npg_recording {
	struct npg_db *db;
	char *path;         /* final name */
	char *partial_path; /* where it is written until it is complete; NULL when opened */
	bool is_complete;
	bool is_writable;
};

/**
 * npg_recording_create() - begin a new recording beside its final name.
 * @path: final name; the file written is "PATH.partial" (one left over by a killed recorder is
 *        moved to "PATH.partial.old", so nothing is lost).
 *
 * All tables and views exist afterwards. No fsync is made: a kill of any process loses nothing
 * that was committed, a power failure may.
 *
 * Names that would have to be replaced (PATH, PATH.old, PATH.partial.old) must be free or
 * recordings: another program's file is never moved away or overwritten.
 *
 * Return: 0; -EEXIST (such a file), -EACCES, -ENOENT (directory), -ENOSPC, -EBUSY (another recorder
 * writes it); @err set. MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_recording_create(const char *path, struct npg_recording *recording,
					struct npg_error *err);

/**
 * npg_recording_finish() - build indexes, mark complete, close, rename to the final name; an
 * existing file of that name becomes PATH.old.
 *
 * No transaction may be open, all statements be finalised; .db is NULL afterwards.
 * npg_recording_close() is still needed.
 *
 * Return: as npg_db_exec(); on failure the partial file stays and @err names it.
 */
NPG_MUST_CHECK int npg_recording_finish(struct npg_recording *recording, struct npg_error *err);

/**
 * npg_recording_open() - open a recording for analysis.
 * @path: NULL means NPG_RECORDING_DEFAULT; where PATH does not exist but PATH.partial does, the
 *        error says so.
 * @want_write: the analysis tables will be written; falls back to reading, with .is_writable
 *        false, if the file or its directory cannot be written.
 *
 * Refuses databases of other applications, of newer versions, and files with tables missing.
 *
 * Return: 0; -ENOENT, -EACCES, -ENOTSUP, -EBADMSG; @err set.
 */
NPG_MUST_CHECK int npg_recording_open(const char *path, bool want_write,
				      struct npg_recording *recording, struct npg_error *err);

/** npg_recording_close() - close without finishing; safe on a zeroed struct. */
void npg_recording_close(struct npg_recording *recording);

/**
 * npg_output_is_foreign() - is there a file that numapgo did not write, which must not be replaced?
 * @mark: what each file of that kind of ours has in its first 256 bytes.
 *
 * An empty file is nobody's. A file that cannot be read counts as foreign.
 * MT-Safe.
 */
bool npg_output_is_foreign(const char *path, const char *mark);

/**
 * npg_output_expand() - a file name from a pattern: %p pid, %h host, %r rank, %j job, %e program,
 * %q{VAR} environment variable, %% percent.
 * @program: argv[0] of the program; its last component is used for %e.
 * @pid: of the program.
 * @path: @size bytes.
 *
 * Return: 0; -EINVAL (unknown letter or unset variable), -ENAMETOOLONG; @err set.
 */
NPG_MUST_CHECK int npg_output_expand(const char *pattern, const char *program, int pid, char *path,
				     size_t size, struct npg_error *err);

/**
 * npg_output_rank_variable(), npg_output_job_variable() - name of the environment variable by which
 * a launcher or batch system tells the process's rank (%r) or job (%j).
 *
 * Return: NULL if none is set.
 * MT-Safe env. Not AS-Safe.
 */
const char *npg_output_rank_variable(void);
const char *npg_output_job_variable(void);

#endif
