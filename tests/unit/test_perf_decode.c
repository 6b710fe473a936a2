/* Records of the perf ring, made byte by byte as perf_event_open(2) describes them. */
#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "profiler/perf_decode.h"

static const struct npg_perf_layout layout = {
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
		       PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
		       PERF_SAMPLE_REGS_USER,
	.regs_mask = 1U << PERF_REG_X86_AX | 1U << PERF_REG_X86_SP | 1U << PERF_REG_X86_R15,
};

struct bytes {
	unsigned char data[512];
	size_t size;
};

static void add(struct bytes *b, const void *data, size_t size)
{
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void add64(struct bytes *b, uint64_t value)
{
	add(b, &value, sizeof(value));
}

static void add_pair(struct bytes *b, uint32_t first, uint32_t second)
{
	add(b, &first, sizeof(first));
	add(b, &second, sizeof(second));
}

static void begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };

	b->size = 0;
	add(b, &header, sizeof(header));
}

static void end(struct bytes *b)
{
	uint16_t size = (uint16_t)b->size;

	memcpy(b->data + offsetof(struct perf_event_header, size), &size, sizeof(size));
}

static void end_with_trailer(struct bytes *b, uint32_t pid, uint32_t tid)
{
	add_pair(b, pid, tid);
	add64(b, 777); /* time */
	add_pair(b, 3, 0);
	add64(b, 42); /* identifier */
	end(b);
}

static void make_sample(struct bytes *b)
{
	begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	add64(b, 42);
	add64(b, 0x401000);
	add_pair(b, 10, 11);
	add64(b, 777);
	add64(b, 0x7f0000001000);
	add_pair(b, 3, 0);
	add64(b, 5);
	add64(b, PERF_SAMPLE_REGS_ABI_64);
	add64(b, 1);
	add64(b, 2);
	add64(b, 3);
	end(b);
}

static void test_sample(void **state)
{
	struct npg_perf_record r;
	struct bytes b;

	(void)state;
	make_sample(&b);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), b.size);
	assert_int_equal(r.kind, NPG_PERF_SAMPLE);
	assert_int_equal(r.id, 42);
	assert_int_equal(r.ip, 0x401000);
	assert_int_equal(r.pid, 10);
	assert_int_equal(r.tid, 11);
	assert_int_equal(r.time_ns, 777);
	assert_int_equal(r.address, 0x7f0000001000);
	assert_int_equal(r.cpu, 3);
	assert_int_equal(r.period, 5);
	assert_true(r.is_user);
	assert_int_equal(r.regs[PERF_REG_X86_AX], 1);
	assert_int_equal(r.regs[PERF_REG_X86_SP], 2);
	assert_int_equal(r.regs[PERF_REG_X86_R15], 3);
}

static void test_sample_cut_short(void **state)
{
	struct npg_perf_record r;
	struct bytes b;

	(void)state;
	make_sample(&b);
	for (uint16_t size = 0; size < b.size; size = (uint16_t)(size + 8)) {
		memcpy(b.data + offsetof(struct perf_event_header, size), &size, sizeof(size));
		assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), -EBADMSG);
	}
	make_sample(&b);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size - 8, &r), -EBADMSG);
}

static void test_mapping_with_build_id(void **state)
{
	static const uint8_t build_id[24] = { 20, 0, 0, 0, 0xab, 0xcd };
	struct npg_perf_record r;
	struct bytes b;

	(void)state;
	begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	add_pair(&b, 10, 11);
	add64(&b, 0x400000);
	add64(&b, 0x2000);
	add64(&b, 0x1000);
	add(&b, build_id, sizeof(build_id));
	add_pair(&b, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	add(&b, "/bin/x\0", 8);
	end_with_trailer(&b, 10, 11);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), b.size);
	assert_int_equal(r.kind, NPG_PERF_MMAP);
	assert_int_equal(r.address, 0x400000);
	assert_int_equal(r.size_bytes, 0x2000);
	assert_int_equal(r.file_offset, 0x1000);
	assert_int_equal(r.build_id_size, 20);
	assert_int_equal(r.build_id[1], 0xcd);
	assert_int_equal(r.protection, PROT_READ | PROT_EXEC);
	assert_string_equal(r.name, "/bin/x");
	assert_int_equal(r.time_ns, 777);
}

static void test_mapping_without_end(void **state)
{
	struct npg_perf_record r;
	struct bytes b;

	(void)state;
	begin(&b, PERF_RECORD_MMAP2, 0);
	add_pair(&b, 10, 11);
	add64(&b, UINT64_MAX - 10); /* wraps around */
	add64(&b, 0x2000);
	for (int i = 0; i < 5; i++)
		add64(&b, 0);
	add(&b, "/bin/x\0", 8);
	end_with_trailer(&b, 10, 11);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), -EBADMSG);
	begin(&b, PERF_RECORD_COMM, 0);
	add_pair(&b, 10, 11);
	add(&b, "abcdefgh", 8); /* no NUL before the trailer */
	end_with_trailer(&b, 10, 11);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), -EBADMSG);
}

static void test_tasks(void **state)
{
	struct npg_perf_record r;
	struct bytes b;

	(void)state;
	begin(&b, PERF_RECORD_FORK, 0);
	add_pair(&b, 20, 10);
	add_pair(&b, 21, 11);
	add64(&b, 776);
	end_with_trailer(&b, 10, 11);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), b.size);
	assert_int_equal(r.kind, NPG_PERF_FORK);
	assert_int_equal(r.pid, 20);
	assert_int_equal(r.parent_pid, 10);
	assert_int_equal(r.tid, 21);
	assert_int_equal(r.parent_tid, 11);
	begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	add_pair(&b, 20, 21);
	add(&b, "name\0\0\0", 8);
	end_with_trailer(&b, 1, 2);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), b.size);
	assert_true(r.is_exec);
	assert_int_equal(r.pid, 20);
	assert_string_equal(r.name, "name");
}

static void test_lost(void **state)
{
	struct npg_perf_record r;
	struct bytes b;

	(void)state;
	begin(&b, PERF_RECORD_LOST, 0);
	add64(&b, 43);
	add64(&b, 1000);
	end_with_trailer(&b, 10, 11);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), b.size);
	assert_int_equal(r.kind, NPG_PERF_LOST);
	assert_int_equal(r.id, 43);
	assert_int_equal(r.nr_lost, 1000);
	begin(&b, PERF_RECORD_THROTTLE, 0);
	add64(&b, 776);
	add64(&b, 44);
	add64(&b, 45);
	end_with_trailer(&b, 10, 11);
	assert_int_equal(npg_perf_decode(&layout, b.data, b.size, &r), b.size);
	assert_int_equal(r.kind, NPG_PERF_THROTTLE);
	assert_int_equal(r.id, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_sample_cut_short),
		cmocka_unit_test(test_mapping_with_build_id),
		cmocka_unit_test(test_mapping_without_end),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests_name("perf_decode", tests, NULL, NULL);
}
