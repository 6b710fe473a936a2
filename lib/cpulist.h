/*
 * Sets of CPUs or nodes and their text form, the CPU list of the kernel: "0-3,8".
 */
#ifndef NPG_LIB_CPULIST_H
#define NPG_LIB_CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

#define NPG_CPUSET_SIZE  4096        /* CPUs 0..4095; Debian's kernels are built for 8192 at most */
#define NPG_CPULIST_SIZE (14 * 1024) /* bytes that hold the text of any set: "0-1,3-4,..." */

struct npg_cpuset {
	uint64_t words[NPG_CPUSET_SIZE / 64];
};

/**
 * npg_cpulist_parse() - read a list such as "0-3,8" or "0-15:2" (with stride), as printed by the
 * kernel; blanks around it and an empty text (empty set) are allowed.
 * @length: bytes of @text, which needs no final NUL.
 * @set: written only on success.
 *
 * Return: 0; -EINVAL (not a list); -ERANGE (a number beyond the set).
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_cpulist_parse(const char *text, size_t length, struct npg_cpuset *set);

/**
 * npg_cpulist_format() - the shortest list of a set.
 * @text: @size bytes, always NUL-terminated; cut at a comma when it does not fit.
 *
 * Return: the length that the whole list has.
 * MT-Safe. AS-Safe.
 */
size_t npg_cpulist_format(const struct npg_cpuset *set, char *text, size_t size);

/**
 * npg_cpuset_clear() and relatives - sets. A CPU beyond the set is never in it, and adding it does
 * nothing. npg_cpuset_next() gives the lowest one above @after, -1 at the end; begin with -1.
 * npg_cpuset_and() leaves in @set what both have.
 *
 * MT-Safe. AS-Safe.
 */
void npg_cpuset_clear(struct npg_cpuset *set);
void npg_cpuset_add(struct npg_cpuset *set, int cpu);
bool npg_cpuset_has(const struct npg_cpuset *set, int cpu);
int npg_cpuset_count(const struct npg_cpuset *set);
int npg_cpuset_next(const struct npg_cpuset *set, int after);
void npg_cpuset_and(struct npg_cpuset *set, const struct npg_cpuset *other);

#endif
