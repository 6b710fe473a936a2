/*
 * Reading samples: first touches, then accesses, merged per (object, page, thread) while reading so
 * that memory is bounded by what was touched and not by how often.
 */
#include <errno.h>
#include <math.h>

#include "analyzer/profile_internal.h"

#define MERGE_AT       ((size_t)4 << 20) /* accesses held before they are merged */
#define HARDWARE_LEAST 200.0             /* samples for hardware sources to be used alone */
#define CLOCK_LEAST    200.0             /* clock samples to weigh objects against each other */
#define INITIALISED    0.95 /* share of first touches by one thread that make it initialiser */

/* Samples and counts alike: rows of (thread, source, object, address, time, cpu, n, weight). */
static const char all_rows_sql[] =
    "SELECT thread_id, source_id, object_id, address, time_ns, cpu, 1, weight, memory_node "
    "FROM sample";
static const char all_counts_sql[] =
    "SELECT c.thread_id, c.source_id, c.object_id, c.page * m.page_size_bytes, "
    "c.epoch, NULL, c.nr_reads + c.nr_writes + c.nr_unknown, c.weight, NULL "
    "FROM page_count c JOIN source s ON s.id = c.source_id JOIN machine m ON m.run_id = "
    "s.run_id";

static struct npg_thread_row *thread_row_of(const struct npg_loader *l, struct npg_stmt *stmt)
{
	int i = npg_find_id(l->thread_rows, l->nr_thread_rows, sizeof(*l->thread_rows),
			    npg_stmt_column_i64(stmt, 0));

	return i >= 0 ? &l->thread_rows[i] : NULL;
}

static int source_of(const struct npg_loader *l, struct npg_stmt *stmt)
{
	const struct npg_profile *p = l->profile;

	return npg_find_id(p->sources, p->nr_sources, sizeof(*p->sources),
			   npg_stmt_column_i64(stmt, 1));
}

static int count_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_thread_row *t = thread_row_of(l, stmt);
	int source = source_of(l, stmt);

	if (t != NULL && source >= 0 && l->profile->sources[source].role != NPG_ROLE_TOUCH)
		t->samples += npg_stmt_column_real(stmt, 2);
	return 0;
}

int npg_profile_count_samples(struct npg_loader *loader, struct npg_error *err)
{
	int ret =
	    npg_for_each_row(loader, "SELECT thread_id, source_id, 1 FROM sample", count_row, err);

	if (ret == 0)
		ret = npg_for_each_row(loader,
				       "SELECT thread_id, source_id, "
				       "nr_reads + nr_writes + nr_unknown FROM page_count",
				       count_row, err);
	return ret;
}

static int node_of_cpu(const struct npg_loader *l, struct npg_stmt *stmt, int column)
{
	int64_t cpu = npg_stmt_column_i64(stmt, column);

	if (npg_stmt_column_type(stmt, column) == NPG_DB_NULL || cpu < 0 || cpu >= l->nr_cpus)
		return NPG_NONE;
	return l->cpu_nodes[cpu];
}

static int object_of(const struct npg_profile *p, struct npg_stmt *stmt)
{
	if (npg_stmt_column_type(stmt, 2) == NPG_DB_NULL)
		return NPG_NONE;
	return npg_find_id(p->objects, p->nr_objects, sizeof(*p->objects),
			   npg_stmt_column_i64(stmt, 2));
}

static uint64_t page_of(const struct npg_profile *p, int object, struct npg_stmt *stmt)
{
	uint64_t page = npg_object_page(&p->objects[object], (uint64_t)npg_stmt_column_i64(stmt, 3),
					p->page_bytes);
	uint64_t nr = npg_object_nr_pages(&p->objects[object], p->page_bytes);

	return page < nr ? page : nr - 1;
}

static int touch_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	const struct npg_thread_row *t = thread_row_of(l, stmt);
	int source = source_of(l, stmt), object = object_of(p, stmt);

	if (source < 0 || p->sources[source].role != NPG_ROLE_TOUCH || t == NULL || t->thread < 0)
		return 0;
	p->sources[source].seen += 1.0;
	if (object < 0)
		return 0;
	p->sources[source].matched += 1.0;
	NPG_GROW(p->touches, p->nr_touches, l->capacity.touches);
	p->touches[p->nr_touches++] = (struct npg_touch){ .page = page_of(p, object, stmt),
							  .object = (uint32_t)object,
							  .thread = (uint32_t)t->thread,
							  .time_ns = npg_stmt_column_i64(stmt, 4),
							  .node = node_of_cpu(l, stmt, 5) };
	return 0;
}

static int by_page_and_time(const void *a, const void *b)
{
	const struct npg_touch *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Did one thread touch nearly all of an object first, and until when? */
static int find_initialiser(struct npg_profile_object *object, const struct npg_touch *touches,
			    size_t nr)
{
	int64_t *times = calloc(nr, sizeof(*times));
	uint32_t candidate = touches[0].thread;
	size_t votes = 0, own = 0;

	if (times == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) { /* a majority, if there is one */
		if (votes == 0)
			candidate = touches[i].thread;
		votes = touches[i].thread == candidate ? votes + 1 : votes - 1;
	}
	for (size_t i = 0; i < nr; i++)
		if (touches[i].thread == candidate)
			times[own++] = touches[i].time_ns;
	if ((double)own >= INITIALISED * (double)nr) {
		qsort(times, own, sizeof(*times), by_time);
		object->initialiser = (int)candidate;
		object->first_use_ns = times[(size_t)(INITIALISED * (double)(own - 1))];
	}
	free(times);
	return 0;
}

/* Keeps the first touch of each page, and finds the objects' initialisers. */
static int finish_touches(struct npg_profile *p)
{
	size_t nr = 0;

	if (p->nr_touches > 0)
		qsort(p->touches, p->nr_touches, sizeof(*p->touches), by_page_and_time);
	for (size_t i = 0; i < p->nr_touches; i++)
		if (nr == 0 || p->touches[nr - 1].object != p->touches[i].object ||
		    p->touches[nr - 1].page != p->touches[i].page)
			p->touches[nr++] = p->touches[i];
	p->nr_touches = nr;
	for (size_t first = 0, end; first < nr; first = end) {
		for (end = first; end < nr && p->touches[end].object == p->touches[first].object;)
			end++;
		if (find_initialiser(&p->objects[p->touches[first].object], p->touches + first,
				     end - first) < 0)
			return -ENOMEM;
	}
	return 0;
}

static const struct npg_touch *find_touch(const struct npg_profile *p, uint32_t object,
					  uint64_t page)
{
	size_t low = 0, high = p->nr_touches;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct npg_touch *t = &p->touches[middle];

		if (t->object == object && t->page == page)
			return t;
		if (t->object < object || (t->object == object && t->page < page))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int observed_index(struct npg_observed *o, int node)
{
	for (int i = 0; i < o->nr_nodes; i++)
		if (o->nodes[i] == node)
			return i;
	if (o->nr_nodes == 64)
		return NPG_NONE;
	o->nodes[o->nr_nodes] = node;
	return o->nr_nodes++;
}

/* Where the CPU and the page of a sample were, if both are known. */
static void observe(struct npg_loader *l, const struct npg_access *a, struct npg_stmt *stmt,
		    double n)
{
	struct npg_profile *p = l->profile;
	int cpu_node = node_of_cpu(l, stmt, 5), memory_node = NPG_NONE, i, j;
	const struct npg_touch *touch;

	if (npg_stmt_column_type(stmt, 8) != NPG_DB_NULL) {
		memory_node = (int)npg_stmt_column_i64(stmt, 8);
	} else if (cpu_node >= 0) {
		touch = find_touch(p, a->object, a->page);
		memory_node = touch != NULL ? touch->node : NPG_NONE;
	}
	if (cpu_node < 0 || memory_node < 0)
		return;
	i = observed_index(&p->observed, cpu_node);
	j = observed_index(&p->observed, memory_node);
	if (i < 0 || j < 0)
		return;
	p->observed.counts[i * 64 + j] += n;
	p->observed.total += n;
}

static int by_place(const void *a, const void *b)
{
	const struct npg_access *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->half * 2 + x->is_start) - (y->half * 2 + y->is_start);
}

static void merge_accesses(struct npg_profile *p)
{
	size_t nr = 0;

	if (p->nr_accesses > 0)
		qsort(p->accesses, p->nr_accesses, sizeof(*p->accesses), by_place);
	for (size_t i = 0; i < p->nr_accesses; i++) {
		if (nr > 0 && by_place(&p->accesses[nr - 1], &p->accesses[i]) == 0) {
			p->accesses[nr - 1].nr_samples += p->accesses[i].nr_samples;
			p->accesses[nr - 1].weight += p->accesses[i].weight;
		} else {
			p->accesses[nr++] = p->accesses[i];
		}
	}
	p->nr_accesses = nr;
}

static int add_access(struct npg_loader *l, struct npg_access access, double n, double weight)
{
	struct npg_profile *p = l->profile;

	if (n < 1.0)
		return 0;
	if (p->nr_accesses >= l->merge_at) {
		merge_accesses(p);
		l->merge_at = p->nr_accesses * 2 > MERGE_AT ? p->nr_accesses * 2 : MERGE_AT;
	}
	NPG_GROW(p->accesses, p->nr_accesses, l->capacity.accesses);
	access.nr_samples = n < (double)UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	access.weight = (float)weight;
	p->accesses[p->nr_accesses++] = access;
	return 0;
}

/* A random bit that is the same in every analysis of the same recording (splitmix64). */
static uint8_t random_half(uint64_t i)
{
	i += UINT64_C(0x9e3779b97f4a7c15);
	i = (i ^ (i >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	i = (i ^ (i >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint8_t)((i ^ (i >> 31)) & 1);
}

static int access_row(struct npg_loader *l, struct npg_stmt *stmt)
{
	struct npg_profile *p = l->profile;
	const struct npg_thread_row *t = thread_row_of(l, stmt);
	int source = source_of(l, stmt), object = object_of(p, stmt), ret;
	double n = npg_stmt_column_real(stmt, 6), weight = npg_stmt_column_real(stmt, 7), rest;
	struct npg_access a = { 0 };

	if (source < 0 || source > UINT8_MAX || p->sources[source].role == NPG_ROLE_TOUCH ||
	    t == NULL || t->thread < 0)
		return 0;
	p->sources[source].seen += n;
	if (object < 0)
		return 0;
	p->sources[source].matched += n;
	if (p->objects[object].kind == NPG_OBJECT_CODE ||
	    p->objects[object].kind == NPG_OBJECT_KERNEL) {
		p->nr_text_samples += n;
		return 0;
	}
	p->sources[source].used += n;
	p->sources[source].weight += weight;
	a.object = (uint32_t)object;
	a.page = page_of(p, object, stmt);
	a.thread = (uint32_t)t->thread;
	a.source = (uint8_t)source;
	a.is_start = p->objects[object].initialiser == t->thread &&
		     npg_stmt_column_i64(stmt, 4) <= p->objects[object].first_use_ns;
	a.half = random_half((uint64_t)p->sources[source].seen * 31 + (uint64_t)source);
	observe(l, &a, stmt, n);
	rest = floor(n / 2.0);
	ret = add_access(l, a, n - rest, weight * (n - rest) / n);
	a.half ^= 1;
	return ret < 0 ? ret : add_access(l, a, rest, weight * rest / n);
}

/* Hardware samples are used alone if there are enough; walks of their own count too. */
static void choose_sources(struct npg_profile *p)
{
	double hardware = 0.0;

	for (size_t i = 0; i < p->nr_sources; i++) {
		hardware += p->sources[i].role == NPG_ROLE_HARDWARE ? p->sources[i].used : 0.0;
	}
	for (size_t i = 0; i < p->nr_sources; i++) {
		struct npg_profile_source *s = &p->sources[i];

		if (s->role == NPG_ROLE_SOFTWARE)
			s->is_used = s->used > 0.0 && hardware < HARDWARE_LEAST;
		else if (s->role != NPG_ROLE_TOUCH)
			s->is_used = s->used > 0.0;
		if (s->is_used && (s->role == NPG_ROLE_HARDWARE || s->is_clock ||
				   (hardware <= 0.0 && p->access_scale <= 0.0))) {
			p->access_scale = s->weight / s->used;
			p->access_is_time = strcmp(s->period_unit, "ns") == 0;
		}
	}
}

/* Drops unused sources, makes the mean weight 1 per source, and counts. */
static void scale_accesses(struct npg_profile *p)
{
	size_t nr = 0;

	for (size_t i = 0; i < p->nr_accesses; i++) {
		struct npg_access *a = &p->accesses[i];
		const struct npg_profile_source *s = &p->sources[a->source];

		if (!s->is_used)
			continue;
		a->weight *= s->weight > 0.0 ? (float)(s->used / s->weight) : 0.0F;
		if (a->weight <= 0.0F)
			a->weight = (float)a->nr_samples;
		p->accesses[nr++] = *a;
	}
	p->nr_accesses = nr;
}

/*
 * Hint faults tell who uses a page, not how often. Where there are enough clock samples, an
 * object's weight as a whole is that of its clock samples (half a sample if it has none).
 */
static int weigh_by_clock(struct npg_profile *p)
{
	double *clock = calloc(2 * p->nr_objects + 1, sizeof(*clock));
	double *hint = clock + p->nr_objects, all = 0.0;

	if (clock == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_accesses; i++) {
		const struct npg_access *a = &p->accesses[i];
		const struct npg_profile_source *s = &p->sources[a->source];

		if (s->role == NPG_ROLE_SOFTWARE) {
			(s->is_clock ? clock : hint)[a->object] += (double)a->weight;
			all += s->is_clock ? (double)a->weight : 0.0;
		}
	}
	for (size_t i = 0; all >= CLOCK_LEAST && i < p->nr_accesses; i++) {
		struct npg_access *a = &p->accesses[i];
		double c = clock[a->object], h = hint[a->object];

		if (p->sources[a->source].role == NPG_ROLE_SOFTWARE && h > 0.0)
			a->weight *= (float)((c > 0.0 ? c : 0.5) / (c + h));
	}
	free(clock);
	return 0;
}

/* An object that only its initialiser uses has no start-up: the work is all of that kind. */
static int settle_starts(struct npg_profile *p)
{
	bool *is_shared = calloc(p->nr_objects + 1, sizeof(*is_shared));

	if (is_shared == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_accesses; i++)
		if ((int)p->accesses[i].thread != p->objects[p->accesses[i].object].initialiser)
			is_shared[p->accesses[i].object] = true;
	for (size_t i = 0; i < p->nr_accesses; i++) {
		struct npg_access *a = &p->accesses[i];

		a->is_start &= is_shared[a->object];
		if (p->sources[a->source].role == NPG_ROLE_WALK)
			continue;
		p->nr_samples += a->nr_samples;
		p->nr_start_samples += a->is_start ? a->nr_samples : 0.0;
		p->threads[a->thread].samples += a->nr_samples;
	}
	free(is_shared);
	return 0;
}

static int finish_accesses(struct npg_profile *p)
{
	choose_sources(p);
	scale_accesses(p);
	if (weigh_by_clock(p) < 0)
		return -ENOMEM;
	merge_accesses(p);
	return settle_starts(p);
}

/*
 * CPUs that each thread wants: its CPU time, or its samples, against the busiest thread's. Not
 * against the time that passed: on a loaded machine a busy thread gets little of that, and threads
 * that wait for each other at barriers still want to run at once.
 */
static void set_busy(struct npg_profile *p)
{
	double most_samples = 0.0, most_cpu = 0.0;

	for (size_t t = 0; t < p->nr_threads; t++) {
		most_samples = fmax(most_samples, p->threads[t].samples);
		most_cpu = fmax(most_cpu, p->threads[t].cpu_ns);
	}
	for (size_t t = 0; t < p->nr_threads; t++) {
		struct npg_profile_thread *thread = &p->threads[t];

		if (most_cpu > 0.0)
			thread->busy = thread->cpu_ns / most_cpu;
		else if (most_samples > 0.0)
			thread->busy = thread->samples / most_samples;
	}
}

int npg_profile_load_samples(struct npg_loader *loader, struct npg_error *err)
{
	struct npg_profile *p = loader->profile;
	int ret = npg_for_each_row(loader, all_rows_sql, touch_row, err);

	if (ret == 0)
		ret = npg_for_each_row(loader, all_counts_sql, touch_row, err);
	if (ret == 0 && finish_touches(p) < 0)
		ret = npg_error_set(err, -ENOMEM, "out of memory");
	loader->merge_at = MERGE_AT;
	if (ret == 0)
		ret = npg_for_each_row(loader, all_rows_sql, access_row, err);
	if (ret == 0)
		ret = npg_for_each_row(loader, all_counts_sql, access_row, err);
	if (ret == 0) {
		merge_accesses(p);
		if (finish_accesses(p) < 0)
			ret = npg_error_set(err, -ENOMEM, "out of memory");
		set_busy(p);
	}
	return ret;
}
