/*
 * Finding the launcher's shared memory from inside the program.
 *
 * The environment names it as "PID:FD"; it is opened as /proc/PID/fd/FD, mapped, and its
 * descriptor closed at once, so the program's first open gives the number it always gave. If
 * anything is missing, wrong or forbidden the object stays inactive and silent.
 */
#ifndef NPG_LIB_PRELOAD_ATTACH_H
#define NPG_LIB_PRELOAD_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

struct npg_attach_place {
	unsigned long pid;
	unsigned long fd;
};

/**
 * npg_attach_parse() - read "PID:FD".
 *
 * Return: false if it is anything else. MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK bool npg_attach_parse(const char *text, struct npg_attach_place *place);

/**
 * npg_attach_getenv() - value of an environment variable, NULL without it or before libc has set
 * up its environment. Points into the environment. MT-Unsafe. AS-Safe.
 */
const char *npg_attach_getenv(const char *name);

/** npg_attach_has_environment() - is libc's environment set up already? AS-Safe. */
bool npg_attach_has_environment(void);

/**
 * npg_attach_map() - map the memory named by environment variable @name.
 * @is_writable: map for reading and writing (the recording channel), else for reading only.
 * @minimum_bytes: smaller files are refused.
 * @size_bytes: size of the file, all of which is mapped.
 *
 * Refuses a file whose first two 32-bit words are not NPG_WIRE_MAGIC and NPG_WIRE_VERSION. What
 * else it holds is the caller's to check. Stays mapped for the life of the process.
 *
 * Return: the memory, or NULL. Raw system calls only; errno is kept. MT-Safe. AS-Safe.
 */
void *npg_attach_map(const char *name, bool is_writable, size_t minimum_bytes, size_t *size_bytes);

/**
 * npg_attach_leave_environment() - take this object out of the process environment, so that
 * programs started by exec run plain: removes the variable @name and our own entry of LD_PRELOAD;
 * entries of the user stay, an emptied LD_PRELOAD goes.
 *
 * Writes into the environment block in place. Only while the process is single-threaded.
 */
void npg_attach_leave_environment(const char *name);

/**
 * npg_attach_remove_entry() - remove @entry from a list separated by ':' or blanks, in place.
 *
 * Return: true if something is left in the list. MT-Safe. AS-Safe.
 */
bool npg_attach_remove_entry(char *list, const char *entry);

#endif
