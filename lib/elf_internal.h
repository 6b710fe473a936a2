/* What elf_file.c and elf_symbols.c share; nobody else includes it. */
#ifndef NPG_LIB_ELF_INTERNAL_H
#define NPG_LIB_ELF_INTERNAL_H

#include <libelf.h>

#include "lib/elf_file.h"

struct npg_elf_private {
	Elf *elf;
	int fd;
	bool is_dynamic; /* ET_DYN */
	bool has_entry;
	bool is_pie; /* DF_1_PIE */
};

/**
 * npg_elf_broken() - describe a broken file, with libelf's reason.
 *
 * Return: -ENOEXEC.
 */
int npg_elf_broken(const struct npg_elf_file *file, struct npg_error *err, const char *what);

/** npg_elf_offset_of_vaddr() - vaddr to file offset. Return: 0; -ENOENT outside segments' bytes. */
NPG_MUST_CHECK int npg_elf_offset_of_vaddr(const struct npg_elf_file *file, uint64_t vaddr,
					   uint64_t *file_offset);

/** npg_elf_has_sanitizer_symbol() - true if a sanitizer's runtime is linked in statically. */
bool npg_elf_has_sanitizer_symbol(const struct npg_elf_file *file);

#endif
