/*
 * Import of the NUMA lab's files: what a virtual PMU saw, put in place of a recording's samples.
 *
 * A trace knows addresses, CPUs and times only. What these belong to - objects, threads, the
 * machine, first touches - comes from a recording of the same run, made by numapgo record inside
 * the lab while the plugin counted.
 */
#ifndef NPG_PROFILER_IMPORT_LAB_H
#define NPG_PROFILER_IMPORT_LAB_H

#include <stdint.h>

#include "lib/recording.h"

struct npg_import_summary {
	int64_t nr_records;   /* loads and walks in the file, or pages that had some */
	int64_t nr_samples;   /* of these, stored */
	int64_t nr_unmatched; /* stored, but in no object */
	int64_t nr_no_thread; /* not stored: the recording saw no thread on that CPU */
};

/**
 * npg_import_lab() - add a file of the lab to a new recording.
 * @path: a trace or a file of counts with pages.
 * @from: the recording of the same run, open for reading.
 * @to: newly created; gets everything of @from but its clock and hint samples, then the file's
 *      records as samples of the sources "loads" and "tlb" (a trace), or as page counts of the
 *      same sources (counts; "loads" are loads and stores that went to memory, or all if no cache
 *      was modelled).
 *
 * Return: 0; -ENOENT, -EACCES (file); -EINVAL (not such a file, broken line, several runs in
 * @from); -ENODATA (no record in it); as npg_db_exec(); @err set.
 * MT-Safe (per object). Not AS-Safe.
 */
NPG_MUST_CHECK int npg_import_lab(const char *path, const struct npg_recording *from,
				  struct npg_recording *to, struct npg_import_summary *summary,
				  struct npg_error *err);

#endif
