/* A growing array of equal items, for building the placing table. */
#ifndef NPG_REPLAYER_LIST_H
#define NPG_REPLAYER_LIST_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct npg_list {
	void *items;
	size_t nr;
	size_t room;
	size_t item_size;
};

/**
 * npg_list_append() - add a copy of @item. Return: its address until the next append; NULL when out
 * of memory. MT-Safe (per object).
 */
static inline void *npg_list_append(struct npg_list *list, const void *item)
{
	char *slot;

	if (list->nr == list->room) {
		size_t room = list->room == 0 ? 16 : list->room * 2;
		void *items = reallocarray(list->items, room, list->item_size);

		if (items == NULL)
			return NULL;
		list->items = items;
		list->room = room;
	}
	slot = (char *)list->items + (list->nr++ * list->item_size);
	memcpy(slot, item, list->item_size);
	return slot;
}

#endif
