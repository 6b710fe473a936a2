/*
 * Files that are mapped into recorded processes, each opened once however many processes map it:
 * identity, load segments, symbols, code.
 */
#ifndef NPG_PROFILER_MODULE_H
#define NPG_PROFILER_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/elf_file.h"
#include "profiler/block.h"
#include "profiler/operand.h"
#include "profiler/table.h"
#include "profiler/writer.h"

struct npg_module {
	int64_t id; /* of its row */
	char *path;
	char build_id[2 * NPG_BUILD_ID_MAX + 1]; /* of the file that was mapped; empty: none */
	bool is_row_written;
	bool is_tried;             /* opening was tried */
	bool has_symbols;          /* loading them was tried */
	struct npg_elf_file *elf;  /* NULL: not ELF, not readable, or replaced since */
	uint64_t key;              /* for npg_hash_frame() */
	bool is_system;            /* counts by name only */
	const unsigned char *data; /* the file's bytes, or NULL */
	size_t data_bytes;
};

struct npg_modules { /* all zero: empty */
	struct npg_table index;
	struct npg_module **modules;
	size_t nr_modules;
	struct npg_table insn_index; /* (module, file offset) to place in insns + 1 */
	struct npg_insn *insns;
	size_t nr_insns;
	size_t insns_size;
	struct npg_table
	    function_index; /* (module, vaddr of its start) to place in functions + 1 */
	struct npg_function *functions;
	size_t nr_functions;
	struct npg_table recovery_index; /* as insn_index, into recoveries */
	struct npg_recovery *recoveries;
	size_t nr_recoveries;
};

struct npg_module_identity {
	const char *path;
	const uint8_t *build_id; /* as the kernel read it; NULL: unknown */
	size_t build_id_size;
	uint64_t inode; /* where there is no build ID */
};

/**
 * npg_modules_get() - the module of a mapped file; made if it is new.
 * Return: the module, owned by @modules; NULL when out of memory.
 */
struct npg_module *npg_modules_get(struct npg_modules *modules,
				   const struct npg_module_identity *identity);

/**
 * npg_module_elf() - its ELF file, opened on first use.
 * @pid: a process that has it mapped, for files of another mount namespace.
 * Return: NULL if it is not ELF, cannot be read, or is no longer the file that was mapped.
 */
struct npg_elf_file *npg_module_elf(struct npg_module *module, pid_t pid);

/** npg_module_symbols() - npg_module_elf() with its symbols loaded. */
struct npg_elf_file *npg_module_symbols(struct npg_module *module, pid_t pid);

/** npg_module_row() - id of its row, written on first use. */
int64_t npg_module_row(struct npg_module *module, struct npg_writer *writer);

/**
 * npg_modules_insn() - the instruction at a file offset, decoded once.
 * Return: owned by @modules, valid until the next call; NULL if the code cannot be had.
 */
const struct npg_insn *npg_modules_insn(struct npg_modules *modules, struct npg_module *module,
					pid_t pid, uint64_t file_offset);

/**
 * npg_modules_recover() - the data access next to the instruction at a file offset, worked out
 * once (profiler/block.h). The module's ELF file must be open already (npg_modules_insn()).
 * Return: owned by @modules, valid until the next call; NULL if there is none that is certain.
 */
const struct npg_recovery *npg_modules_recover(struct npg_modules *modules,
					       struct npg_module *module, uint64_t file_offset);

/** npg_modules_release_code() - drop what npg_modules_recover() keeps. */
void npg_modules_release_code(struct npg_modules *modules);

/** npg_modules_release() - close everything; safe on a zeroed struct. */
void npg_modules_release(struct npg_modules *modules);

#endif
