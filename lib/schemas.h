/*
 * The files of schemas/ as texts, compiled in (see the Makefile), so that an installed numapgo
 * needs no data files to create or check a database or a plan.
 */
#ifndef NPG_LIB_SCHEMAS_H
#define NPG_LIB_SCHEMAS_H

extern const char npg_recording_sql[];    /* schemas/recording.sql */
extern const char npg_analysis_sql[];     /* schemas/analysis.sql */
extern const char npg_plan_schema_json[]; /* schemas/plan.schema.json */

#define NPG_APPLICATION_ID    1313883953 /* "NPG1", as in schemas/recording.sql */
#define NPG_RECORDING_VERSION 1          /* PRAGMA user_version */

#endif
