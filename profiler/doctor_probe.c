/* Facts for numapgo doctor: every call is tried for real, with arguments that change nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__aarch64__) || defined(__riscv) || defined(__powerpc64__)
#include <asm/perf_regs.h>
#endif

#include "lib/error.h"
#include "lib/launch.h"
#include "lib/recording.h"
#include "profiler/doctor.h"

/* the register that holds the address of the instruction */
#if defined(__x86_64__)
#define IP_REGISTER PERF_REG_X86_IP
#elif defined(__aarch64__)
#define IP_REGISTER PERF_REG_ARM64_PC
#elif defined(__riscv)
#define IP_REGISTER PERF_REG_RISCV_PC
#elif defined(__powerpc64__)
#define IP_REGISTER PERF_REG_POWERPC_NIP
#else
#define IP_REGISTER 0
#endif

/* The first line of a small file. Return: false if it cannot be read. */
static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool is_read;

	if (file == NULL)
		return false;
	is_read = fgets(line, (int)size, file) != NULL;
	fclose(file);
	if (is_read)
		line[strcspn(line, "\n")] = '\0';
	return is_read;
}

static int64_t read_number(const char *path)
{
	char line[64];
	long long value;

	if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld", &value) != 1)
		return NPG_DOCTOR_UNKNOWN;
	return value;
}

static void read_list(const char *path, struct npg_cpuset *set)
{
	char line[4096];

	npg_cpuset_clear(set);
	if (!read_line(path, line, sizeof(line)) || npg_cpulist_parse(line, strlen(line), set) < 0)
		npg_cpuset_add(set, 0); /* a kernel without NUMA has one node without saying so */
}

static int try_event(uint64_t config, uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = 1000000,
		.sample_type = sample_type,
		.disabled = 1,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	long fd;

	if (sample_type & PERF_SAMPLE_REGS_USER)
		attr.sample_regs_user = UINT64_C(1) << IP_REGISTER;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

/* Intel and POWER name the event in the PMU's directory; AMD and ARM have a device for it. */
static void find_load_pmu(char *name, size_t size)
{
	static const char base[] = "/sys/bus/event_source/devices";
	DIR *directory = opendir(base);
	const struct dirent *entry;

	name[0] = '\0';
	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s/events/mem-loads", base, entry->d_name);
		if (strcmp(entry->d_name, "ibs_op") == 0 ||
		    strncmp(entry->d_name, "arm_spe_", 8) == 0 || access(path, F_OK) == 0)
			snprintf(name, size, "%.60s", entry->d_name);
	}
	if (directory != NULL)
		closedir(directory);
}

static int errno_of(long result)
{
	return result < 0 ? errno : 0;
}

static void probe_policy_calls(struct npg_doctor_facts *f)
{
	long page_bytes = sysconf(_SC_PAGESIZE);
	int mode, status = 0;
	void *page = mmap(NULL, (size_t)page_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	f->get_mempolicy_errno = errno_of(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0));
	f->set_mempolicy_errno = errno_of(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0));
	if (page == MAP_FAILED) {
		f->mbind_errno = f->move_pages_errno = errno;
		return;
	}
	f->mbind_errno = errno_of(syscall(SYS_mbind, page, page_bytes, MPOL_DEFAULT, NULL, 0, 0));
	f->move_pages_errno = errno_of(syscall(SYS_move_pages, 0, 1, &page, NULL, &status, 0));
	munmap(page, (size_t)page_bytes);
}

static void read_status(struct npg_doctor_facts *f)
{
	char line[4096];
	unsigned long long bits;
	FILE *file = fopen("/proc/self/status", "re");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		const char *value = strchr(line, ':');

		if (value == NULL)
			continue;
		value++;
		if (strncmp(line, "Cpus_allowed_list:", 18) == 0)
			(void)!npg_cpulist_parse(value, strlen(value), &f->allowed_cpus);
		else if (strncmp(line, "Mems_allowed_list:", 18) == 0)
			(void)!npg_cpulist_parse(value, strlen(value), &f->allowed_nodes);
		else if (sscanf(line, "CapEff: %llx", &bits) == 1)
			f->capabilities = bits;
		else
			(void)!sscanf(line, "Seccomp: %d", &f->seccomp);
	}
	if (file != NULL)
		fclose(file);
}

static void probe_kernel_settings(struct npg_doctor_facts *f)
{
	char line[128];
	const char *open, *close;

	f->paranoid = (int)read_number("/proc/sys/kernel/perf_event_paranoid");
	f->numa_balancing = (int)read_number("/proc/sys/kernel/numa_balancing");
	f->can_switch_balancing = access("/proc/sys/kernel/numa_balancing", W_OK) == 0;
	f->has_balancing_pace =
	    access("/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms", R_OK) == 0;
	f->max_map_count = read_number("/proc/sys/vm/max_map_count");
	if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line)))
		return;
	open = strchr(line, '[');
	close = open != NULL ? strchr(open, ']') : NULL;
	if (close != NULL)
		snprintf(f->thp_mode, sizeof(f->thp_mode), "%.*s", (int)(close - open - 1),
			 open + 1);
}

static void probe_files(struct npg_doctor_facts *f)
{
	uint64_t flags;
	struct statfs fs;
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);

	f->kpageflags_errno = fd < 0 ? errno : errno_of(pread(fd, &flags, sizeof(flags), 0));
	if (fd >= 0)
		close(fd);
	if (statfs(".", &fs) == 0)
		f->file_system_magic = (int64_t)fs.f_type;
	f->is_directory_writable = access(".", W_OK) == 0;
}

static void copy_variable(const char *name, char *text, size_t size)
{
	if (name != NULL)
		snprintf(text, size, "%s=%.20s", name, getenv(name));
}

void npg_doctor_probe(struct npg_doctor_facts *f)
{
	static const uint64_t common = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				       PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	struct npg_error ignored;
	struct utsname name;
	char path[4096];

	memset(f, 0, sizeof(*f));
	if (uname(&name) == 0) {
		snprintf(f->kernel, sizeof(f->kernel), "%s", name.release);
		snprintf(f->machine, sizeof(f->machine), "%s", name.machine);
	}
	probe_kernel_settings(f);
	f->clock_errno = try_event(PERF_COUNT_SW_CPU_CLOCK, common | PERF_SAMPLE_REGS_USER);
	f->fault_errno = try_event(PERF_COUNT_SW_PAGE_FAULTS, common);
	find_load_pmu(f->load_pmu, sizeof(f->load_pmu));
	probe_policy_calls(f);
	read_list("/sys/devices/system/node/online", &f->nodes);
	read_list("/sys/devices/system/cpu/online", &f->cpus);
	f->allowed_nodes = f->nodes;
	f->allowed_cpus = f->cpus;
	read_status(f);
	probe_files(f);
	f->has_record_object =
	    npg_launch_find_object("libnumapgo-record.so", path, sizeof(path), &ignored) == 0;
	f->has_replay_object =
	    npg_launch_find_object("libnumapgo-replay.so", path, sizeof(path), &ignored) == 0;
	copy_variable(npg_output_rank_variable(), f->rank_variable, sizeof(f->rank_variable));
	copy_variable(npg_output_job_variable(), f->job, sizeof(f->job));
}
