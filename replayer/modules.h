/*
 * Does the plan still fit the files? Build IDs of the program and its libraries are compared with
 * those in the plan; static objects of a rebuilt file are found again by name.
 */
#ifndef NPG_REPLAYER_MODULES_H
#define NPG_REPLAYER_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/error.h"
#include "lib/plan.h"

enum npg_module_state {
	NPG_MODULE_FITS,
	NPG_MODULE_ABSENT, /* no such file; it may still be loaded from elsewhere */
	NPG_MODULE_STALE,  /* another build ID */
};

struct npg_fit_static { /* where a static object is now */
	bool is_here;
	bool is_by_name;
	uint64_t vaddr;
	struct npg_plan_module module; /* .path borrowed from the plan */
};

struct npg_fit {
	enum npg_module_state *modules; /* by the plan's module */
	bool *is_stale;                 /* by the plan's object: cannot match, is left out */
	struct npg_fit_static *statics; /* by the plan's object; unused for others */
	bool is_other_program;          /* the plan was made for an executable of another name */
	size_t nr_stale_modules;
	size_t nr_stale_objects;
	size_t nr_by_name;
	double stale_share; /* of the plan's samples in stale objects */
};

/**
 * npg_fit_check() - compare @plan with the files that are there now.
 * @program: the executable that will run, or NULL if that is not an ELF file (a script).
 * @fit: result, to be ended with npg_fit_release().
 *
 * Return: 0; -ENOMEM with @err set. MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_fit_check(const struct npg_plan *plan, const char *program,
				 struct npg_fit *fit, struct npg_error *err);

/** npg_fit_release() - safe on a zeroed struct. */
void npg_fit_release(struct npg_fit *fit);

/** npg_fit_describe() - one sentence on what is stale, for the summary; empty if nothing is. */
void npg_fit_describe(const struct npg_plan *plan, const struct npg_fit *fit, char *text,
		      size_t size);

#endif
