/* Launching or watching a program, and the loop that drains the rings meanwhile. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/launch.h"
#include "profiler/hint.h"
#include "profiler/record_run.h"
#include "profiler/recorder.h"

#define CHANNEL_SLOTS 16384 /* 4 MiB */
#define POLL_MS       100

static const char *const source_names[NPG_NR_SOURCES] = { "clock", "hint", "fault", "loads",
							  "tlb" };

static bool want_name(const char *name, size_t length, bool *wants, bool *is_auto)
{
	if (length == 4 && strncmp(name, "auto", 4) == 0) {
		*is_auto = true;
		for (int i = 0; i < NPG_NR_SOURCES; i++)
			wants[i] = true;
		return true;
	}
	for (int i = 0; i < NPG_NR_SOURCES; i++)
		if (strlen(source_names[i]) == length &&
		    strncmp(name, source_names[i], length) == 0) {
			wants[i] = true;
			return true;
		}
	return false;
}

int npg_sources_parse(const char *list, bool *wants, bool *is_auto, struct npg_error *err)
{
	*is_auto = false;
	for (int i = 0; i < NPG_NR_SOURCES; i++)
		wants[i] = false;
	for (const char *at = list;; at++) {
		size_t length = strcspn(at, ",");

		if (!want_name(at, length, wants, is_auto))
			return npg_error_set(err, -EINVAL,
					     "--source: '%.*s' is no source; the sources are auto, "
					     "clock, hint, fault, loads, tlb",
					     (int)length, at);
		at += length;
		if (*at == '\0')
			return 0;
	}
}

/* One descriptor per CPU and event: the soft limit may be too low for a large machine. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int recorder_options(const struct npg_record_options *o, struct npg_recorder_options *r,
			    struct npg_error *err)
{
	*r = (struct npg_recorder_options){
		.period_ns = o->period_ns,
		.overhead_percent = o->overhead_percent,
		.keeps_counts = o->keep == NPG_KEEP_COUNTS,
		.leaves_children = o->children == NPG_CHILDREN_LEAVE,
	};
	return npg_sources_parse(o->source, r->wants, &r->is_auto, err);
}

/* Asked for by name, hint faults are switched on; with auto they are used if they are on. */
static void begin_hints(const struct npg_record_options *o, struct npg_recorder_options *r,
			struct npg_hint *hint)
{
	bool is_asked = r->wants[NPG_SOURCE_HINT] && !r->is_auto;

	if (npg_hint_begin("", is_asked, hint, &r->why_no_hints) == 0 && !hint->is_on)
		npg_error_set(&r->why_no_hints, 0,
			      "kernel.numa_balancing is 0; '--source clock,hint,fault' switches it "
			      "on while recording, as root");
	r->has_hints = r->wants[NPG_SOURCE_HINT] && hint->is_on;
	if (hint->message[0] != '\0' && o->tell != NULL)
		o->tell(false, hint->message);
}

static int64_t cpu_ns(const struct rusage *usage)
{
	return ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
	       ((int64_t)usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static void summarize(struct npg_recorder *r, struct npg_record_summary *s)
{
	for (int i = 0; i < NPG_NR_SOURCES && r->live != NULL; i++) {
		const struct npg_source_count *c = npg_live_map_counts(r->live, (enum npg_source)i);

		s->nr_samples += c->nr_samples;
		s->nr_unmatched += c->nr_unmatched;
		s->nr_lost += c->nr_lost;
	}
	if (r->live != NULL)
		s->interrupt_ns = npg_recorder_interrupt_ns(r);
	snprintf(s->perf_reason, sizeof(s->perf_reason), "%s", r->perf_error.text);
}

static void finish(struct npg_recorder *r, const struct npg_launch *launch,
		   struct npg_record_summary *s, struct npg_error *err)
{
	int64_t exit_status = NPG_NULL, exit_signal = NPG_NULL;
	struct rusage own;

	if (s->was_launched && WIFEXITED(s->wait_status))
		exit_status = WEXITSTATUS(s->wait_status);
	if (s->was_launched && WIFSIGNALED(s->wait_status))
		exit_signal = WTERMSIG(s->wait_status);
	if (r->status < 0) /* told already */
		return;
	if (npg_recorder_drain(r, true) < 0)
		*err = r->error;
	summarize(r, s);
	if (s->program_cpu_ns == 0)
		s->program_cpu_ns = npg_live_map_counts(r->live, NPG_SOURCE_CLOCK)->nr_events;
	if (r->status < 0)
		return;
	if (npg_recorder_finish(r, exit_status, exit_signal, s->program_cpu_ns,
				launch != NULL ? launch->why_no_preload : "it was running already",
				err) == 0)
		s->is_complete = true;
	if (getrusage(RUSAGE_SELF, &own) == 0)
		s->recorder_cpu_ns = cpu_ns(&own);
}

static bool drain(const struct npg_record_options *o, struct npg_recorder *r)
{
	bool was_recording = r->status == 0;
	char text[sizeof(r->error.text) + 128];

	if (npg_recorder_drain(r, false) == 0)
		return true;
	snprintf(text, sizeof(text), "%s; the program goes on unrecorded, what was stored is kept",
		 r->error.text);
	if (was_recording && o->tell != NULL)
		o->tell(true, text);
	return false;
}

/* Until the program ends; a recorder that cannot go on does not end the program. */
static void run_until_end(const struct npg_record_options *o, struct npg_recorder *r,
			  const struct npg_launch *launch, struct npg_record_summary *s)
{
	int pidfd = (int)syscall(SYS_pidfd_open, launch->pid, 0);
	struct rusage usage;
	pid_t got;

	for (;;) {
		bool is_recording = drain(o, r);

		do
			got =
			    wait4(launch->pid, &s->wait_status, is_recording ? WNOHANG : 0, &usage);
		while (got < 0 && errno == EINTR);
		if (got != 0)
			break;
		npg_recorder_wait(r, pidfd, POLL_MS);
	}
	if (got > 0)
		s->program_cpu_ns = cpu_ns(&usage);
	s->was_launched = true;
	if (pidfd >= 0)
		close(pidfd);
}

static int exit_of_exec(int ret)
{
	return ret == -ENOENT || ret == -ENOTDIR ? NPG_EXIT_NOT_FOUND : NPG_EXIT_CANNOT_RUN;
}

/* The child that waits to exec is not needed after all. */
static void cancel(struct npg_launch *launch)
{
	int status;

	if (launch->pid <= 0)
		return;
	kill(launch->pid, SIGKILL);
	while (waitpid(launch->pid, &status, 0) < 0 && errno == EINTR)
		;
}

static void discard_partial(struct npg_recorder *r)
{
	char *path = r->recording.partial_path != NULL ? strdup(r->recording.partial_path) : NULL;

	npg_recorder_close(r);
	if (path != NULL)
		unlink(path);
	free(path);
}

static int open_channel(const struct npg_record_options *o, struct npg_channel **channel,
			char *object, size_t size, struct npg_error *err)
{
	struct npg_channel_options options = {
		.nr_slots = CHANNEL_SLOTS,
		.min_object_bytes = o->min_object_bytes,
		.max_frames = NPG_WIRE_MAX_FRAMES,
		.follows_children = o->children == NPG_CHILDREN_FOLLOW,
	};
	int ret = npg_launch_find_object("libnumapgo-record.so", object, size, err);

	return ret < 0 ? ret : npg_channel_create(channel, &options, err);
}

struct launching {
	struct npg_launch launch;
	struct npg_recorder recorder;
	struct npg_recorder_options recorder_options;
	struct npg_hint hint;
	struct npg_channel *channel;
	struct npg_error why_no_agent; /* empty: there is one, or the program cannot have it */
	char object[PATH_MAX];
};

/* Without the agent allocations are unknown; that is no reason not to run the program. */
static bool begin_agent(const struct npg_record_options *o, struct launching *l)
{
	if (l->launch.why_no_preload != NULL)
		return false;
	if (open_channel(o, &l->channel, l->object, sizeof(l->object), &l->why_no_agent) == 0)
		return true;
	l->launch.why_no_preload = l->why_no_agent.text;
	if (o->tell != NULL)
		o->tell(true, l->why_no_agent.text);
	return false;
}

static int prepare(const struct npg_record_options *o, char **argv, struct launching *l,
		   struct npg_record_summary *s, struct npg_error *err)
{
	bool has_agent = begin_agent(o, l);
	int ret;

	l->launch.preloads_children = has_agent && o->children == NPG_CHILDREN_FOLLOW;
	ret = npg_launch_prepare(&l->launch, argv, has_agent ? l->object : NULL,
				 has_agent ? npg_channel_variable(l->channel) : NULL, err);
	if (ret < 0)
		return ret;
	npg_launch_forward_signals(&l->launch);
	raise_fd_limit();
	begin_hints(o, &l->recorder_options, &l->hint);
	ret = npg_output_expand(o->output, argv[0], l->launch.pid, s->path, sizeof(s->path), err);
	if (ret == 0)
		ret = npg_recorder_open(&l->recorder, &l->recorder_options, s->path, argv,
					&l->launch.pid, 1, l->channel, err);
	return ret;
}

static int run(const struct npg_record_options *o, char **argv, struct launching *l,
	       struct npg_record_summary *s, struct npg_error *err)
{
	int ret = recorder_options(o, &l->recorder_options, err);

	if (ret < 0)
		return NPG_EXIT_LAUNCH_FAILED;
	ret = npg_launch_check(&l->launch, argv, err);
	if (ret < 0)
		return exit_of_exec(ret);
	if (prepare(o, argv, l, s, err) < 0) {
		cancel(&l->launch);
		discard_partial(&l->recorder);
		return NPG_EXIT_LAUNCH_FAILED;
	}
	ret = npg_launch_go(&l->launch, err);
	if (ret < 0) {
		cancel(&l->launch);
		discard_partial(&l->recorder);
		return exit_of_exec(ret);
	}
	s->has_begun = true;
	run_until_end(o, &l->recorder, &l->launch, s);
	finish(&l->recorder, &l->launch, s, err);
	return NPG_EXIT_OK;
}

int npg_record_launch(const struct npg_record_options *options, char **argv,
		      struct npg_record_summary *summary, struct npg_error *err)
{
	struct launching *l = calloc(1, sizeof(*l));
	int status;

	if (l == NULL) {
		npg_error_set(err, -ENOMEM, "out of memory");
		return NPG_EXIT_LAUNCH_FAILED;
	}
	l->launch.go_fd = l->launch.status_fd = -1;
	status = run(options, argv, l, summary, err);
	npg_hint_end(&l->hint);
	npg_recorder_close(&l->recorder);
	npg_channel_close(l->channel);
	npg_launch_release(&l->launch);
	free(l);
	return status;
}

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	is_interrupted = 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static int tasks_of(pid_t pid, pid_t **tasks, size_t *nr_tasks, struct npg_error *err)
{
	char path[64];
	struct dirent *entry;
	pid_t *list = NULL;
	size_t nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return npg_error_set(err, -ESRCH, "--pid %d: no such process", (int)pid);
	while ((entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		pid_t *grown = tid > 0 ? reallocarray(list, nr + 1, sizeof(*grown)) : NULL;

		if (grown == NULL)
			continue;
		list = grown;
		list[nr++] = tid;
	}
	closedir(dir);
	if (nr == 0) {
		free(list);
		return npg_error_set(err, -ESRCH, "--pid %d: no such process", (int)pid);
	}
	*tasks = list;
	*nr_tasks = nr;
	return 0;
}

static void watch_until_end(const struct npg_record_options *o, struct npg_recorder *r)
{
	int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)o->pid, 0);
	uint64_t end_ns = o->duration_s > 0
			      ? npg_recorder_now_ns() + (uint64_t)(o->duration_s * 1e9)
			      : UINT64_MAX;

	while (!is_interrupted && npg_recorder_now_ns() < end_ns && kill((pid_t)o->pid, 0) == 0 &&
	       npg_recorder_drain(r, false) == 0)
		npg_recorder_wait(r, pidfd, POLL_MS);
	npg_perf_session_stop(&r->perf);
	if (pidfd >= 0)
		close(pidfd);
}

int npg_record_watch(const struct npg_record_options *options, struct npg_record_summary *summary,
		     struct npg_error *err)
{
	struct npg_recorder recorder = { .start_ns = 0 };
	struct npg_recorder_options how;
	struct npg_hint hint;
	pid_t *tasks = NULL;
	size_t nr_tasks = 0;
	int ret = recorder_options(options, &how, err);

	if (ret < 0)
		return NPG_EXIT_USAGE;
	raise_fd_limit();
	catch_signals();
	ret = tasks_of((pid_t)options->pid, &tasks, &nr_tasks, err);
	if (ret < 0)
		return NPG_EXIT_FAILED;
	begin_hints(options, &how, &hint);
	ret = npg_output_expand(options->output, "pid", (int)options->pid, summary->path,
				sizeof(summary->path), err);
	if (ret == 0)
		ret = npg_recorder_open(&recorder, &how, summary->path, NULL, tasks, nr_tasks, NULL,
					err);
	free(tasks);
	if (ret < 0) {
		npg_hint_end(&hint);
		discard_partial(&recorder);
		return NPG_EXIT_FAILED;
	}
	summary->has_begun = true;
	watch_until_end(options, &recorder);
	npg_hint_end(&hint);
	finish(&recorder, NULL, summary, err);
	npg_recorder_close(&recorder);
	return summary->is_complete ? NPG_EXIT_OK : NPG_EXIT_FAILED;
}
