/* What doctor says of machines that are not here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiler/doctor.h"

/* A two-node server on which everything works. */
static struct npg_doctor_facts good(void)
{
	struct npg_doctor_facts f = {
		.kernel = "6.12.0",
		.machine = "x86_64",
		.paranoid = 2,
		.load_pmu = "cpu",
		.numa_balancing = 1,
		.has_balancing_pace = true,
		.thp_mode = "madvise",
		.max_map_count = 65530,
		.file_system_magic = 0xef53,
		.is_directory_writable = true,
		.has_record_object = true,
		.has_replay_object = true,
	};

	for (int i = 0; i < 2; i++) {
		npg_cpuset_add(&f.nodes, i);
		npg_cpuset_add(&f.cpus, i);
	}
	f.allowed_nodes = f.nodes;
	f.allowed_cpus = f.cpus;
	return f;
}

static struct npg_doctor_check checks[NPG_DOCTOR_MAX_CHECKS];

static const struct npg_doctor_check *judge(const struct npg_doctor_facts *f, const char *name)
{
	size_t nr = npg_doctor_judge(f, checks);

	assert_true(nr <= NPG_DOCTOR_MAX_CHECKS);
	for (size_t i = 0; i < nr; i++)
		if (strcmp(checks[i].name, name) == 0)
			return &checks[i];
	fail_msg("no check '%s'", name);
	return NULL;
}

static void expect(const struct npg_doctor_facts *f, const char *name, enum npg_doctor_mark mark,
		   const char *text, const char *fix)
{
	const struct npg_doctor_check *c = judge(f, name);

	if (c->mark != mark || strstr(c->text, text) == NULL || strstr(c->fix, fix) == NULL)
		fail_msg("%s: mark %d, '%s', '%s'", name, (int)c->mark, c->text, c->fix);
}

static void a_good_machine_is_all_ok(void **state)
{
	struct npg_doctor_facts f = good();
	size_t nr = npg_doctor_judge(&f, checks);

	(void)state;
	assert_true(nr > 10);
	for (size_t i = 0; i < nr; i++) {
		if (checks[i].mark != NPG_DOCTOR_OK &&
		    strcmp(checks[i].name, "hardware loads") != 0)
			fail_msg("%s: %s", checks[i].name, checks[i].text);
		assert_true(checks[i].text[0] != '\0');
	}
	assert_true(npg_doctor_can_record(&f));
}

static void every_no_has_a_reason(void **state)
{
	struct npg_doctor_facts f = { .paranoid = NPG_DOCTOR_UNKNOWN,
				      .numa_balancing = NPG_DOCTOR_UNKNOWN,
				      .max_map_count = NPG_DOCTOR_UNKNOWN,
				      .clock_errno = ENOSYS,
				      .fault_errno = ENOSYS,
				      .mbind_errno = ENOSYS,
				      .kpageflags_errno = EACCES };
	size_t nr = npg_doctor_judge(&f, checks);

	(void)state;
	for (size_t i = 0; i < nr; i++)
		assert_true(checks[i].text[0] != '\0' || checks[i].mark == NPG_DOCTOR_OK);
	assert_false(npg_doctor_can_record(&f));
}

static void paranoid_is_explained(void **state)
{
	struct npg_doctor_facts f = good();

	(void)state;
	expect(&f, "perf_event_paranoid", NPG_DOCTOR_OK, "enough", "");
	f.paranoid = 0;
	expect(&f, "perf_event_paranoid", NPG_DOCTOR_OK, "whole CPUs", "");
	f.paranoid = 3;
	f.clock_errno = f.fault_errno = EACCES;
	expect(&f, "perf_event_paranoid", NPG_DOCTOR_NO, "3", "perf_event_paranoid=2");
	expect(&f, "source clock", NPG_DOCTOR_NO, "paranoid 3", "perf_event_paranoid=2");
	assert_false(npg_doctor_can_record(&f));
	f.capabilities = UINT64_C(1) << 38;
	expect(&f, "perf_event_paranoid", NPG_DOCTOR_OK, "everything", "");
	/* with the capability, the refusal has another cause */
	expect(&f, "source clock", NPG_DOCTOR_NO, "seccomp", "PERFMON");
}

static void sources_fail_one_by_one(void **state)
{
	struct npg_doctor_facts f = good();

	(void)state;
	f.clock_errno = EPERM;
	expect(&f, "source clock", NPG_DOCTOR_NO, "seccomp", "docker run");
	expect(&f, "source fault", NPG_DOCTOR_OK, "first touch", "");
	assert_true(npg_doctor_can_record(&f));
	f.clock_errno = EMFILE;
	expect(&f, "source clock", NPG_DOCTOR_NO, "descriptors", "ulimit");
	f.clock_errno = EINVAL;
	expect(&f, "source clock", NPG_DOCTOR_NO, "Invalid argument", "");
	f.numa_balancing = 0;
	expect(&f, "source hint", NPG_DOCTOR_WARN, "is 0", "kernel.numa_balancing=1");
	f.can_switch_balancing = true;
	expect(&f, "source hint", NPG_DOCTOR_WARN, "is 0", "--source clock,hint,fault");
	f.fault_errno = ENOSYS;
	expect(&f, "source hint", NPG_DOCTOR_NO, "page-fault", "");
	expect(&f, "hardware loads", NPG_DOCTOR_WARN, "'cpu'", "");
	f.load_pmu[0] = '\0';
	expect(&f, "hardware loads", NPG_DOCTOR_NO, "virtual machines", "bare metal");
}

static void refused_policy_calls_are_named(void **state)
{
	struct npg_doctor_facts f = good();

	(void)state;
	f.mbind_errno = f.set_mempolicy_errno = EPERM;
	f.seccomp = 2;
	expect(&f, "memory policy calls", NPG_DOCTOR_NO, "set_mempolicy, mbind", "SYS_NICE");
	expect(&f, "memory policy calls", NPG_DOCTOR_NO, "seccomp filter", "SYS_NICE");
	f.set_mempolicy_errno = 0;
	f.mbind_errno = ENOSYS;
	expect(&f, "memory policy calls", NPG_DOCTOR_NO, "mbind: not in this kernel",
	       "CONFIG_NUMA");
}

static void cpusets_are_seen(void **state)
{
	struct npg_doctor_facts f = good();

	(void)state;
	npg_cpuset_clear(&f.allowed_nodes);
	npg_cpuset_add(&f.allowed_nodes, 1);
	npg_cpuset_clear(&f.allowed_cpus);
	npg_cpuset_add(&f.allowed_cpus, 0);
	expect(&f, "nodes", NPG_DOCTOR_WARN, "nodes 1 only, of 0-1", "cpuset");
	expect(&f, "CPUs", NPG_DOCTOR_WARN, "CPUs 0 of 0-1", "taskset");
	npg_cpuset_clear(&f.nodes);
	npg_cpuset_add(&f.nodes, 1);
	expect(&f, "nodes", NPG_DOCTOR_WARN, "one node", "--machine");
	/* Mems_allowed names possible nodes, more than there are */
	npg_cpuset_add(&f.allowed_nodes, 63);
	expect(&f, "nodes", NPG_DOCTOR_WARN, "one node", "");
}

static void surroundings_are_judged(void **state)
{
	struct npg_doctor_facts f = good();

	(void)state;
	f.file_system_magic = 0x0bd00bd0;
	expect(&f, "this directory", NPG_DOCTOR_WARN, "Lustre", "-o");
	f.file_system_magic = -11317950; /* 0xff534d42 as a signed 32-bit number */
	expect(&f, "this directory", NPG_DOCTOR_WARN, "CIFS", "-o");
	f.is_directory_writable = false;
	expect(&f, "this directory", NPG_DOCTOR_WARN, "cannot be written", "-o");
	f.has_replay_object = false;
	expect(&f, "preload objects", NPG_DOCTOR_NO, "libnumapgo-replay.so", "make");
	f.has_record_object = false;
	expect(&f, "preload objects", NPG_DOCTOR_NO, "libnumapgo-record.so", "make");
	f.kpageflags_errno = EPERM;
	expect(&f, "/proc/kpageflags", NPG_DOCTOR_WARN, "not permitted", "root");
	f.max_map_count = 1000;
	expect(&f, "vm.max_map_count", NPG_DOCTOR_WARN, "1000", "vm.max_map_count=");
	snprintf(f.thp_mode, sizeof(f.thp_mode), "never");
	expect(&f, "huge pages", NPG_DOCTOR_WARN, "off", "madvise");
	f.has_balancing_pace = false;
	expect(&f, "balancing pace", NPG_DOCTOR_WARN, "debugfs", "mount");
	snprintf(f.rank_variable, sizeof(f.rank_variable), "PMI_RANK=3");
	expect(&f, "batch system, MPI", NPG_DOCTOR_OK, "PMI_RANK=3", "%r");
}

static void this_machine_is_probed(void **state)
{
	struct npg_doctor_facts f;

	(void)state;
	npg_doctor_probe(&f);
	assert_true(f.kernel[0] != '\0');
	assert_true(npg_cpuset_count(&f.cpus) > 0);
	assert_true(npg_cpuset_count(&f.nodes) > 0);
	assert_true(npg_cpuset_count(&f.allowed_cpus) > 0);
	assert_true(npg_doctor_judge(&f, checks) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_machine_is_all_ok),
		cmocka_unit_test(every_no_has_a_reason),
		cmocka_unit_test(paranoid_is_explained),
		cmocka_unit_test(sources_fail_one_by_one),
		cmocka_unit_test(refused_policy_calls_are_named),
		cmocka_unit_test(cpusets_are_seen),
		cmocka_unit_test(surroundings_are_judged),
		cmocka_unit_test(this_machine_is_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
