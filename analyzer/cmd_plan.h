/* Parts of the verb plan, private to it: each prints its result and returns the exit status. */
#ifndef NPG_ANALYZER_CMD_PLAN_H
#define NPG_ANALYZER_CMD_PLAN_H

#include "lib/command.h"
#include "lib/plan.h"

struct plan_options {
	struct npg_common common;
	const char *database;
	bool exit_code;
};

/** npg_plan_print_explanation() - of all objects, or of those whose name contains @wanted. */
int npg_plan_print_explanation(const struct plan_options *options, const struct npg_plan *plan,
			       const char *path, const char *wanted);

/** npg_plan_print_diff() - what differs from @a to @b. */
int npg_plan_print_diff(const struct plan_options *options, const struct npg_plan *a,
			const struct npg_plan *b);

/**
 * npg_plan_describe_object() - "main (heap, 3rd allocation by thread 0.1)" into @text.
 * Return: @text.
 */
const char *npg_plan_describe_object(const struct npg_plan_object *object, char *text, size_t size);

/** npg_plan_describe_range() - "node 2", "nodes 0,1,2 interleaved" into @text. Return: @text. */
const char *npg_plan_describe_range(const struct npg_plan_range *range, char *text, size_t size);

#endif
