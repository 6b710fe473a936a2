/* Reading the tables of a recording: everything but the samples, see profile_samples.c. */
#include <errno.h>

#include "analyzer/profile_internal.h"

int npg_find_id(const void *rows, size_t nr, size_t row_bytes, int64_t id)
{
	const char *base = rows;
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int64_t here;

		memcpy(&here, base + middle * row_bytes, sizeof(here));
		if (here == id)
			return (int)middle;
		if (here < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NPG_NONE;
}

static int module_index(const struct npg_loader *l, struct npg_stmt *stmt, int column)
{
	if (npg_stmt_column_type(stmt, column) == NPG_DB_NULL)
		return NPG_NONE;
	return npg_find_id(l->profile->modules, l->profile->nr_modules,
			   sizeof(*l->profile->modules), npg_stmt_column_i64(stmt, column));
}

static const char *string_of(const struct npg_loader *l, struct npg_stmt *stmt, int column)
{
	int i;

	if (npg_stmt_column_type(stmt, column) == NPG_DB_NULL)
		return NULL;
	i = npg_find_id(l->strings, l->nr_strings, sizeof(*l->strings),
			npg_stmt_column_i64(stmt, column));
	return i >= 0 ? l->strings[i].text : NULL;
}

int npg_for_each_row(struct npg_loader *loader, const char *sql,
		     int (*row)(struct npg_loader *loader, struct npg_stmt *stmt),
		     struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	int ret = npg_db_prepare(loader->db, sql, &stmt, err);

	if (ret < 0)
		return ret;
	while ((ret = npg_stmt_step(stmt, err)) == 1) {
		ret = row(loader, stmt);
		if (ret < 0) {
			npg_error_set(err, ret, "%s: does not fit into memory",
				      npg_db_path(loader->db));
			break;
		}
	}
	npg_stmt_finalize(stmt);
	return ret;
}

static int string_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_string_row *s;

	NPG_GROW(l->strings, l->nr_strings, l->capacity.strings);
	s = &l->strings[l->nr_strings++];
	s->id = npg_stmt_column_i64(stmt, 0);
	s->text = npg_arena_string(&l->profile->arena, npg_stmt_column_text(stmt, 1));
	return s->text != NULL ? 0 : -ENOMEM;
}

static enum npg_source_role role_of(const char *name)
{
	if (strcmp(name, "fault") == 0)
		return NPG_ROLE_TOUCH;
	if (strcmp(name, "tlb") == 0)
		return NPG_ROLE_WALK;
	if (strcmp(name, "clock") == 0 || strcmp(name, "hint") == 0)
		return NPG_ROLE_SOFTWARE;
	return NPG_ROLE_HARDWARE;
}

static const char *text_or_empty(struct npg_loader *l, struct npg_stmt *stmt, int column)
{
	const char *text = npg_stmt_column_text(stmt, column);

	return npg_arena_string(&l->profile->arena, text != NULL ? text : "");
}

static int source_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	struct npg_profile_source *s;

	NPG_GROW(p->sources, p->nr_sources, l->capacity.sources);
	s = &p->sources[p->nr_sources++];
	s->id = npg_stmt_column_i64(stmt, 0);
	s->name = text_or_empty(l, stmt, 1);
	s->state = text_or_empty(l, stmt, 2);
	s->reason = text_or_empty(l, stmt, 3);
	s->period = npg_stmt_column_real(stmt, 4);
	s->period_unit = text_or_empty(l, stmt, 5);
	s->nr_records = npg_stmt_column_i64(stmt, 6);
	s->nr_samples = npg_stmt_column_i64(stmt, 7);
	s->nr_no_operand = npg_stmt_column_i64(stmt, 8);
	s->nr_undecoded = npg_stmt_column_i64(stmt, 9);
	s->nr_unmatched = npg_stmt_column_i64(stmt, 10);
	s->nr_lost = npg_stmt_column_i64(stmt, 11);
	s->nr_throttled = npg_stmt_column_i64(stmt, 12);
	if (s->name == NULL || s->state == NULL || s->reason == NULL || s->period_unit == NULL)
		return -ENOMEM;
	s->role = role_of(s->name);
	s->is_clock = strcmp(s->name, "clock") == 0;
	return 0;
}

static int module_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	struct npg_profile_module *m;
	const char *path = string_of(l, stmt, 1);

	NPG_GROW(p->modules, p->nr_modules, l->capacity.modules);
	m = &p->modules[p->nr_modules++];
	m->id = npg_stmt_column_i64(stmt, 0);
	m->path = path != NULL ? path : "";
	m->build_id = text_or_empty(l, stmt, 2);
	return m->build_id != NULL ? 0 : -ENOMEM;
}

static int frame_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_frame_row *f;

	NPG_GROW(l->frames, l->nr_frames, l->capacity.frames);
	f = &l->frames[l->nr_frames++];
	f->id = npg_stmt_column_i64(stmt, 0);
	f->frame.module = module_index(l, stmt, 1);
	f->frame.offset_bytes = (uint64_t)npg_stmt_column_i64(stmt, 2);
	f->frame.function = string_of(l, stmt, 3);
	return 0;
}

/* Rows are frames, ordered by site and position; the number of frames comes with each. */
static int site_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	int64_t id = npg_stmt_column_i64(stmt, 0);
	struct npg_profile_site *site;
	int frame;

	if (p->nr_sites == 0 || p->sites[p->nr_sites - 1].id != id) {
		NPG_GROW(p->sites, p->nr_sites, l->capacity.sites);
		site = &p->sites[p->nr_sites++];
		site->id = id;
		site->frames = npg_arena_alloc(&p->arena, (size_t)npg_stmt_column_i64(stmt, 2),
					       sizeof(*site->frames));
		if (site->frames == NULL)
			return -ENOMEM;
	}
	site = &p->sites[p->nr_sites - 1];
	frame =
	    npg_find_id(l->frames, l->nr_frames, sizeof(*l->frames), npg_stmt_column_i64(stmt, 1));
	if (frame >= 0)
		site->frames[site->nr_frames++] = l->frames[frame].frame;
	return 0;
}

static int thread_id_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_thread_row *t;

	NPG_GROW(l->thread_rows, l->nr_thread_rows, l->capacity.thread_rows);
	t = &l->thread_rows[l->nr_thread_rows++];
	t->id = npg_stmt_column_i64(stmt, 0);
	t->process_id = npg_stmt_column_i64(stmt, 1);
	t->thread = NPG_NONE;
	return 0;
}

static int find_process(const struct npg_profile *p, int64_t id)
{
	return npg_find_id(p->process_ids, p->nr_processes, sizeof(*p->process_ids), id);
}

/* Rows are ordered by path. Threads of other programs are left out. */
static int thread_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	const char *path = npg_stmt_column_text(stmt, 1);
	struct npg_profile_thread *t;
	int row = npg_find_id(l->thread_rows, l->nr_thread_rows, sizeof(*l->thread_rows),
			      npg_stmt_column_i64(stmt, 0));

	if (row < 0 || path == NULL || find_process(p, l->thread_rows[row].process_id) < 0)
		return 0;
	if (p->nr_threads == 0 || strcmp(p->threads[p->nr_threads - 1].path, path) != 0) {
		NPG_GROW(p->threads, p->nr_threads, l->capacity.threads);
		t = &p->threads[p->nr_threads++];
		t->path = npg_arena_string(&p->arena, path);
		if (t->path == NULL)
			return -ENOMEM;
		t->name = string_of(l, stmt, 2);
		t->start_module = module_index(l, stmt, 3);
		t->start_offset_bytes = (uint64_t)npg_stmt_column_i64(stmt, 4);
		t->recorded_node = NPG_NONE;
	}
	t = &p->threads[p->nr_threads - 1];
	t->cpu_ns += npg_stmt_column_real(stmt, 5);
	l->thread_rows[row].thread = (int)(p->nr_threads - 1);
	return 0;
}

static enum npg_object_kind kind_of(const char *name)
{
	for (int i = 0; name != NULL && i < NPG_OBJECT_NR_KINDS; i++)
		if (strcmp(name, npg_object_kind_name((enum npg_object_kind)i)) == 0)
			return (enum npg_object_kind)i;
	return NPG_OBJECT_ANONYMOUS;
}

static int64_t i64_or(struct npg_stmt *stmt, int column, int64_t missing)
{
	return npg_stmt_column_type(stmt, column) == NPG_DB_NULL
		   ? missing
		   : npg_stmt_column_i64(stmt, column);
}

static int object_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	int process = find_process(p, npg_stmt_column_i64(stmt, 1));
	struct npg_profile_object *o;
	int row;

	if (process < 0)
		return 0;
	NPG_GROW(p->objects, p->nr_objects, l->capacity.objects);
	o = &p->objects[p->nr_objects++];
	o->id = npg_stmt_column_i64(stmt, 0);
	o->process = process;
	o->kind = kind_of(npg_stmt_column_text(stmt, 2));
	o->name = string_of(l, stmt, 3);
	o->module = module_index(l, stmt, 4);
	o->offset_bytes = (uint64_t)npg_stmt_column_i64(stmt, 5);
	o->site = npg_stmt_column_type(stmt, 6) == NPG_DB_NULL
		      ? NPG_NONE
		      : npg_find_id(p->sites, p->nr_sites, sizeof(*p->sites),
				    npg_stmt_column_i64(stmt, 6));
	row = npg_find_id(l->thread_rows, l->nr_thread_rows, sizeof(*l->thread_rows),
			  npg_stmt_column_i64(stmt, 7));
	o->thread = row >= 0 ? l->thread_rows[row].thread : NPG_NONE;
	o->site_ordinal = i64_or(stmt, 8, -1);
	o->thread_ordinal = i64_or(stmt, 9, -1);
	o->start_address = (uint64_t)npg_stmt_column_i64(stmt, 10);
	o->size_bytes = (uint64_t)npg_stmt_column_i64(stmt, 11);
	o->start_ns = i64_or(stmt, 12, 0);
	o->end_ns = i64_or(stmt, 13, INT64_MAX);
	o->first_use_ns = INT64_MIN;
	o->initialiser = NPG_NONE;
	return 0;
}

static int cpu_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	int64_t cpu = npg_stmt_column_i64(stmt, 0);

	if (cpu < 0 || cpu >= 65536)
		return 0;
	while (l->nr_cpus <= cpu) {
		NPG_GROW(l->cpu_nodes, (size_t)l->nr_cpus, l->capacity.cpus);
		l->cpu_nodes[l->nr_cpus++] = NPG_NONE;
	}
	l->cpu_nodes[cpu] = (int)npg_stmt_column_i64(stmt, 1);
	return 0;
}

static int note_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;

	NPG_GROW(p->notes, p->nr_notes, l->capacity.notes);
	p->notes[p->nr_notes] = text_or_empty(l, stmt, 0);
	return p->notes[p->nr_notes++] != NULL ? 0 : -ENOMEM;
}

static int machine_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	int64_t page_bytes = npg_stmt_column_i64(stmt, 2);

	if (npg_stmt_column_type(stmt, 0) != NPG_DB_NULL)
		p->hwloc_xml = text_or_empty(l, stmt, 0);
	p->fingerprint = text_or_empty(l, stmt, 1);
	p->thp_mode = text_or_empty(l, stmt, 3);
	if (page_bytes >= 1024 && (page_bytes & (page_bytes - 1)) == 0 && page_bytes <= (2 << 20))
		p->page_bytes = (uint64_t)page_bytes;
	return p->fingerprint != NULL && p->thp_mode != NULL ? 0 : -ENOMEM;
}

static double real_or(struct npg_stmt *stmt, int column, double missing)
{
	return npg_stmt_column_type(stmt, column) == NPG_DB_NULL
		   ? missing
		   : npg_stmt_column_real(stmt, column);
}

static int run_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	const char *command = string_of(l, stmt, 0);

	p->command = command != NULL ? command : "";
	p->program_cpu_ns = real_or(stmt, 1, -1.0);
	p->recorder_cpu_ns = real_or(stmt, 2, -1.0);
	p->interrupt_ns = real_or(stmt, 3, -1.0);
	return 0;
}

static int executable_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	const char *path = string_of(l, stmt, 1);

	p->program_pid = (int)npg_stmt_column_i64(stmt, 0);
	p->program = path != NULL ? path : "";
	p->agent = text_or_empty(l, stmt, 2);
	p->run_id = npg_stmt_column_i64(stmt, 3);
	p->program_build_id = "";
	for (size_t i = 0; i < p->nr_modules; i++)
		if (p->program[0] != '\0' && strcmp(p->modules[i].path, p->program) == 0)
			p->program_build_id = p->modules[i].build_id;
	return p->agent != NULL ? 0 : -ENOMEM;
}

/* Numbers between the dots of a path, so that "0.2" comes before "0.10". */
static int compare_paths(const char *a, const char *b)
{
	while (*a != '\0' && *b != '\0') {
		char *end_a, *end_b;
		unsigned long x = strtoul(a, &end_a, 10), y = strtoul(b, &end_b, 10);

		if (end_a == a || end_b == b)
			return strcmp(a, b);
		if (x != y)
			return x < y ? -1 : 1;
		a = *end_a == '.' ? end_a + 1 : end_a;
		b = *end_b == '.' ? end_b + 1 : end_b;
	}
	return (*a != '\0') - (*b != '\0');
}

static int by_path(const void *a, const void *b)
{
	const struct npg_profile_thread *x = a, *y = b;

	return compare_paths(x->path, y->path);
}

/* Puts the threads in order of creation and renumbers what refers to them. */
static int sort_threads(struct npg_loader *l)
{
	struct npg_profile *p = l->profile;
	int *position = calloc(p->nr_threads + 1, sizeof(*position));

	if (position == NULL)
		return -ENOMEM;
	for (size_t t = 0; t < p->nr_threads; t++)
		p->threads[t].recorded_node = (int)t; /* its old place, for a moment */
	if (p->nr_threads > 0)
		qsort(p->threads, p->nr_threads, sizeof(*p->threads), by_path);
	for (size_t t = 0; t < p->nr_threads; t++) {
		position[p->threads[t].recorded_node] = (int)t;
		p->threads[t].recorded_node = NPG_NONE;
	}
	for (size_t i = 0; i < l->nr_thread_rows; i++)
		if (l->thread_rows[i].thread >= 0)
			l->thread_rows[i].thread = position[l->thread_rows[i].thread];
	free(position);
	return 0;
}

struct step {
	const char *sql;
	int (*row)(struct npg_loader *l, struct npg_stmt *stmt);
};

static int load_steps(struct npg_loader *l, const struct step *steps, size_t nr,
		      struct npg_error *err)
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < nr; i++)
		ret = npg_for_each_row(l, steps[i].sql, steps[i].row, err);
	return ret;
}

/* Where nothing else was sampled, accesses that missed the TLB are the accesses there are. */
static void settle_roles(struct npg_profile *p)
{
	bool has_accesses = false;

	for (size_t i = 0; i < p->nr_sources; i++) {
		enum npg_source_role role = p->sources[i].role;

		has_accesses |= (role == NPG_ROLE_SOFTWARE || role == NPG_ROLE_HARDWARE) &&
				strcmp(p->sources[i].state, "used") == 0;
	}
	for (size_t i = 0; !has_accesses && i < p->nr_sources; i++)
		if (p->sources[i].role == NPG_ROLE_WALK)
			p->sources[i].role = NPG_ROLE_HARDWARE;
}

int npg_profile_load_common(struct npg_loader *loader, struct npg_error *err)
{
	static const struct step steps[] = {
		{ "SELECT id, text FROM string ORDER BY id", string_row },
		{ "SELECT id, name, state, reason, period, period_unit, nr_records, nr_samples, "
		  "nr_no_operand, nr_undecoded, nr_unmatched, nr_lost, nr_throttled "
		  "FROM source ORDER BY id",
		  source_row },
		{ "SELECT id, path_id, build_id FROM module ORDER BY id", module_row },
		{ "SELECT id, module_id, offset_bytes, function_id FROM frame ORDER BY id",
		  frame_row },
		{ "SELECT callsite_id, frame_id, count(*) OVER (PARTITION BY callsite_id) "
		  "FROM callsite_frame ORDER BY callsite_id, position",
		  site_row },
		{ "SELECT id, process_id FROM thread ORDER BY id", thread_id_row },
	};
	int ret = load_steps(loader, steps, NPG_ARRAY_SIZE(steps), err);

	settle_roles(loader->profile);
	return ret;
}

int npg_profile_load_program(struct npg_loader *loader, struct npg_error *err)
{
	static const struct step objects[] = {
		{ "SELECT id, process_id, kind, name_id, module_id, offset_bytes, callsite_id, "
		  "thread_id, site_ordinal, thread_ordinal, start_address, size_bytes, start_ns, "
		  "end_ns FROM object ORDER BY id",
		  object_row },
	};
	struct step about[] = {
		{ NULL, executable_row }, { NULL, run_row },  { NULL, machine_row },
		{ NULL, cpu_row },        { NULL, note_row },
	};
	static const char *const formats[] = {
		"SELECT pid, exe_id, agent, run_id FROM process WHERE id = ",
		"SELECT command_id, program_cpu_ns, recorder_cpu_ns, interrupt_ns FROM run WHERE "
		"id = ",
		"SELECT hwloc_xml, fingerprint, page_size_bytes, thp_mode FROM machine "
		"WHERE run_id = ",
		"SELECT cpu, node FROM cpu WHERE run_id = ",
		"SELECT text FROM note WHERE run_id = ",
	};
	static const struct step threads = {
		"SELECT id, path, name_id, start_module_id, start_offset_bytes, cpu_ns "
		"FROM thread ORDER BY path, id",
		thread_row
	};
	char sql[256];
	int ret = load_steps(loader, &threads, 1, err);

	if (ret == 0 && sort_threads(loader) < 0)
		return npg_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0)
		ret = load_steps(loader, objects, 1, err);
	for (size_t i = 0; ret == 0 && i < NPG_ARRAY_SIZE(about); i++) {
		/* the first query tells the run that the others are about */
		long long id = i == 0 ? loader->profile->process_ids[0] : loader->profile->run_id;

		snprintf(sql, sizeof(sql), "%s%lld", formats[i], id);
		about[i].sql = sql;
		ret = load_steps(loader, &about[i], 1, err);
	}
	return ret;
}
