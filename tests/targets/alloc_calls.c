/*
 * Calls each function that the recording object hooks, and prints what the record must say, one
 * "TYPE ADDRESS SIZE" a line: for tests/cli/t0290-hooks.sh. Heap blocks below 10000 bytes are not
 * to be reported one by one.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static void say(const char *type, const void *address, size_t size)
{
	printf("%s %#lx %zu\n", type, (unsigned long)(uintptr_t)address, size);
}

static void *allocated(void *block, size_t size)
{
	if (block == NULL)
		exit(1);
	say("alloc", block, size);
	return block;
}

static void release(void *block)
{
	say("free", block, 0);
	free(block);
}

static void call_heap(void)
{
	void *block = NULL, *blocks[8];

	blocks[0] = allocated(malloc(10000), 10000);
	blocks[1] = allocated(calloc(3, 5000), 15000);
	blocks[2] = allocated(aligned_alloc(64, 64000), 64000);
	blocks[3] = allocated(memalign(128, 20001), 20001);
	blocks[4] = allocated(valloc(20002), 20002);
	blocks[5] = allocated(pvalloc(20003), 20003);
	if (posix_memalign(&block, 4096, 20004) != 0)
		exit(1);
	blocks[6] = allocated(block, 20004);
	blocks[7] = allocated(reallocarray(NULL, 2, 10002), 20004);
	say("free", blocks[0], 0);
	blocks[0] = allocated(realloc(blocks[0], 300000), 300000);
	say("free", blocks[7], 0);
	blocks[7] = allocated(reallocarray(blocks[7], 3, 10003), 30009);
	say("free", blocks[1], 0);
	blocks[1] = realloc(blocks[1], 100); /* small from now on */
	free(blocks[1]);
	for (int i = 0; i < 8; i++)
		if (i != 1)
			release(blocks[i]);
}

/* A block stays the program's when realloc() fails; it is reported again, with its usable size. */
static void call_failing_realloc(void)
{
	void *block = allocated(malloc(50000), 50000);
	size_t usable = malloc_usable_size(block);
	volatile size_t too_much = PTRDIFF_MAX;

	if (calloc(too_much, 3) != NULL || malloc(too_much) != NULL)
		exit(1);
	say("free", block, 0);
	if (realloc(block, too_much) != NULL)
		exit(1);
	allocated(block, usable);
	release(block);
}

static void call_maps(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, flags, -1, 0), *moved;
	void *attached;
	int id;

	say("mmap", map, 65536);
	mmap(map + 8192, 4096, PROT_READ, flags | MAP_FIXED, -1, 0);
	say("mmap", map + 8192, 4096);
	munmap(map + 8192, 4096);
	say("munmap", map + 8192, 4096);
	if (mmap(NULL, 0, PROT_READ, flags, -1, 0) != MAP_FAILED || munmap(map + 1, 4096) == 0)
		exit(1);
	moved = mremap(map, 4096, 1 << 20, MREMAP_MAYMOVE);
	say("mremap", map, 4096);
	munmap(moved, 1 << 20);
	say("munmap", moved, 1 << 20);
	id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
	attached = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	if (attached == (void *)-1)
		exit(1);
	say("shmat", attached, 8192);
	shmdt(attached);
	say("shmdt", attached, 0);
	sbrk(4096);
	say("brk", sbrk(0), 0);
}

static void *in_thread(void *arg)
{
	release(allocated(malloc(40000), 40000));
	return arg;
}

int main(void)
{
	static char buffer[65536];
	pthread_t thread;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	call_heap();
	call_failing_realloc();
	call_maps();
	say("thread-create", NULL, 0);
	if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 1;
	return 0;
}
