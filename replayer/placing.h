/*
 * The placing table (schemas/wire.h): a resolved plan in the form that the preload object searches.
 */
#ifndef NPG_REPLAYER_PLACING_H
#define NPG_REPLAYER_PLACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/error.h"
#include "lib/plan.h"
#include "replayer/modules.h"
#include "replayer/resolve.h"
#include "schemas/wire.h"

struct npg_placing_options {
	bool is_strict;           /* bind, instead of prefer with other nodes as a reserve */
	bool has_children;        /* programs that it starts, too */
	bool overrides_affinity;  /* pin also where the program set a mask itself */
	bool leaves_threads;      /* pin no thread */
	bool leaves_memory;       /* place no object */
	bool has_huge_pages;      /* everywhere, so that there are no leaf page tables */
	bool leaves_page_tables;  /* place no page-table page */
	uint64_t page_size_bytes; /* of this machine */
	uint64_t memory_bytes;    /* of this machine */
	uint64_t max_map_count;   /* vm.max_map_count */
};

struct npg_placing {
	struct npg_wire_table *image; /* followed by its lists; status_offset_bytes long */
	size_t size_bytes;            /* with the status */
	size_t nr_objects;            /* of the plan that are in it */
	size_t nr_pins;               /* threads that would be pinned */
};

/**
 * npg_placing_build() - make the table.
 *
 * Left out: stale objects; threads whose node has no allowed CPU or all of them; page-table ranges
 * where only one node is usable. Interleaving by weights becomes at most 64 alternating ranges.
 * A page that two static objects share goes to the one with more samples per page.
 *
 * Return: 0; -ENOMEM; -E2BIG: more than 4 GiB; @err set. To be ended with npg_placing_release().
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_placing_build(const struct npg_plan *plan, const struct npg_resolution *res,
				     const struct npg_fit *fit,
				     const struct npg_placing_options *options,
				     struct npg_placing *table, struct npg_error *err);

/** npg_placing_release() - safe on a zeroed struct. */
void npg_placing_release(struct npg_placing *table);

/**
 * npg_placing_share() - a sealed memfd with the table and an empty status.
 * @status: the status, mapped here for reading and writing; ends with npg_placing_unshare().
 *
 * Return: the descriptor; -ENOMEM, -EMFILE, -ENOSYS; @err set.
 */
NPG_MUST_CHECK int npg_placing_share(const struct npg_placing *table,
				     struct npg_wire_status **status, struct npg_error *err);

/** npg_placing_unshare() - unmap the status and close the descriptor. */
void npg_placing_unshare(const struct npg_placing *table, struct npg_wire_status *status, int fd);

/** npg_placing_outcomes() - the list behind the status: one per object of the plan. */
struct npg_wire_outcome *npg_placing_outcomes(struct npg_wire_status *status);

#endif
