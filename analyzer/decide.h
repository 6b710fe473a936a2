/*
 * Decisions in the words of a plan: ranges of pages and of table regions per group, with the
 * evidence for them. Made from the solution of an analysis, whether or not the plan says 'leave'.
 */
#ifndef NPG_ANALYZER_DECIDE_H
#define NPG_ANALYZER_DECIDE_H

#include "analyzer/analysis.h"
#include "lib/plan.h"

enum npg_pattern {
	NPG_PATTERN_UNUSED,  /* no samples */
	NPG_PATTERN_PRIVATE, /* one thread makes 90 % of the accesses */
	NPG_PATTERN_BLOCKS,  /* pieces with users of their own, 80 % of the accesses */
	NPG_PATTERN_SHARED,  /* anything else */
};

struct npg_decision {
	uint32_t group;
	enum npg_pattern pattern;
	double nr_samples;
	double weight;      /* accesses, normalised as in npg_cell */
	double share;       /* of all accesses */
	double local_share; /* of its accesses, under the plan */
	double first_touch_local_share;
	uint32_t main_thread;   /* the one that uses it most */
	double main_share;      /* its part */
	size_t nr_users;        /* threads with at least 1 % of the accesses */
	uint32_t first_toucher; /* thread that touched most of it first */
	double confidence;      /* 0..1, see npg_decision_confidence() */
	bool is_placed;         /* has ranges: a plan can place it and there are samples */
	size_t nr_ranges;
	struct npg_plan_range *ranges;
	size_t nr_table_ranges;
	struct npg_plan_table_range *table_ranges;
	double *node_cost_ns; /* per node: time of its accesses if all of it were there */
	double planned_cost_ns;
	double interleaved_cost_ns;
	char reason[160];
};

struct npg_decisions {
	struct npg_arena arena;
	size_t nr_decisions;
	struct npg_decision *decisions; /* one per group, in the order of the groups */
};

/**
 * npg_decisions_make() - all groups of an analysis.
 * @decisions: result, to be ended with npg_decisions_release().
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_decisions_make(const struct npg_analysis *analysis,
				      struct npg_decisions *decisions);

/** npg_decisions_release() - safe on a zeroed struct. */
void npg_decisions_release(struct npg_decisions *decisions);

/**
 * npg_decision_confidence() - probability that the best node of a range is its best node.
 * @best, @second: samples in favour of the two best nodes.
 *
 * Normal approximation of the binomial with a continuity correction:
 * Phi((best - second - 1) / sqrt(best + second)), at least one half.
 * MT-Safe. AS-Safe.
 */
double npg_decision_confidence(double best, double second);

/** npg_pattern_name() - "private", "blocks", "shared", "unused". MT-Safe. */
const char *npg_pattern_name(enum npg_pattern pattern);

#endif
