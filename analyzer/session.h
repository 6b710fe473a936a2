/*
 * What the commands of this stage share: a recording opened and read, and the machine chosen.
 */
#ifndef NPG_ANALYZER_SESSION_H
#define NPG_ANALYZER_SESSION_H

#include "analyzer/profile.h"
#include "lib/recording.h"
#include "lib/topology.h"

struct npg_session {
	struct npg_recording recording;
	struct npg_profile *profile;
	struct npg_topology *topology; /* NULL: none chosen, none recorded */
	bool is_recorded_machine;
};

/**
 * npg_session_open() - open a recording, read the program's profile, choose the machine.
 * @path: of the recording; NULL: the default.
 * @machine: as for npg_topology_load(); NULL: the machine of the recording.
 * @process: as in struct npg_profile_options.
 *
 * Return: 0; negative with @err set. npg_session_close() is needed in any case.
 * MT-Unsafe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_session_open(struct npg_session *session, const char *path, bool want_write,
				    const char *machine, const char *process,
				    struct npg_error *err);

/** npg_session_close() - safe on a zeroed struct. */
void npg_session_close(struct npg_session *session);

/** npg_session_explain_no_samples() - what to try when there is no usable sample; sets @err. */
void npg_session_explain_no_samples(const struct npg_session *session, struct npg_error *err);

#endif
