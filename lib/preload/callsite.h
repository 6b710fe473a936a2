/*
 * Call stacks inside the user's program: the compiler runtime's unwinder, linked in statically, so
 * nothing is loaded, allocated or locked (glibc >= 2.35 finds unwind tables by _dl_find_object).
 */
#ifndef NPG_LIB_PRELOAD_CALLSITE_H
#define NPG_LIB_PRELOAD_CALLSITE_H

#include <stdint.h>

/**
 * npg_callsite_capture() - return addresses of the calling thread, outside numapgo's own object.
 * @frames: room for @max_frames, caller of the interposed function first.
 *
 * Return: number of frames, 0 if none can be found. errno is kept.
 * MT-Safe. AS-Safe.
 */
int npg_callsite_capture(uint64_t *frames, int max_frames);

/**
 * npg_callsite_hash() - identity of a stack, as lib/preload/hash.h defines it.
 *
 * Looks up each frame's module by _dl_find_object and caches modules' keys in a fixed table.
 *
 * MT-Safe. AS-Safe.
 */
uint64_t npg_callsite_hash(const uint64_t *frames, int nr_frames);

#endif
