/* Reads a file of the lab line by line and writes its records as samples or page counts. */
#include "profiler/import_lab.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiler/import_copy.h"
#include "profiler/import_match.h"
#include "profiler/lab_trace.h"

enum { SOURCE_LOADS, SOURCE_TLB, NR_SOURCES };

static const struct {
	const char *name, *event;
} sources[NR_SOURCES] = {
	{ "loads", "NUMA lab: loads that missed the last-level cache of the model" },
	{ "tlb", "NUMA lab: accesses that missed the second-level TLB of the model" },
};

struct importer {
	const char *path;
	struct npg_db *db;
	struct npg_import_match *match;
	struct npg_stmt *sample, *page;
	struct npg_import_summary *summary;
	struct npg_import_summary per_source[NR_SOURCES];
	int64_t source_id[NR_SOURCES];
	int node_of_cpu[1024]; /* -1: not known */
	int64_t page_bytes;
	uint64_t period;
	enum npg_lab_kind file_kind;
	bool has_memory;        /* pages: the caches were modelled */
	int64_t thread, object; /* of the record at hand; 0: not known */
};

static int read_cpus(struct importer *im, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret = npg_db_prepare(im->db, "SELECT cpu, node FROM cpu", &stmt, err);

	for (size_t i = 0; i < NPG_ARRAY_SIZE(im->node_of_cpu); i++)
		im->node_of_cpu[i] = -1;
	while (ret >= 0 && (ret = npg_stmt_step(stmt, err)) == 1) {
		int64_t cpu = npg_stmt_column_i64(stmt, 0);

		if (cpu >= 0 && cpu < (int64_t)NPG_ARRAY_SIZE(im->node_of_cpu))
			im->node_of_cpu[cpu] = (int)npg_stmt_column_i64(stmt, 1);
	}
	npg_stmt_finalize(stmt);
	return ret;
}

/* perf's description of what a sample was: a load or store, from local or remote memory. */
static int64_t data_source(const struct importer *im, const struct npg_lab_record *r)
{
	bool is_known = r->cpu < (int)NPG_ARRAY_SIZE(im->node_of_cpu);
	bool is_remote = is_known && im->node_of_cpu[r->cpu] != r->memory_node;
	uint64_t value = r->is_write ? PERF_MEM_S(OP, STORE) : PERF_MEM_S(OP, LOAD);

	if (r->kind == NPG_LAB_WALK)
		return (int64_t)(value | PERF_MEM_S(TLB, L2) | PERF_MEM_S(TLB, MISS));
	value |= PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVLNUM, RAM);
	value |= is_remote ? PERF_MEM_S(LVL, REM_RAM1) | PERF_MEM_S(REMOTE, REMOTE)
			   : PERF_MEM_S(LVL, LOC_RAM);
	return (int64_t)value;
}

static void bind_id(struct npg_stmt *stmt, int i, int64_t id)
{
	if (id != 0)
		npg_stmt_bind_i64(stmt, i, id);
	else
		npg_stmt_bind_null(stmt, i);
}

static int add_sample(struct importer *im, const struct npg_lab_record *r, struct npg_error *err)
{
	int source = r->kind == NPG_LAB_WALK ? SOURCE_TLB : SOURCE_LOADS;
	struct npg_import_summary *count = &im->per_source[source];
	struct npg_stmt *s = im->sample;

	count->nr_records++;
	if (im->thread == 0) {
		count->nr_no_thread++;
		return 0;
	}
	count->nr_samples++;
	count->nr_unmatched += im->object == 0;
	npg_stmt_bind_i64(s, 1, (int64_t)r->time_ns);
	npg_stmt_bind_i64(s, 2, im->thread);
	npg_stmt_bind_i64(s, 3, im->source_id[source]);
	npg_stmt_bind_i64(s, 4, r->cpu);
	npg_stmt_bind_i64(s, 5, r->is_write ? 2 : 1);
	npg_stmt_bind_i64(s, 6, (int64_t)r->address);
	npg_stmt_bind_i64(s, 7, (int64_t)r->ip);
	bind_id(s, 8, im->object);
	npg_stmt_bind_i64(s, 9, (int64_t)im->period);
	if (r->kind == NPG_LAB_LOAD)
		npg_stmt_bind_i64(s, 10, (int64_t)r->latency_cycles);
	else
		npg_stmt_bind_null(s, 10);
	npg_stmt_bind_i64(s, 11, data_source(im, r));
	npg_stmt_bind_i64(s, 12, r->memory_node);
	return npg_stmt_run(s, err);
}

static int add_page_count(struct importer *im, int source, uint64_t page, uint64_t reads,
			  uint64_t writes, uint64_t unknown, struct npg_error *err)
{
	struct npg_import_summary *count = &im->per_source[source];
	uint64_t weight = reads + writes + unknown;
	struct npg_stmt *s = im->page;

	if (weight == 0)
		return 0;
	count->nr_records++;
	if (im->thread == 0) {
		count->nr_no_thread++;
		return 0;
	}
	count->nr_samples++;
	count->nr_unmatched += im->object == 0;
	npg_stmt_bind_i64(s, 1, im->thread);
	npg_stmt_bind_i64(s, 2, im->source_id[source]);
	bind_id(s, 3, im->object);
	npg_stmt_bind_i64(s, 4, (int64_t)page);
	npg_stmt_bind_i64(s, 5, (int64_t)reads);
	npg_stmt_bind_i64(s, 6, (int64_t)writes);
	npg_stmt_bind_i64(s, 7, (int64_t)unknown);
	npg_stmt_bind_i64(s, 8, (int64_t)weight);
	return npg_stmt_run(s, err);
}

static int add_page(struct importer *im, const struct npg_lab_record *r, struct npg_error *err)
{
	uint64_t loads = im->has_memory ? r->nr_memory_loads : r->nr_loads;
	uint64_t stores = im->has_memory ? r->nr_memory_stores : r->nr_stores;
	uint64_t page = r->address / (uint64_t)im->page_bytes;
	int ret = add_page_count(im, SOURCE_LOADS, page, loads, stores, 0, err);

	return ret < 0 ? ret : add_page_count(im, SOURCE_TLB, page, 0, 0, r->nr_walks, err);
}

static int add_record(struct importer *im, const struct npg_lab_record *r, struct npg_error *err)
{
	int64_t time_ns = (int64_t)r->time_ns, process = 0;

	if (r->address > INT64_MAX || r->ip > INT64_MAX || time_ns < 0)
		return npg_error_set(err, -EINVAL, "an address or time is out of range");
	im->object = 0;
	im->thread = npg_import_thread(im->match, r->cpu, time_ns, &process);
	if (im->thread != 0)
		im->object = npg_import_object(im->match, process, (int64_t)r->address, time_ns);
	return r->kind == NPG_LAB_PAGE ? add_page(im, r, err) : add_sample(im, r, err);
}

static int take_line(struct importer *im, const char *line, size_t size, bool is_first,
		     struct npg_error *err)
{
	struct npg_lab_record r;
	int ret = npg_lab_record_parse(line, size, &r);
	bool is_header = r.kind == NPG_LAB_TRACE || r.kind == NPG_LAB_COUNTS;

	if (ret < 0 || is_header != is_first)
		return npg_error_set(err, -EINVAL,
				     is_first ? "not a trace or counts of the NUMA lab"
					      : "not a line of such a file; is it cut off?");
	if (is_first) {
		im->file_kind = r.kind;
		im->period = r.kind == NPG_LAB_TRACE ? r.period : 1;
		return 0;
	}
	return r.kind == NPG_LAB_OTHER ? 0 : add_record(im, &r, err);
}

/* Counts with a cache model count what went to memory: any page with such accesses shows it. */
static void look_for_memory(struct importer *im, FILE *file)
{
	struct npg_lab_record r;
	char *line = NULL;
	size_t room = 0;
	ssize_t size;

	while (!im->has_memory && (size = getline(&line, &room, file)) > 0) {
		if (line[size - 1] == '\n' &&
		    npg_lab_record_parse(line, (size_t)size - 1, &r) == 0 && r.kind == NPG_LAB_PAGE)
			im->has_memory = r.nr_memory_loads + r.nr_memory_stores > 0;
	}
	free(line);
	rewind(file);
}

static int read_file(struct importer *im, FILE *file, struct npg_error *err)
{
	uint64_t nr_lines = 0;
	char *line = NULL;
	size_t room = 0;
	ssize_t size;
	int ret = 0;

	while (ret == 0 && (size = getline(&line, &room, file)) > 0) {
		size -= line[size - 1] == '\n';
		ret = take_line(im, line, (size_t)size, nr_lines++ == 0, err);
	}
	free(line);
	if (ret == 0 && ferror(file))
		ret = npg_error_set(err, -EIO, "cannot be read");
	if (ret == 0 && nr_lines == 0)
		ret = npg_error_set(err, -EINVAL, "the file is empty");
	if (ret < 0)
		return npg_error_prefix(err, ret, "%s: line %" PRIu64, im->path, nr_lines);
	return 0;
}

static int prepare(struct importer *im, struct npg_error *err)
{
	int ret = npg_db_prepare(im->db,
				 "INSERT INTO sample (time_ns, thread_id, source_id, cpu, access, "
				 "address, ip, object_id, weight, latency_cycles, data_source, "
				 "memory_node, resolved) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,0)",
				 &im->sample, err);
	if (ret == 0)
		ret = npg_db_prepare(im->db,
				     "INSERT INTO page_count (epoch, thread_id, source_id, "
				     "object_id, page, nr_reads, nr_writes, nr_unknown, weight) "
				     "VALUES (0,?,?,?,?,?,?,?,?)",
				     &im->page, err);
	for (int i = 0; ret == 0 && i < NR_SOURCES; i++) {
		char sql[160];

		snprintf(sql, sizeof(sql),
			 "INSERT OR IGNORE INTO source (run_id, name, state) "
			 "SELECT id, '%s', 'not asked' FROM run",
			 sources[i].name);
		ret = npg_db_exec(im->db, sql, err);
		snprintf(sql, sizeof(sql), "SELECT id FROM source WHERE name = '%s'",
			 sources[i].name);
		if (ret == 0)
			ret = npg_db_query_i64(im->db, sql, 0, &im->source_id[i], err);
	}
	if (ret == 0)
		ret = npg_db_query_i64(im->db, "SELECT page_size_bytes FROM machine", 4096,
				       &im->page_bytes, err);
	if (ret == 0 && im->page_bytes <= 0)
		ret = npg_error_set(err, -EINVAL, "the recording's page size is not positive");
	return ret;
}

static int close_source(struct importer *im, int i, struct npg_error *err)
{
	const struct npg_import_summary *count = &im->per_source[i];
	struct npg_stmt *stmt = NULL;
	int ret;

	if (count->nr_records == 0)
		return 0;
	ret = npg_db_prepare(im->db,
			     "UPDATE source SET state = 'used', reason = NULL, event = ?, "
			     "period = ?, period_unit = 'events', nr_records = ?, "
			     "nr_samples = ?, nr_unmatched = ? WHERE id = ?",
			     &stmt, err);
	if (ret < 0)
		return ret;
	npg_stmt_bind_text(stmt, 1, sources[i].event);
	npg_stmt_bind_i64(stmt, 2, (int64_t)im->period);
	npg_stmt_bind_i64(stmt, 3, count->nr_records);
	npg_stmt_bind_i64(stmt, 4, count->nr_samples);
	npg_stmt_bind_i64(stmt, 5, count->nr_unmatched);
	npg_stmt_bind_i64(stmt, 6, im->source_id[i]);
	ret = npg_stmt_run(stmt, err);
	npg_stmt_finalize(stmt);
	im->summary->nr_records += count->nr_records;
	im->summary->nr_samples += count->nr_samples;
	im->summary->nr_unmatched += count->nr_unmatched;
	im->summary->nr_no_thread += count->nr_no_thread;
	return ret;
}

static int import(struct importer *im, FILE *file, struct npg_error *err)
{
	int ret = npg_db_exec(im->db, "BEGIN", err);

	if (ret == 0)
		ret = prepare(im, err);
	if (ret == 0)
		ret = read_cpus(im, err);
	look_for_memory(im, file);
	if (ret == 0)
		ret = read_file(im, file, err);
	for (int i = 0; ret == 0 && i < NR_SOURCES; i++)
		ret = close_source(im, i, err);
	if (ret == 0 && im->summary->nr_records == 0)
		ret = npg_error_set(err, -ENODATA,
				    "%s: no load, walk or page in it (lab run --trace FILE, or "
				    "--counts-to FILE --pages)",
				    im->path);
	npg_stmt_finalize(im->sample);
	npg_stmt_finalize(im->page);
	return ret < 0 ? ret : npg_db_exec(im->db, "COMMIT", err);
}

int npg_import_lab(const char *path, const struct npg_recording *from, struct npg_recording *to,
		   struct npg_import_summary *summary, struct npg_error *err)
{
	struct importer im = { .path = path, .db = to->db, .summary = summary };
	int64_t nr_runs = 0;
	FILE *file;
	int ret;

	*summary = (struct npg_import_summary){ 0 };
	ret = npg_db_query_i64(from->db, "SELECT count(*) FROM run", 0, &nr_runs, err);
	if (ret < 0)
		return ret;
	if (nr_runs != 1)
		return npg_error_set(err, -EINVAL, "%s: holds %" PRId64 " runs; one is needed",
				     from->path, nr_runs);
	file = fopen(path, "re");
	if (file == NULL)
		return npg_error_set(err, -errno, "%s: %s", path, strerror(errno));
	ret = npg_import_copy(from->db, to->db, err);
	if (ret == 0)
		ret = npg_import_match_new(from->db, &im.match, err);
	if (ret == 0)
		ret = import(&im, file, err);
	npg_import_match_free(im.match);
	fclose(file);
	return ret;
}
