/* Time order over several rings, see the header. */
#include <errno.h>
#include <stdlib.h>

#include "profiler/queue.h"

static int grow(void **memory, size_t *size, size_t needed, size_t item)
{
	size_t bigger = *size == 0 ? 4096 : *size;
	void *grown;

	if (needed <= *size)
		return 0;
	while (bigger < needed)
		bigger *= 2;
	grown = reallocarray(*memory, bigger, item);
	if (grown == NULL)
		return -ENOMEM;
	*memory = grown;
	*size = bigger;
	return 0;
}

int npg_queue_push(struct npg_queue *queue, uint64_t time_ns, int kind, const void *data,
		   uint32_t size)
{
	size_t room = ((size_t)size + 7) & ~(size_t)7;
	void *entries = queue->entries, *bytes = queue->bytes;
	int ret =
	    grow(&entries, &queue->entries_size, queue->nr_entries + 1, sizeof(*queue->entries));

	queue->entries = entries;
	if (ret == 0)
		ret = grow(&bytes, &queue->bytes_size, queue->nr_bytes + room, 1);
	queue->bytes = bytes;
	if (ret < 0)
		return ret;
	memcpy(queue->bytes + queue->nr_bytes, data, size);
	queue->entries[queue->nr_entries++] =
	    (struct npg_queue_entry){ .time_ns = time_ns,
				      .sequence = queue->nr_pushed++,
				      .offset = queue->nr_bytes,
				      .size = size,
				      .kind = kind };
	queue->nr_bytes += room;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct npg_queue_entry *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->sequence < y->sequence ? -1 : 1;
}

/* What stays moves to the front of a fresh buffer. */
static void keep_rest(struct npg_queue *queue, size_t nr_taken)
{
	struct npg_queue rest = { .nr_pushed = queue->nr_pushed };

	for (size_t i = nr_taken; i < queue->nr_entries; i++) {
		const struct npg_queue_entry *e = &queue->entries[i];

		if (npg_queue_push(&rest, e->time_ns, e->kind, queue->bytes + e->offset, e->size) <
		    0) {
			npg_queue_release(&rest); /* keep the holes instead */
			memmove(queue->entries, queue->entries + nr_taken,
				(queue->nr_entries - nr_taken) * sizeof(*queue->entries));
			queue->nr_entries -= nr_taken;
			return;
		}
	}
	npg_queue_release(queue);
	*queue = rest;
}

void npg_queue_take(struct npg_queue *queue, uint64_t until_ns,
		    void (*visit)(void *context, int kind, const void *data, uint32_t size),
		    void *context)
{
	size_t i;

	if (queue->nr_entries > 1)
		qsort(queue->entries, queue->nr_entries, sizeof(*queue->entries), compare);
	for (i = 0; i < queue->nr_entries && queue->entries[i].time_ns <= until_ns; i++)
		visit(context, queue->entries[i].kind, queue->bytes + queue->entries[i].offset,
		      queue->entries[i].size);
	if (i == queue->nr_entries) {
		queue->nr_entries = 0;
		queue->nr_bytes = 0;
	} else if (i > 0) {
		keep_rest(queue, i);
	}
}

void npg_queue_release(struct npg_queue *queue)
{
	free(queue->entries);
	free(queue->bytes);
	*queue = (struct npg_queue){ 0 };
}
