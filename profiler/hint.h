/*
 * The kernel's NUMA hint faults: switched on while recording, and always back to what was found.
 *
 * What was found is written to a file before anything is changed. A lock on that file, which dies
 * with its process, tells a live recorder from a dead one; whatever a dead one left is put back by
 * the next recording.
 */
#ifndef NPG_PROFILER_HINT_H
#define NPG_PROFILER_HINT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/error.h"

#define NPG_HINT_NR_SETTINGS 7

struct npg_hint {
	const char *root;                    /* in front of all paths; "" on a real system */
	int64_t found[NPG_HINT_NR_SETTINGS]; /* values before; -1: not there or not changed */
	int state_fd;                        /* -1: nothing is changed by us */
	bool is_on;                          /* hint faults happen, whoever switched them on */
	char message[512];                   /* for the user; empty: nothing to say */
};

/**
 * npg_hint_begin() - put back what a dead recorder left, then see to hint faults.
 * @root: borrowed while @hint is used.
 * @is_asked: switch them on; else they are only used if they are on already.
 * @hint: result; .is_on says whether they happen. To be ended with npg_hint_end().
 *
 * Return: 0; -EACCES, -EROFS (they were asked for and cannot be had), -ENOENT (kernel without NUMA
 * balancing), -EIO; @err set.
 * MT-Unsafe.
 */
NPG_MUST_CHECK int npg_hint_begin(const char *root, bool is_asked, struct npg_hint *hint,
				  struct npg_error *err);

/** npg_hint_end() - put everything back; safe to call twice, and on a hint that never began. */
void npg_hint_end(struct npg_hint *hint);

#endif
