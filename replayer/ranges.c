/* Planned nodes to kernel policies; the ranges that they apply to. */
#include <errno.h>
#include <linux/mempolicy.h>

#include "replayer/ranges.h"

#define MAX_TURNS 64 /* ranges that interleaving by weights may take */

static void set_node(struct npg_wire_policy *policy, int node)
{
	if (node >= 0 && node < NPG_WIRE_NODE_WORDS * 64)
		policy->nodes[node / 64] |= UINT64_C(1) << (node % 64);
}

static int nr_nodes_of(const struct npg_wire_policy *policy)
{
	int nr = 0;

	for (int i = 0; i < NPG_WIRE_NODE_WORDS; i++)
		nr += __builtin_popcountll(policy->nodes[i]);
	return nr;
}

/* Index of an equal policy, appended if it is new. Return: -ENOMEM. */
static int64_t find_policy(struct npg_build *build, const struct npg_wire_policy *policy)
{
	const struct npg_wire_policy *all = build->policies.items;

	for (size_t i = 0; i < build->policies.nr; i++)
		if (memcmp(&all[i], policy, sizeof(*policy)) == 0)
			return (int64_t)i;
	if (npg_list_append(&build->policies, policy) == NULL)
		return -ENOMEM;
	return (int64_t)build->policies.nr - 1;
}

static int64_t policy_of_node(struct npg_build *build, int planned, bool is_strict)
{
	struct npg_wire_policy policy = { .mode = is_strict ? MPOL_BIND : MPOL_PREFERRED };

	set_node(&policy, build->res->nodes[planned].node);
	return find_policy(build, &policy);
}

static int64_t policy_of_range(struct npg_build *build, const struct npg_plan_range *range)
{
	struct npg_wire_policy policy = { .mode = MPOL_INTERLEAVE };

	for (int i = 0; i < range->nr_nodes; i++)
		set_node(&policy, build->res->nodes[range->nodes[i]].node);
	if (range->policy == NPG_POLICY_BIND || nr_nodes_of(&policy) == 1)
		return policy_of_node(build, range->nodes[0], build->options->is_strict);
	return find_policy(build, &policy);
}

/* Append to @list, or make the last range longer if it is the same and adjacent. */
static int append(struct npg_list *list, size_t first_of_object, uint64_t first, uint64_t nr,
		  int64_t policy)
{
	struct npg_wire_range range = { .first = first, .nr = nr, .policy = (uint32_t)policy };
	struct npg_wire_range *last = list->items;

	if (policy < 0)
		return (int)policy;
	if (nr == 0)
		return 0;
	if (list->nr > first_of_object) {
		last += list->nr - 1;
		if (last->policy == range.policy && last->first + last->nr == first) {
			last->nr += nr;
			return 0;
		}
	}
	return npg_list_append(list, &range) != NULL ? 0 : -ENOMEM;
}

/* Turns of each node as long as its weight, so often that MAX_TURNS ranges are not passed. */
static int append_weighted(struct npg_build *build, size_t first_of_object,
			   const struct npg_plan_range *range, uint64_t first, uint64_t nr)
{
	uint64_t sum = 0, nr_rounds, done = 0, passed = 0;
	int ret = 0;

	for (int i = 0; i < range->nr_nodes; i++)
		sum += range->weights[i];
	nr_rounds = (uint64_t)(MAX_TURNS / range->nr_nodes) + 1;
	if (nr_rounds > nr / sum)
		nr_rounds = nr / sum > 0 ? nr / sum : 1;
	for (uint64_t round = 0; round < nr_rounds; round++)
		for (int i = 0; ret == 0 && i < range->nr_nodes; i++) {
			uint64_t end;

			passed += range->weights[i];
			end = (uint64_t)((double)nr * (double)passed / (double)(sum * nr_rounds));
			ret = append(
			    &build->ranges, first_of_object, first + done, end - done,
			    policy_of_node(build, range->nodes[i], build->options->is_strict));
			done = end;
		}
	return ret;
}

static bool has_unequal_weights(const struct npg_plan_range *range)
{
	for (int i = 1; range->policy == NPG_POLICY_INTERLEAVE && i < range->nr_nodes; i++)
		if (range->weights[i] != range->weights[0])
			return true;
	return false;
}

static int add_range(struct npg_build *build, size_t first_of_object,
		     const struct npg_plan_range *range)
{
	uint64_t planned = build->plan->page_size_bytes, here = build->options->page_size_bytes;
	uint64_t first = range->first_page * planned / here;
	uint64_t end = ((range->first_page + range->nr_pages) * planned + here - 1) / here;
	const struct npg_wire_range *last = build->ranges.items;

	if (build->ranges.nr > first_of_object) { /* larger pages here: one page, one range */
		last += build->ranges.nr - 1;
		if (first < last->first + last->nr)
			first = last->first + last->nr;
	}
	if (end <= first)
		return 0;
	if (has_unequal_weights(range))
		return append_weighted(build, first_of_object, range, first, end - first);
	return append(&build->ranges, first_of_object, first, end - first,
		      policy_of_range(build, range));
}

int npg_ranges_add(struct npg_build *build, const struct npg_plan_object *object,
		   struct npg_extent *extent)
{
	size_t first_range = build->ranges.nr, first_table = build->tables.nr;
	bool has_tables = !build->options->leaves_page_tables && build->res->nr_here > 1;
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < object->nr_ranges; i++)
		ret = add_range(build, first_range, &object->ranges[i]);
	for (size_t i = 0; ret == 0 && has_tables && i < object->nr_table_ranges; i++) {
		const struct npg_plan_table_range *t = &object->table_ranges[i];

		ret = append(&build->tables, first_table, t->first_region, t->nr_regions,
			     policy_of_node(build, t->node, false));
	}
	extent->first_range = (uint32_t)first_range;
	extent->nr_ranges = (uint32_t)(build->ranges.nr - first_range);
	extent->first_table = (uint32_t)first_table;
	extent->nr_tables = (uint32_t)(build->tables.nr - first_table);
	return ret;
}
