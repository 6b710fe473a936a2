/*
 * One replay: the plan made ready for this machine and program, run, and its outcome.
 */
#ifndef NPG_REPLAYER_REPLAY_H
#define NPG_REPLAYER_REPLAY_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/launch.h"
#include "replayer/modules.h"
#include "replayer/placing.h"
#include "replayer/resolve.h"
#include "replayer/verify.h"

struct npg_replay {
	const struct npg_plan *plan; /* borrowed */
	struct npg_resolution resolution;
	struct npg_fit fit;
	struct npg_placing_options options;
	struct npg_placing table;
	struct npg_wire_status *status; /* NULL: the program ran plain */
	int status_fd;
	struct npg_verify verify;
	char why_plain[512];   /* why nothing is placed; empty: something is */
	char why_threads[128]; /* why no thread is pinned though the plan has some */
	char why_memory[160];  /* why no memory is placed though the plan has some */
	char why_tables[128];  /* why no page-table page is placed though the plan has some */
};

/**
 * npg_replay_prepare() - find out what of @plan can be done here, without doing it.
 * @replay: .options' is_strict, has_children, overrides_affinity, leaves_page_tables are set by the
 *          caller, the rest is zero; to be ended with npg_replay_release().
 * @launch: the program, looked at by npg_launch_check().
 *
 * Return: 0, with .why_plain set if nothing is to be done; negative errno with @err set.
 * MT-Unsafe (environment).
 */
NPG_MUST_CHECK int npg_replay_prepare(struct npg_replay *replay, const struct npg_plan *plan,
				      const struct npg_launch *launch, struct npg_error *err);

/**
 * npg_replay_check_strict() - would anything be left undone, as far as can be known before?
 *
 * Return: 0; -ENOTSUP with the first such thing in @err.
 */
NPG_MUST_CHECK int npg_replay_check_strict(const struct npg_replay *replay, struct npg_error *err);

/**
 * npg_replay_run() - run the program and wait for its end.
 * @wait_status: as waitpid(2) gives it.
 *
 * Return: 0; negative errno of what kept the program from running, @err set.
 */
NPG_MUST_CHECK int npg_replay_run(struct npg_replay *replay, struct npg_launch *launch,
				  char *const argv[], int *wait_status, struct npg_error *err);

/** npg_replay_release() - what belongs to it; the plan and the program are not its own. */
void npg_replay_release(struct npg_replay *replay);

/** npg_replay_summary() - one line on what was done and what was refused. */
void npg_replay_summary(const struct npg_replay *replay, char *text, size_t size);

/** npg_replay_print_json() - the outcome in full. Return: 0; -EIO, -ENOMEM. */
NPG_MUST_CHECK int npg_replay_print_json(const struct npg_replay *replay, FILE *out);

/** npg_replay_print_dry() - what would be done, for people. */
void npg_replay_print_dry(const struct npg_replay *replay, FILE *out);

#endif
