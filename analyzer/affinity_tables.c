/* Leaf page tables of the groups, one per 2 MiB region with samples; see affinity.h. */
#include "analyzer/affinity_internal.h"
#include "analyzer/grow.h"

#define TABLE_KAPPA 2.0                 /* walks that the data's users are worth for a table */
#define TABLE_LEAST (UINT64_C(4) << 20) /* smaller static objects share their tables */

static bool has_own_tables(const struct npg_group *g)
{
	return g->is_plannable && (g->is_movable || g->size_bytes >= TABLE_LEAST);
}

static int add_table(struct npg_affinity_builder *b, uint32_t group, uint64_t region, uint64_t page,
		     uint32_t user)
{
	const struct npg_group *g = &b->input->grouping->groups[group];
	bool is_free = b->input->plan_tables && has_own_tables(g);
	struct npg_affinity *a = b->a;
	struct npg_unit *table;

	NPG_GROW(a->tables, a->nr_tables, b->table_capacity);
	NPG_GROW(a->table_info, a->nr_tables, b->table_info_capacity);
	a->table_info[a->nr_tables] = (struct npg_table_info){ group, region };
	table = &a->tables[a->nr_tables++];
	table->follows = -1;
	if (!is_free)
		table->follows =
		    (int32_t)npg_first_touch_of(b->input->first_touch, group, page, user);
	return npg_affinity_take_uses(b, table);
}

/* The users of the data in a region speak for its table too. */
static void collect_table_prior(struct npg_affinity_builder *b, uint32_t group, uint64_t page)
{
	const struct npg_unit *unit = &b->a->units[npg_affinity_unit_of(b->a, group, page)];
	double sum = 0.0;

	for (uint32_t i = 0; i < unit->nr_uses; i++)
		sum += (double)unit->uses[i].weight;
	for (uint32_t i = 0; sum > 0.0 && i < unit->nr_uses; i++)
		npg_affinity_collect(b, unit->uses[i].thread,
				     TABLE_KAPPA * (double)unit->uses[i].weight / sum);
}

int npg_affinity_add_tables(struct npg_affinity_builder *b, uint32_t group)
{
	const struct npg_affinity_input *in = b->input;
	const struct npg_group *g = &in->grouping->groups[group];
	const struct npg_profile_object *object = &in->profile->objects[g->object];
	const struct npg_cells *c = in->cells;
	size_t end = c->first_cell[group + 1];
	int ret = 0;

	for (size_t i = c->first_cell[group]; ret == 0 && i < end; i++) {
		const struct npg_cell *cell = &c->cells[i];
		uint64_t region = npg_object_region(object, cell->page, in->profile->page_bytes);

		npg_affinity_collect(b, cell->thread, (double)cell->walks);
		if (i + 1 < end && npg_object_region(object, c->cells[i + 1].page,
						     in->profile->page_bytes) == region)
			continue;
		if (g->is_plannable)
			collect_table_prior(b, group, cell->page);
		ret = add_table(b, group, region, cell->page, cell->thread);
	}
	return ret;
}
