/*
 * One analysis: from a recording's profile and a machine to a decision and predictions.
 */
#ifndef NPG_ANALYZER_ANALYSIS_H
#define NPG_ANALYZER_ANALYSIS_H

#include "analyzer/affinity.h"
#include "analyzer/predict.h"
#include "lib/topology.h"

enum npg_alternative {
	NPG_ALTERNATIVE_FIRST_TOUCH,
	NPG_ALTERNATIVE_INTERLEAVE,
	NPG_ALTERNATIVE_SINGLE,
	NPG_ALTERNATIVE_PLAN,
	NPG_NR_ALTERNATIVES,
};

struct npg_prediction {
	const char *name;
	bool is_possible;
	char why_not[128];
	struct npg_score score; /* times in ns as in the header of analyzer/cost.h */
};

struct npg_analysis_options {
	enum npg_objective objective;
	bool plan_tables;
	int max_nodes; /* 0: all */
};

struct npg_analysis {
	const struct npg_profile *profile;   /* borrowed */
	const struct npg_topology *topology; /* borrowed */
	struct npg_analysis_options options;
	struct npg_cost *cost;
	struct npg_grouping grouping;
	struct npg_first_touch first_touch;
	struct npg_cells cells;
	struct npg_affinity affinity;
	struct npg_solution solution;
	double *busy;       /* per thread */
	int *spread_node;   /* per thread: where a scheduler would have it */
	int *single_node;   /* per thread: all on the node of the single-node alternative */
	int *recorded_node; /* per thread, node index; NULL: recorded on another machine */
	struct npg_prediction predictions[NPG_NR_ALTERNATIVES];
	double gain;       /* share of first touch's time that the plan saves, held-out samples */
	double gain_error; /* standard error of that */
	bool leave;        /* first touch is as good */
	char leave_reason[256];
};

/**
 * npg_analysis_run() - decide and predict.
 * @profile, @topology: borrowed until npg_analysis_free().
 *
 * The plan is scored on samples that it was not made from: made from one half of the samples and
 * scored on the other, both ways. The decision itself uses all samples.
 *
 * Return: 0; -ENODATA: no samples; -EINVAL: the machine has no CPUs; -ENOMEM; @err set.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_analysis_run(const struct npg_profile *profile,
				    const struct npg_topology *topology,
				    const struct npg_analysis_options *options,
				    struct npg_analysis **analysis, struct npg_error *err);

/** npg_analysis_free() - NULL is allowed. */
void npg_analysis_free(struct npg_analysis *analysis);

/** npg_analysis_predict_input() - for npg_predict_*(); borrows from @analysis. */
struct npg_predict_input npg_analysis_predict_input(const struct npg_analysis *analysis);

/**
 * npg_analysis_matrix() - shares of all accesses by node of the CPU (row) and of the memory.
 * @matrix: result, nr_nodes x nr_nodes, to be freed with free(3).
 *
 * Unlike the predictions, the plan's matrix is of the samples that it was made from.
 *
 * Return: 0; -ENOMEM.
 */
NPG_MUST_CHECK int npg_analysis_matrix(const struct npg_analysis *analysis,
				       enum npg_alternative alternative, double **matrix);

/** npg_analysis_placement() - one of the alternatives; borrows from @analysis. */
struct npg_placement npg_analysis_placement(const struct npg_analysis *analysis,
					    enum npg_alternative alternative);

#endif
