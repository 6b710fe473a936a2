/*
 * Small files of /proc and /sys, read whole.
 */
#ifndef NPG_PROFILER_PROC_FILE_H
#define NPG_PROFILER_PROC_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"

/**
 * npg_proc_read() - read at most @size - 1 bytes and end them with a NUL.
 *
 * Return: number of bytes; 0 if there is no such file or it cannot be read.
 * MT-Safe. AS-Safe.
 */
size_t npg_proc_read(const char *path, char *text, size_t size);

/** npg_proc_read_i64() - the number that the file begins with, or @missing. */
int64_t npg_proc_read_i64(const char *path, int64_t missing);

/**
 * npg_proc_read_all() - a file of any length, as /proc/PID/maps.
 * @text: result, to be freed; NUL-terminated.
 *
 * Return: 0; the negative errno of open(2) or read(2); -ENOMEM.
 */
NPG_MUST_CHECK int npg_proc_read_all(const char *path, char **text, size_t *length);

#endif
