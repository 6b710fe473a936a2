/* What an imported recording takes over from the recording of the same run. */
#ifndef NPG_PROFILER_IMPORT_COPY_H
#define NPG_PROFILER_IMPORT_COPY_H

#include "lib/db.h"

/**
 * npg_import_copy() - all tables, but of samples and page counts only those of the source 'fault'.
 * The sources 'clock' and 'hint' become 'not asked'.
 *
 * Return: as npg_db_exec().
 */
NPG_MUST_CHECK int npg_import_copy(struct npg_db *from, struct npg_db *to, struct npg_error *err);

#endif
