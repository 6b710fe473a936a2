/*
 * pgtables: page-table frames per node, of the whole system, from /proc/kpageflags (root only).
 * Prints "node NODE FRAMES". The PageTables line of a node's meminfo lags behind.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES        "/sys/devices/system/node"
#define MEMORY       "/sys/devices/system/memory"
#define FLAG_PGTABLE 26 /* KPF_PGTABLE */
#define PAGE         4096u

static int flags_fd;
static uint64_t block_bytes;

static uint64_t frames_in_block(uint64_t block)
{
	static uint64_t flags[1 << 15];
	uint64_t nr_frames = 0, first = block * block_bytes / PAGE;
	uint64_t nr = block_bytes / PAGE;

	while (nr > 0) {
		size_t want = nr < (1 << 15) ? nr : (1 << 15);
		ssize_t got = pread(flags_fd, flags, want * 8, (off_t)(first * 8));

		if (got <= 0)
			break;
		for (size_t i = 0; i < (size_t)got / 8; i++)
			nr_frames += flags[i] >> FLAG_PGTABLE & 1;
		first += (size_t)got / 8;
		nr -= (size_t)got / 8;
	}
	return nr_frames;
}

static int print_node(int node)
{
	char path[64];
	uint64_t nr_frames = 0;
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), NODES "/node%d", node);
	directory = opendir(path);
	if (directory == NULL)
		return -1;
	while ((entry = readdir(directory)) != NULL) {
		if (strncmp(entry->d_name, "memory", 6) == 0 && entry->d_name[6] >= '0' &&
		    entry->d_name[6] <= '9')
			nr_frames += frames_in_block(strtoull(entry->d_name + 6, NULL, 10));
	}
	closedir(directory);
	printf("node %d %llu\n", node, (unsigned long long)nr_frames);
	return 0;
}

int main(void)
{
	FILE *size = fopen(MEMORY "/block_size_bytes", "r");
	unsigned long bytes = 0;

	flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	if (size == NULL || fscanf(size, "%lx", &bytes) != 1 || flags_fd < 0) {
		perror("pgtables: /proc/kpageflags and " MEMORY);
		return 1;
	}
	fclose(size);
	block_bytes = bytes;
	for (int node = 0; node < 64; node++)
		print_node(node);
	return 0;
}
