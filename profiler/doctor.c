/* What the facts of numapgo doctor mean. Pure: no call here looks at the machine. */
#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>

#include "profiler/doctor.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

#define FEW_MAPPINGS 65530 /* the kernel's default of vm.max_map_count */

struct list {
	const struct npg_doctor_facts *facts;
	struct npg_doctor_check *checks;
	size_t nr;
};

static NPG_PRINTF(4, 5) void add(struct list *l, const char *name, enum npg_doctor_mark mark,
				 const char *format, ...)
{
	struct npg_doctor_check *c = &l->checks[l->nr++];
	va_list args;

	*c = (struct npg_doctor_check){ .name = name, .mark = mark };
	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
}

/* The command for the check added last. */
static NPG_PRINTF(2, 3) void fix(struct list *l, const char *format, ...)
{
	struct npg_doctor_check *c = &l->checks[l->nr - 1];
	va_list args;

	va_start(args, format);
	vsnprintf(c->fix, sizeof(c->fix), format, args);
	va_end(args);
}

static bool has_capability(const struct npg_doctor_facts *f, int capability)
{
	return (f->capabilities >> capability & 1) != 0;
}

static bool may_measure_anything(const struct npg_doctor_facts *f)
{
	return has_capability(f, CAP_PERFMON) || has_capability(f, CAP_SYS_ADMIN);
}

static void judge_paranoid(struct list *l)
{
	static const char name[] = "perf_event_paranoid";
	const struct npg_doctor_facts *f = l->facts;

	if (f->paranoid == NPG_DOCTOR_UNKNOWN) {
		add(l, name, NPG_DOCTOR_NO, "the kernel has no perf events, or /proc is hidden");
		fix(l, "use a kernel with CONFIG_PERF_EVENTS=y");
	} else if (may_measure_anything(f)) {
		add(l, name, NPG_DOCTOR_OK, "%d, and CAP_PERFMON or CAP_SYS_ADMIN: everything",
		    f->paranoid);
	} else if (f->paranoid >= 3) {
		add(l, name, NPG_DOCTOR_NO, "%d: no events without CAP_PERFMON", f->paranoid);
		fix(l, "sudo sysctl kernel.perf_event_paranoid=2");
	} else if (f->paranoid == 2) {
		add(l, name, NPG_DOCTOR_OK, "2: own processes in user space, which is enough");
	} else {
		add(l, name, NPG_DOCTOR_OK, "%d: own processes, user space and kernel%s",
		    f->paranoid, f->paranoid < 1 ? ", and whole CPUs" : "");
	}
}

/* Why perf_event_open failed, and what to do. */
static void add_event_failure(struct list *l, const char *name, int code)
{
	const struct npg_doctor_facts *f = l->facts;

	switch (code) {
	case EACCES:
	case EPERM:
		if (f->paranoid >= 3 && !may_measure_anything(f)) {
			add(l, name, NPG_DOCTOR_NO, "refused by perf_event_paranoid %d",
			    f->paranoid);
			fix(l, "sudo sysctl kernel.perf_event_paranoid=2");
		} else {
			add(l, name, NPG_DOCTOR_NO,
			    "perf_event_open is refused, probably by the container's seccomp "
			    "profile");
			fix(l, "docker run --cap-add PERFMON ... (or --security-opt "
			       "seccomp=unconfined)");
		}
		break;
	case ENOSYS:
		add(l, name, NPG_DOCTOR_NO,
		    "perf_event_open does not exist here: a kernel without perf events, or a "
		    "sandbox");
		fix(l, "run outside the sandbox, on a kernel with CONFIG_PERF_EVENTS=y");
		break;
	case EMFILE:
		add(l, name, NPG_DOCTOR_NO, "no file descriptors left");
		fix(l, "ulimit -n 4096");
		break;
	default:
		add(l, name, NPG_DOCTOR_NO, "perf_event_open: %s", strerror(code));
		break;
	}
}

static void judge_sources(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;

	if (f->clock_errno == 0)
		add(l, "source clock", NPG_DOCTOR_OK,
		    "timer samples with user registers, the operand's address decoded");
	else
		add_event_failure(l, "source clock", f->clock_errno);
	if (f->fault_errno == 0)
		add(l, "source fault", NPG_DOCTOR_OK, "page faults with address: first touch");
	else
		add_event_failure(l, "source fault", f->fault_errno);

	if (f->fault_errno != 0) {
		add(l, "source hint", NPG_DOCTOR_NO, "needs the page-fault event, as source fault");
	} else if (f->numa_balancing == NPG_DOCTOR_UNKNOWN) {
		add(l, "source hint", NPG_DOCTOR_NO,
		    "the kernel has no automatic NUMA balancing (CONFIG_NUMA_BALANCING)");
	} else if (f->numa_balancing == 1) {
		add(l, "source hint", NPG_DOCTOR_OK,
		    "kernel.numa_balancing is 1: hint faults show which thread uses which page");
	} else {
		add(l, "source hint", NPG_DOCTOR_WARN, "kernel.numa_balancing is %d",
		    f->numa_balancing);
		if (f->can_switch_balancing)
			fix(l,
			    "numapgo record --source clock,hint,fault -- ./app (on while it runs)");
		else
			fix(l, "sudo sysctl kernel.numa_balancing=1");
	}

	if (f->load_pmu[0] != '\0') {
		add(l, "hardware loads", NPG_DOCTOR_WARN,
		    "the PMU '%s' samples loads, but this version does not use it; clock, hint and "
		    "fault do the work",
		    f->load_pmu);
	} else {
		add(l, "hardware loads", NPG_DOCTOR_NO,
		    "no PMU that samples loads (mem-loads, ibs_op, arm_spe) is visible, as in most "
		    "virtual machines; clock, hint and fault do the work");
		fix(l, "use bare metal, or a virtual machine type with a PMU");
	}
}

static void judge_policy_calls(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;
	const struct {
		const char *name;
		int code;
	} calls[] = {
		{ "get_mempolicy", f->get_mempolicy_errno },
		{ "set_mempolicy", f->set_mempolicy_errno },
		{ "mbind", f->mbind_errno },
		{ "move_pages", f->move_pages_errno },
	};
	char list[160] = "";
	int code = 0;

	for (size_t i = 0; i < NPG_ARRAY_SIZE(calls); i++)
		if (calls[i].code != 0) {
			size_t used = strlen(list);

			snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "",
				 calls[i].name);
			code = calls[i].code;
		}
	if (code == 0) {
		add(l, "memory policy calls", NPG_DOCTOR_OK,
		    "get_mempolicy, set_mempolicy, mbind and move_pages are allowed");
	} else if (code == ENOSYS) {
		add(l, "memory policy calls", NPG_DOCTOR_NO,
		    "%s: not in this kernel or sandbox; replay cannot place memory", list);
		fix(l, "use a kernel with CONFIG_NUMA=y, outside the sandbox");
	} else {
		add(l, "memory policy calls", NPG_DOCTOR_NO, "%s: %s%s; replay cannot place memory",
		    list, strerror(code), f->seccomp != 0 ? " (a seccomp filter is on)" : "");
		fix(l, "docker run --cap-add SYS_NICE ...");
	}
}

static bool is_subset(const struct npg_cpuset *part, const struct npg_cpuset *whole)
{
	struct npg_cpuset both = *part;

	npg_cpuset_and(&both, whole);
	return npg_cpuset_count(&both) == npg_cpuset_count(part);
}

static void judge_nodes(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;
	char all[100], allowed[100];

	npg_cpulist_format(&f->nodes, all, sizeof(all));
	npg_cpulist_format(&f->allowed_nodes, allowed, sizeof(allowed));
	if (!is_subset(&f->nodes, &f->allowed_nodes)) {
		add(l, "nodes", NPG_DOCTOR_WARN,
		    "the cpuset allows memory of nodes %s only, of %s; plans are mapped to these",
		    allowed, all);
		fix(l, "run outside the cpuset, or ask the batch system for whole machines");
	} else if (npg_cpuset_count(&f->nodes) == 1) {
		add(l, "nodes", NPG_DOCTOR_WARN,
		    "one node: nothing to place here; record works, and plans can be made for "
		    "another machine");
		fix(l, "numapgo analyze --machine 4-nodes");
	} else {
		add(l, "nodes", NPG_DOCTOR_OK, "%s, memory of all is allowed", all);
	}

	npg_cpulist_format(&f->cpus, all, sizeof(all));
	npg_cpulist_format(&f->allowed_cpus, allowed, sizeof(allowed));
	if (is_subset(&f->cpus, &f->allowed_cpus)) {
		add(l, "CPUs", NPG_DOCTOR_OK, "%s, all are allowed", all);
	} else {
		add(l, "CPUs", NPG_DOCTOR_WARN,
		    "only CPUs %s of %s are allowed; threads are pinned within these", allowed,
		    all);
		fix(l, "look at the affinity that the launcher or taskset has set: taskset -p $$");
	}
}

static void judge_capabilities(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;

	if (has_capability(f, CAP_SYS_NICE))
		add(l, "CAP_SYS_NICE", NPG_DOCTOR_OK, "there");
	else
		add(l, "CAP_SYS_NICE", NPG_DOCTOR_OK,
		    "not there; only placing memory of other users' processes needs it");
	if (has_capability(f, CAP_PERFMON))
		add(l, "CAP_PERFMON", NPG_DOCTOR_OK, "there");
	else
		add(l, "CAP_PERFMON", NPG_DOCTOR_OK,
		    "not there; only perf_event_paranoid above 2 "
		    "needs it");
}

static void judge_balancing(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;

	if (f->numa_balancing == NPG_DOCTOR_UNKNOWN)
		return; /* said by source hint */
	if (f->has_balancing_pace) {
		add(l, "balancing pace", NPG_DOCTOR_OK, "the debugfs files are readable");
	} else {
		add(l, "balancing pace", NPG_DOCTOR_WARN,
		    "debugfs sched/numa_balancing is not readable; hint faults come at the "
		    "kernel's own pace");
		fix(l, "sudo mount -t debugfs debugfs /sys/kernel/debug");
	}
}

static void judge_memory(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;

	if (strcmp(f->thp_mode, "never") == 0 || f->thp_mode[0] == '\0') {
		add(l, "huge pages", NPG_DOCTOR_WARN, "transparent huge pages are %s",
		    f->thp_mode[0] != '\0' ? "off" : "not in this kernel");
		fix(l, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
	} else {
		add(l, "huge pages", NPG_DOCTOR_OK, "transparent huge pages: %s", f->thp_mode);
	}
	if (f->kpageflags_errno == 0) {
		add(l, "/proc/kpageflags", NPG_DOCTOR_OK,
		    "readable: replay can show where page-table pages are");
	} else {
		add(l, "/proc/kpageflags", NPG_DOCTOR_WARN,
		    "%s: replay places page-table pages but cannot show where they are",
		    strerror(f->kpageflags_errno));
		fix(l, "run replay as root to see it");
	}
	if (f->max_map_count >= FEW_MAPPINGS) {
		add(l, "vm.max_map_count", NPG_DOCTOR_OK, "%lld", (long long)f->max_map_count);
	} else if (f->max_map_count == NPG_DOCTOR_UNKNOWN) {
		add(l, "vm.max_map_count", NPG_DOCTOR_WARN, "not readable");
	} else {
		add(l, "vm.max_map_count", NPG_DOCTOR_WARN,
		    "%lld is low: plans with many ranges are applied in part",
		    (long long)f->max_map_count);
		fix(l, "sudo sysctl vm.max_map_count=%d", 4 * FEW_MAPPINGS);
	}
}

/* Return: the name of a file system shared over a network, or NULL. */
static const char *network_file_system(int64_t magic)
{
	static const struct {
		int64_t magic;
		const char *name;
	} list[] = {
		{ 0x6969, "NFS" },        { 0x0bd00bd0, "Lustre" }, { 0x47504653, "GPFS" },
		{ 0x19830326, "BeeGFS" }, { 0xff534d42, "CIFS" },   { 0xfe534d42, "SMB" },
		{ 0x00c36400, "Ceph" },   { 0x5346414f, "AFS" },    { 0x01021997, "9p" },
		{ 0xaad7aaea, "PanFS" },  { 0x65735546, "FUSE" },
	};

	for (size_t i = 0; i < NPG_ARRAY_SIZE(list); i++)
		if ((magic & 0xffffffff) == list[i].magic)
			return list[i].name;
	return NULL;
}

static void judge_directory(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;
	const char *network = network_file_system(f->file_system_magic);

	if (!f->is_directory_writable) {
		add(l, "this directory", NPG_DOCTOR_WARN, "cannot be written");
		fix(l, "numapgo record -o /tmp/numapgo.db -- ./app");
	} else if (network != NULL) {
		add(l, "this directory", NPG_DOCTOR_WARN,
		    "is on %s: recording there is slow, and file locks may not work", network);
		fix(l, "numapgo record -o ${TMPDIR:-/tmp}/numapgo.db -- ./app");
	} else {
		add(l, "this directory", NPG_DOCTOR_OK, "writable, on a local file system");
	}
}

static void judge_surroundings(struct list *l)
{
	const struct npg_doctor_facts *f = l->facts;
	bool is_ranked = f->rank_variable[0] != '\0', is_job = f->job[0] != '\0';

	if (f->has_record_object && f->has_replay_object) {
		add(l, "preload objects", NPG_DOCTOR_OK, "found");
	} else {
		add(l, "preload objects", NPG_DOCTOR_NO,
		    "%s not found beside numapgo or in ../lib/numapgo; heap objects cannot be %s",
		    f->has_record_object ? "libnumapgo-replay.so is" : "libnumapgo-record.so is",
		    f->has_record_object ? "placed" : "recorded");
		fix(l, "make, or make install");
	}
	if (is_ranked || is_job) {
		add(l, "batch system, MPI", NPG_DOCTOR_OK,
		    "%s%s%s: start numapgo inside the "
		    "launcher, a file per rank",
		    f->job, is_ranked && is_job ? ", " : "", f->rank_variable);
		fix(l, "srun numapgo record -o 'run-%%r.db' -- ./app");
	} else {
		add(l, "batch system, MPI", NPG_DOCTOR_OK, "none seen");
	}
}

size_t npg_doctor_judge(const struct npg_doctor_facts *facts, struct npg_doctor_check *checks)
{
	struct list l = { facts, checks, 0 };

	add(&l, "kernel", NPG_DOCTOR_OK, "%s, %s", facts->kernel, facts->machine);
	judge_paranoid(&l);
	judge_sources(&l);
	judge_balancing(&l);
	judge_policy_calls(&l);
	judge_nodes(&l);
	judge_capabilities(&l);
	judge_memory(&l);
	judge_directory(&l);
	judge_surroundings(&l);
	return l.nr;
}

bool npg_doctor_can_record(const struct npg_doctor_facts *facts)
{
	return facts->clock_errno == 0 || facts->fault_errno == 0;
}
