/*
 * What a placement would give: each sampled access put against where its page would be.
 */
#ifndef NPG_ANALYZER_PREDICT_H
#define NPG_ANALYZER_PREDICT_H

#include "analyzer/affinity.h"
#include "analyzer/cells.h"
#include "analyzer/cost.h"
#include "analyzer/solver.h"

enum npg_placement_kind {
	NPG_PLACE_FIRST_TOUCH, /* page and table on the node of the thread that touched it first */
	NPG_PLACE_INTERLEAVE,  /* pages and tables spread evenly over all nodes with memory */
	NPG_PLACE_SINGLE,      /* all on .node */
	NPG_PLACE_PLAN,        /* by .affinity and .solution */
};

struct npg_placement {
	enum npg_placement_kind kind;
	const int *thread_node;
	int node;
	const struct npg_affinity *affinity;
	const struct npg_solution *solution;
};

struct npg_predict_input {
	const struct npg_profile *profile;
	const struct npg_grouping *grouping;
	const struct npg_first_touch *first_touch;
	const struct npg_cost *cost;
	const double *busy; /* per thread */
};

/**
 * npg_predict_traffic() - accesses and walks of the cells by thread and memory node.
 * @traffic: initialised; what it holds is added to.
 * MT-Safe. AS-Safe.
 */
void npg_predict_traffic(const struct npg_predict_input *input,
			 const struct npg_placement *placement, const struct npg_cells *cells,
			 struct npg_traffic *traffic);

/** npg_predict_score() - time and locality of a placement. Return: 0; -ENOMEM. */
NPG_MUST_CHECK int npg_predict_score(const struct npg_predict_input *input,
				     const struct npg_placement *placement,
				     const struct npg_cells *cells, struct npg_score *score);

/**
 * npg_predict_gain() - idle-latency time that placement @b saves against @a, summed over cells.
 * @gain, @variance: added to. The variance is that of sampling: each cell's number of samples is
 * taken as Poisson distributed, so a difference d from n samples adds d * d / n.
 */
void npg_predict_gain(const struct npg_predict_input *input, const struct npg_placement *a,
		      const struct npg_placement *b, const struct npg_cells *cells, double *gain,
		      double *variance);

#endif
