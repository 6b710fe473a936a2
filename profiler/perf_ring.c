/* Reader of the perf ring: acquire head, copy only records that wrap, release tail. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/perf_ring.h"

#define MAX_RECORD_BYTES 65536 /* perf_event_header.size has 16 bits */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int npg_perf_ring_map(int fd, size_t nr_pages, struct npg_perf_ring *ring)
{
	size_t page = page_bytes();

	ring->scratch = malloc(MAX_RECORD_BYTES);
	if (ring->scratch == NULL)
		return -ENOMEM;
	for (; nr_pages > 0; nr_pages /= 2) {
		ring->data_bytes = nr_pages * page;
		ring->base =
		    mmap(NULL, page + ring->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (ring->base != MAP_FAILED)
			return 0;
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	ring->base = NULL;
	free(ring->scratch);
	ring->scratch = NULL;
	return -errno;
}

static void copy_out(const unsigned char *data, size_t data_bytes, uint64_t at, void *to,
		     size_t size)
{
	size_t begin = (size_t)(at & (data_bytes - 1));
	size_t first = size < data_bytes - begin ? size : data_bytes - begin;

	memcpy(to, data + begin, first);
	memcpy((unsigned char *)to + first, data, size - first);
}

size_t npg_perf_ring_drain(struct npg_perf_ring *ring,
			   void (*visit)(void *context, const void *record, size_t size_bytes),
			   void *context)
{
	struct perf_event_mmap_page *page = ring->base;
	const unsigned char *data;
	uint64_t head, tail, begin;

	if (page == NULL)
		return 0;
	data = (const unsigned char *)ring->base + page_bytes();
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	begin = tail = page->data_tail;
	while (head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		size_t at = (size_t)(tail & (ring->data_bytes - 1));

		copy_out(data, ring->data_bytes, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		if (at + header.size <= ring->data_bytes) {
			visit(context, data + at, header.size);
		} else {
			copy_out(data, ring->data_bytes, tail, ring->scratch, header.size);
			visit(context, ring->scratch, header.size);
		}
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return (size_t)(head - begin);
}

void npg_perf_ring_unmap(struct npg_perf_ring *ring)
{
	if (ring->base != NULL)
		munmap(ring->base, page_bytes() + ring->data_bytes);
	free(ring->scratch);
	ring->base = NULL;
	ring->scratch = NULL;
}
