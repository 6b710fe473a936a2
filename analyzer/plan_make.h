/* From decisions to a plan. */
#ifndef NPG_ANALYZER_PLAN_MAKE_H
#define NPG_ANALYZER_PLAN_MAKE_H

#include "analyzer/decide.h"
#include "lib/plan.h"

/**
 * npg_plan_make() - the plan of an analysis.
 * @recording: name of the database, for the record.
 * @plan: result, to be ended with npg_plan_free().
 *
 * Allocations of a call site whose placement agrees become one object ("all"). If the analysis says
 * 'leave', the plan has no threads and no objects.
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_plan_make(const struct npg_analysis *analysis,
				 const struct npg_decisions *decisions, const char *recording,
				 struct npg_plan **plan);

#endif
