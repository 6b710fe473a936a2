/*
 * Objects across runs: which recorded objects are one thing to a plan.
 *
 * A static object is (module, address in it). A heap or mmap object is its call site and which of
 * the site's allocations it is:
 *   - a site with one allocation, or one whose allocations come and go (at most a quarter of more
 *     than 16 alive at once) or are too many to name, is one group: "all";
 *   - else each allocation is a group, the n-th at the site if one thread makes them all, the n-th
 *     by its creating thread if several do, since threads race for the order at the site.
 * Groups of one site stand next to each other in the order of their ordinals, so that neighbours
 * can speak for an allocation that has few samples. The planner joins them again where their
 * placement agrees.
 *
 * Where allocations that come and go are each used by the thread that made it (80 % of the
 * samples), nothing needs to be planned: first touch by a pinned thread is right.
 *
 * Stacks, the small-object heap, files, code and what else a plan cannot place are groups too, by
 * name: they count, and stay where first touch puts them.
 */
#ifndef NPG_ANALYZER_GROUPING_H
#define NPG_ANALYZER_GROUPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/profile.h"
#include "lib/compiler.h"
#include "lib/plan.h"

#define NPG_GROUP_MAX_PER_SITE 4096 /* allocations of a site that are told apart */

struct npg_group {
	enum npg_object_kind kind;
	const char *name; /* for people: symbol, function of the call site, path */
	int module;       /* static: index into the profile's modules */
	uint64_t offset_bytes;
	int site; /* index into the profile's sites, or NPG_NONE */
	enum npg_plan_which which;
	uint64_t ordinal;
	int creator;          /* thread, or NPG_NONE: several or unknown */
	uint32_t object;      /* one of its objects: the largest */
	uint64_t size_bytes;  /* of that */
	uint64_t nr_pages;    /* of that */
	uint64_t alive_bytes; /* most bytes of it alive at once */
	size_t nr_objects;
	bool is_movable;      /* see npg_object_is_movable() */
	bool is_plannable;    /* a plan can name and place it */
	bool is_thread_own;   /* each of its objects is used by the thread that made it */
	size_t first_of_site; /* groups of the same site: index of the first, and their number */
	size_t nr_of_site;
};

struct npg_grouping {
	struct npg_arena arena;
	size_t nr_groups;
	struct npg_group *groups;
	uint32_t *group_of; /* per object of the profile */
};

/**
 * npg_grouping_make() - group the objects of a profile.
 * @grouping: result, to be ended with npg_grouping_release(); borrows from @profile.
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_grouping_make(const struct npg_profile *profile,
				     struct npg_grouping *grouping);

/** npg_grouping_release() - safe on a zeroed struct. */
void npg_grouping_release(struct npg_grouping *grouping);

/**
 * npg_site_name() - the function that people know a call site by: the first one outside the C
 * library and outside wrappers of allocators (xmalloc, operator new, ...).
 *
 * Return: a function or a module's path, borrowed from @profile; NULL: nothing is known.
 * MT-Safe. AS-Safe.
 */
const char *npg_site_name(const struct npg_profile *profile, int site);

/** npg_site_offset() - the return address in that function, as an ELF virtual address. */
uint64_t npg_site_offset(const struct npg_profile *profile, int site);

#endif
