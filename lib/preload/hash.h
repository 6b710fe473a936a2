/*
 * The identity of a call site as one number: computed inside the program from its own stack, and
 * outside from recorded or planned frames; both must agree, so it is written once, here.
 *
 * A frame is (module key, offset): the module key hashes the build ID, or the file's last name
 * component where there is none; the offset is the ELF virtual address of the return address.
 * Frames in the C library and the dynamic loader count by name only, with offset 0, so that an
 * update of the C library leaves plans valid. A frame in no module (generated code) is the pair
 * (0, 0). The module is looked up at the return address minus 1. FNV-1a, 64 bit.
 */
#ifndef NPG_LIB_PRELOAD_HASH_H
#define NPG_LIB_PRELOAD_HASH_H

#include <stddef.h>
#include <stdint.h>

#define NPG_HASH_SEED UINT64_C(0xcbf29ce484222325)

static inline uint64_t npg_hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* One frame added to a site's hash; start with NPG_HASH_SEED, the caller's frame first. */
static inline uint64_t npg_hash_frame(uint64_t hash, uint64_t module_key, uint64_t offset)
{
	uint64_t pair[2] = { module_key, offset };

	return npg_hash_bytes(hash, pair, sizeof(pair));
}

/* Key of a module from its build ID's raw bytes. */
static inline uint64_t npg_hash_build_id(const void *build_id, size_t size)
{
	return npg_hash_bytes(NPG_HASH_SEED, build_id, size);
}

/* Key of a module from its file name: the part after the last slash, up to ".so" if present. */
static inline uint64_t npg_hash_module_name(const char *path)
{
	const char *name = path, *end;

	for (const char *p = path; *p != '\0'; p++)
		if (*p == '/')
			name = p + 1;
	for (end = name; *end != '\0'; end++)
		if (end[0] == '.' && end[1] == 's' && end[2] == 'o')
			break;
	return npg_hash_bytes(NPG_HASH_SEED, name, (size_t)(end - name));
}

/* Is this the C library or the loader, whose frames count by name only? */
static inline int npg_hash_is_system_module(const char *path)
{
	const char *name = path;

	for (const char *p = path; *p != '\0'; p++)
		if (*p == '/')
			name = p + 1;
	return (name[0] == 'l' && name[1] == 'i' && name[2] == 'b' && name[3] == 'c' &&
		name[4] == '.' && name[5] == 's' && name[6] == 'o') ||
	       (name[0] == 'l' && name[1] == 'd' && name[2] == '-');
}

#endif
