/* The recording channel: the recorder's side against the agent's side, and against vandals. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/channel.h"

#define NPG_RULES_INTERPOSER
#include "profiler/preload/ring.c"

struct fixture {
	struct npg_channel *channel;
	struct npg_ring ring;
	void *memory;
	size_t size_bytes;
};

static struct fixture open_channel(uint32_t nr_slots)
{
	const struct npg_channel_options options = {
		.nr_slots = nr_slots,
		.min_object_bytes = 4096,
		.max_frames = 8,
	};
	struct fixture f = { .size_bytes =
				 sizeof(struct npg_wire_channel) + nr_slots * NPG_WIRE_SLOT_BYTES };
	const char *fd;

	assert_int_equal(npg_channel_create(&f.channel, &options, NULL), 0);
	fd = strrchr(npg_channel_variable(f.channel), ':');
	f.memory = mmap(NULL, f.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			(int)strtol(fd + 1, NULL, 10), 0);
	assert_true(f.memory != MAP_FAILED);
	assert_true(npg_ring_init(&f.ring, f.memory, f.size_bytes));
	return f;
}

static void close_channel(struct fixture *f)
{
	munmap(f->memory, f->size_bytes);
	npg_channel_close(f->channel);
}

static struct npg_wire_record make_record(uint32_t tid, uint64_t value)
{
	return (
	    struct npg_wire_record){ .type = NPG_WIRE_FREE, .pid = 1, .tid = tid, .value = value };
}

static int put(const struct fixture *f, uint64_t value)
{
	struct npg_wire_record record = make_record(1, value);

	return npg_ring_put(&f->ring, &record);
}

struct seen {
	uint64_t nr;
	uint64_t last[8]; /* by tid */
	bool is_ordered;
};

static void take(const struct npg_wire_record *record, void *arg)
{
	struct seen *seen = arg;

	seen->nr++;
	if (record->tid < 8) {
		if (record->value <= seen->last[record->tid])
			seen->is_ordered = false;
		seen->last[record->tid] = record->value;
	}
}

static void test_options_are_checked(void **state)
{
	struct npg_channel_options options = { .nr_slots = 3 };
	struct npg_channel *channel = NULL;
	struct npg_error err = { "" };

	(void)state;
	assert_int_equal(npg_channel_create(&channel, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "power of two"));
	options = (struct npg_channel_options){ .nr_slots = 4, .max_frames = 23 };
	assert_int_equal(npg_channel_create(&channel, &options, &err), -EINVAL);
	assert_null(channel);
}

static void test_records_come_in_order(void **state)
{
	struct fixture f = open_channel(8);
	struct seen seen = { .is_ordered = true };
	struct npg_channel_stats stats;

	(void)state;
	for (uint64_t i = 1; i <= 100; i++) {
		assert_int_equal(put(&f, i), 0);
		if (i % 5 == 0)
			assert_int_equal(npg_channel_drain(f.channel, 1, false, take, &seen), 5);
	}
	assert_int_equal(seen.nr, 100);
	assert_true(seen.is_ordered);
	npg_channel_get_stats(f.channel, &stats);
	assert_int_equal(stats.nr_records, 100);
	assert_int_equal(stats.nr_lost + stats.nr_holes + stats.nr_malformed + stats.nr_faults, 0);
	close_channel(&f);
}

static void test_full_ring_counts_lost(void **state)
{
	struct fixture f = open_channel(4);
	struct seen seen = { .is_ordered = true };
	struct npg_channel_stats stats;

	(void)state;
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(put(&f, i), 0);
	assert_false(npg_ring_has_room(&f.ring));
	assert_int_equal(put(&f, 5), -ENOSPC);
	assert_int_equal(npg_channel_drain(f.channel, 1, false, take, &seen), 4);
	assert_int_equal(put(&f, 6), 0);
	npg_channel_get_stats(f.channel, &stats);
	assert_int_equal(stats.nr_lost, 2);
	close_channel(&f);
}

static void test_holes_are_stepped_over(void **state)
{
	struct fixture f = open_channel(8);
	struct seen seen = { .is_ordered = true };
	struct npg_channel_stats stats;
	uint64_t number;

	(void)state;
	assert_int_equal(reserve(&f.ring, &number), 0); /* a thread that died here */
	assert_int_equal(put(&f, 1), 0);
	assert_int_equal(npg_channel_drain(f.channel, 5, false, take, &seen), 0);
	assert_int_equal(npg_channel_drain(f.channel, 4 + NPG_CHANNEL_HOLE_NS, false, take, &seen),
			 0);
	assert_int_equal(npg_channel_drain(f.channel, 5 + NPG_CHANNEL_HOLE_NS, false, take, &seen),
			 1);
	assert_int_equal(reserve(&f.ring, &number), 0);
	assert_int_equal(put(&f, 2), 0);
	assert_int_equal(npg_channel_drain(f.channel, 9, true, take, &seen), 1);
	npg_channel_get_stats(f.channel, &stats);
	assert_int_equal(stats.nr_holes, 2);
	close_channel(&f);
}

#define NR_THREADS    4
#define NR_PER_THREAD 20000

struct producer {
	struct npg_ring *ring;
	uint32_t tid;
};

static void *produce(void *arg)
{
	const struct producer *producer = arg;

	for (uint64_t i = 1; i <= NR_PER_THREAD; i++) {
		struct npg_wire_record record = make_record(producer->tid, i);

		npg_ring_put(producer->ring, &record);
	}
	return NULL;
}

static void test_many_producers(void **state)
{
	struct fixture f = open_channel(256);
	struct seen seen = { .is_ordered = true };
	struct producer producers[NR_THREADS];
	struct npg_channel_stats stats;
	pthread_t threads[NR_THREADS];

	(void)state;
	for (uint32_t i = 0; i < NR_THREADS; i++) {
		producers[i] = (struct producer){ &f.ring, i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
	}
	do {
		npg_channel_drain(f.channel, 1, false, take, &seen);
		npg_channel_get_stats(f.channel, &stats);
	} while (seen.nr + stats.nr_lost < NR_THREADS * NR_PER_THREAD);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(seen.nr + stats.nr_lost, NR_THREADS * NR_PER_THREAD);
	assert_true(seen.is_ordered);
	assert_int_equal(stats.nr_holes + stats.nr_malformed, 0);
	close_channel(&f);
}

static void test_another_process_produces(void **state)
{
	struct fixture f = open_channel(8);
	struct seen seen = { .is_ordered = true };
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_Exit(put(&f, 7) == 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(npg_channel_drain(f.channel, 1, false, take, &seen), 1);
	assert_int_equal(seen.last[1], 7);
	close_channel(&f);
}

/* Whatever is written into the memory, a drain ends and hands out sound records only. */
static void test_vandalised_memory(void **state)
{
	struct fixture f = open_channel(16);
	struct seen seen = { .is_ordered = true };
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		unsigned char *bytes = f.memory;

		for (int i = 0; i < 64; i++) {
			random = random * 1664525 + 1013904223;
			bytes[(random >> 8) % f.size_bytes] = (unsigned char)(random >> 24);
		}
		if (round % 3 == 0)
			memset(bytes + offsetof(struct npg_wire_channel, head), round, 8);
		put(&f, 1);
		assert_true(npg_channel_drain(f.channel, 1, true, take, &seen) <= 16);
	}
	close_channel(&f);
}

static void test_impossible_positions_are_a_fault(void **state)
{
	struct fixture f = open_channel(4);

	(void)state;
	f.ring.channel->tail = 1; /* in front of head */
	assert_int_equal(put(&f, 1), -EIO);
	close_channel(&f);
}

static void test_ring_refuses_bad_headers(void **state)
{
	struct fixture f = open_channel(4);
	struct npg_ring ring;

	(void)state;
	assert_false(npg_ring_init(&ring, f.memory, sizeof(struct npg_wire_channel) - 1));
	assert_false(npg_ring_init(&ring, f.memory, f.size_bytes - 1));
	f.ring.channel->nr_slots = 3;
	assert_false(npg_ring_init(&ring, f.memory, f.size_bytes));
	f.ring.channel->nr_slots = 0;
	assert_false(npg_ring_init(&ring, f.memory, f.size_bytes));
	f.ring.channel->nr_slots = 4;
	f.ring.channel->max_frames = NPG_WIRE_MAX_FRAMES + 1;
	assert_false(npg_ring_init(&ring, f.memory, f.size_bytes));
	close_channel(&f);
}

static void test_memory_cannot_be_shrunk(void **state)
{
	struct fixture f = open_channel(4);
	const char *fd = strrchr(npg_channel_variable(f.channel), ':');

	(void)state;
	assert_int_equal(ftruncate((int)strtol(fd + 1, NULL, 10), 0), -1);
	npg_channel_stop(f.channel);
	assert_false(npg_ring_is_open(&f.ring));
	close_channel(&f);
}

static void test_decode(void **state)
{
	struct npg_wire_record record = make_record(5, 6), out;
	char unaligned[sizeof(record) + 1];

	(void)state;
	record.nr_frames = 2;
	record.frames[1] = 11;
	record.frames[2] = 12;
	memcpy(unaligned + 1, &record, sizeof(record));
	assert_int_equal(npg_channel_decode(unaligned + 1, sizeof(record), &out), 0);
	assert_int_equal(out.frames[1], 11);
	assert_int_equal(out.frames[2], 0);
	assert_int_equal(npg_channel_decode(&record, sizeof(record) - 1, &out), -EINVAL);
	record.nr_frames = NPG_WIRE_MAX_FRAMES + 1;
	assert_int_equal(npg_channel_decode(&record, sizeof(record), &out), -EINVAL);
	record = make_record(0, 1);
	assert_int_equal(npg_channel_decode(&record, sizeof(record), &out), -EINVAL);
	record = make_record(1, 1);
	record.type = NPG_WIRE_NR_TYPES;
	assert_int_equal(npg_channel_decode(&record, sizeof(record), &out), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_are_checked),
		cmocka_unit_test(test_records_come_in_order),
		cmocka_unit_test(test_full_ring_counts_lost),
		cmocka_unit_test(test_holes_are_stepped_over),
		cmocka_unit_test(test_many_producers),
		cmocka_unit_test(test_another_process_produces),
		cmocka_unit_test(test_vandalised_memory),
		cmocka_unit_test(test_impossible_positions_are_a_fault),
		cmocka_unit_test(test_ring_refuses_bad_headers),
		cmocka_unit_test(test_memory_cannot_be_shrunk),
		cmocka_unit_test(test_decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
