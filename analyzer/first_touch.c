/* First touches by group and page; see the header. */
#include <errno.h>

#include "analyzer/first_touch.h"

#define NEAR_PAGES 512

static int by_page(const void *a, const void *b)
{
	const struct npg_first_touch_row *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Pages that several objects of a group have: the thread that touched most of them. */
static void merge(struct npg_first_touch *f)
{
	size_t nr = 0, most = 0;

	for (size_t i = 0, end; i < f->nr_rows; i = end) {
		for (end = i + 1; end < f->nr_rows && by_page(&f->rows[i], &f->rows[end]) == 0;)
			end++;
		if (nr > 0 && f->rows[nr - 1].group == f->rows[i].group &&
		    f->rows[nr - 1].page == f->rows[i].page) {
			if (end - i > most) {
				f->rows[nr - 1].thread = f->rows[i].thread;
				most = end - i;
			}
			continue;
		}
		most = end - i;
		f->rows[nr++] = f->rows[i];
	}
	f->nr_rows = nr;
}

/* The thread with most rows of each group, or its creator. */
static int find_usual(const struct npg_profile *p, const struct npg_grouping *g,
		      struct npg_first_touch *f)
{
	size_t *count = calloc(p->nr_threads + 1, sizeof(*count));
	size_t row = 0;

	if (count == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < g->nr_groups; i++) {
		size_t most = 0;

		f->is_thread_own[i] = g->groups[i].is_thread_own;
		f->first_row[i] = row;
		f->usual[i] = g->groups[i].creator >= 0 ? (uint32_t)g->groups[i].creator : 0;
		for (; row < f->nr_rows && f->rows[row].group == i; row++)
			if (++count[f->rows[row].thread] > most) {
				most = count[f->rows[row].thread];
				f->usual[i] = f->rows[row].thread;
			}
		for (size_t j = f->first_row[i]; j < row; j++)
			count[f->rows[j].thread] = 0;
	}
	f->first_row[g->nr_groups] = row;
	free(count);
	return 0;
}

int npg_first_touch_make(const struct npg_profile *profile, const struct npg_grouping *grouping,
			 struct npg_first_touch *first_touch)
{
	struct npg_first_touch f = { .nr_rows = profile->nr_touches };

	f.rows = calloc(profile->nr_touches + 1, sizeof(*f.rows));
	f.first_row = calloc(grouping->nr_groups + 1, sizeof(*f.first_row));
	f.usual = calloc(grouping->nr_groups + 1, sizeof(*f.usual));
	f.is_thread_own = calloc(grouping->nr_groups + 1, sizeof(*f.is_thread_own));
	if (f.is_thread_own == NULL || f.rows == NULL || f.first_row == NULL || f.usual == NULL) {
		npg_first_touch_release(&f);
		return -ENOMEM;
	}
	for (size_t i = 0; i < f.nr_rows; i++)
		f.rows[i] =
		    (struct npg_first_touch_row){ profile->touches[i].page,
						  grouping->group_of[profile->touches[i].object],
						  profile->touches[i].thread };
	qsort(f.rows, f.nr_rows, sizeof(*f.rows), by_page);
	merge(&f);
	if (find_usual(profile, grouping, &f) < 0) {
		npg_first_touch_release(&f);
		return -ENOMEM;
	}
	*first_touch = f;
	return 0;
}

uint32_t npg_first_touch_of(const struct npg_first_touch *first_touch, uint32_t group,
			    uint64_t page, uint32_t user)
{
	size_t first = first_touch->first_row[group], end = first_touch->first_row[group + 1];
	const struct npg_first_touch_row *rows = first_touch->rows;
	size_t low = first, high = end;

	if (first_touch->is_thread_own[group])
		return user;
	while (low < high) { /* the first row at or behind the page */
		size_t middle = low + (high - low) / 2;

		if (rows[middle].page < page)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > first && page - rows[low - 1].page < NEAR_PAGES &&
	    (low == end || page - rows[low - 1].page < rows[low].page - page))
		return rows[low - 1].thread;
	if (low < end && rows[low].page - page < NEAR_PAGES)
		return rows[low].thread;
	return first_touch->usual[group];
}

void npg_first_touch_release(struct npg_first_touch *first_touch)
{
	free(first_touch->rows);
	free(first_touch->first_row);
	free(first_touch->usual);
	free(first_touch->is_thread_own);
	*first_touch = (struct npg_first_touch){ 0 };
}
