#!/bin/sh
# Planned blocks through the whole allocation family, in place of the C library's own.
. "$(dirname "$0")/lib.sh"

cat >"$tmp/heap.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define MIB ((size_t)1 << 20)
#define CHECK(c) do { if (!(c)) { printf("line %d: %s\n", __LINE__, #c); exit(1); } } while (0)

static int nr_own; /* blocks whose start tells that they are not the C library's */
static void *see(void *block, size_t align, size_t size)
{
	CHECK(block != NULL && (uintptr_t)block % align == 0);
	CHECK(malloc_usable_size(block) >= size);
	nr_own += (uintptr_t)block % (2 * MIB) == (align > 16 ? align % (2 * MIB) : 16);
	return block;
}
static int is_all(const unsigned char *block, size_t size, int value)
{
	for (size_t i = 0; i < size; i++)
		if (block[i] != value)
			return 0;
	return 1;
}
static void family(void)
{
	char *page_sized;
	void *block;

	free(memset(see(malloc(MIB), 16, MIB), 1, MIB));
	block = see(calloc(3, MIB), 16, 3 * MIB);
	CHECK(is_all(block, 3 * MIB, 0));
	block = see(realloc(memset(block, 2, 3 * MIB), 9 * MIB), 16, 9 * MIB);
	CHECK(is_all(block, 3 * MIB, 2));
	block = see(reallocarray(memset(block, 3, 9 * MIB), 31, MIB), 16, 31 * MIB);
	CHECK(is_all(block, 9 * MIB, 3));
	block = realloc(block, 100); /* small: back to the C library */
	CHECK(is_all(block, 100, 3));
	block = see(realloc(block, 2 * MIB), 16, 2 * MIB);
	CHECK(is_all(block, 100, 3));
	CHECK(realloc(block, 0) == NULL);
	free(memset(see(aligned_alloc(4096, MIB), 4096, MIB), 1, MIB));
	CHECK(posix_memalign(&block, 65536, MIB) == 0);
	free(memset(see(block, 65536, MIB), 1, MIB));
	errno = 77;
	CHECK(posix_memalign(&block, 24, MIB) == EINVAL && errno == 77);
	free(memset(see(memalign(2 * MIB, MIB), 2 * MIB, MIB), 1, MIB));
	free(memset(see(valloc(MIB), 4096, MIB), 1, MIB));
	page_sized = see(pvalloc(MIB + 1), 4096, MIB + 4096);
	free(memset(page_sized, 1, MIB + 4096));
	CHECK(errno == 77);
	errno = 0;
	CHECK(malloc(PTRDIFF_MAX) == NULL && errno == ENOMEM);
	CHECK(calloc(SIZE_MAX / nr_own, nr_own * 2) == NULL);
}
static void *in_thread(void *arg)
{
	free(arg);
	return memset(malloc(4 * MIB), 5, 4 * MIB);
}
static void elsewhere(void)
{
	void (*real_free)(void *);
	void *(*real_realloc)(void *, size_t), *result, *block, *libc = dlopen("libc.so.6", RTLD_NOW);
	pthread_t thread;
	int status;

	pthread_create(&thread, NULL, in_thread, memset(malloc(4 * MIB), 4, 4 * MIB));
	pthread_join(thread, &result);
	CHECK(is_all(result, 4 * MIB, 5));
	if (fork() == 0) {
		CHECK(is_all(result, 4 * MIB, 5));
		free(result);
		free(in_thread(NULL));
		family();
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0);
	free(result);
	/* a library that was loaded with RTLD_DEEPBIND calls the C library's directly */
	*(void **)&real_free = dlsym(libc, "free");
	*(void **)&real_realloc = dlsym(libc, "realloc");
	real_free(memset(malloc(4 * MIB), 6, 4 * MIB));
	block = real_realloc(memset(malloc(4 * MIB), 7, 4 * MIB), 40 * MIB);
	CHECK(is_all(block, 4 * MIB, 7));
	real_free(block);
}
int main(void)
{
	size_t kept[50];

	family();
	elsewhere();
	for (int i = 0; i < 2000; i++) { /* address space is used again */
		unsigned char *block = calloc(1, (i % 7 + 1) * MIB);

		CHECK(block[0] == 0 && block[(i % 7 + 1) * MIB - 1] == 0);
		block[0] = block[MIB - 1] = 1;
		free(block);
	}
	for (int i = 0; i < 50; i++)
		kept[i] = (size_t)memset(malloc(20 * MIB), 1, MIB); /* most of it is never touched */
	for (int i = 0; i < 50; i++)
		free((void *)kept[i]);
	puts("heap ok");
	if (getenv("COUNT") != NULL)
		printf("%d blocks of our own\n", nr_own);
	return 0;
}
END
cc -O0 -Wl,--build-id -o "$tmp/heap" "$tmp/heap.c" -pthread -ldl || exit 1
replay()
{
	"$NUMAPGO" replay "$@" --plan "$tmp/heap.plan" -- "$tmp/heap"
}
# the programs that CMD starts are placed, too: python's child
small_resident()
{
	"$NUMAPGO" replay -q --children follow --plan "$tmp/heap.plan" -- python3 - "$tmp/heap" <<-'END'
		import resource, subprocess, sys
		subprocess.run([sys.argv[1]], check=True)
		kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
		print(kib, 'KiB')
		sys.exit(kib > 300 << 10)
	END
}
all_placed()
{
	"$NUMAPGO" replay -q --children follow --report "$tmp/out.json" --plan "$tmp/heap.plan" -- \
		"$tmp/heap" && python3 -c "
import json, sys
o = json.load(open('$tmp/out.json'))
print(o['matched'], 'of', o['objects'], o['refused'])
sys.exit(o['refused'] != [] or o['matched'] < 12)"
}

ok 'bare' says '^heap ok$' "$tmp/heap"
"$NUMAPGO" record -q -o "$tmp/heap.db" -- "$tmp/heap" >/dev/null
for nodes in 1 2 4; do
	python3 tests/helpers/make_plan.py "$tmp/heap.db" "$tmp/heap.plan" $nodes
	ok "under a plan for $nodes nodes" says '^heap ok$' replay -q
done
ok 'the family is served' env COUNT=1 sh -c "
	nr=\$('$NUMAPGO' replay -q --plan '$tmp/heap.plan' -- '$tmp/heap' | sed -n 's/ blocks of our own//p')
	echo \"\$nr\"; [ \"\$nr\" -ge 8 ]"
ok 'nothing is refused' all_placed
ok 'memory stays what the program touches' small_resident
ok 'strict' says '^heap ok$|may be used here' replay --strict
ok 'with less address space' sh -c "ulimit -v 2000000; '$NUMAPGO' replay -q --plan '$tmp/heap.plan' -- '$tmp/heap'"
ok 'the library of the user on top' says '^heap ok$' env LD_PRELOAD=libm.so.6 \
	"$NUMAPGO" replay -q --plan "$tmp/heap.plan" -- "$tmp/heap"
finish
