/* One recording, from opening to finishing; see the header. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "profiler/recorder.h"
#include "profiler/run_info.h"

#define WINDOW_NS         UINT64_C(50000000)  /* how late a record may come */
#define COMMIT_NS         UINT64_C(500000000) /* what a kill of the recorder may lose */
#define EPOCH_NS          INT64_C(10000000000)
#define FAULTS_PER_S      4000 /* and CPU */
#define HINT_FAULTS_PER_S 8000

enum { KIND_PERF, KIND_WIRE };

static const char *const source_names[NPG_NR_SOURCES] = { "clock", "hint", "fault", "loads",
							  "tlb" };

uint64_t npg_recorder_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void open_events(struct npg_recorder *r, const pid_t *tasks, size_t nr_tasks,
			bool is_exec_pending)
{
	const struct npg_recorder_options *o = &r->options;
	struct npg_perf_state *events = r->perf.events;

	events[NPG_PERF_EVENT_CLOCK].is_wanted = o->wants[NPG_SOURCE_CLOCK];
	events[NPG_PERF_EVENT_CLOCK].period_ns = r->steer.period_ns;
	events[NPG_PERF_EVENT_FAULT].is_wanted = o->wants[NPG_SOURCE_FAULT] || o->has_hints;
	events[NPG_PERF_EVENT_FAULT].frequency_hz = o->has_hints ? HINT_FAULTS_PER_S : FAULTS_PER_S;
	r->perf.leaves_children = o->leaves_children;
	if (npg_perf_session_open(&r->perf, tasks, nr_tasks, is_exec_pending, &r->perf_error) < 0)
		npg_writer_note(r->writer, r->perf_error.text);
}

static const char *why_not(const struct npg_recorder *r, enum npg_source source)
{
	switch (source) {
	case NPG_SOURCE_CLOCK:
		return r->perf.events[NPG_PERF_EVENT_CLOCK].why.text;
	case NPG_SOURCE_FAULT:
		return r->perf.events[NPG_PERF_EVENT_FAULT].why.text;
	case NPG_SOURCE_HINT:
		return r->options.has_hints ? r->perf.events[NPG_PERF_EVENT_FAULT].why.text
					    : r->options.why_no_hints.text;
	case NPG_SOURCE_LOADS:
	case NPG_SOURCE_TLB:
	case NPG_NR_SOURCES:
		break;
	}
	return "sampling by a performance monitoring unit is not part of this version";
}

static bool is_used(const struct npg_recorder *r, enum npg_source source)
{
	if (source == NPG_SOURCE_CLOCK)
		return r->perf.events[NPG_PERF_EVENT_CLOCK].is_open;
	if (source == NPG_SOURCE_FAULT)
		return r->options.wants[source] && r->perf.events[NPG_PERF_EVENT_FAULT].is_open;
	if (source == NPG_SOURCE_HINT)
		return r->options.has_hints && r->perf.events[NPG_PERF_EVENT_FAULT].is_open;
	return false;
}

static void put_source(struct npg_recorder *r, enum npg_source source)
{
	const struct npg_source_count *c = npg_live_map_counts(r->live, source);
	const struct npg_perf_state *event =
	    &r->perf
		 .events[source == NPG_SOURCE_CLOCK ? NPG_PERF_EVENT_CLOCK : NPG_PERF_EVENT_FAULT];
	bool used = is_used(r, source);
	struct npg_source_row row = {
		.id = (int64_t)source + 1,
		.name = source_names[source],
		.event = used ? event->text : NULL,
		.state = used                       ? "used"
			 : r->options.wants[source] ? "unavailable"
						    : "not asked",
		.reason = used || !r->options.wants[source] ? NULL : why_not(r, source),
		.period = NPG_NULL,
		.period_unit = used ? source == NPG_SOURCE_CLOCK ? "ns" : "events" : NULL,
		.nr_records = c->nr_records,
		.nr_samples = c->nr_samples,
		.nr_no_operand = c->nr_no_operand,
		.nr_undecoded = c->nr_undecoded,
		.nr_unmatched = c->nr_unmatched,
		.nr_lost = c->nr_lost,
		.nr_throttled = c->nr_throttled,
	};

	if (used && c->nr_records > 0)
		row.period = c->nr_events / c->nr_records;
	else if (used && source == NPG_SOURCE_CLOCK)
		row.period = (int64_t)r->steer.period_ns;
	npg_writer_source(r->writer, &row);
}

static void put_sources(struct npg_recorder *r)
{
	for (int i = 0; i < NPG_NR_SOURCES; i++)
		put_source(r, (enum npg_source)i);
}

static int open_map(struct npg_recorder *r, pid_t pid)
{
	struct npg_live_options options = {
		.has_hints = r->options.has_hints,
		.keeps_counts = r->options.keeps_counts,
		.epoch_ns = EPOCH_NS,
		.base_ns = r->start_ns,
		.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
		.only_pid = r->options.leaves_children ? pid : 0,
		.has_perf = r->perf.has_ring,
	};

	return npg_live_map_open(&options, r->writer, &r->live);
}

int npg_recorder_open(struct npg_recorder *r, const struct npg_recorder_options *options,
		      const char *path, char *const *argv, const pid_t *tasks, size_t nr_tasks,
		      struct npg_channel *channel, struct npg_error *err)
{
	char epoch[32];
	int ret;

	r->options = *options;
	r->channel = channel;
	npg_steer_init(&r->steer, options->overhead_percent, options->period_ns,
		       npg_steer_clock_cost_ns());
	r->fault_cost_ns = npg_steer_fault_cost_ns();
	ret = npg_recording_create(path, &r->recording, err);
	if (ret == 0)
		ret = npg_writer_open(r->recording.db, &r->writer, err);
	if (ret < 0)
		return ret;
	r->start_ns = (int64_t)npg_recorder_now_ns();
	r->steer.last.time_ns = r->committed_ns = (uint64_t)r->start_ns;
	ret = npg_run_info_begin(r->recording.db, r->writer, argv, tasks[0], r->start_ns, err);
	if (ret < 0)
		return ret;
	snprintf(epoch, sizeof(epoch), "%" PRId64, EPOCH_NS);
	npg_writer_meta(r->writer, "tool", "numapgo " NPG_VERSION);
	npg_writer_meta(r->writer, "epoch_ns", epoch);
	open_events(r, tasks, nr_tasks, argv != NULL);
	if (open_map(r, tasks[0]) < 0)
		return npg_error_set(err, -ENOMEM, "out of memory");
	if (argv == NULL)
		npg_live_map_attach(r->live, tasks[0], r->start_ns);
	put_sources(r);
	return npg_writer_commit(r->writer, err);
}

void npg_recorder_wait(struct npg_recorder *r, int fd, int timeout_ms)
{
	struct pollfd *fds = calloc(r->perf.nr_cpus + 1, sizeof(*fds));
	nfds_t nr = 0;

	if (fds == NULL) {
		poll(NULL, 0, timeout_ms);
		return;
	}
	if (fd >= 0)
		fds[nr++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	for (size_t i = 0; i < r->perf.nr_cpus && !r->has_ended_tasks; i++) {
		int ring = npg_perf_session_ring_fd(&r->perf, i);

		if (ring >= 0)
			fds[nr++] = (struct pollfd){ .fd = ring, .events = POLLIN };
	}
	poll(fds, nr, timeout_ms);
	for (nfds_t i = fd >= 0 ? 1 : 0; i < nr; i++)
		r->has_ended_tasks |= (fds[i].revents & POLLHUP) != 0;
	free(fds);
}

static enum npg_source source_of(const struct npg_recorder *r, uint64_t id)
{
	switch (npg_perf_event_of(&r->perf, id)) {
	case NPG_PERF_EVENT_CLOCK:
		return NPG_SOURCE_CLOCK;
	case NPG_PERF_EVENT_FAULT:
		return NPG_SOURCE_FAULT;
	case NPG_PERF_EVENT_TRACK:
	case NPG_PERF_NR_EVENTS:
		break;
	}
	return NPG_NR_SOURCES;
}

static void note_gap(struct npg_recorder *r, const struct npg_perf_record *record)
{
	enum npg_source source = source_of(r, record->id);
	bool is_lost = record->kind == NPG_PERF_LOST;

	if (source != NPG_NR_SOURCES && is_lost)
		npg_live_map_counts(r->live, source)->nr_lost += (int64_t)record->nr_lost;
	else if (source != NPG_NR_SOURCES)
		npg_live_map_counts(r->live, source)->nr_throttled++;
	npg_writer_gap(r->writer, source == NPG_NR_SOURCES ? NPG_NULL : (int64_t)source + 1,
		       record->cpu, (int64_t)record->time_ns, is_lost ? "lost" : "throttled",
		       is_lost ? (int64_t)record->nr_lost : NPG_NULL);
}

static void on_perf_bytes(void *context, const void *data, size_t size)
{
	struct npg_recorder *r = context;
	struct npg_perf_record record;

	if (npg_perf_decode(&r->perf.layout, data, size, &record) < 0) {
		r->nr_malformed++;
		return;
	}
	if (record.kind == NPG_PERF_LOST || record.kind == NPG_PERF_THROTTLE)
		note_gap(r, &record);
	else if (record.kind != NPG_PERF_OTHER &&
		 npg_queue_push(&r->queue, record.time_ns, KIND_PERF, data, (uint32_t)size) < 0)
		r->nr_malformed++;
}

static void on_wire_record(const struct npg_wire_record *record, void *context)
{
	struct npg_recorder *r = context;

	if (npg_queue_push(&r->queue, record->time_ns, KIND_WIRE, record, sizeof(*record)) < 0)
		r->nr_malformed++;
}

static void on_ordered(void *context, int kind, const void *data, uint32_t size)
{
	struct npg_recorder *r = context;
	struct npg_perf_record record;
	enum npg_source source;

	if (kind == KIND_WIRE) {
		npg_live_map_wire(r->live, data);
		return;
	}
	if (npg_perf_decode(&r->perf.layout, data, size, &record) < 0)
		return;
	if (record.kind != NPG_PERF_SAMPLE) {
		npg_live_map_perf(r->live, &record);
		return;
	}
	source = source_of(r, record.id);
	if (source != NPG_NR_SOURCES)
		npg_live_map_sample(r->live, &record, source);
}

/* Nothing more can be written: let the program run on alone. */
static int stop_recording(struct npg_recorder *r, int status)
{
	r->status = status;
	npg_perf_session_stop(&r->perf);
	if (r->channel != NULL)
		npg_channel_stop(r->channel);
	npg_queue_release(&r->queue);
	return status;
}

int64_t npg_recorder_interrupt_ns(struct npg_recorder *r)
{
	return npg_live_map_counts(r->live, NPG_SOURCE_CLOCK)->nr_records *
		   (int64_t)r->steer.clock_cost_ns +
	       (npg_live_map_counts(r->live, NPG_SOURCE_FAULT)->nr_records +
		npg_live_map_counts(r->live, NPG_SOURCE_HINT)->nr_records) *
		   (int64_t)r->fault_cost_ns;
}

static void steer(struct npg_recorder *r, uint64_t now_ns)
{
	struct npg_steer_totals totals = {
		.time_ns = now_ns,
		.program_ns = npg_live_map_counts(r->live, NPG_SOURCE_CLOCK)->nr_events,
		.interrupt_ns = npg_recorder_interrupt_ns(r),
		.recorder_ns = own_cpu_ns(),
	};

	if (npg_steer_update(&r->steer, &totals))
		npg_perf_session_set_period(&r->perf, r->steer.period_ns);
}

int npg_recorder_drain(struct npg_recorder *r, bool is_over)
{
	uint64_t now_ns = npg_recorder_now_ns();
	int ret;

	if (r->status < 0)
		return r->status;
	for (size_t i = 0; i < r->perf.nr_cpus; i++)
		npg_perf_ring_drain(&r->perf.cpus[i].ring, on_perf_bytes, r);
	if (r->channel != NULL)
		npg_channel_drain(r->channel, now_ns, is_over, on_wire_record, r);
	npg_queue_take(&r->queue, is_over ? UINT64_MAX : now_ns - WINDOW_NS, on_ordered, r);
	if (now_ns - r->committed_ns >= COMMIT_NS) {
		r->committed_ns = now_ns;
		put_sources(r);
		steer(r, now_ns);
		ret = npg_writer_commit(r->writer, &r->error);
	} else {
		ret = npg_writer_status(r->writer, &r->error);
	}
	return ret < 0 ? stop_recording(r, ret) : 0;
}

static void put_notes(struct npg_recorder *r, const char *why_no_agent)
{
	struct npg_channel_stats stats = { 0 };
	char text[512];

	if (r->channel != NULL)
		npg_channel_get_stats(r->channel, &stats);
	if (stats.nr_lost + stats.nr_holes > 0) {
		npg_writer_gap(r->writer, NPG_NULL, NPG_NULL, NPG_NULL, "agent ring full",
			       (int64_t)(stats.nr_lost + stats.nr_holes));
		snprintf(text, sizeof(text),
			 "%" PRIu64 " allocation records were lost because the program allocated "
			 "faster than they were read; --min-object BYTES makes them fewer",
			 stats.nr_lost + stats.nr_holes);
		npg_writer_note(r->writer, text);
	}
	if (stats.nr_faults > 0)
		npg_writer_note(r->writer,
				"the agent stopped in a process after an internal fault; "
				"later allocations there are unknown");
	if (why_no_agent != NULL) {
		snprintf(text, sizeof(text),
			 "allocations are unknown because the program could not be preloaded: %s",
			 why_no_agent);
		npg_writer_note(r->writer, text);
	}
	if (r->nr_malformed > 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " records were malformed and left out",
			 r->nr_malformed);
		npg_writer_note(r->writer, text);
	}
}

int npg_recorder_finish(struct npg_recorder *r, int64_t exit_status, int64_t exit_signal,
			int64_t program_cpu_ns, const char *why_no_agent, struct npg_error *err)
{
	struct npg_run_result result = {
		.end_ns = (int64_t)npg_recorder_now_ns(),
		.exit_status = exit_status,
		.exit_signal = exit_signal,
		.program_cpu_ns = program_cpu_ns,
	};
	int ret = r->status;

	if (ret < 0) {
		*err = r->error;
		return ret;
	}
	npg_live_map_finish(r->live, result.end_ns,
			    why_no_agent != NULL ? why_no_agent : "none seen");
	put_notes(r, why_no_agent);
	put_sources(r);
	ret = npg_writer_commit(r->writer, err);
	result.recorder_cpu_ns = own_cpu_ns();
	result.interrupt_ns = npg_recorder_interrupt_ns(r);
	if (ret == 0)
		ret = npg_run_info_end(r->recording.db, &result, err);
	npg_writer_close(r->writer);
	r->writer = NULL;
	npg_live_map_close(r->live);
	r->live = NULL;
	if (ret == 0)
		ret = npg_recording_finish(&r->recording, err);
	return ret;
}

void npg_recorder_close(struct npg_recorder *r)
{
	npg_perf_session_close(&r->perf);
	npg_live_map_close(r->live);
	npg_writer_close(r->writer);
	npg_queue_release(&r->queue);
	npg_recording_close(&r->recording);
	*r = (struct npg_recorder){ 0 };
}
