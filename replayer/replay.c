/* Preparing and running a replay. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/topology.h"
#include "replayer/replay.h"

#define REPLAY_OBJECT "libnumapgo-replay.so"

/* The first word or line of a small file of the kernel; empty if it cannot be read. */
static void read_small(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");

	text[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(text, (int)size, file) == NULL)
		text[0] = '\0';
	fclose(file);
}

static uint64_t max_map_count(void)
{
	char text[64];

	read_small("/proc/sys/vm/max_map_count", text, sizeof(text));
	return text[0] != '\0' ? strtoull(text, NULL, 10) : 65530; /* the kernel's default */
}

static bool has_huge_pages(void)
{
	char text[128];

	read_small("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text));
	return strstr(text, "[always]") != NULL;
}

/* Does the kernel let processes here set memory policies? Return: 0, or the negative errno. */
static int probe_policies(int node)
{
	unsigned long nodes[16] = { 0 };
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret = 0;

	if (page == MAP_FAILED)
		return 0;
	nodes[node / 64 % 16] = 1UL << (node % 64);
	if (syscall(SYS_mbind, page, size, MPOL_PREFERRED, nodes, 1025UL, 0U) != 0)
		ret = -errno;
	munmap(page, size);
	return ret;
}

/* An OpenMP runtime that pins its threads itself: the variable that says so, or NULL. */
static const char *find_openmp_pinning(void)
{
	const char *bind = getenv("OMP_PROC_BIND"), *kmp = getenv("KMP_AFFINITY");

	if (bind != NULL && bind[0] != '\0' && strcasecmp(bind, "false") != 0)
		return "OMP_PROC_BIND";
	if (bind == NULL && getenv("OMP_PLACES") != NULL)
		return "OMP_PLACES";
	if (getenv("GOMP_CPU_AFFINITY") != NULL)
		return "GOMP_CPU_AFFINITY";
	if (kmp != NULL && strstr(kmp, "none") == NULL && strstr(kmp, "disabled") == NULL)
		return "KMP_AFFINITY";
	return NULL;
}

static void look_around(struct npg_replay *replay, const struct npg_topology *topology)
{
	const char *openmp = find_openmp_pinning();
	int refused = probe_policies(replay->resolution.nodes[0].node);

	replay->options.page_size_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	replay->options.max_map_count = max_map_count();
	replay->options.has_huge_pages = has_huge_pages();
	for (int i = 0; i < topology->nr_nodes; i++)
		replay->options.memory_bytes += topology->nodes[i].memory_bytes;
	if (openmp != NULL && !replay->options.overrides_affinity) {
		replay->options.leaves_threads = true;
		snprintf(replay->why_threads, sizeof(replay->why_threads),
			 "threads are left to %s (--override-affinity pins them all the same)",
			 openmp);
	}
	if (refused == -EPERM || refused == -ENOSYS) {
		replay->options.leaves_memory = true;
		snprintf(replay->why_memory, sizeof(replay->why_memory),
			 "memory policies are refused here (mbind: %s)%s", strerror(-refused),
			 refused == -EPERM ? "; a container needs --cap-add SYS_NICE" : "");
	}
}

static bool has_planned_tables(const struct npg_replay *replay)
{
	for (size_t i = 0; i < replay->plan->nr_objects; i++)
		if (replay->plan->objects[i].nr_table_ranges > 0 && !replay->fit.is_stale[i])
			return true;
	return false;
}

static void set_why_tables(struct npg_replay *replay)
{
	if (replay->options.has_huge_pages && !replay->options.leaves_page_tables &&
	    replay->resolution.nr_here > 1 && has_planned_tables(replay))
		snprintf(replay->why_tables, sizeof(replay->why_tables),
			 "page tables are left: transparent huge pages (always) need none");
}

static void set_why_plain(struct npg_replay *replay, const struct npg_launch *launch)
{
	const struct npg_plan *plan = replay->plan;
	char *why = replay->why_plain;
	size_t size = sizeof(replay->why_plain);

	if (plan->leave)
		snprintf(why, size, "the plan says to leave this program as it is%s%s",
			 plan->leave_reason != NULL ? ": " : "",
			 plan->leave_reason != NULL ? plan->leave_reason : "");
	else if (launch->why_no_preload != NULL)
		snprintf(why, size, "'%s' %s", launch->path, launch->why_no_preload);
	else if (replay->why_memory[0] != '\0' && replay->table.nr_pins == 0)
		snprintf(why, size, "%s", replay->why_memory);
	else if (replay->table.nr_objects == 0 && replay->table.nr_pins == 0)
		snprintf(why, size, "nothing in the plan applies here");
}

static int load_machine(struct npg_replay *replay, struct npg_error *err)
{
	struct npg_topology *topology = NULL;
	struct npg_allowed allowed;
	int ret = npg_allowed_read(&allowed, err);

	if (ret == 0)
		ret = npg_topology_load_system(&topology, err);
	if (ret == 0)
		ret = npg_resolve(replay->plan, topology, &allowed, &replay->resolution, err);
	if (ret == 0)
		look_around(replay, topology);
	npg_topology_free(topology);
	return ret;
}

int npg_replay_prepare(struct npg_replay *replay, const struct npg_plan *plan,
		       const struct npg_launch *launch, struct npg_error *err)
{
	const char *program = launch->kind == NPG_LAUNCH_DYNAMIC ? launch->path : NULL;
	struct npg_error why = { "" };
	int ret;

	replay->plan = plan;
	replay->status_fd = -1;
	ret = npg_fit_check(plan, program, &replay->fit, err);
	if (ret == 0 && load_machine(replay, &why) < 0) {
		snprintf(replay->why_plain, sizeof(replay->why_plain), "%s", why.text);
		return 0;
	}
	if (ret == 0)
		ret = npg_placing_build(plan, &replay->resolution, &replay->fit, &replay->options,
					&replay->table, err);
	if (ret == 0) {
		set_why_tables(replay);
		set_why_plain(replay, launch);
	}
	return ret;
}

int npg_replay_check_strict(const struct npg_replay *replay, struct npg_error *err)
{
	const struct npg_node_map *map = &replay->resolution.map;
	char text[512];

	npg_fit_describe(replay->plan, &replay->fit, text, sizeof(text));
	if (replay->plan->leave)
		return 0;
	if (replay->why_plain[0] != '\0')
		return npg_error_set(err, -ENOTSUP, "--strict: %s", replay->why_plain);
	if (replay->why_memory[0] != '\0')
		return npg_error_set(err, -ENOTSUP, "--strict: %s", replay->why_memory);
	if (replay->why_threads[0] != '\0')
		return npg_error_set(err, -ENOTSUP, "--strict: %s", replay->why_threads);
	if (replay->fit.nr_stale_objects > 0)
		return npg_error_set(err, -ENOTSUP, "--strict: %s", text);
	if (map->is_folded)
		return npg_error_set(err, -ENOTSUP,
				     "--strict: the plan is for %d nodes, %d may be used here",
				     replay->resolution.nr_planned, replay->resolution.nr_here);
	if (map->nr_short_of_memory > 0)
		return npg_error_set(err, -ENOTSUP,
				     "--strict: %d nodes have less free memory than the plan puts "
				     "there",
				     map->nr_short_of_memory);
	if (map->nr_without_cpus > 0)
		return npg_error_set(err, -ENOTSUP,
				     "--strict: %d nodes that threads are planned for have no "
				     "allowed CPU",
				     map->nr_without_cpus);
	return 0;
}

static int start(struct npg_replay *replay, struct npg_launch *launch, char *const argv[],
		 struct npg_error *err)
{
	char object[4096], variable[64];
	struct npg_error why = { "" };
	int ret;

	if (replay->why_plain[0] != '\0')
		return npg_launch_prepare(launch, argv, NULL, NULL, err);
	ret = npg_launch_find_object(REPLAY_OBJECT, object, sizeof(object), err);
	if (ret < 0)
		return ret;
	replay->status_fd = npg_placing_share(&replay->table, &replay->status, &why);
	if (replay->status_fd < 0 && replay->options.is_strict)
		return npg_error_set(err, replay->status_fd, "--strict: %s", why.text);
	if (replay->status_fd < 0) {
		snprintf(replay->why_plain, sizeof(replay->why_plain), "%s", why.text);
		return npg_launch_prepare(launch, argv, NULL, NULL, err);
	}
	snprintf(variable, sizeof(variable), "%s=%d:%d", NPG_WIRE_REPLAY_ENV, getpid(),
		 replay->status_fd);
	return npg_launch_prepare(launch, argv, object, variable, err);
}

int npg_replay_run(struct npg_replay *replay, struct npg_launch *launch, char *const argv[],
		   int *wait_status, struct npg_error *err)
{
	int ret = start(replay, launch, argv, err);

	if (ret < 0)
		return ret;
	npg_launch_forward_signals(launch);
	ret = npg_launch_go(launch, err);
	if (ret < 0)
		return ret;
	ret = npg_verify_wait(&replay->verify, launch->pid, &replay->table, replay->status,
			      wait_status);
	if (ret < 0)
		return npg_error_set(err, ret, "'%s': its end could not be waited for",
				     launch->path);
	return 0;
}

void npg_replay_release(struct npg_replay *replay)
{
	if (replay->status != NULL)
		npg_placing_unshare(&replay->table, replay->status, replay->status_fd);
	npg_placing_release(&replay->table);
	npg_fit_release(&replay->fit);
}
