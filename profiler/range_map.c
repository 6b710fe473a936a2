/* A treap: a search tree by start whose shape comes from random priorities. */
#include <errno.h>
#include <stdlib.h>

#include "profiler/range_map.h"

void npg_range_map_init(struct npg_range_map *map, void (*keep)(void *value),
			void (*drop)(void *context, void *value), void *context)
{
	*map = (struct npg_range_map){
		.keep = keep, .drop = drop, .context = context, .seed = 2463534242U
	};
}

static uint32_t next_priority(struct npg_range_map *map)
{
	map->seed ^= map->seed << 13;
	map->seed ^= map->seed >> 17;
	map->seed ^= map->seed << 5;
	return map->seed;
}

struct npg_range *npg_range_map_next(const struct npg_range_map *map, uint64_t address)
{
	struct npg_range *at = map->root, *best = NULL;

	while (at != NULL) {
		if (at->end > address) {
			best = at;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return best;
}

struct npg_range *npg_range_map_find(const struct npg_range_map *map, uint64_t address)
{
	struct npg_range *range = npg_range_map_next(map, address);

	return range != NULL && range->start <= address ? range : NULL;
}

/* All ranges that start below @at to the left, the others to the right. */
static void split(struct npg_range *tree, uint64_t at, struct npg_range **left,
		  struct npg_range **right)
{
	if (tree == NULL) {
		*left = *right = NULL;
	} else if (tree->start < at) {
		split(tree->right, at, &tree->right, right);
		*left = tree;
	} else {
		split(tree->left, at, left, &tree->left);
		*right = tree;
	}
}

static struct npg_range *merge(struct npg_range *left, struct npg_range *right)
{
	if (left == NULL || right == NULL)
		return left == NULL ? right : left;
	if (left->priority > right->priority) {
		left->right = merge(left->right, right);
		return left;
	}
	right->left = merge(left, right->left);
	return right;
}

static void add(struct npg_range_map *map, struct npg_range *range)
{
	struct npg_range *left, *right;

	split(map->root, range->start, &left, &right);
	map->root = merge(merge(left, range), right);
	map->nr_ranges++;
}

static struct npg_range *new_range(struct npg_range_map *map, uint64_t start, uint64_t end,
				   void *value)
{
	struct npg_range *range = malloc(sizeof(*range));

	if (range != NULL)
		*range = (struct npg_range){
			.start = start, .end = end, .value = value, .priority = next_priority(map)
		};
	return range;
}

static void free_tree(struct npg_range_map *map, struct npg_range *tree)
{
	if (tree == NULL)
		return;
	free_tree(map, tree->left);
	free_tree(map, tree->right);
	map->drop(map->context, tree->value);
	map->nr_ranges--;
	free(tree);
}

/* Make @at a border: a range that holds it in its inside becomes two. */
static int cut(struct npg_range_map *map, uint64_t at)
{
	struct npg_range *range = npg_range_map_find(map, at), *upper;

	if (range == NULL || range->start == at)
		return 0;
	upper = new_range(map, at, range->end, range->value);
	range->end = at;
	if (upper == NULL)
		return -ENOMEM;
	map->keep(range->value);
	add(map, upper);
	return 0;
}

int npg_range_map_clear(struct npg_range_map *map, uint64_t start, uint64_t end)
{
	struct npg_range *left, *middle, *right, *first = npg_range_map_next(map, start);
	int ret;

	if (first == NULL || first->start >= end)
		return 0;
	ret = cut(map, start);
	if (ret == 0)
		ret = cut(map, end);
	split(map->root, start, &left, &right);
	split(right, end, &middle, &right);
	free_tree(map, middle);
	map->root = merge(left, right);
	return ret;
}

int npg_range_map_insert(struct npg_range_map *map, uint64_t start, uint64_t end, void *value)
{
	struct npg_range *range;

	if (end <= start)
		return -EINVAL;
	range = new_range(map, start, end, value);
	if (range == NULL)
		return -ENOMEM;
	npg_range_map_clear(map, start, end);
	add(map, range);
	return 0;
}

void npg_range_map_release(struct npg_range_map *map)
{
	free_tree(map, map->root);
	map->root = NULL;
}
