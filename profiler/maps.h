/*
 * Text of /proc/PID/maps to mappings. Pure: no I/O.
 */
#ifndef NPG_PROFILER_MAPS_H
#define NPG_PROFILER_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_maps_entry {
	uint64_t start;
	uint64_t end;
	uint64_t file_offset;
	uint64_t device; /* major << 32 | minor */
	uint64_t inode;
	uint32_t protection; /* PROT_* */
	bool is_shared;
	const char *name; /* path or "[stack]" and the like; not NUL-terminated; may be empty */
	size_t name_length;
};

/**
 * npg_maps_next() - read one line.
 * @text: @length bytes.
 * @position: where to go on, 0 at first; moved behind the line, also when the line is broken.
 *
 * Return: 1 an entry was read; 0 end of the text; -EBADMSG the line is not a mapping.
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_maps_next(const char *text, size_t length, size_t *position,
				 struct npg_maps_entry *entry);

#endif
