/* move_pages(2) as a question. */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replayer/verify.h"

#define LOOK_PAGES    256
#define LOOK_RANGES   64
#define PAGES_EACH    (LOOK_PAGES / LOOK_RANGES)
#define FIRST_LOOK_MS 20
#define LAST_LOOK_MS  10000

/* Does the policy name the node? */
static bool wants_node(const struct npg_placing *table, uint32_t policy, int node)
{
	const struct npg_wire_list *list = &table->image->policies;
	const struct npg_wire_policy *policies =
	    (const void *)((const char *)table->image + list->offset_bytes);

	if (policy >= list->nr || node >= NPG_WIRE_NODE_WORDS * 64)
		return false;
	return policies[policy].nodes[node / 64] >> (node % 64) & 1;
}

static void look_at(struct npg_verify *verify, pid_t pid, const struct npg_placing *table,
		    const struct npg_wire_placed *range)
{
	uint64_t page = table->image->page_size_bytes, nr_pages = range->size_bytes / page;
	void *pages[PAGES_EACH];
	int nodes[PAGES_EACH];

	for (uint64_t i = 0; i < PAGES_EACH; i++) { /* other pages in each look */
		uint64_t at = ((i * nr_pages) + (verify->nr_looks * 7919 % (nr_pages + 1))) /
			      PAGES_EACH % (nr_pages + 1);

		pages[i] = (void *)(uintptr_t)(range->start + (at * page));
		nodes[i] = -1;
	}
	if (syscall(SYS_move_pages, pid, (unsigned long)PAGES_EACH, pages, NULL, nodes, 0) != 0) {
		verify->is_refused = verify->is_refused || errno == EPERM || errno == ENOSYS;
		return;
	}
	for (int i = 0; i < PAGES_EACH; i++) {
		if (nodes[i] < 0)
			continue; /* not resident, or no longer mapped */
		verify->nr_sampled++;
		verify->nr_on_node += wants_node(table, range->policy, nodes[i]);
	}
}

void npg_verify_look(struct npg_verify *verify, pid_t pid, const struct npg_placing *table,
		     const struct npg_wire_status *status)
{
	bool has_children = (table->image->flags & NPG_WIRE_FOLLOW_CHILDREN) != 0;
	uint64_t nr = __atomic_load_n(&status->nr_ranges, __ATOMIC_RELAXED);
	uint64_t first, left = LOOK_RANGES;

	if (nr > NPG_WIRE_STATUS_RANGES)
		nr = NPG_WIRE_STATUS_RANGES;
	first = nr > 0 ? verify->nr_looks * LOOK_RANGES % nr : 0;
	for (uint64_t i = 0; i < nr && left > 0; i++) {
		struct npg_wire_placed range = status->ranges[(first + i) % nr];

		if (range.start == 0 || range.size_bytes > UINT64_C(1) << 60)
			continue;
		look_at(verify, has_children ? (pid_t)range.pid : pid, table, &range);
		left--;
	}
	verify->nr_looks++;
}

int npg_verify_wait(struct npg_verify *verify, pid_t pid, const struct npg_placing *table,
		    const struct npg_wire_status *status, int *wait_status)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int timeout_ms = FIRST_LOOK_MS;
	pid_t reaped;

	while (end.fd >= 0 && poll(&end, 1, timeout_ms) <= 0) {
		if (status != NULL && !verify->is_refused)
			npg_verify_look(verify, pid, table, status);
		timeout_ms = timeout_ms * 2 < LAST_LOOK_MS ? timeout_ms * 2 : LAST_LOOK_MS;
	}
	if (end.fd >= 0)
		close(end.fd);
	do {
		reaped = waitpid(pid, wait_status, 0);
	} while (reaped < 0 && errno == EINTR);
	return reaped == pid ? 0 : -ECHILD;
}
