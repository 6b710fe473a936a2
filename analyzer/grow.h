/* Arrays that grow by doubling. */
#ifndef NPG_ANALYZER_GROW_H
#define NPG_ANALYZER_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "lib/compiler.h"

/**
 * npg_grow() - make room for at least @needed items.
 * @items: the array, or NULL; freed by free(3).
 * @capacity: in items; updated.
 * @item_bytes: size of one item.
 *
 * Return: the array, perhaps moved; NULL when out of memory, @items then stays as it was.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK static inline void *npg_grow(void *items, size_t *capacity, size_t needed,
					    size_t item_bytes)
{
	size_t wanted = *capacity > 0 ? *capacity : 16;
	void *moved;

	if (needed <= *capacity && items != NULL)
		return items;
	while (wanted < needed)
		if (__builtin_mul_overflow(wanted, (size_t)2, &wanted))
			return NULL;
	moved = reallocarray(items, wanted, item_bytes);
	if (moved != NULL)
		*capacity = wanted;
	return moved;
}

/*
 * Room for one more zeroed item of an array; makes the calling function return -ENOMEM if there is
 * none.
 */
#define NPG_GROW(items, nr, capacity)                                                              \
	do {                                                                                       \
		void *npg_grown = npg_grow((items), &(capacity), (nr) + 1, sizeof(*(items)));      \
		if (npg_grown == NULL)                                                             \
			return -ENOMEM;                                                            \
		(items) = npg_grown;                                                               \
		memset(&(items)[nr], 0, sizeof(*(items)));                                         \
	} while (0)

#endif
