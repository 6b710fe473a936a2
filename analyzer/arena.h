/* Memory that is freed all at once: strings and small arrays of one analysis. */
#ifndef NPG_ANALYZER_ARENA_H
#define NPG_ANALYZER_ARENA_H

#include <stddef.h>

#include "lib/compiler.h"

struct npg_arena {
	struct npg_arena_block *blocks; /* newest first; zero-initialise */
};

/** npg_arena_alloc() - zeroed memory until npg_arena_release(); NULL when out of memory. */
NPG_MUST_CHECK void *npg_arena_alloc(struct npg_arena *arena, size_t nr, size_t item_bytes);

/** npg_arena_string() - a copy of @text, NULL when out of memory; NULL gives NULL. */
const char *npg_arena_string(struct npg_arena *arena, const char *text);

/** npg_arena_release() - free all; safe on a zeroed struct. */
void npg_arena_release(struct npg_arena *arena);

#endif
