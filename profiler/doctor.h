/*
 * What this machine, kernel and container allow: facts are probed first, then judged by a pure
 * function, so that the judgement can be tested for machines that are not here.
 */
#ifndef NPG_PROFILER_DOCTOR_H
#define NPG_PROFILER_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/cpulist.h"

#define NPG_DOCTOR_UNKNOWN (-1000) /* a number that the kernel does not give */

/* An errno of a call that was tried; 0: it works. */
struct npg_doctor_facts {
	char kernel[65];  /* uname -r */
	char machine[65]; /* uname -m */

	int paranoid; /* kernel.perf_event_paranoid, or NPG_DOCTOR_UNKNOWN */
	int clock_errno;
	int fault_errno;
	char load_pmu[64]; /* the device that samples loads: "cpu", "ibs_op", ...; empty: none */

	int seccomp; /* "Seccomp:" of /proc/self/status: 0 off, 2 filter */
	int get_mempolicy_errno;
	int set_mempolicy_errno;
	int mbind_errno;
	int move_pages_errno;

	struct npg_cpuset nodes; /* online */
	struct npg_cpuset allowed_nodes;
	struct npg_cpuset cpus; /* online */
	struct npg_cpuset allowed_cpus;

	uint64_t capabilities; /* effective, bit numbers of capability.h */

	int numa_balancing; /* kernel.numa_balancing, or NPG_DOCTOR_UNKNOWN */
	bool can_switch_balancing;
	bool has_balancing_pace; /* debugfs sched/numa_balancing can be read */
	char thp_mode[16];       /* always, madvise, never; empty: no THP */
	int kpageflags_errno;
	int64_t max_map_count; /* or NPG_DOCTOR_UNKNOWN */

	int64_t file_system_magic; /* of the current directory, see statfs(2) */
	bool is_directory_writable;

	bool has_record_object;
	bool has_replay_object;

	char rank_variable[64]; /* "PMI_RANK=3"; empty: none is set */
	char job[64];           /* "SLURM_JOB_ID=17"; empty */
};

enum npg_doctor_mark { NPG_DOCTOR_OK, NPG_DOCTOR_WARN, NPG_DOCTOR_NO };

struct npg_doctor_check {
	const char *name;
	enum npg_doctor_mark mark;
	char text[320]; /* what is; for a warning or a no, the reason */
	char fix[200];  /* the command that would change it; may be empty */
};

#define NPG_DOCTOR_MAX_CHECKS 24

/**
 * npg_doctor_probe() - try everything out, on this machine and for this process.
 *
 * Nothing is changed but the memory policy of the calling process, which becomes the default.
 * MT-Unsafe. Not AS-Safe.
 */
void npg_doctor_probe(struct npg_doctor_facts *facts);

/**
 * npg_doctor_judge() - what the facts mean.
 * @checks: NPG_DOCTOR_MAX_CHECKS entries.
 *
 * Return: the number of checks filled.
 * MT-Safe. Not AS-Safe.
 */
size_t npg_doctor_judge(const struct npg_doctor_facts *facts, struct npg_doctor_check *checks);

/** npg_doctor_can_record() - true if at least one source can be recorded. MT-Safe. AS-Safe. */
bool npg_doctor_can_record(const struct npg_doctor_facts *facts);

#endif
