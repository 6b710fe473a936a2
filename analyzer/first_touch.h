/*
 * Who touched a page first: that thread's node has the page if nothing is done.
 *
 * Known pages come from the recorded page faults. A page between them takes the nearest known one
 * within 512 pages (one fault can map 2 MiB), else the thread that touched most pages of its group,
 * else the group's creator, else the main thread.
 */
#ifndef NPG_ANALYZER_FIRST_TOUCH_H
#define NPG_ANALYZER_FIRST_TOUCH_H

#include "analyzer/grouping.h"
#include "analyzer/profile.h"

struct npg_first_touch_row {
	uint64_t page;
	uint32_t group;
	uint32_t thread;
};

struct npg_first_touch {
	size_t nr_rows;
	struct npg_first_touch_row *rows; /* by group and page, one per page */
	size_t *first_row;                /* per group, and one more: the end */
	uint32_t *usual;                  /* per group: thread of pages that are not known */
	bool *is_thread_own;              /* per group: see there */
};

/** npg_first_touch_make() - from the touches of a profile. Return: 0; -ENOMEM. */
NPG_MUST_CHECK int npg_first_touch_make(const struct npg_profile *profile,
					const struct npg_grouping *grouping,
					struct npg_first_touch *first_touch);

/**
 * npg_first_touch_of() - the thread that touched a page of a group first.
 * @user: a thread that uses the page; it is the answer where each thread has objects of its own.
 * MT-Safe. AS-Safe.
 */
uint32_t npg_first_touch_of(const struct npg_first_touch *first_touch, uint32_t group,
			    uint64_t page, uint32_t user);

/** npg_first_touch_release() - safe on a zeroed struct. */
void npg_first_touch_release(struct npg_first_touch *first_touch);

#endif
