/* Rows about the run and the machine, see the header. */
#include <errno.h>
#include <inttypes.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/topology.h"
#include "profiler/proc_file.h"
#include "profiler/run_info.h"

#define COMMAND_BYTES 8192

static bool needs_quotes(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./=:,+@%";

	return text[0] == '\0' || text[strspn(text, plain)] != '\0';
}

static void append(char *text, size_t size, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s", more);
}

/* As a shell would have to be given it. */
static void quote_command(char *const *argv, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; argv[i] != NULL; i++) {
		if (i > 0)
			append(text, size, " ");
		if (!needs_quotes(argv[i])) {
			append(text, size, argv[i]);
			continue;
		}
		append(text, size, "'");
		for (const char *p = argv[i]; *p != '\0'; p++) {
			char one[2] = { *p, '\0' };

			append(text, size, *p == '\'' ? "'\\''" : one);
		}
		append(text, size, "'");
	}
}

static void command_of_pid(int pid, char *text, size_t size)
{
	char path[64];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	length = npg_proc_read(path, text, size);
	for (size_t i = 0; i + 1 < length; i++)
		if (text[i] == '\0')
			text[i] = ' ';
}

static void cpu_model(char *model, size_t size)
{
	char *text = NULL, *line, *end;
	size_t length;

	model[0] = '\0';
	if (npg_proc_read_all("/proc/cpuinfo", &text, &length) < 0)
		return;
	line = strstr(text, "model name");
	if (line != NULL && (line = strchr(line, ':')) != NULL) {
		end = strchr(line, '\n');
		if (end != NULL)
			*end = '\0';
		snprintf(model, size, "%s", line + 1 + (line[1] == ' '));
	}
	free(text);
}

static void thp_mode(char *mode, size_t size)
{
	char text[128], *begin, *end;

	mode[0] = '\0';
	if (npg_proc_read("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text)) == 0)
		return;
	begin = strchr(text, '[');
	end = begin != NULL ? strchr(begin, ']') : NULL;
	if (end == NULL)
		return;
	*end = '\0';
	snprintf(mode, size, "%s", begin + 1);
}

static int put_run(struct npg_db *db, struct npg_writer *writer, const char *command,
		   int64_t start_ns, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	struct utsname uts;
	struct timespec now;
	char model[256];
	int ret = npg_db_prepare(db,
				 "INSERT INTO run (id, command_id, host_id, kernel_id, "
				 "cpu_model_id, started_unix_ns, start_ns) VALUES (1,?,?,?,?,?,?)",
				 &stmt, err);

	if (ret < 0)
		return ret;
	if (uname(&uts) < 0)
		memset(&uts, 0, sizeof(uts));
	cpu_model(model, sizeof(model));
	clock_gettime(CLOCK_REALTIME, &now);
	npg_stmt_bind_i64(stmt, 1, npg_writer_string(writer, command));
	npg_stmt_bind_i64(stmt, 2, npg_writer_string(writer, uts.nodename));
	npg_stmt_bind_i64(stmt, 3, npg_writer_string(writer, uts.release));
	npg_stmt_bind_i64(stmt, 4, npg_writer_string(writer, model));
	npg_stmt_bind_i64(stmt, 5, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	npg_stmt_bind_i64(stmt, 6, start_ns);
	ret = npg_stmt_run(stmt, err);
	npg_stmt_finalize(stmt);
	return ret;
}

static int put_machine(struct npg_db *db, const struct npg_topology *topology,
		       struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int64_t balancing = npg_proc_read_i64("/proc/sys/kernel/numa_balancing", -1);
	char mode[64];
	int ret = npg_db_prepare(db, "INSERT INTO machine VALUES (1,?,?,?,?,?)", &stmt, err);

	if (ret < 0)
		return ret;
	thp_mode(mode, sizeof(mode));
	npg_stmt_bind_text(stmt, 1, topology != NULL ? topology->fingerprint : "");
	npg_stmt_bind_text(stmt, 2, topology != NULL ? topology->hwloc_xml : NULL);
	npg_stmt_bind_i64(stmt, 3, sysconf(_SC_PAGESIZE));
	npg_stmt_bind_text(stmt, 4, mode[0] != '\0' ? mode : NULL);
	if (balancing >= 0)
		npg_stmt_bind_i64(stmt, 5, balancing);
	ret = npg_stmt_run(stmt, err);
	npg_stmt_finalize(stmt);
	return ret;
}

static int put_nodes(struct npg_db *db, const struct npg_topology *topology, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret = npg_db_prepare(db, "INSERT INTO node VALUES (1,?,?,?)", &stmt, err);
	char cpus[4096];

	for (int i = 0; i < topology->nr_nodes && ret == 0; i++) {
		npg_cpulist_format(&topology->nodes[i].cpus, cpus, sizeof(cpus));
		npg_stmt_bind_i64(stmt, 1, topology->nodes[i].node);
		npg_stmt_bind_text(stmt, 2, cpus);
		npg_stmt_bind_i64(stmt, 3, (int64_t)topology->nodes[i].memory_bytes);
		ret = npg_stmt_run(stmt, err);
	}
	npg_stmt_finalize(stmt);
	return ret;
}

static int put_cpus(struct npg_db *db, const struct npg_topology *topology, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret = npg_db_prepare(db, "INSERT INTO cpu VALUES (1,?,?,?)", &stmt, err);

	for (int i = 0; i < topology->nr_nodes; i++)
		for (int cpu = npg_cpuset_next(&topology->nodes[i].cpus, -1); cpu >= 0 && ret == 0;
		     cpu = npg_cpuset_next(&topology->nodes[i].cpus, cpu)) {
			char path[96];
			int64_t core;

			snprintf(path, sizeof(path),
				 "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
			core = npg_proc_read_i64(path, -1);
			npg_stmt_bind_i64(stmt, 1, cpu);
			npg_stmt_bind_i64(stmt, 2, topology->nodes[i].node);
			npg_stmt_bind_null(stmt, 3);
			if (core >= 0)
				npg_stmt_bind_i64(stmt, 3, core);
			ret = npg_stmt_run(stmt, err);
		}
	npg_stmt_finalize(stmt);
	return ret;
}

static int put_distances(struct npg_db *db, const struct npg_topology *t, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret =
	    npg_db_prepare(db, "INSERT INTO node_distance VALUES (1,?,?,?,?,?,?)", &stmt, err);

	for (int i = 0; i < t->nr_nodes * t->nr_nodes && ret == 0; i++) {
		npg_stmt_bind_i64(stmt, 1, t->nodes[i / t->nr_nodes].node);
		npg_stmt_bind_i64(stmt, 2, t->nodes[i % t->nr_nodes].node);
		npg_stmt_bind_null(stmt, 3);
		npg_stmt_bind_null(stmt, 4);
		npg_stmt_bind_null(stmt, 5);
		if (t->slit != NULL)
			npg_stmt_bind_i64(stmt, 3, (int64_t)t->slit[i]);
		if (t->latency_ns != NULL)
			npg_stmt_bind_real(stmt, 4, t->latency_ns[i]);
		if (t->bandwidth_mib_per_s != NULL)
			npg_stmt_bind_real(stmt, 5, t->bandwidth_mib_per_s[i]);
		npg_stmt_bind_text(stmt, 6,
				   t->latency_ns != NULL ? t->latency_origin : t->slit_origin);
		ret = npg_stmt_run(stmt, err);
	}
	npg_stmt_finalize(stmt);
	return ret;
}

int npg_run_info_begin(struct npg_db *db, struct npg_writer *writer, char *const *argv, int pid,
		       int64_t start_ns, struct npg_error *err)
{
	struct npg_topology *topology = NULL;
	struct npg_error why = { "" };
	char command[COMMAND_BYTES];
	int ret;

	if (argv != NULL)
		quote_command(argv, command, sizeof(command));
	else
		command_of_pid(pid, command, sizeof(command));
	ret = npg_db_exec(db, "BEGIN", err);
	if (ret == 0)
		ret = put_run(db, writer, command, start_ns, err);
	if (ret == 0 && npg_topology_load_system(&topology, &why) < 0)
		npg_writer_note(writer, why.text);
	if (ret == 0)
		ret = put_machine(db, topology, err);
	if (ret == 0 && topology != NULL)
		ret = put_nodes(db, topology, err);
	if (ret == 0 && topology != NULL)
		ret = put_cpus(db, topology, err);
	if (ret == 0 && topology != NULL)
		ret = put_distances(db, topology, err);
	if (ret == 0)
		ret = npg_db_exec(db, "COMMIT", err);
	npg_topology_free(topology);
	return ret;
}

int npg_run_info_end(struct npg_db *db, const struct npg_run_result *result, struct npg_error *err)
{
	const int64_t values[] = { result->end_ns,          result->exit_status,
				   result->exit_signal,     result->program_cpu_ns,
				   result->recorder_cpu_ns, result->interrupt_ns };
	struct npg_stmt *stmt = NULL;
	int ret = npg_db_prepare(db,
				 "UPDATE run SET end_ns = ?, exit_status = ?, exit_signal = ?, "
				 "program_cpu_ns = ?, recorder_cpu_ns = ?, interrupt_ns = ? "
				 "WHERE id = 1",
				 &stmt, err);

	if (ret < 0)
		return ret;
	for (int i = 0; i < 6; i++)
		if (values[i] != NPG_NULL)
			npg_stmt_bind_i64(stmt, i + 1, values[i]);
	ret = npg_stmt_run(stmt, err);
	npg_stmt_finalize(stmt);
	return ret;
}
