/* perf_event_open(2) for the sources that need no PMU; see the header. */
#include <asm/perf_regs.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/cpulist.h"
#include "profiler/perf_event.h"
#include "profiler/proc_file.h"

#define RING_PAGES 128 /* 512 KiB and the header: what an unprivileged user may lock per CPU */

#define REG(name) (UINT64_C(1) << PERF_REG_X86_##name)
#define USER_REGS                                                                                  \
	(REG(AX) | REG(BX) | REG(CX) | REG(DX) | REG(SI) | REG(DI) | REG(BP) | REG(SP) | REG(IP) | \
	 UINT64_C(0xff) << PERF_REG_X86_R8)

static const char *const event_names[NPG_PERF_NR_EVENTS] = { "clock", "fault", "events" };

int npg_perf_event_explain(int error, const char *name, struct npg_error *err)
{
	int64_t paranoid = npg_proc_read_i64("/proc/sys/kernel/perf_event_paranoid", -1);

	switch (error) {
	case EACCES:
		if (paranoid >= 0 && paranoid <= 2)
			return npg_error_set(err, -error,
					     "%s: perf events are denied by a security policy "
					     "(SELinux, AppArmor or seccomp), although "
					     "kernel.perf_event_paranoid is %" PRId64
					     "; allow this user or container perf_event_open",
					     name, paranoid);
		return npg_error_set(err, -error,
				     "%s: perf events are not allowed: kernel.perf_event_paranoid "
				     "is %" PRId64 " and this user has no CAP_PERFMON; as root: "
				     "sysctl kernel.perf_event_paranoid=2",
				     name, paranoid);
	case EPERM:
		return npg_error_set(
		    err, -error,
		    "%s: perf_event_open is forbidden, most likely by a container's "
		    "seccomp filter; start the container with a profile that allows "
		    "it (docker: --security-opt seccomp=FILE, or --cap-add PERFMON)",
		    name);
	case ESRCH:
		return npg_error_set(err, -error, "%s: the process has ended", name);
	case EMFILE:
	case ENFILE:
		return npg_error_set(err, -error,
				     "%s: too many open files: one per CPU and event is needed; "
				     "raise the limit: ulimit -n 65536",
				     name);
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		return npg_error_set(err, -error,
				     "%s: this kernel or machine has no such event; "
				     "'numapgo doctor' lists what there is",
				     name);
	case ENOSYS:
		return npg_error_set(err, -error,
				     "%s: this kernel is built without perf events "
				     "(CONFIG_PERF_EVENTS); use a distribution's kernel",
				     name);
	case ENOMEM:
		return npg_error_set(err, -error,
				     "%s: no memory for the ring; raise ulimit -l or "
				     "kernel.perf_event_mlock_kb",
				     name);
	default:
		return npg_error_set(err, -error,
				     "%s: perf_event_open: %s; 'numapgo doctor' "
				     "checks this machine",
				     name, strerror(error));
	}
}

static void set_kind(enum npg_perf_event event, const struct npg_perf_state *state,
		     struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	switch (event) {
	case NPG_PERF_EVENT_CLOCK:
		attr->config = PERF_COUNT_SW_CPU_CLOCK;
		attr->sample_period = state->period_ns;
		break;
	case NPG_PERF_EVENT_FAULT:
		attr->config = PERF_COUNT_SW_PAGE_FAULTS;
		attr->freq = 1;
		attr->sample_freq = state->frequency_hz;
		break;
	case NPG_PERF_EVENT_TRACK:
	case NPG_PERF_NR_EVENTS:
		attr->config = PERF_COUNT_SW_DUMMY;
		break;
	}
	attr->exclude_kernel = !state->sees_kernel;
}

static void set_common(const struct npg_perf_session *session, bool is_exec_pending,
		       struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->sample_type = session->layout.sample_type;
	attr->sample_regs_user = session->layout.regs_mask;
	attr->sample_id_all = 1;
	attr->exclude_hv = 1;
	attr->disabled = 1;
	attr->inherit = 1;
	attr->inherit_thread = session->leaves_children;
	attr->enable_on_exec = is_exec_pending;
	attr->watermark = 1; /* of 0: wake the reader when the ring is half full */
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

static void set_side_band(bool is_on, struct perf_event_attr *attr)
{
	attr->mmap = is_on;
	attr->mmap_data = is_on;
	attr->mmap2 = is_on;
	attr->comm = is_on;
	attr->comm_exec = is_on;
	attr->task = is_on;
	attr->build_id = is_on;
}

/* Kernels before 5.12 know no .build_id. */
static int open_event(struct perf_event_attr *attr, pid_t task, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, task, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EINVAL && attr->build_id) {
		attr->build_id = 0;
		fd = (int)syscall(SYS_perf_event_open, attr, task, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd;
}

static int *fd_of(const struct npg_perf_session *session, size_t i_task, size_t i_cpu,
		  enum npg_perf_event event)
{
	return &session
		    ->fds[(i_task * session->nr_cpus + i_cpu) * NPG_PERF_NR_EVENTS + (size_t)event];
}

int npg_perf_session_ring_fd(const struct npg_perf_session *session, size_t i_cpu)
{
	for (size_t i_task = 0; i_task < session->nr_tasks; i_task++)
		for (int event = 0; event < NPG_PERF_NR_EVENTS; event++) {
			int fd = *fd_of(session, i_task, i_cpu, (enum npg_perf_event)event);

			if (fd >= 0)
				return fd;
		}
	return -1;
}

static int attach_ring(struct npg_perf_session *session, int fd, size_t i_cpu,
		       enum npg_perf_event event)
{
	struct npg_perf_cpu *cpu = &session->cpus[i_cpu];
	uint64_t id;

	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return -errno;
	if (npg_table_put(&session->id, id, 0, (uint64_t)event + 1) < 0)
		return -ENOMEM;
	if (cpu->ring.base == NULL)
		return npg_perf_ring_map(fd, RING_PAGES, &cpu->ring);
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, npg_perf_session_ring_fd(session, i_cpu)) < 0
		   ? -errno
		   : 0;
}

static int open_on_cpu(struct npg_perf_session *session, struct perf_event_attr *attr, pid_t task,
		       size_t i_task, size_t i_cpu, enum npg_perf_event event)
{
	int fd = open_event(attr, task, session->cpus[i_cpu].cpu);
	int ret;

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno; /* a CPU that went offline */
	ret = attach_ring(session, fd, i_cpu, event);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	*fd_of(session, i_task, i_cpu, event) = fd;
	return 0;
}

static void close_event(struct npg_perf_session *session, enum npg_perf_event event)
{
	for (size_t i = 0; i < session->nr_tasks * session->nr_cpus; i++) {
		int *fd = &session->fds[i * NPG_PERF_NR_EVENTS + (size_t)event];

		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
}

/* The ring belongs to the event that mapped it, so a failed first event takes its rings along. */
static void unmap_if_unused(struct npg_perf_session *session)
{
	if (session->has_ring)
		return;
	for (size_t i = 0; i < session->nr_cpus; i++)
		npg_perf_ring_unmap(&session->cpus[i].ring);
}

static int open_everywhere(struct npg_perf_session *session, enum npg_perf_event event,
			   const pid_t *tasks, bool is_exec_pending)
{
	struct perf_event_attr attr = { 0 };
	size_t nr_open = 0;
	int ret = 0;

	set_common(session, is_exec_pending, &attr);
	set_kind(event, &session->events[event], &attr);
	set_side_band(!session->has_ring, &attr);
	for (size_t i_task = 0; i_task < session->nr_tasks && ret == 0; i_task++)
		for (size_t i_cpu = 0; i_cpu < session->nr_cpus && ret == 0; i_cpu++) {
			ret = open_on_cpu(session, &attr, tasks[i_task], i_task, i_cpu, event);
			nr_open += ret == 0;
			if (ret == -ESRCH)
				ret = 0; /* a thread that has ended */
		}
	if (ret == 0 && nr_open == 0)
		ret = -ESRCH;
	if (ret < 0) {
		close_event(session, event);
		unmap_if_unused(session);
	}
	return ret;
}

static void describe(enum npg_perf_event event, struct npg_perf_state *state)
{
	if (event == NPG_PERF_EVENT_CLOCK)
		snprintf(state->text, sizeof(state->text),
			 "software:cpu-clock, user registers, user mode only");
	else
		snprintf(state->text, sizeof(state->text),
			 "software:page-faults, address, at most %" PRIu64 " samples/s per CPU%s",
			 state->frequency_hz, state->sees_kernel ? "" : ", user mode only");
}

static void open_source(struct npg_perf_session *session, enum npg_perf_event event,
			const pid_t *tasks, bool is_exec_pending)
{
	struct npg_perf_state *state = &session->events[event];
	int ret;

	state->sees_kernel = event == NPG_PERF_EVENT_FAULT;
	ret = open_everywhere(session, event, tasks, is_exec_pending);
	if (ret == -EACCES && state->sees_kernel) { /* paranoid 2 allows user mode only */
		state->sees_kernel = false;
		ret = open_everywhere(session, event, tasks, is_exec_pending);
	}
	if (ret < 0) {
		npg_perf_event_explain(-ret, event_names[event], &state->why);
		return;
	}
	state->is_open = true;
	session->has_ring = true;
	describe(event, state);
}

static int find_cpus(struct npg_perf_session *session, struct npg_error *err)
{
	static struct npg_cpuset online;
	char text[4096];
	int cpu = -1;
	size_t length = npg_proc_read("/sys/devices/system/cpu/online", text, sizeof(text));

	if (length == 0 || npg_cpulist_parse(text, length, &online) < 0) {
		npg_cpuset_clear(&online);
		for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++)
			npg_cpuset_add(&online, (int)i);
	}
	session->nr_cpus = (size_t)npg_cpuset_count(&online);
	session->cpus = calloc(session->nr_cpus, sizeof(*session->cpus));
	if (session->cpus == NULL)
		return npg_error_set(err, -ENOMEM, "perf events: out of memory");
	for (size_t i = 0; i < session->nr_cpus; i++)
		session->cpus[i].cpu = cpu = npg_cpuset_next(&online, cpu);
	return 0;
}

static void enable_all(struct npg_perf_session *session)
{
	size_t nr_fds = session->nr_tasks * session->nr_cpus * NPG_PERF_NR_EVENTS;

	for (size_t i = 0; i < nr_fds; i++)
		if (session->fds[i] >= 0)
			ioctl(session->fds[i], PERF_EVENT_IOC_ENABLE, 0);
}

int npg_perf_session_open(struct npg_perf_session *session, const pid_t *tasks, size_t nr_tasks,
			  bool is_exec_pending, struct npg_error *err)
{
	size_t nr_fds;
	int ret = find_cpus(session, err);

	if (ret < 0)
		return ret;
	session->nr_tasks = nr_tasks;
	nr_fds = nr_tasks * session->nr_cpus * NPG_PERF_NR_EVENTS;
	session->fds = malloc(nr_fds * sizeof(*session->fds));
	if (session->fds == NULL)
		return npg_error_set(err, -ENOMEM, "perf events: out of memory");
	memset(session->fds, 0xff, nr_fds * sizeof(*session->fds));
	session->layout.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				      PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
				      PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER;
	session->layout.regs_mask = USER_REGS;
	for (int event = 0; event < NPG_PERF_EVENT_TRACK; event++)
		if (session->events[event].is_wanted)
			open_source(session, (enum npg_perf_event)event, tasks, is_exec_pending);
	if (!session->has_ring)
		open_source(session, NPG_PERF_EVENT_TRACK, tasks, is_exec_pending);
	if (!session->has_ring)
		return npg_error_set(err, -ENODATA, "%s",
				     session->events[NPG_PERF_EVENT_TRACK].why.text);
	if (!is_exec_pending)
		enable_all(session);
	return 0;
}

enum npg_perf_event npg_perf_event_of(const struct npg_perf_session *session, uint64_t id)
{
	uint64_t event = npg_table_get(&session->id, id, 0);

	return event == 0 ? NPG_PERF_NR_EVENTS : (enum npg_perf_event)(event - 1);
}

void npg_perf_session_set_period(struct npg_perf_session *session, uint64_t period_ns)
{
	for (size_t i = 0; i < session->nr_tasks * session->nr_cpus; i++) {
		int fd = session->fds[i * NPG_PERF_NR_EVENTS + NPG_PERF_EVENT_CLOCK];

		if (fd >= 0)
			ioctl(fd, PERF_EVENT_IOC_PERIOD, &period_ns);
	}
	session->events[NPG_PERF_EVENT_CLOCK].period_ns = period_ns;
}

void npg_perf_session_stop(struct npg_perf_session *session)
{
	size_t nr_fds = session->nr_tasks * session->nr_cpus * NPG_PERF_NR_EVENTS;

	for (size_t i = 0; session->fds != NULL && i < nr_fds; i++)
		if (session->fds[i] >= 0)
			ioctl(session->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

void npg_perf_session_close(struct npg_perf_session *session)
{
	for (size_t i = 0; i < session->nr_cpus; i++)
		npg_perf_ring_unmap(&session->cpus[i].ring);
	if (session->fds != NULL)
		for (int event = 0; event < NPG_PERF_NR_EVENTS; event++)
			close_event(session, (enum npg_perf_event)event);
	free(session->fds);
	free(session->cpus);
	npg_table_release(&session->id);
	*session = (struct npg_perf_session){ 0 };
}
