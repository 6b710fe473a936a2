/* Shared by affinity.c and affinity_tables.c only. */
#ifndef NPG_ANALYZER_AFFINITY_INTERNAL_H
#define NPG_ANALYZER_AFFINITY_INTERNAL_H

#include "analyzer/affinity.h"
#include "analyzer/changepoint.h"

struct npg_affinity_builder {
	const struct npg_affinity_input *input;
	struct npg_affinity *a;
	size_t unit_capacity, info_capacity, table_capacity, table_info_capacity;
	double *weight;   /* per thread: the uses being collected */
	uint32_t *thread; /* with a weight */
	size_t nr_collected;
	struct npg_point *points;
	size_t point_capacity;
};

/** npg_affinity_collect() - add to the uses being collected; no weight, no use. */
void npg_affinity_collect(struct npg_affinity_builder *b, uint32_t thread, double weight);

/** npg_affinity_take_uses() - make the collected uses @unit's, and begin anew. Return: 0; -ENOMEM.
 */
NPG_MUST_CHECK int npg_affinity_take_uses(struct npg_affinity_builder *b, struct npg_unit *unit);

/** npg_affinity_add_tables() - the tables of a group, whose units are there. Return: 0; -ENOMEM. */
NPG_MUST_CHECK int npg_affinity_add_tables(struct npg_affinity_builder *b, uint32_t group);

#endif
