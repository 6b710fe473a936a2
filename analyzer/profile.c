/* Choosing the program, loading it step by step, and what its objects are; see profile.h. */
#include <errno.h>
#include <inttypes.h>

#include "analyzer/profile_internal.h"

static const char *const kind_names[NPG_OBJECT_NR_KINDS] = {
	"static", "heap",       "mmap",      "file", "shared",
	"stack",  "small-heap", "anonymous", "code", "kernel",
};

const char *npg_object_kind_name(enum npg_object_kind kind)
{
	return kind_names[kind];
}

bool npg_object_is_movable(enum npg_object_kind kind)
{
	return kind == NPG_OBJECT_HEAP || kind == NPG_OBJECT_MMAP;
}

uint64_t npg_object_page(const struct npg_profile_object *object, uint64_t address,
			 uint64_t page_bytes)
{
	if (address < object->start_address)
		return 0;
	if (npg_object_is_movable(object->kind))
		return (address - object->start_address) / page_bytes;
	return address / page_bytes - object->start_address / page_bytes;
}

uint64_t npg_object_region(const struct npg_profile_object *object, uint64_t page,
			   uint64_t page_bytes)
{
	uint64_t pages = (UINT64_C(2) << 20) / page_bytes;
	uint64_t skipped = object->start_address / page_bytes % pages;

	return (page + (npg_object_is_movable(object->kind) ? 0 : skipped)) / pages;
}

uint64_t npg_object_nr_pages(const struct npg_profile_object *object, uint64_t page_bytes)
{
	uint64_t size = object->size_bytes > 0 ? object->size_bytes : 1;
	uint64_t skipped =
	    npg_object_is_movable(object->kind) ? 0 : object->start_address % page_bytes;

	return (size - 1) / page_bytes + (skipped + (size - 1) % page_bytes) / page_bytes + 1;
}

struct process_row {
	int64_t id;
	int64_t pid;
	int64_t exe_id;
	double samples;
};

static int read_processes(struct npg_loader *l, struct process_row **rows, size_t *nr,
			  struct npg_error *err)
{
	struct process_row *all = NULL;
	struct npg_stmt *stmt = NULL;
	size_t capacity = 0, count = 0;
	int ret =
	    npg_db_prepare(l->db, "SELECT id, pid, exe_id FROM process ORDER BY id", &stmt, err);

	if (ret < 0)
		return ret;
	while ((ret = npg_stmt_step(stmt, err)) == 1) {
		void *grown = npg_grow(all, &capacity, count + 1, sizeof(*all));

		if (grown == NULL) {
			ret = npg_error_set(err, -ENOMEM, "out of memory");
			break;
		}
		all = grown;
		all[count++] = (struct process_row){ npg_stmt_column_i64(stmt, 0),
						     npg_stmt_column_i64(stmt, 1),
						     npg_stmt_column_i64(stmt, 2), 0.0 };
	}
	npg_stmt_finalize(stmt);
	for (size_t i = 0; ret == 0 && i < l->nr_thread_rows; i++) {
		int p = npg_find_id(all, count, sizeof(*all), l->thread_rows[i].process_id);

		if (p >= 0)
			all[p].samples += l->thread_rows[i].samples;
	}
	if (ret < 0) {
		free(all);
		return ret;
	}
	*rows = all;
	*nr = count;
	return 0;
}

static int add_process(struct npg_loader *l, int64_t id)
{
	struct npg_profile *p = l->profile;

	NPG_GROW(p->process_ids, p->nr_processes, l->capacity.processes);
	p->process_ids[p->nr_processes++] = id;
	return 0;
}

/* The process asked for, else the one with the most samples. */
static const struct process_row *find_main(const struct process_row *rows, size_t nr,
					   const char *wanted)
{
	const struct process_row *best = NULL;
	char pid[24];

	for (size_t i = 0; i < nr; i++) {
		snprintf(pid, sizeof(pid), "%lld", (long long)rows[i].pid);
		if (wanted != NULL && strcmp(wanted, "all") != 0 && strcmp(wanted, pid) != 0)
			continue;
		if (best == NULL || rows[i].samples > best->samples)
			best = &rows[i];
	}
	return best;
}

static int choose_processes(struct npg_loader *l, const char *wanted, struct npg_error *err)
{
	bool all = wanted != NULL && strcmp(wanted, "all") == 0;
	struct npg_profile *p = l->profile;
	const struct process_row *best;
	struct process_row *rows = NULL;
	size_t nr = 0;
	int ret = read_processes(l, &rows, &nr, err);

	if (ret < 0)
		return ret;
	best = find_main(rows, nr, wanted);
	if (best == NULL && nr > 0)
		ret = npg_error_set(err, -ENOENT,
				    "%s: no process %s was recorded; 'numapgo sql %s \"SELECT pid, "
				    "exe FROM v_process\"' lists them",
				    npg_db_path(l->db), wanted, npg_db_path(l->db));
	else if (best == NULL)
		ret = npg_error_set(err, -ENODATA,
				    "%s: holds no process, so nothing was recorded; record again",
				    npg_db_path(l->db));
	for (size_t i = 0; ret == 0 && i < nr; i++) {
		bool is_same = rows[i].exe_id == best->exe_id;

		if (&rows[i] == best || (all && is_same)) {
			ret = add_process(l, rows[i].id);
			continue;
		}
		p->nr_other_processes++;
		p->other_samples += rows[i].samples;
		p->same_program_samples += is_same ? rows[i].samples : 0.0;
	}
	free(rows);
	return ret;
}

static int load(struct npg_loader *l, const struct npg_profile_options *options,
		struct npg_error *err)
{
	int64_t is_complete = 0;
	int ret = npg_db_query_i64(l->db, "SELECT value FROM meta WHERE key = 'complete'", 0,
				   &is_complete, err);

	l->profile->is_complete = is_complete == 1;
	if (ret == 0)
		ret = npg_profile_load_common(l, err);
	if (ret == 0)
		ret = npg_profile_count_samples(l, err);
	if (ret == 0)
		ret = choose_processes(l, options->process, err);
	if (ret == 0)
		ret = npg_profile_load_program(l, err);
	if (ret == 0)
		ret = npg_profile_load_samples(l, err);
	return ret;
}

int npg_profile_load(struct npg_db *db, const struct npg_profile_options *options,
		     struct npg_profile **profile, struct npg_error *err)
{
	struct npg_loader loader = { .db = db };
	int ret;

	loader.profile = calloc(1, sizeof(*loader.profile));
	if (loader.profile == NULL)
		return npg_error_set(err, -ENOMEM, "out of memory");
	loader.profile->page_bytes = 4096;
	loader.profile->command = "";
	loader.profile->program = "";
	loader.profile->program_build_id = "";
	loader.profile->fingerprint = "";
	loader.profile->thp_mode = "";
	loader.profile->agent = "";
	ret = load(&loader, options, err);
	free(loader.thread_rows);
	free(loader.strings);
	free(loader.frames);
	free(loader.cpu_nodes);
	if (ret < 0)
		npg_profile_free(loader.profile);
	else
		*profile = loader.profile;
	return ret;
}

void npg_profile_free(struct npg_profile *profile)
{
	if (profile == NULL)
		return;
	free(profile->sources);
	free(profile->process_ids);
	free(profile->modules);
	free(profile->sites);
	free(profile->threads);
	free(profile->objects);
	free(profile->accesses);
	free(profile->touches);
	free(profile->notes);
	npg_arena_release(&profile->arena);
	free(profile);
}
