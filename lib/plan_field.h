/*
 * Private to lib/plan*.c: fields of a plan's JSON, each read with its check. An error names the
 * field's place in the file ("objects[2].ranges[0].node") and what is wanted there.
 *
 * Every function returns 0 or a negative errno with the reader's error set; an optional field that
 * is missing leaves the result as it was. MT-Safe (per reader). Not AS-Safe.
 */
#ifndef NPG_LIB_PLAN_FIELD_H
#define NPG_LIB_PLAN_FIELD_H

#include <jansson.h>

#include "lib/plan.h"

#define NPG_PLAN_MAX_BYTES (UINT64_C(1) << 60) /* sizes, offsets: far above any real one */

struct npg_plan_reader {
	const char *origin; /* of the text, for errors */
	struct npg_plan *plan;
	struct npg_error *err;
};

/* One JSON object being read, and its place in the file. */
struct npg_plan_place {
	const struct npg_plan_reader *r;
	const json_t *json;
	char path[128];
};

/** npg_field_bad() - "PLACE.KEY: REASON". Return: -EINVAL. */
int npg_field_bad(const struct npg_plan_place *p, const char *key, const char *format, ...)
    NPG_PRINTF(3, 4);

/** npg_field_no_memory() - Return: -ENOMEM. */
int npg_field_no_memory(const struct npg_plan_reader *r);

/**
 * npg_field_open() - begin to read @json, which must be an object without other keys than @keys.
 * @keys: NULL-terminated.
 * @index: of the object in the array @name; SIZE_MAX: it is no element of an array.
 */
NPG_MUST_CHECK int npg_field_open(struct npg_plan_place *p, const struct npg_plan_reader *r,
				  json_t *json, const char *const *keys, const char *name,
				  size_t index);

/** npg_field_text() - @text: result, to be ended with free(); null counts as missing. */
NPG_MUST_CHECK int npg_field_text(const struct npg_plan_place *p, const char *key, bool is_required,
				  char **text);

/** npg_field_u64() - a whole number from 0 to @max. */
NPG_MUST_CHECK int npg_field_u64(const struct npg_plan_place *p, const char *key, bool is_required,
				 uint64_t max, uint64_t *number);

/** npg_field_real() - an optional number from 0 to @max. */
NPG_MUST_CHECK int npg_field_real(const struct npg_plan_place *p, const char *key, double max,
				  double *number);

/** npg_field_build_id() - @build_id: room for 2 * NPG_BUILD_ID_MAX + 1. */
NPG_MUST_CHECK int npg_field_build_id(const struct npg_plan_place *p, const char *key,
				      char *build_id);

/** npg_field_module() - an index into the plan's modules, -1 if missing. */
NPG_MUST_CHECK int npg_field_module(const struct npg_plan_place *p, const char *key,
				    bool is_required, int *module);

/** npg_field_node() - one of the plan's nodes. */
NPG_MUST_CHECK int npg_field_node(const struct npg_plan_place *p, const char *key, uint8_t *node);

/** npg_field_array() - an array of at most @max elements; borrowed. */
NPG_MUST_CHECK int npg_field_array(const struct npg_plan_place *p, const char *key,
				   bool is_required, size_t max, json_t **array, size_t *nr);

/** npg_field_extent() - [first, count], count from 1. */
NPG_MUST_CHECK int npg_field_extent(const struct npg_plan_place *p, const char *key,
				    uint64_t *first, uint64_t *nr);

/** npg_field_is_thread_path() - "0", "0.2", "0.2.11" */
bool npg_field_is_thread_path(const char *path);

#endif
