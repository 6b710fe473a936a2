/* Writing the analysis tables (schemas/analysis.sql) into a recording. */
#ifndef NPG_ANALYZER_STORE_H
#define NPG_ANALYZER_STORE_H

#include "analyzer/decide.h"
#include "lib/db.h"

#define NPG_ANALYSIS_VERSION 1 /* of schemas/analysis.sql, in meta 'analysis_version' */

/**
 * npg_store_analysis() - replace the analysis tables by those of @analysis, or leave the file as
 * it was.
 *
 * Return: 0; as npg_db_exec(), @err set.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_store_analysis(struct npg_db *db, const struct npg_analysis *analysis,
				      const struct npg_decisions *decisions, struct npg_error *err);

#endif
