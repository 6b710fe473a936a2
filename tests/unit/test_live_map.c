/* Attribution: records in, rows out. No process of these exists; nothing is read from /proc. */
#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/schemas.h"
#include "profiler/live_map.h"

#define PID 4190001 /* close to the largest pid that there can be */

static struct npg_db *db;
static struct npg_writer *writer;
static struct npg_live_map *live;
static char path[64];
static uint64_t now_ns;

static struct npg_live_options options = { .epoch_ns = 1000, .page_bytes = 4096, .has_perf = true };

static int begin(void **state)
{
	int fd;

	(void)state;
	now_ns = 1000;
	snprintf(path, sizeof(path), "/tmp/numapgo-test.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || unlink(path) < 0 || close(fd) < 0)
		return -1;
	if (npg_db_open(path, NPG_DB_CREATE, &db, NULL) < 0 ||
	    npg_db_exec(db, npg_recording_sql, NULL) < 0 ||
	    npg_writer_open(db, &writer, NULL) < 0 ||
	    npg_live_map_open(&options, writer, &live) < 0)
		return -1;
	return 0;
}

static int begin_with_hints(void **state)
{
	int ret;

	options.has_hints = true;
	ret = begin(state);
	options.has_hints = false;
	return ret;
}

static int begin_with_counts(void **state)
{
	int ret;

	options.keeps_counts = true;
	ret = begin(state);
	options.keeps_counts = false;
	return ret;
}

static int end(void **state)
{
	(void)state;
	npg_live_map_close(live);
	npg_writer_close(writer);
	npg_db_close(db);
	return unlink(path);
}

static void finish(void)
{
	const struct npg_source_row fault_row = { .id = NPG_SOURCE_FAULT + 1,
						  .name = "fault",
						  .state = "used" };
	struct npg_error err = { "" };

	npg_writer_source(writer, &fault_row);
	npg_live_map_finish(live, (int64_t)now_ns, "none seen");
	if (npg_writer_commit(writer, &err) < 0)
		fail_msg("%s", err.text);
}

static int64_t number(const char *sql)
{
	int64_t value = -1;

	assert_int_equal(npg_db_query_i64(db, sql, -2, &value, NULL), 0);
	return value;
}

static void perf(enum npg_perf_kind kind, struct npg_perf_record record)
{
	record.kind = kind;
	record.time_ns = ++now_ns;
	npg_live_map_perf(live, &record);
}

static void exec_program(uint32_t pid)
{
	perf(NPG_PERF_COMM,
	     (struct npg_perf_record){ .pid = pid, .tid = pid, .is_exec = true, .name = "prog" });
}

static void fork_task(uint32_t parent, uint32_t parent_tid, uint32_t pid, uint32_t tid)
{
	perf(NPG_PERF_FORK,
	     (struct npg_perf_record){
		 .pid = pid, .tid = tid, .parent_pid = parent, .parent_tid = parent_tid });
}

static void map(uint32_t pid, uint64_t start, uint64_t size, const char *name)
{
	perf(NPG_PERF_MMAP, (struct npg_perf_record){ .pid = pid,
						      .tid = pid,
						      .address = start,
						      .size_bytes = size,
						      .protection = PROT_READ | PROT_WRITE,
						      .flags = MAP_PRIVATE,
						      .name = name });
}

static void fault(uint32_t pid, uint32_t tid, uint64_t address, uint64_t stack_pointer)
{
	struct npg_perf_record record = { .kind = NPG_PERF_SAMPLE,
					  .time_ns = ++now_ns,
					  .pid = pid,
					  .tid = tid,
					  .address = address,
					  .period = 3,
					  .regs_abi = PERF_SAMPLE_REGS_ABI_64 };

	record.regs[PERF_REG_X86_SP] = stack_pointer;
	npg_live_map_sample(live, &record, NPG_SOURCE_FAULT);
}

static void agent(enum npg_wire_type type, uint32_t tid, struct npg_wire_record record)
{
	record.type = (uint16_t)type;
	record.pid = PID;
	record.tid = tid;
	record.time_ns = ++now_ns;
	npg_live_map_wire(live, &record);
}

static void alloc(uint32_t tid, uint64_t address, uint64_t size, uint64_t caller)
{
	agent(NPG_WIRE_ALLOC, tid,
	      (struct npg_wire_record){
		  .address = address, .size_bytes = size, .nr_frames = 1, .frames = { caller } });
}

static void test_thread_paths(void **state)
{
	(void)state;
	exec_program(PID);
	fork_task(PID, PID, PID, PID + 1);
	fork_task(PID, PID, PID, PID + 2);
	fork_task(PID, PID + 1, PID, PID + 3);
	fork_task(PID, PID, PID + 4, PID + 4);
	fork_task(PID, PID, PID, PID + 5);
	finish();
	assert_int_equal(number("SELECT count(*) FROM v_thread WHERE (tid, path) IN (VALUES "
				"(4190001, '0'), (4190002, '0.0'), (4190003, '0.1'), "
				"(4190004, '0.0.0'), (4190005, '0'), (4190006, '0.2'))"),
			 6);
	assert_int_equal(number("SELECT count(*) FROM process c JOIN process p "
				"ON p.id = c.parent_id WHERE c.pid = 4190005 AND p.pid = 4190001"),
			 1);
}

/* A thread that the kernel saw start second may be the first that the program created. */
static void test_agents_ordinal_wins(void **state)
{
	(void)state;
	exec_program(PID);
	fork_task(PID, PID, PID, PID + 1);
	agent(NPG_WIRE_THREAD_START, PID + 1,
	      (struct npg_wire_record){ .address = PID, .value = 0x1000, .value2 = 7 });
	fork_task(PID, PID, PID, PID + 2);
	finish();
	assert_int_equal(number("SELECT count(*) FROM thread WHERE (tid, path) IN "
				"(VALUES (4190002, '0.7'), (4190003, '0.8'))"),
			 2);
}

static void test_heap_blocks(void **state)
{
	(void)state;
	exec_program(PID);
	fork_task(PID, PID, PID, PID + 1);
	map(PID, 0x100000, 0x100000, "//anon");
	alloc(PID, 0x110010, 0x8000, 0x5000);
	alloc(PID + 1, 0x120010, 0x8000, 0x5000);
	alloc(PID + 1, 0x130010, 0x8000, 0x5000);
	fault(PID, PID, 0x130010, 0);
	fault(PID, PID, 0x118000, 0);
	agent(NPG_WIRE_FREE, PID, (struct npg_wire_record){ .address = 0x110010 });
	fault(PID, PID, 0x110010, 0); /* now the allocator's own again */
	fault(PID, PID, 0x900000, 0); /* nobody's */
	finish();
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE kind = 'heap'"), 2);
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE kind = 'heap' AND "
				"start_address = 0x130010 AND site_ordinal = 2 AND "
				"thread_ordinal = 1 AND creator = '0.0'"),
			 1);
	assert_int_equal(number("SELECT count(*) FROM v_sample WHERE object_kind = 'heap'"), 2);
	assert_int_equal(number("SELECT count(*) FROM v_sample WHERE object_kind = 'small-heap'"),
			 1);
	assert_int_equal(number("SELECT count(*) FROM sample WHERE object_id IS NULL"), 1);
	assert_int_equal(npg_live_map_counts(live, NPG_SOURCE_FAULT)->nr_unmatched, 1);
	assert_int_equal(npg_live_map_counts(live, NPG_SOURCE_FAULT)->nr_events, 12);
}

static void test_mappings_by_the_agent(void **state)
{
	struct npg_wire_record record = { .address = 0x200000,
					  .size_bytes = 0x10000,
					  .value = PROT_READ |
						   (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS) << 32,
					  .nr_frames = 1,
					  .frames = { 0x6000 } };

	(void)state;
	exec_program(PID);
	map(PID, 0x200000, 0x10000, "//anon");
	agent(NPG_WIRE_MMAP, PID, record);
	fault(PID, PID, 0x208000, 0);
	agent(NPG_WIRE_MUNMAP, PID,
	      (struct npg_wire_record){ .address = 0x204000, .size_bytes = 0x4000 });
	fault(PID, PID, 0x200000, 0);
	fault(PID, PID, 0x205000, 0); /* in the hole */
	agent(
	    NPG_WIRE_MREMAP, PID,
	    (struct npg_wire_record){
		.address = 0x208000, .size_bytes = 0x8000, .value = 0x500000, .value2 = 0x20000 });
	fault(PID, PID, 0x510000, 0);
	finish();
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE kind = 'mmap'"), 2);
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE kind = 'mmap' AND "
				"start_address = 0x500000 AND size_bytes = 0x20000 AND "
				"site_ordinal = 0"),
			 1);
	assert_int_equal(number("SELECT count(*) FROM sample WHERE object_id IS NULL"), 1);
}

static void test_stacks(void **state)
{
	(void)state;
	exec_program(PID);
	fork_task(PID, PID, PID, PID + 1);
	map(PID, 0x7ff000000000, 0x21000, "[stack]");
	map(PID, 0x300000, 0x800000, "//anon");
	fault(PID, PID, 0x7ff000000010, 0x7ff000000100);
	fault(PID, PID + 1, 0x310000, 0x310080);
	fault(PID, PID, 0x320000, 0x7ff000000100); /* another thread's stack is still that */
	finish();
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE kind = 'stack' AND "
				"(creator, start_address) IN "
				"(VALUES ('0', 0x7ff000000000), ('0.0', 0x300000))"),
			 2);
	assert_int_equal(number("SELECT count(*) FROM v_sample WHERE object_kind = 'stack'"), 3);
}

static void test_many_stacks_in_one_mapping(void **state)
{
	(void)state;
	exec_program(PID);
	fork_task(PID, PID, PID, PID + 1);
	fork_task(PID, PID, PID, PID + 2);
	map(PID, 0x300000, 0x800000, "//anon");
	fault(PID, PID + 1, 0x900000, 0x310080);
	fault(PID, PID + 2, 0x910000, 0x320080);
	finish();
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE kind = 'anonymous'"), 0);
	assert_int_equal(number("SELECT count(DISTINCT object_id) FROM sample"), 1);
}

static void test_names_of_the_kernel(void **state)
{
	(void)state;
	exec_program(PID);
	map(PID, 0x10000, 0x1000, "[heap]");
	map(PID, 0x10000, 0x5000, "[heap]"); /* has grown */
	map(PID, 0x20000, 0x1000, "[vdso]");
	map(PID, 0x30000, 0x1000, "/memfd:x (deleted)");
	map(PID, 0x40000, 0x1000, "/nonexistent/data");
	map(PID, UINT64_C(64) << 20, 0x21000, "//anon"); /* an arena, by its alignment */
	fault(PID, PID, 0x10010, 0);
	fault(PID, PID, 0x14010, 0);
	fault(PID, PID, 0x20010, 0);
	fault(PID, PID, 0x30010, 0);
	fault(PID, PID, 0x40010, 0);
	fault(PID, PID, (UINT64_C(64) << 20) + 16, 0);
	finish();
	assert_int_equal(
	    number("SELECT count(*) FROM v_object WHERE (kind, start_address, name) IN "
		   "(VALUES ('shared', 0x30000, '/memfd:x'), "
		   "('file', 0x40000, '/nonexistent/data'))"),
	    2);
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE (kind, start_address, "
				"size_bytes) IN (VALUES ('small-heap', 0x10000, 0x5000), "
				"('small-heap', 0x4000000, 0x21000), ('kernel', 0x20000, 0x1000))"),
			 3);
	assert_int_equal(number("SELECT count(*) FROM object"), 5);
}

static void test_fork_and_exec(void **state)
{
	(void)state;
	exec_program(PID);
	map(PID, 0x100000, 0x100000, "//anon");
	alloc(PID, 0x110010, 0x8000, 0x5000);
	fork_task(PID, PID, PID + 1, PID + 1);
	fault(PID + 1, PID + 1, 0x110020, 0); /* the child has the parent's objects */
	exec_program(PID + 1);
	fault(PID + 1, PID + 1, 0x110020, 0); /* and loses them by exec */
	perf(NPG_PERF_EXIT, (struct npg_perf_record){ .pid = PID + 1, .tid = PID + 1 });
	fault(PID, PID, 0x110020, 0);
	finish();
	assert_int_equal(number("SELECT count(*) FROM process WHERE pid = 4190002"), 2);
	assert_int_equal(number("SELECT count(*) FROM v_object WHERE kind = 'heap'"), 2);
	assert_int_equal(number("SELECT count(*) FROM v_sample WHERE object_kind = 'heap'"), 2);
	assert_int_equal(number("SELECT count(*) FROM sample WHERE object_id IS NULL"), 1);
	assert_int_equal(number("SELECT count(*) FROM sample s JOIN object o ON o.id = s.object_id "
				"JOIN thread t ON t.id = s.thread_id "
				"WHERE t.process_id <> o.process_id"),
			 0);
}

static void test_hint_faults(void **state)
{
	(void)state;
	exec_program(PID);
	map(PID, 0x100000, 0x100000, "//anon");
	fault(PID, PID, 0x110010, 0);
	fault(PID, PID, 0x110020, 0); /* the same page again */
	fault(PID, PID, 0x111000, 0);
	finish();
	assert_int_equal(npg_live_map_counts(live, NPG_SOURCE_FAULT)->nr_samples, 2);
	assert_int_equal(npg_live_map_counts(live, NPG_SOURCE_HINT)->nr_samples, 1);
}

static void test_counts(void **state)
{
	(void)state;
	exec_program(PID);
	map(PID, 0x100000, 0x100000, "//anon");
	fault(PID, PID, 0x110010, 0);
	fault(PID, PID, 0x110020, 0);
	now_ns += 1000; /* the next epoch */
	fault(PID, PID, 0x110020, 0);
	finish();
	assert_int_equal(number("SELECT count(*) FROM sample"), 0);
	assert_int_equal(number("SELECT count(*) FROM page_count"), 2);
	assert_int_equal(number("SELECT sum(weight) FROM page_count WHERE page = 0x110"), 9);
	assert_int_equal(number("SELECT count(*) FROM page_count WHERE nr_unknown = 2"), 1);
}

static void test_hostile_records(void **state)
{
	(void)state;
	exec_program(PID);
	for (uint32_t type = 0; type < NPG_WIRE_NR_TYPES + 2; type++) {
		agent((enum npg_wire_type)type, PID,
		      (struct npg_wire_record){ .address = UINT64_MAX, .size_bytes = 5 });
		agent((enum npg_wire_type)type, PID,
		      (struct npg_wire_record){ .nr_frames = UINT16_MAX });
		agent((enum npg_wire_type)type, PID,
		      (struct npg_wire_record){ .value = UINT64_MAX, .value2 = 1 });
		agent((enum npg_wire_type)type, PID, (struct npg_wire_record){ .value2 = 99 });
	}
	fault(PID, PID, UINT64_MAX, UINT64_MAX);
	perf(NPG_PERF_EXIT, (struct npg_perf_record){ .pid = 7, .tid = PID });
	perf(NPG_PERF_FORK, (struct npg_perf_record){ 0 });
	finish();
	assert_int_equal(number("SELECT count(*) FROM sample"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_thread_paths),
		TEST(test_agents_ordinal_wins),
		TEST(test_heap_blocks),
		TEST(test_mappings_by_the_agent),
		TEST(test_stacks),
		TEST(test_many_stacks_in_one_mapping),
		TEST(test_names_of_the_kernel),
		TEST(test_fork_and_exec),
		cmocka_unit_test_setup_teardown(test_hint_faults, begin_with_hints, end),
		cmocka_unit_test_setup_teardown(test_counts, begin_with_counts, end),
		TEST(test_hostile_records),
	};

	return cmocka_run_group_tests_name("live_map", tests, NULL, NULL);
}
