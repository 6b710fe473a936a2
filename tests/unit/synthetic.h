/*
 * Recordings with known truth, for the tests of the analyzer: a program of some threads, objects
 * and samples, written through the recording's own tables.
 */
#ifndef NPG_TESTS_SYNTHETIC_H
#define NPG_TESTS_SYNTHETIC_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/profile.h"
#include "lib/recording.h"
#include "lib/topology.h"

/* not inlined: each call has an error text, and frames are to stay small */
#define SYNTHETIC static __attribute__((noinline, unused))

enum { CLOCK = 1, FAULT = 2, HINT = 3, LOADS = 4, TLB = 5 }; /* ids of sources */

struct synthetic {
	char directory[64];
	char path[128];
	struct npg_recording recording;
	struct npg_stmt *object, *sample;
	uint64_t random;
	int nr_objects;
	int64_t next_address;
};

SYNTHETIC void must(bool is_true, const char *what)
{
	if (!is_true) {
		fprintf(stderr, "synthetic recording: %s\n", what);
		abort();
	}
}

SYNTHETIC void sql(struct synthetic *s, const char *text)
{
	struct npg_error err;

	if (npg_db_exec(s->recording.db, text, &err) < 0)
		must(false, err.text);
}

SYNTHETIC uint64_t below(struct synthetic *s, uint64_t limit)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (s->random >> 11) % limit;
}

/* A main thread '0', id 1, and @nr_workers threads '0.0', ..., ids 2, ..., each busy. */
SYNTHETIC void synthetic_begin(struct synthetic *s, int nr_workers)
{
	struct npg_error err;
	char text[256];

	memset(s, 0, sizeof(*s));
	s->random = UINT64_C(88172645463325252);
	s->next_address = INT64_C(0x100000000);
	snprintf(s->directory, sizeof(s->directory), "/tmp/npg-synthetic.XXXXXX");
	must(mkdtemp(s->directory) != NULL, "mkdtemp");
	snprintf(s->path, sizeof(s->path), "%s/test.db", s->directory);
	if (npg_recording_create(s->path, &s->recording, &err) < 0)
		must(false, err.text);
	sql(s, "BEGIN;"
	       "INSERT INTO string VALUES (1, './prog 1'), (2, '/bin/prog'), (3, 'main'),"
	       " (4, 'worker'), (5, 'xmalloc'), (6, '/lib/libc.so.6'), (7, 'build');"
	       "INSERT INTO run (id, command_id, start_ns, end_ns, program_cpu_ns,"
	       " recorder_cpu_ns, interrupt_ns) VALUES (1, 1, 0, 10000000000, 40000000000,"
	       " 100000000, 100000000);"
	       "INSERT INTO machine (run_id, fingerprint, page_size_bytes) VALUES (1, 'f', 4096);"
	       "INSERT INTO module VALUES (1, 2, 'aabb'), (2, 6, 'ccdd');"
	       "INSERT INTO process (id, run_id, pid, exe_id, agent)"
	       " VALUES (1, 1, 100, 2, 'active');"
	       "INSERT INTO thread (id, process_id, tid, path, cpu_ns)"
	       " VALUES (1, 1, 100, '0', 50000000);"
	       "INSERT INTO source (id, run_id, name, state, period, period_unit) VALUES"
	       " (1, 1, 'clock', 'used', 1000000, 'ns'), (2, 1, 'fault', 'used', 1, 'events'),"
	       " (3, 1, 'hint', 'used', 1, 'events'), (4, 1, 'loads', 'used', 5000, 'events'),"
	       " (5, 1, 'tlb', 'used', 5000, 'events');");
	for (int i = 0; i < nr_workers; i++) {
		snprintf(text, sizeof(text),
			 "INSERT INTO thread (id, process_id, tid, path, name_id, cpu_ns)"
			 " VALUES (%d, 1, %d, '0.%d', 4, 9500000000)",
			 i + 2, i + 101, i);
		sql(s, text);
	}
	must(npg_db_prepare(s->recording.db,
			    "INSERT INTO object (id, process_id, kind, name_id, module_id,"
			    " offset_bytes, callsite_id, thread_id, site_ordinal, thread_ordinal,"
			    " start_address, size_bytes, start_ns, end_ns)"
			    " VALUES (?, 1, ?, 3, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			    &s->object, &err) == 0,
	     err.text);
	must(npg_db_prepare(s->recording.db,
			    "INSERT INTO sample (time_ns, thread_id, source_id, access, address,"
			    " object_id, weight, resolved) VALUES (?, ?, ?, 1, ?, ?, ?, 1)",
			    &s->sample, &err) == 0,
	     err.text);
}

/* Call site @id: main calls xmalloc calls malloc. */
SYNTHETIC void synthetic_site(struct synthetic *s, int id)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "INSERT INTO frame VALUES (%d, 1, %d, 5), (%d, 1, %d, 3);"
		 "INSERT INTO callsite VALUES (%d, %d);"
		 "INSERT INTO callsite_frame VALUES (%d, 0, %d), (%d, 1, %d);",
		 2 * id, 4096 * id, 2 * id + 1, 4096 * id + 64, id, 1000 + id, id, 2 * id, id,
		 2 * id + 1);
	sql(s, text);
}

struct synthetic_object {
	const char *kind;
	int site;   /* 0: a static object at .offset */
	int thread; /* id of the creator */
	int64_t site_ordinal, thread_ordinal, offset, size, start_ns, end_ns;
};

/* Returns its id; objects lie 16 bytes behind a page border, as malloc's do. */
SYNTHETIC int synthetic_object(struct synthetic *s, struct synthetic_object o)
{
	struct npg_error err;
	int id = ++s->nr_objects;

	npg_stmt_bind_i64(s->object, 1, id);
	npg_stmt_bind_text(s->object, 2, o.kind);
	npg_stmt_bind_null(s->object, 3);
	npg_stmt_bind_null(s->object, 4);
	npg_stmt_bind_null(s->object, 5);
	if (o.site > 0) {
		npg_stmt_bind_i64(s->object, 5, o.site);
	} else {
		npg_stmt_bind_i64(s->object, 3, 1);
		npg_stmt_bind_i64(s->object, 4, o.offset);
	}
	npg_stmt_bind_i64(s->object, 6, o.thread);
	npg_stmt_bind_i64(s->object, 7, o.site_ordinal);
	npg_stmt_bind_i64(s->object, 8, o.thread_ordinal);
	npg_stmt_bind_i64(s->object, 9, s->next_address + (o.site > 0 ? 16 : 0));
	npg_stmt_bind_i64(s->object, 10, o.size);
	npg_stmt_bind_i64(s->object, 11, o.start_ns);
	npg_stmt_bind_null(s->object, 12);
	if (o.end_ns > 0)
		npg_stmt_bind_i64(s->object, 12, o.end_ns);
	must(npg_stmt_run(s->object, &err) == 0, err.text);
	s->next_address += (o.size + 4096 + 2097151) / 2097152 * 2097152 + 2097152;
	return id;
}

/* Address of an object's first byte. */
SYNTHETIC int64_t address_of(struct synthetic *s, int object)
{
	struct npg_error err;
	char text[96];
	int64_t address;

	snprintf(text, sizeof(text), "SELECT start_address FROM object WHERE id = %d", object);
	must(npg_db_query_i64(s->recording.db, text, 0, &address, &err) == 0, err.text);
	return address;
}

/* A sample at an address; object 0: none matches. */
SYNTHETIC void synthetic_sample(struct synthetic *s, int source, int thread, int object,
				int64_t address, int64_t time_ns)
{
	static const int64_t weights[] = { 0, 1000000, 1, 1, 5000, 5000 };
	struct npg_error err;

	npg_stmt_bind_i64(s->sample, 1, time_ns);
	npg_stmt_bind_i64(s->sample, 2, thread);
	npg_stmt_bind_i64(s->sample, 3, source);
	npg_stmt_bind_i64(s->sample, 4, address);
	npg_stmt_bind_null(s->sample, 5);
	if (object > 0)
		npg_stmt_bind_i64(s->sample, 5, object);
	npg_stmt_bind_i64(s->sample, 6, weights[source]);
	must(npg_stmt_run(s->sample, &err) == 0, err.text);
}

/* Thread 1 touches every @step-th page of an object first, in the first second. */
SYNTHETIC void synthetic_touch(struct synthetic *s, int object, int thread, int64_t size,
			       int64_t step)
{
	int64_t start = address_of(s, object);

	for (int64_t page = 0; page * 4096 < size; page += step)
		synthetic_sample(s, FAULT, thread, object, start + page * 4096, 1000 * page);
}

SYNTHETIC void synthetic_end(struct synthetic *s)
{
	struct npg_error err;

	npg_stmt_finalize(s->object);
	npg_stmt_finalize(s->sample);
	sql(s, "COMMIT");
	if (npg_recording_finish(&s->recording, &err) < 0)
		must(false, err.text);
	npg_recording_close(&s->recording);
}

SYNTHETIC struct npg_profile *synthetic_load(struct synthetic *s, const char *process)
{
	struct npg_profile_options options = { process };
	struct npg_profile *profile = NULL;
	struct npg_recording recording;
	struct npg_error err;

	if (npg_recording_open(s->path, false, &recording, &err) < 0)
		must(false, err.text);
	if (npg_profile_load(recording.db, &options, &profile, &err) < 0)
		must(false, err.text);
	npg_recording_close(&recording);
	return profile;
}

SYNTHETIC void synthetic_remove(struct synthetic *s)
{
	unlink(s->path);
	rmdir(s->directory);
}

/* @nr_nodes nodes of @cpus CPUs and @memory_mib MiB, remote latency twice the local one. */
SYNTHETIC struct npg_topology *synthetic_machine(int nr_nodes, int cpus, int memory_mib)
{
	struct npg_topology *topology = NULL;
	struct npg_error err;
	char text[8192];
	size_t used;

	used = (size_t)snprintf(text, sizeof(text),
				"{\"format\": \"numapgo-machine\", \"version\": 1, \"name\": "
				"\"synthetic\", \"description\": \"\", \"source\": \"test\", "
				"\"nodes\": [");
	for (int n = 0; n < nr_nodes; n++)
		used +=
		    (size_t)snprintf(text + used, sizeof(text) - used,
				     "%s{\"node\": %d, \"cpus\": \"%d-%d\", \"memory_mib\": %d}",
				     n > 0 ? "," : "", n, n * cpus, (n + 1) * cpus - 1, memory_mib);
	for (int m = 0; m < 3; m++) {
		static const char *const names[] = { "slit", "latency_ns", "bandwidth_mib_per_s" };
		static const int values[][2] = { { 10, 21 }, { 80, 160 }, { 60000, 30000 } };

		used +=
		    (size_t)snprintf(text + used, sizeof(text) - used, "], \"%s\": [", names[m]);
		for (int i = 0; i < nr_nodes * nr_nodes; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d%s",
						 i % nr_nodes == 0 ? (i > 0 ? ",[" : "[") : ",",
						 values[m][i / nr_nodes == i % nr_nodes ? 0 : 1],
						 i % nr_nodes == nr_nodes - 1 ? "]" : "");
	}
	used += (size_t)snprintf(text + used, sizeof(text) - used, "]}");
	if (npg_topology_from_json(text, used, &topology, &err) < 0)
		must(false, err.text);
	return topology;
}

#endif
