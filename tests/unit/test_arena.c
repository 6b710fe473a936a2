/*
 * The placing object's memory as ordinary code: policies on blocks, recycling, resizing, threads,
 * broken tables. Both planned nodes are node 0, which every machine that runs this has.
 */
#include <linux/mempolicy.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NPG_RULES_INTERPOSER
#include "lib/preload/reals.c"
#include "lib/preload/threads.c"
#include "replayer/placing.h"
#include "replayer/preload/arena.c"
#include "replayer/preload/place.c"
#include "replayer/preload/state.c"
#include "replayer/verify.h"

#define MIB ((size_t)1 << 20)

static const char plan_text[] =
    "{\"format\":\"numapgo-plan\",\"version\":1,\"program\":{\"path\":\"/no/such/app\"},"
    "\"machine\":{\"page_size_bytes\":4096,\"nodes\":[{\"memory_bytes\":1,\"nr_cpus\":1},"
    "{\"memory_bytes\":1,\"nr_cpus\":1}],\"distance_ns\":[[80,140],[140,80]]},"
    "\"modules\":[{\"path\":\"/no/such/app\"}],\"objects\":["
    "{\"kind\":\"heap\",\"size_bytes\":4194304,"
    "\"frames\":[{\"module\":0,\"offset_bytes\":1}],"
    "\"ranges\":[{\"pages\":[0,1024],\"node\":1}],\"tables\":[{\"regions\":[0,2],\"node\":0}]},"
    "{\"kind\":\"heap\",\"size_bytes\":8388608,"
    "\"frames\":[{\"module\":0,\"offset_bytes\":2}],"
    "\"ranges\":[{\"pages\":[512,1536],\"node\":1}]}]}";

static struct npg_placing placing;
static struct npg_wire_status *shared; /* as the launcher sees it */
static const struct npg_wire_object *uniform, *partly;
static void *table_memory;
static int table_fd;

void npg_on_thread_create(const struct npg_thread_birth *birth)
{
	(void)birth;
}

void npg_on_thread_start(const struct npg_thread_birth *birth)
{
	(void)birth;
}

void npg_on_thread_exit(void)
{
}

void npg_on_fork(void)
{
}

static int set_up(void **state)
{
	static struct npg_resolution res;
	struct npg_placing_options options = { .page_size_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
					       .memory_bytes = UINT64_C(1) << 30,
					       .max_map_count = 65536 };
	struct npg_plan *plan = NULL;
	struct npg_fit fit;

	(void)state;
	assert_int_equal(npg_plan_from_text(plan_text, strlen(plan_text), "test", &plan, NULL), 0);
	res.nr_here = res.nr_planned = 2; /* both are node 0 */
	assert_int_equal(npg_fit_check(plan, NULL, &fit, NULL), 0);
	assert_int_equal(npg_placing_build(plan, &res, &fit, &options, &placing, NULL), 0);
	table_fd = npg_placing_share(&placing, &shared, NULL);
	table_memory =
	    mmap(NULL, placing.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
	assert_true(table_memory != MAP_FAILED);
	assert_true(npg_state_init(table_memory, placing.size_bytes));
	npg_arena_init();
	for (uint32_t i = 0; i < npg_state.table->objects.nr; i++)
		if (npg_state.objects[i].is_uniform)
			uniform = &npg_state.objects[i];
		else
			partly = &npg_state.objects[i];
	npg_fit_release(&fit);
	npg_plan_free(plan);
	return uniform == NULL || partly == NULL || npg_arena_bytes == 0;
}

static int mode_at(const void *address)
{
	int mode = -1;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, address, (unsigned long)MPOL_F_ADDR) != 0)
		return -errno;
	return mode;
}

static bool is_resident(const void *address)
{
	unsigned char byte = 0;

	assert_int_equal(mincore((void *)((uintptr_t)address & ~(uintptr_t)4095), 1, &byte), 0);
	return byte & 1;
}

static void test_block(void **state)
{
	char *block = npg_arena_alloc(uniform, 4 * MIB, 16, true);

	(void)state;
	assert_non_null(block);
	assert_true(npg_arena_owns(block));
	assert_int_equal((uintptr_t)block % NPG_REGION_BYTES, 16);
	assert_true(npg_arena_size(block) >= 4 * MIB);
	if (mode_at(block) == -ENOSYS || mode_at(block) == -EPERM)
		skip();
	assert_int_equal(mode_at(block), MPOL_PREFERRED);
	assert_int_equal(mode_at(block + (4 * MIB) - 1), MPOL_PREFERRED);
	assert_true(is_resident(block)); /* for the page-table page; one page of each region */
	assert_false(is_resident(block + 8192));
	assert_true(is_resident(block - 16 + NPG_REGION_BYTES));
	for (size_t i = 0; i < 4 * MIB; i++)
		if (block[i] != 0)
			fail();
	memset(block, 1, 4 * MIB);
	assert_true(npg_arena_free(block));
	assert_false(npg_arena_free(block)); /* twice */
	assert_false(npg_arena_free(block + 4096));
}

static void test_task_policy_is_restored(void **state)
{
	unsigned long nodes[16] = { 1 }, after[16] = { 0 };
	int mode = -1;
	void *block;

	(void)state;
	if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, nodes, 1025UL) != 0)
		skip();
	block = npg_arena_alloc(uniform, 16 * MIB, 16, false);
	assert_int_equal(syscall(SYS_get_mempolicy, &mode, after, 1024UL, NULL, 0UL), 0);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
	assert_int_equal(mode, MPOL_INTERLEAVE);
	assert_memory_equal(nodes, after, sizeof(nodes));
	assert_true(npg_arena_free(block));
}

static void test_partly_placed(void **state)
{
	char *block = npg_arena_alloc(partly, 16 * MIB, 16, false); /* twice the planned size */

	(void)state;
	assert_non_null(block);
	if (mode_at(block) < 0)
		skip();
	assert_int_equal(mode_at(block), MPOL_DEFAULT);
	assert_int_equal(mode_at(block + (4 * MIB) - 8192), MPOL_DEFAULT);
	assert_int_equal(mode_at(block + (4 * MIB)), MPOL_PREFERRED);
	assert_int_equal(mode_at(block + (16 * MIB) - 1), MPOL_PREFERRED);
	assert_false(is_resident(block + (8 * MIB)));
	assert_true(npg_arena_free(block));
	/* the same slot for another size: the policies move with it */
	block = npg_arena_alloc(partly, (14 * MIB) + 4096, 16, false);
	assert_int_equal(mode_at(block + (4 * MIB)), MPOL_PREFERRED);
	assert_int_equal(mode_at(block + (3 * MIB)), MPOL_DEFAULT);
	assert_true(npg_arena_free(block));
}

static void test_recycling(void **state)
{
	char *block = npg_arena_alloc(uniform, 3 * MIB, 16, false), *again;
	uint32_t before;

	(void)state;
	memset(block, 7, 3 * MIB);
	assert_true(npg_arena_free(block));
	before = next_region;
	for (int i = 0; i < 1000; i++) { /* no new address space, and zero where that is wanted */
		again = npg_arena_alloc(uniform, (3 * MIB) - (size_t)i, 16, i % 2 == 0);
		assert_ptr_equal(again, block);
		if (i % 2 == 0)
			assert_true(again[0] == 0 && again[(3 * MIB) - (size_t)i - 1] == 0);
		memset(again, 7, (3 * MIB) - (size_t)i);
		assert_true(npg_arena_free(again));
	}
	assert_int_equal(next_region, before);
	again = npg_arena_alloc(uniform, 40 * MIB, 16, false);
	memset(again, 7, 40 * MIB);
	assert_true(npg_arena_free(again)); /* too large to be kept: back to the kernel */
	assert_ptr_equal(npg_arena_alloc(uniform, 40 * MIB, 16, false), again);
	assert_false(is_resident(again + MIB));
	assert_true(npg_arena_free(again));
	assert_true(__atomic_load_n(&kept_bytes, __ATOMIC_RELAXED) <= KEEP_BYTES);
}

/* A block that is smaller than the one before it must not leave the rest of that one behind. */
static void test_no_old_content(void **state)
{
	char *block = npg_arena_alloc(uniform, 7 * MIB, 16, false), *again;
	uint64_t kept;

	(void)state;
	memset(block, 7, 7 * MIB);
	assert_true(npg_arena_free(block)); /* kept */
	again = npg_arena_alloc(uniform, (6 * MIB) + 4096, 16, false);
	assert_ptr_equal(again, block);
	kept = kept_bytes;
	kept_bytes = KEEP_BYTES; /* no more is kept */
	assert_true(npg_arena_free(again));
	kept_bytes = kept;
	again = npg_arena_alloc(uniform, 7 * MIB, 16, true);
	assert_ptr_equal(again, block);
	for (size_t i = 0; i < 7 * MIB; i++)
		if (again[i] != 0)
			fail_msg("old content at %zu", i);
	assert_true(npg_arena_free(again));
}

/* What the program did to the pages of a block ends with the block, as it does at munmap(). */
static void test_protected_pages(void **state)
{
	static const size_t sizes[] = { MIB, 20 * MIB };

	(void)state;
	for (int i = 0; i < 2; i++) {
		char *block = npg_arena_alloc(uniform, sizes[i], 4096, false);

		memset(block, 1, sizes[i]);
		assert_int_equal(mprotect(block + 8192, 4096, PROT_NONE), 0);
		assert_true(npg_arena_free(block));
		assert_ptr_equal(npg_arena_alloc(uniform, sizes[i], 4096, true), block);
		memset(block, 2, sizes[i]);
		assert_true(npg_arena_free(block));
	}
}

static void test_alignment(void **state)
{
	(void)state;
	for (size_t align = 16; align <= 2 * MIB; align *= 2) {
		char *block = npg_arena_alloc(uniform, 100000, align, true);

		assert_non_null(block);
		assert_int_equal((uintptr_t)block % align, 0);
		assert_true(npg_arena_size(block) >= 100000);
		memset(block, 1, npg_arena_size(block));
		assert_true(npg_arena_free(block));
	}
	assert_null(npg_arena_alloc(uniform, 100000, 4 * MIB, false));
	assert_int_equal(shared->refused[NPG_WIRE_ALIGNMENT], 1);
	assert_null(npg_arena_alloc(uniform, SIZE_MAX / 2, 16, false));
	assert_null(npg_arena_alloc(uniform, npg_arena_bytes - 1, 16, false));
}

static void fill(unsigned char *block, size_t size)
{
	for (size_t i = 0; i < size; i += 509)
		block[i] = (unsigned char)(i / 509);
}

static bool is_filled(const unsigned char *block, size_t size)
{
	for (size_t i = 0; i < size; i += 509)
		if (block[i] != (unsigned char)(i / 509))
			return false;
	return true;
}

static void test_resizing(void **state)
{
	const struct npg_wire_object *kinds[] = { uniform, partly };

	(void)state;
	for (int k = 0; k < 2; k++) {
		unsigned char *block = npg_arena_alloc(kinds[k], MIB, 16, false), *moved;
		size_t size = MIB;

		fill(block, size);
		for (int i = 0; i < 6; i++) { /* grow to 64 MiB */
			block = npg_arena_resize(block, size * 2, NULL);
			assert_non_null(block);
			assert_true(is_filled(block, size));
			size *= 2;
			fill(block, size);
		}
		moved = npg_arena_resize(block, 3 * MIB, NULL); /* shrinks where it is */
		assert_ptr_equal(moved, block);
		assert_true(is_filled(block, 3 * MIB));
		assert_false(is_resident(block + (4 * MIB)));
		moved = npg_arena_resize(block, 5 * MIB, kinds[1 - k]); /* becomes the other */
		assert_ptr_not_equal(moved, block);
		assert_true(is_filled(moved, 3 * MIB));
		assert_true(npg_arena_free(moved));
	}
}

/* What free() of the C library does with a block, when a library does not see ours. */
static void test_foreign_free(void **state)
{
	char *block = npg_arena_alloc(uniform, 5 * MIB, 64, false);
	volatile uintptr_t address;
	Dl_info library;

	(void)state;
	if (dladdr(dlsym(RTLD_DEFAULT, "free"), &library) == 0 ||
	    strstr(library.dli_fname, "libc.so") == NULL)
		skip(); /* a sanitizer's own allocator */
	memset(block, 1, 5 * MIB);
	assert_true(malloc_usable_size(block) == npg_arena_size(block));
	address = (uintptr_t)block;
	free(block);
	assert_int_equal(mode_at((void *)address), -EFAULT); /* not mapped any more */
	block = npg_arena_alloc(uniform, 5 * MIB, 64, false);
	assert_non_null(block);
	memset(block, 1, 5 * MIB);
	assert_true(npg_arena_free(block));
}

static void *churn(void *seed)
{
	unsigned int random = (unsigned int)(uintptr_t)seed;
	unsigned char *blocks[8] = { NULL };
	size_t sizes[8] = { 0 };

	for (int i = 0; i < 600; i++) {
		int at;

		random = (random * 1664525) + 1013904223;
		at = (int)(random >> 16) % 8;
		if (blocks[at] != NULL && !is_filled(blocks[at], sizes[at]))
			return NULL;
		if (blocks[at] != NULL && random % 3 != 0) {
			npg_arena_free(blocks[at]);
			blocks[at] = NULL;
			continue;
		}
		sizes[at] = 20000 + (random >> 12);
		blocks[at] = blocks[at] == NULL ? npg_arena_alloc(random & 4096 ? uniform : partly,
								  sizes[at], 16, false)
						: npg_arena_resize(blocks[at], sizes[at], NULL);
		if (blocks[at] == NULL)
			return NULL;
		fill(blocks[at], sizes[at]);
	}
	for (int i = 0; i < 8; i++)
		if (blocks[i] != NULL)
			npg_arena_free(blocks[i]);
	return seed;
}

static void test_threads_and_forks(void **state)
{
	pthread_t threads[3];
	void *result;
	int status;

	(void)state;
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		if (child == 0)
			syscall(SYS_exit_group, churn((void *)9) == NULL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &result);
		assert_non_null(result);
	}
}

static void test_verification(void **state)
{
	char *block = npg_arena_alloc(uniform, 9 * MIB, 16, false);
	struct npg_verify verify = { 0 };

	(void)state;
	memset(block, 1, 9 * MIB);
	npg_verify_look(&verify, getpid(), &placing, shared);
	if (verify.is_refused)
		skip();
	assert_true(verify.nr_sampled > 0);
	assert_int_equal(verify.nr_sampled, verify.nr_on_node);
	npg_place_look();
	assert_true(shared->nr_sampled_pages > 0);
	assert_int_equal(shared->nr_sampled_pages, shared->nr_sampled_on_node);
	/* nonsense from a broken program is survived */
	shared->nr_ranges = UINT64_MAX;
	for (int i = 0; i < NPG_WIRE_STATUS_RANGES; i++)
		shared->ranges[i] = (struct npg_wire_placed){ .start = UINT64_MAX - (uint64_t)i,
							      .size_bytes = UINT64_MAX >> (i % 64),
							      .policy = UINT32_MAX };
	for (int i = 0; i < 100; i++)
		npg_verify_look(&verify, getpid(), &placing, shared);
	assert_true(npg_arena_free(block));
}

static void test_broken_tables(void **state)
{
	size_t size = placing.size_bytes;
	char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct npg_state good = npg_state;
	size_t nr_refused = 0;

	(void)state;
	for (size_t at = 8; at + 4 <= placing.image->status_offset_bytes && at < 2048; at += 4) {
		uint32_t huge = 0xfffffff8;

		memcpy(copy, placing.image, placing.image->status_offset_bytes);
		memcpy(copy + at, &huge, sizeof(huge));
		nr_refused += !npg_state_init(copy, size);
		mprotect(copy, size, PROT_READ | PROT_WRITE);
	}
	assert_true(nr_refused > 20);
	memcpy(copy, placing.image, placing.image->status_offset_bytes);
	assert_false(npg_state_init(copy, size - 1));
	assert_false(npg_state_init(copy, sizeof(struct npg_wire_table) - 1));
	npg_state = good;
	munmap(copy, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_task_policy_is_restored),
		cmocka_unit_test(test_partly_placed),
		cmocka_unit_test(test_recycling),
		cmocka_unit_test(test_no_old_content),
		cmocka_unit_test(test_protected_pages),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_resizing),
		cmocka_unit_test(test_foreign_free),
		cmocka_unit_test(test_threads_and_forks),
		cmocka_unit_test(test_verification),
		cmocka_unit_test(test_broken_tables),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
