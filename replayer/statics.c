/* Static objects: neighbours in memory share pages, and a page can have one policy only. */
#include <errno.h>

#include "lib/preload/hash.h"
#include "replayer/ranges.h"

/* A run of pages with one policy, before pages that two objects want are given to one. */
struct claim {
	uint64_t key;   /* of the module */
	uint64_t first; /* page of the module's address space, from vaddr 0 */
	uint64_t end;
	double weight; /* samples per page */
	uint32_t policy;
	uint32_t object;
};

static int by_place(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

/* Cut what overlaps from the lighter of two neighbours; sorted by_place(). */
static void cut_overlaps(struct claim *claims, size_t nr)
{
	struct claim *last = NULL;

	for (size_t i = 0; i < nr; i++) {
		struct claim *c = &claims[i];

		if (last != NULL && last->key == c->key && c->first < last->end) {
			if (c->weight > last->weight)
				last->end = c->first;
			else
				c->first = last->end < c->end ? last->end : c->end;
		}
		if (c->end > c->first &&
		    (last == NULL || last->key != c->key || c->end > last->end))
			last = c;
	}
}

static int claim_object(struct npg_build *build, size_t i, struct npg_list *claims,
			struct npg_list *statics)
{
	const struct npg_plan_object *o = &build->plan->objects[i];
	const struct npg_fit_static *here = &build->fit->statics[i];
	uint64_t page = build->options->page_size_bytes;
	struct npg_wire_static s = { .vaddr = here->vaddr, .size_bytes = o->size_bytes };
	size_t before = build->ranges.nr;
	struct claim c = { .object = (uint32_t)statics->nr };
	struct npg_extent extent;
	int ret = npg_ranges_add(build, o, &extent);

	if (ret < 0)
		return ret;
	c.key = npg_plan_module_key(&here->module);
	s.check = npg_hash_frame(NPG_HASH_SEED, c.key,
				 npg_hash_is_system_module(here->module.path) ? 0 : s.vaddr + 1);
	s.first_table = extent.first_table;
	s.nr_tables = extent.nr_tables;
	s.plan_index = (uint32_t)i;
	c.weight = o->share * (double)page / (double)(o->size_bytes + 1);
	for (uint32_t r = 0; r < extent.nr_ranges; r++) {
		const struct npg_wire_range *ranges = build->ranges.items;
		const struct npg_wire_range *range = &ranges[extent.first_range + r];

		c.first = (s.vaddr / page) + range->first;
		c.end = c.first + range->nr;
		c.policy = range->policy;
		if (npg_list_append(claims, &c) == NULL)
			return -ENOMEM;
	}
	build->ranges.nr = before; /* they come back cut, from the claims */
	return npg_list_append(statics, &s) != NULL ? 0 : -ENOMEM;
}

/* Give the objects the ranges that are left of their claims. */
static int add_claims(struct npg_build *build, const struct npg_list *claims,
		      struct npg_wire_static *statics, size_t nr_statics)
{
	uint64_t page = build->options->page_size_bytes;
	const struct claim *all = claims->items;

	for (size_t i = 0; i < nr_statics; i++) {
		struct npg_wire_static *s = &statics[i];

		s->first_range = (uint32_t)build->ranges.nr;
		for (size_t c = 0; c < claims->nr; c++) {
			struct npg_wire_range range = { .policy = all[c].policy };

			if (all[c].object != i || all[c].end <= all[c].first)
				continue;
			range.first = all[c].first - (s->vaddr / page);
			range.nr = all[c].end - all[c].first;
			if (npg_list_append(&build->ranges, &range) == NULL)
				return -ENOMEM;
			s->nr_ranges++;
		}
		if (s->nr_ranges + s->nr_tables > 0 && npg_list_append(&build->statics, s) == NULL)
			return -ENOMEM;
	}
	return 0;
}

int npg_statics_add(struct npg_build *build)
{
	struct npg_list claims = { .item_size = sizeof(struct claim) };
	struct npg_list statics = { .item_size = sizeof(struct npg_wire_static) };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < build->plan->nr_objects; i++)
		if (strcmp(build->plan->objects[i].kind, "static") == 0 && !build->fit->is_stale[i])
			ret = claim_object(build, i, &claims, &statics);
	if (ret == 0 && claims.nr > 0) {
		qsort(claims.items, claims.nr, sizeof(struct claim), by_place);
		cut_overlaps(claims.items, claims.nr);
		ret = add_claims(build, &claims, statics.items, statics.nr);
	}
	free(claims.items);
	free(statics.items);
	return ret;
}
