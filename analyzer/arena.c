/* Blocks in a list; see the header. */
#include <stdint.h>

#include "analyzer/arena.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

struct npg_arena_block {
	struct npg_arena_block *next;
	size_t used;
	size_t size;
	_Alignas(max_align_t) char data[];
};

void *npg_arena_alloc(struct npg_arena *arena, size_t nr, size_t item_bytes)
{
	struct npg_arena_block *block = arena->blocks;
	size_t bytes, size;

	if (__builtin_mul_overflow(nr, item_bytes, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
	if (block == NULL || block->size - block->used < bytes) {
		size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
		block = calloc(1, sizeof(*block) + size);
		if (block == NULL)
			return NULL;
		block->size = size;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	block->used += bytes;
	return block->data + block->used - bytes;
}

const char *npg_arena_string(struct npg_arena *arena, const char *text)
{
	size_t bytes;
	char *copy;

	if (text == NULL)
		return NULL;
	bytes = strlen(text) + 1;
	copy = npg_arena_alloc(arena, bytes, 1);
	if (copy != NULL)
		memcpy(copy, text, bytes);
	return copy;
}

void npg_arena_release(struct npg_arena *arena)
{
	struct npg_arena_block *next;

	for (struct npg_arena_block *b = arena->blocks; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	arena->blocks = NULL;
}
