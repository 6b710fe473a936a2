/*
 * What both preload objects stand on, as ordinary code: attaching, threads and their paths, call
 * site hashes, the table of reported blocks. (With the hooks in place: tests/cli/t0290-hooks.sh.)
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NPG_RULES_INTERPOSER
#include "lib/preload/attach.c"
#include "lib/preload/callsite.c"
#include "lib/preload/reals.c"
#include "lib/preload/threads.c"
#include "profiler/preload/blocks.c"

static int nr_created, nr_started, nr_exited, nr_forks;
static char started_path[NPG_THREAD_PATH_SIZE];

void npg_on_thread_create(const struct npg_thread_birth *birth)
{
	(void)birth;
	__atomic_fetch_add(&nr_created, 1, __ATOMIC_RELAXED);
}

void npg_on_thread_start(const struct npg_thread_birth *birth)
{
	memcpy(started_path, birth->path, sizeof(started_path));
	__atomic_fetch_add(&nr_started, 1, __ATOMIC_RELAXED);
}

void npg_on_thread_exit(void)
{
	__atomic_fetch_add(&nr_exited, 1, __ATOMIC_RELAXED);
}

void npg_on_fork(void)
{
	nr_forks++;
}

static void test_place_is_parsed(void **state)
{
	static const char *const bad[] = { "",
					   "1",
					   ":",
					   "1:",
					   ":1",
					   "0:3",
					   "12:3x",
					   "12:3:4",
					   " 1:2",
					   "-1:2",
					   "99999999999:1",
					   "1:-2" };
	struct npg_attach_place place = { 0, 0 };

	(void)state;
	assert_true(npg_attach_parse("1234:5", &place));
	assert_int_equal(place.pid, 1234);
	assert_int_equal(place.fd, 5);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(bad); i++)
		assert_false(npg_attach_parse(bad[i], &place));
	assert_int_equal(place.fd, 5);
}

static void check_removal(const char *list, const char *left)
{
	char text[64] = "";

	memcpy(text, list, strlen(list));
	assert_int_equal(npg_attach_remove_entry(text, "/a.so"), left[0] != '\0');
	assert_string_equal(text, left);
}

static void test_entry_is_removed_from_a_list(void **state)
{
	(void)state;
	check_removal("/a.so", "");
	check_removal("/a.so:/b.so", "/b.so");
	check_removal("/b.so /a.so", "/b.so");
	check_removal("/b.so:/a.so:/c.so", "/b.so:/c.so");
	check_removal("/a.so:/a.so", "");
	check_removal("/a.sox:/x/a.so", "/a.sox:/x/a.so");
	check_removal("", "");
}

static void test_environment_is_edited_in_place(void **state)
{
	static char own[] = "NPG_X=1:2", other[] = "A=b", alike[] = "NPG_XY=1";
	char *list[] = { other, own, alike, NULL }, **before = environ;

	(void)state;
	environ = list;
	assert_string_equal(npg_attach_getenv("NPG_X"), "1:2");
	npg_attach_leave_environment("NPG_X");
	assert_null(npg_attach_getenv("NPG_X"));
	assert_ptr_equal(list[0], other);
	assert_ptr_equal(list[1], alike);
	assert_null(list[2]);
	environ = NULL; /* before the C library is set up */
	assert_false(npg_attach_has_environment());
	assert_null(npg_attach_getenv("A"));
	environ = before;
}

/* A file with the two words in front, named by NPG_X. Return: its descriptor. */
static int name_a_file(uint32_t magic, uint32_t version, off_t size)
{
	static char entry[64];
	static char *list[] = { entry, NULL };
	uint32_t head[2] = { magic, version };
	int fd = memfd_create("test", MFD_CLOEXEC);
	char *end;

	assert_int_equal(ftruncate(fd, size), 0);
	if (size >= (off_t)sizeof(head))
		assert_int_equal(pwrite(fd, head, sizeof(head), 0), (ssize_t)sizeof(head));
	memcpy(entry, "NPG_X=", 6);
	end = append_number(entry + 6, (unsigned long)getpid());
	*end = ':';
	end = append_number(end + 1, (unsigned long)fd);
	*end = '\0';
	environ = list;
	return fd;
}

static void *map_named(uint32_t magic, uint32_t version, off_t size, size_t *size_bytes)
{
	char **before = environ;
	int fd = name_a_file(magic, version, size), next = dup(fd), after;
	void *memory;

	close(next);
	memory = npg_attach_map("NPG_X", true, 64, size_bytes);
	after = dup(fd);
	assert_int_equal(after, next); /* no descriptor is left open */
	close(after);
	close(fd);
	environ = before;
	return memory;
}

static void test_memory_is_mapped_or_not(void **state)
{
	size_t size_bytes = 0;
	void *memory = map_named(NPG_WIRE_MAGIC, NPG_WIRE_VERSION, 8192, &size_bytes);

	(void)state;
	assert_non_null(memory);
	assert_int_equal(size_bytes, 8192);
	munmap(memory, size_bytes);
	assert_null(map_named(NPG_WIRE_MAGIC + 1, NPG_WIRE_VERSION, 8192, &size_bytes));
	assert_null(map_named(NPG_WIRE_MAGIC, NPG_WIRE_VERSION + 1, 8192, &size_bytes));
	assert_null(map_named(NPG_WIRE_MAGIC, NPG_WIRE_VERSION, 63, &size_bytes));
	assert_null(map_named(NPG_WIRE_MAGIC, NPG_WIRE_VERSION, 4, &size_bytes));
	errno = 77;
	assert_null(npg_attach_map("NPG_NOT_SET", true, 64, &size_bytes));
	assert_int_equal(errno, 77);
}

static void test_blocks(void **state)
{
	char *page = (char *)0x7f0000001000;

	(void)state;
	assert_false(npg_blocks_has(page));
	assert_false(npg_blocks_has(NULL));
	for (int i = 0; i < NPG_BLOCKS_PER_LINE; i++)
		assert_int_equal(npg_blocks_add(page + 16 * i), NPG_BLOCKS_ADDED);
	assert_int_equal(npg_blocks_add(page), NPG_BLOCKS_PRESENT);
	assert_int_equal(npg_blocks_add(page + 16 * NPG_BLOCKS_PER_LINE), NPG_BLOCKS_FULL);
	assert_true(npg_blocks_has(page + 16));
	assert_false(npg_blocks_has(NULL));
	assert_true(npg_blocks_remove(page + 16));
	assert_false(npg_blocks_remove(page + 16));
	assert_false(npg_blocks_has(page + 16));
	assert_int_equal(npg_blocks_add(page + 16 * NPG_BLOCKS_PER_LINE), NPG_BLOCKS_ADDED);
}

static void test_pool(void **state)
{
	char *block, *aligned;

	(void)state;
	block = pool_take(16, 5);
	assert_true(npg_pool_owns(block));
	assert_int_equal(npg_pool_usable_size(block), 5);
	memcpy(block, "four", 5);
	aligned = pool_take(256, 100);
	assert_int_equal((uintptr_t)aligned % 256, 0);
	assert_int_equal(npg_pool_usable_size(aligned), 100);
	assert_null(pool_take(16, NPG_POOL_BYTES + 1));
	assert_null(pool_take(16, SIZE_MAX));
	block = npg_pool_realloc(block, 1000);
	assert_false(npg_pool_owns(block));
	assert_string_equal(block, "four");
	npg_reals.fn_free(block);
	for (int i = 0; i < NPG_POOL_BYTES; i++) /* used up: no memory, no overrun */
		if ((block = pool_take(16, 64)) == NULL)
			break;
	assert_null(block);
	assert_false(npg_pool_owns(npg_pool - 1));
	assert_false(npg_pool_owns(npg_pool + NPG_POOL_BYTES));
}

static void test_early_calls_resolve(void **state)
{
	void *block;

	(void)state;
	npg_thread.is_resolving = 1; /* as if called by dlsym */
	block = early_calloc(3, 7);
	assert_true(npg_pool_owns(block));
	assert_true(npg_pool_owns(npg_pool_realloc(block, 100)));
	assert_null(early_calloc(SIZE_MAX / 2, 3));
	npg_thread.is_resolving = 0;
	errno = 77;
	assert_true(npg_reals_resolve());
	assert_int_equal(errno, 77);
	block = npg_reals.fn_calloc(3, 7);
	assert_non_null(block);
	assert_false(npg_pool_owns(block));
	npg_reals.fn_free(block);
}

/* Threads. */
static void *return_value(void *arg)
{
	return arg;
}

static void *exit_value(void *arg)
{
	pthread_exit(arg);
}

static void *wait_for_cancel(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *create_grandchild(void *arg)
{
	pthread_t thread;

	npg_threads_create(&thread, NULL, return_value, NULL);
	pthread_join(thread, NULL);
	return arg;
}

static void *run_thread(void *(*start)(void *), bool is_cancelled)
{
	pthread_t thread;
	void *value = NULL;

	assert_int_equal(npg_threads_create(&thread, NULL, start, &thread), 0);
	if (is_cancelled)
		pthread_cancel(thread);
	assert_int_equal(pthread_join(thread, &value), 0);
	return is_cancelled || value != &thread ? value : NULL; /* NULL: as it should be */
}

static void test_thread_paths_and_values(void **state)
{
	(void)state;
	npg_threads_init();
	assert_string_equal(npg_thread_self()->path, "0");
	assert_null(run_thread(return_value, false));
	assert_string_equal(started_path, "0.0");
	assert_null(run_thread(exit_value, false));
	assert_string_equal(started_path, "0.1");
	assert_null(run_thread(create_grandchild, false));
	assert_string_equal(started_path, "0.2.0");
	assert_ptr_equal(run_thread(wait_for_cancel, true), PTHREAD_CANCELED);
	assert_string_equal(started_path, "0.3");
	assert_int_equal(nr_created, 5);
	assert_int_equal(nr_started, 5);
	assert_int_equal(nr_exited, 5);
}

static void test_path_text_and_hash_agree(void **state)
{
	struct npg_thread thread = { .nr_children = 120, .path = "0.7" };
	struct npg_thread_birth birth;

	(void)state;
	thread.path_hash = npg_hash_bytes(NPG_HASH_SEED, "0.7", 3);
	set_child_path(&birth, &thread);
	assert_string_equal(birth.path, "0.7.120");
	assert_true(birth.path_hash == npg_hash_bytes(NPG_HASH_SEED, "0.7.120", 7));
	memcpy(thread.path, "0.11111111.22222222", 20);
	set_child_path(&birth, &thread); /* just fits */
	assert_string_equal(birth.path, "0.11111111.22222222.120");
	thread.nr_children = 1200;
	set_child_path(&birth, &thread);
	assert_string_equal(birth.path, "");
	assert_true(birth.path_hash == npg_hash_bytes(thread.path_hash, ".1200", 5));
	thread.path_hash = 0; /* unknown parent, unknown child */
	set_child_path(&birth, &thread);
	assert_true(birth.path_hash == 0);
}

static void test_failed_creation_leaves_nothing(void **state)
{
	uint32_t before = npg_thread_self()->nr_children;
	pthread_attr_t attr;
	cpu_set_t none;
	pthread_t thread;

	(void)state;
	CPU_ZERO(&none);
	CPU_SET(CPU_SETSIZE - 1, &none); /* a processor that is not there */
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(none), &none);
	assert_int_equal(npg_threads_create(&thread, &attr, return_value, NULL), EINVAL);
	pthread_attr_destroy(&attr);
	assert_int_equal(npg_thread_self()->nr_children, before);
	for (int i = 0; i < NR_BIRTHS; i++)
		assert_int_equal(births[i].is_taken, 0);
}

static void test_forked_child_is_noticed(void **state)
{
	int status, before = nr_forks;
	pid_t child;

	(void)state;
	npg_thread.nr_children = 9;
	child = fork();
	if (child == 0)
		_Exit(nr_forks == before + 1 && npg_thread_self()->pid == (uint32_t)getpid() &&
			      nr_forks == before + 1 && npg_thread.nr_children == 0
			  ? 0
			  : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L); /* no handlers run */
	if (child == 0)
		_Exit(npg_thread_self()->pid == (uint32_t)syscall(SYS_getpid) &&
			      nr_forks == before + 1
			  ? 0
			  : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(nr_forks, before);
}

/* Call sites. */
struct image { /* a module in memory, as the loader would have it */
	ElfW(Ehdr) ehdr;
	ElfW(Phdr) headers[2];
	ElfW(Nhdr) note;
	char name[4];
	unsigned char id[20];
	char rest[4096];
};

static struct image image;
static struct link_map image_map;

static struct dl_find_object make_image(void)
{
	static char name[] = "/opt/lib/libx.so.3";

	image = (struct image){
		.ehdr = { .e_phoff = offsetof(struct image, headers),
			  .e_phentsize = sizeof(ElfW(Phdr)),
			  .e_phnum = 2 },
		.headers = { { .p_type = PT_LOAD, .p_filesz = sizeof(image) },
			     { .p_type = PT_NOTE,
			       .p_vaddr = offsetof(struct image, note),
			       .p_filesz = sizeof(ElfW(Nhdr)) + 24,
			       .p_align = 4 } },
		.note = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	memcpy(image.ehdr.e_ident, ELFMAG, SELFMAG);
	memset(image.id, 0xab, sizeof(image.id));
	image_map.l_addr = (uintptr_t)&image;
	image_map.l_name = name;
	return (struct dl_find_object){
		.dlfo_map_start = &image,
		.dlfo_map_end = &image + 1,
		.dlfo_link_map = &image_map,
	};
}

static void test_module_key_follows_the_build_id(void **state)
{
	struct dl_find_object object = make_image();
	struct module module = { 0, 0, true };

	(void)state;
	for (int i = 0; i < 3; i++) { /* found, then from the cache */
		find_module(&object, &module);
		assert_true(module.key == npg_hash_build_id(image.id, 20));
		assert_false(module.is_by_name);
		assert_true(module.bias == (uintptr_t)&image);
	}
	image.id[0] = 0xcd; /* another module loaded at the same place */
	find_module(&object, &module);
	assert_true(module.key == npg_hash_build_id(image.id, 20));
	image.note.n_type = NT_GNU_ABI_TAG;
	image.id[0] = 0xef;
	find_module(&object, &module);
	assert_true(module.key == npg_hash_module_name("libx.so"));
}

static void test_module_headers_are_checked(void **state)
{
	struct dl_find_object object = make_image();
	struct build_id id;

	(void)state;
	assert_true(find_build_id(&object, &id));
	image.note.n_descsz = 21; /* beyond the segment */
	assert_false(find_build_id(&object, &id));
	image.note.n_descsz = UINT32_MAX;
	assert_false(find_build_id(&object, &id));
	object = make_image();
	image.headers[1].p_vaddr = sizeof(image); /* not in a load segment */
	assert_false(find_build_id(&object, &id));
	object = make_image();
	image.ehdr.e_phnum = UINT16_MAX;
	assert_false(find_build_id(&object, &id));
	object = make_image();
	image.ehdr.e_ident[0] = 0;
	assert_false(find_build_id(&object, &id));
}

static void test_hash_of_frames(void **state)
{
	uint64_t frames[2], want = NPG_HASH_SEED;
	struct dl_find_object own;
	struct build_id id;

	(void)state;
	frames[0] = (uintptr_t)test_hash_of_frames + 1;
	frames[1] = (uintptr_t)npg_reals.fn_free + 1; /* the C library's: counts by name */
	assert_int_equal(_dl_find_object((void *)(uintptr_t)frames[0], &own), 0);
	assert_true(find_build_id(&own, &id));
	want = npg_hash_frame(want, npg_hash_build_id(id.bytes, id.size),
			      frames[0] - own.dlfo_link_map->l_addr);
	assert_true(npg_callsite_hash(frames, 1) == want);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	want = npg_hash_frame(want, npg_hash_module_name("/lib/libc.so.6"), 0);
	assert_true(npg_callsite_hash(frames, 2) == want);
#endif
	frames[0] = (uintptr_t)frames; /* generated code: the stack is in no module */
	assert_true(npg_callsite_hash(frames, 1) == npg_hash_frame(NPG_HASH_SEED, 0, 0));
	assert_true(npg_callsite_hash(frames, 0) == NPG_HASH_SEED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_place_is_parsed),
		cmocka_unit_test(test_entry_is_removed_from_a_list),
		cmocka_unit_test(test_environment_is_edited_in_place),
		cmocka_unit_test(test_memory_is_mapped_or_not),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_early_calls_resolve),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_thread_paths_and_values),
		cmocka_unit_test(test_path_text_and_hash_agree),
		cmocka_unit_test(test_failed_creation_leaves_nothing),
		cmocka_unit_test(test_forked_child_is_noticed),
		cmocka_unit_test(test_module_key_follows_the_build_id),
		cmocka_unit_test(test_module_headers_are_checked),
		cmocka_unit_test(test_hash_of_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
