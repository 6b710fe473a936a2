/*
 * ELF files, by libelf: identity, kind, load segments, data symbols, function names.
 *
 * Files come from outside and may be broken in any way; every function is bounds-checked and has
 * a fuzzer. Offsets called "vaddr" are ELF virtual addresses: run-time address minus load bias.
 */
#ifndef NPG_LIB_ELF_FILE_H
#define NPG_LIB_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/error.h"

#define NPG_BUILD_ID_MAX 64 /* bytes; real ones have 8 to 20 */

struct npg_elf_segment { /* PT_LOAD */
	uint64_t vaddr;
	uint64_t memory_bytes;
	uint64_t file_offset;
	uint64_t file_bytes;
	bool is_writable;
	bool is_executable;
};

struct npg_elf_symbol {
	uint64_t vaddr;
	uint64_t size_bytes;
	const char *name; /* owned by the file object */
};

struct npg_elf_file {
	char *path;
	char build_id[2 * NPG_BUILD_ID_MAX + 1]; /* lower-case hexadecimal; empty: none */
	bool is_native;                          /* class, byte order and machine of this numapgo */
	bool is_executable;                      /* ET_EXEC, or ET_DYN with an entry that is run */
	bool has_interpreter;
	bool is_sanitized; /* needs or contains a sanitizer's runtime */
	size_t nr_segments;
	struct npg_elf_segment *segments;
	size_t nr_objects; /* STT_OBJECT/COMMON symbols with a size, by address; largest wins */
	struct npg_elf_symbol *objects;
	size_t nr_functions; /* STT_FUNC with a size, by address */
	struct npg_elf_symbol *functions;
	void *handle; /* private */
};

/**
 * npg_elf_file_open() - read a file's headers; symbols are read by npg_elf_file_load_symbols().
 * @file: result, to be ended with npg_elf_file_free().
 *
 * Return: 0; -ENOENT, -EACCES, -ENOEXEC (not ELF, or broken: @err says what); -ENOMEM.
 * MT-Safe (per object). Not AS-Safe.
 */
NPG_MUST_CHECK int npg_elf_file_open(const char *path, struct npg_elf_file **file,
				     struct npg_error *err);

/** npg_elf_file_from_memory() - the same from bytes, borrowed until npg_elf_file_free(). */
NPG_MUST_CHECK int npg_elf_file_from_memory(const void *data, size_t size_bytes,
					    struct npg_elf_file **file, struct npg_error *err);

/**
 * npg_elf_file_load_symbols() - fill .objects and .functions from .symtab, or .dynsym without it.
 * Overlapping and duplicate symbols are merged, sections' bounds respected.
 *
 * Return: 0 (also when there are none); -ENOEXEC broken tables (what was sound is kept); -ENOMEM.
 */
NPG_MUST_CHECK int npg_elf_file_load_symbols(struct npg_elf_file *file, struct npg_error *err);

/** npg_elf_file_vaddr_of_offset() - file offset to vaddr. Return: 0; -ENOENT outside segments. */
NPG_MUST_CHECK int npg_elf_file_vaddr_of_offset(const struct npg_elf_file *file,
						uint64_t file_offset, uint64_t *vaddr);

/** npg_elf_file_object_at(), npg_elf_file_function_at() - the symbol that covers @vaddr, or NULL.
 */
const struct npg_elf_symbol *npg_elf_file_object_at(const struct npg_elf_file *file,
						    uint64_t vaddr);
const struct npg_elf_symbol *npg_elf_file_function_at(const struct npg_elf_file *file,
						      uint64_t vaddr);

/**
 * npg_elf_file_frame_at() - bounds of the function that covers @vaddr, by the unwind tables, which
 * stripped files have too (.eh_frame_hdr's sorted table; LSB core specification, chapter 10).
 *
 * Return: 0; -ENOENT no table, or no entry that covers it for certain.
 */
NPG_MUST_CHECK int npg_elf_file_frame_at(const struct npg_elf_file *file, uint64_t vaddr,
					 uint64_t *start, uint64_t *size_bytes);

/** npg_elf_file_free() - NULL is allowed. */
void npg_elf_file_free(struct npg_elf_file *file);

#endif
