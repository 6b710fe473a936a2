#include "profiler/import_match.h"

#include <errno.h>
#include <stdlib.h>

#define CLOCK_SLACK_NS 5000000 /* between the trace's clock and the recording's */

struct object {
	int64_t id, process_id;
	uint64_t start, end;
	uint64_t reach; /* largest end of this and all objects before it in the process */
	int64_t start_ns, end_ns;
};

struct seen { /* a thread on a CPU */
	int cpu;
	int64_t time_ns, thread_id, process_id;
};

struct npg_import_match {
	size_t nr_objects, nr_seen, nr_usual;
	struct object *objects; /* by process and start */
	struct seen *seen;      /* by CPU and time */
	struct seen *usual;     /* per CPU the thread with most samples */
};

typedef void (*row_function)(struct npg_stmt *stmt, void *row);

static void object_row(struct npg_stmt *stmt, void *row)
{
	struct object *o = row;

	o->id = npg_stmt_column_i64(stmt, 0);
	o->process_id = npg_stmt_column_i64(stmt, 1);
	o->start = (uint64_t)npg_stmt_column_i64(stmt, 2);
	o->end = o->start + (uint64_t)npg_stmt_column_i64(stmt, 3);
	o->start_ns = npg_stmt_column_i64(stmt, 4);
	o->end_ns = npg_stmt_column_i64(stmt, 5);
}

static void seen_row(struct npg_stmt *stmt, void *row)
{
	struct seen *s = row;

	s->cpu = (int)npg_stmt_column_i64(stmt, 0);
	s->time_ns = npg_stmt_column_i64(stmt, 1);
	s->thread_id = npg_stmt_column_i64(stmt, 2);
	s->process_id = npg_stmt_column_i64(stmt, 3);
}

/* All rows of a query into a new array. */
static int read_rows(struct npg_db *db, const char *sql, size_t row_size, row_function function,
		     void **rows, size_t *nr, struct npg_error *err)
{
	struct npg_stmt *stmt = NULL;
	size_t room = 0;
	int ret = npg_db_prepare(db, sql, &stmt, err);

	while (ret == 0 && (ret = npg_stmt_step(stmt, err)) == 1) {
		ret = 0;
		if (*nr == room) {
			void *more = reallocarray(*rows, 2 * room + 64, row_size);

			if (more == NULL) {
				ret = npg_error_set(err, -ENOMEM, "import: out of memory");
				break;
			}
			*rows = more;
			room = 2 * room + 64;
		}
		function(stmt, (char *)*rows + *nr * row_size);
		++*nr;
		continue;
	}
	npg_stmt_finalize(stmt);
	return ret;
}

static void set_reach(struct npg_import_match *m)
{
	for (size_t i = 0; i < m->nr_objects; i++) {
		struct object *o = &m->objects[i];

		o->reach = o->end;
		if (i > 0 && o[-1].process_id == o->process_id && o[-1].reach > o->reach)
			o->reach = o[-1].reach;
	}
}

static int read_all(struct npg_db *db, struct npg_import_match *m, struct npg_error *err)
{
	int ret =
	    read_rows(db,
		      "SELECT id, process_id, start_address, size_bytes, "
		      "coalesce(start_ns, 0), coalesce(end_ns, 0x7fffffffffffffff) "
		      "FROM object WHERE start_address >= 0 "
		      "ORDER BY process_id, start_address",
		      sizeof(*m->objects), object_row, (void **)&m->objects, &m->nr_objects, err);

	if (ret == 0)
		ret = read_rows(db,
				"SELECT s.cpu, s.time_ns, s.thread_id, t.process_id FROM sample s "
				"JOIN thread t ON t.id = s.thread_id WHERE s.cpu IS NOT NULL "
				"ORDER BY s.cpu, s.time_ns",
				sizeof(*m->seen), seen_row, (void **)&m->seen, &m->nr_seen, err);
	if (ret == 0)
		ret = read_rows(db,
				"SELECT cpu, max(n), thread_id, process_id FROM "
				"(SELECT s.cpu, count(*) AS n, s.thread_id, t.process_id "
				"FROM sample s JOIN thread t ON t.id = s.thread_id "
				"WHERE s.cpu IS NOT NULL GROUP BY s.cpu, s.thread_id) "
				"GROUP BY cpu ORDER BY cpu",
				sizeof(*m->usual), seen_row, (void **)&m->usual, &m->nr_usual, err);
	return ret;
}

int npg_import_match_new(struct npg_db *recording, struct npg_import_match **match,
			 struct npg_error *err)
{
	struct npg_import_match *m = calloc(1, sizeof(*m));
	int ret;

	if (m == NULL)
		return npg_error_set(err, -ENOMEM, "import: out of memory");
	ret = read_all(recording, m, err);
	if (ret < 0) {
		npg_import_match_free(m);
		return ret;
	}
	set_reach(m);
	*match = m;
	return 0;
}

void npg_import_match_free(struct npg_import_match *match)
{
	if (match == NULL)
		return;
	free(match->objects);
	free(match->seen);
	free(match->usual);
	free(match);
}

/* First of the rows, sorted by (cpu, time), that is not before (@cpu, @time_ns). */
static size_t lower_bound(const struct seen *rows, size_t nr, int cpu, int64_t time_ns)
{
	size_t first = 0;

	while (nr > 0) {
		const struct seen *middle = &rows[first + nr / 2];

		if (middle->cpu < cpu || (middle->cpu == cpu && middle->time_ns < time_ns)) {
			first += nr / 2 + 1;
			nr -= nr / 2 + 1;
		} else {
			nr /= 2;
		}
	}
	return first;
}

int64_t npg_import_thread(const struct npg_import_match *match, int cpu, int64_t time_ns,
			  int64_t *process_id)
{
	const struct seen *rows = time_ns != 0 ? match->seen : match->usual, *best = NULL;
	size_t nr = time_ns != 0 ? match->nr_seen : match->nr_usual;
	size_t i = lower_bound(rows, nr, cpu, time_ns);

	if (i < nr && rows[i].cpu == cpu)
		best = &rows[i];
	if (i > 0 && rows[i - 1].cpu == cpu &&
	    (best == NULL || time_ns - rows[i - 1].time_ns < best->time_ns - time_ns))
		best = &rows[i - 1];
	if (best == NULL)
		return 0;
	*process_id = best->process_id;
	return best->thread_id;
}

/* Number of objects that start at or before @address in processes up to @process_id. */
static size_t upper_bound(const struct npg_import_match *m, int64_t process_id, uint64_t address)
{
	size_t first = 0, nr = m->nr_objects;

	while (nr > 0) {
		const struct object *o = &m->objects[first + nr / 2];

		if (o->process_id < process_id ||
		    (o->process_id == process_id && o->start <= address)) {
			first += nr / 2 + 1;
			nr -= nr / 2 + 1;
		} else {
			nr /= 2;
		}
	}
	return first;
}

int64_t npg_import_object(const struct npg_import_match *match, int64_t process_id, int64_t address,
			  int64_t time_ns)
{
	uint64_t a = (uint64_t)address;

	for (size_t i = upper_bound(match, process_id, a); i > 0; i--) {
		const struct object *o = &match->objects[i - 1];

		if (o->process_id != process_id || o->reach <= a)
			break;
		if (a < o->end && (time_ns == 0 || (o->start_ns - CLOCK_SLACK_NS <= time_ns &&
						    time_ns <= o->end_ns + CLOCK_SLACK_NS)))
			return o->id;
	}
	return 0;
}
