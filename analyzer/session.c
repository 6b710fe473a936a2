/* Opening what a command works on; see the header. */
#include <errno.h>

#include "analyzer/session.h"

/* Latencies and bandwidths that were recorded with the machine, for those hwloc has not. */
static int add_recorded_figures(struct npg_session *s, struct npg_error *err)
{
	struct npg_topology *t = s->topology;
	size_t n = (size_t)t->nr_nodes, nr = 0;
	double *latency = calloc(n * n, sizeof(*latency));
	struct npg_stmt *stmt = NULL;
	int ret;

	if (latency == NULL)
		return npg_error_set(err, -ENOMEM, "out of memory");
	ret = npg_db_prepare(s->recording.db,
			     "SELECT cpu_node, memory_node, latency_ns FROM node_distance "
			     "WHERE run_id = ? AND latency_ns > 0",
			     &stmt, err);
	if (ret == 0)
		npg_stmt_bind_i64(stmt, 1, s->profile->run_id);
	while (ret == 0 && (ret = npg_stmt_step(stmt, err)) == 1) {
		int from = npg_topology_index_of_node(t, (int)npg_stmt_column_i64(stmt, 0));
		int to = npg_topology_index_of_node(t, (int)npg_stmt_column_i64(stmt, 1));

		if (from >= 0 && to >= 0) {
			latency[(size_t)from * n + (size_t)to] = npg_stmt_column_real(stmt, 2);
			nr++;
		}
		ret = 0;
	}
	npg_stmt_finalize(stmt);
	if (ret == 0 && nr == n * n && t->latency_ns == NULL)
		t->latency_ns = latency;
	else
		free(latency);
	return ret;
}

static int choose_machine(struct npg_session *s, const char *machine, struct npg_error *err)
{
	int ret;

	if (machine != NULL)
		return npg_topology_load(machine, &s->topology, err);
	if (s->profile->hwloc_xml == NULL)
		return 0;
	ret = npg_topology_from_xml(s->profile->hwloc_xml, &s->topology, err);
	if (ret < 0)
		return npg_error_prefix(err, ret, "%s: the machine recorded in it",
					s->recording.path);
	s->is_recorded_machine = true;
	free(s->topology->name);
	s->topology->name = strdup("recorded machine");
	if (s->topology->name == NULL)
		return npg_error_set(err, -ENOMEM, "out of memory");
	return add_recorded_figures(s, err);
}

int npg_session_open(struct npg_session *session, const char *path, bool want_write,
		     const char *machine, const char *process, struct npg_error *err)
{
	struct npg_profile_options options = { .process = process };
	int ret;

	*session = (struct npg_session){ 0 };
	ret = npg_recording_open(path, want_write, &session->recording, err);
	if (ret == 0)
		ret = npg_profile_load(session->recording.db, &options, &session->profile, err);
	if (ret == 0)
		ret = choose_machine(session, machine, err);
	return ret;
}

void npg_session_close(struct npg_session *session)
{
	npg_topology_free(session->topology);
	npg_profile_free(session->profile);
	npg_recording_close(&session->recording);
}

void npg_session_explain_no_samples(const struct npg_session *session, struct npg_error *err)
{
	const struct npg_profile *p = session->profile;
	double seen = 0.0;

	for (size_t i = 0; i < p->nr_sources; i++)
		if (p->sources[i].role != NPG_ROLE_TOUCH)
			seen += p->sources[i].seen;
	if (seen > 0.0)
		npg_error_set(err, -ENODATA,
			      "%s: none of the %.0f address samples of %s lies in a known object "
			      "of data (%.0f in program text); let it run longer or raise the "
			      "rate (record --overhead 5)",
			      session->recording.path, seen,
			      p->program[0] != '\0' ? p->program : "the program",
			      p->nr_text_samples);
	else
		npg_error_set(
		    err, -ENODATA,
		    "%s: no address sample of %s, so nothing can be decided; let it run "
		    "longer, raise the rate (record --overhead 5), or see 'numapgo doctor' "
		    "for the sources that work here",
		    session->recording.path, p->program[0] != '\0' ? p->program : "the program");
}
