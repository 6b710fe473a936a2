/*
 * btree_lookup: look-ups of random keys in a large B-tree.
 *
 * A look-up walks from the root to a leaf: the upper levels stay in the caches, the last two levels
 * miss caches and TLB in a chain of dependent loads. The main thread builds the tree, so nodes and
 * page-table pages are all on its node. Evenly shared, best is: both interleaved. With --own, 15 of
 * 16 look-ups are for keys of the thread's own range, whose leaves are contiguous: best is range i
 * and its page-table pages on the node of thread i.
 */
#include "workload.h"

enum { FANOUT = 16 };

static const struct workload workload = {
	.name = "btree_lookup",
	.summary = "Look-ups of random keys in a B-tree, bound by page walks.",
	.size_mib = 192,
	.nr_threads = 4,
	.nr_iterations = 10,
	.own = "15 of 16 look-ups are in the thread's own key range (else all are anywhere)",
};

struct node {
	uint64_t keys[FANOUT]; /* smallest key below each child; in a leaf: the keys */
	union {
		struct node *child;
		uint64_t value;
	} slots[FANOUT];
};

static struct node *root;
static uint64_t nr_keys, height; /* the key of index i is 2 i */

/* Make a subtree of @level levels for the keys from index @first on; its nodes come from @pool. */
static struct node *build(uint64_t level, uint64_t first, struct node **pool)
{
	struct node *node = (*pool)++;
	uint64_t step = 1;

	for (uint64_t i = 1; i < level; i++)
		step *= FANOUT;
	for (uint64_t i = 0; i < FANOUT && first + i * step < nr_keys; i++) {
		node->keys[i] = 2 * (first + i * step);
		if (level == 1)
			node->slots[i].value = 3 * (first + i);
		else
			node->slots[i].child = build(level - 1, first + i * step, pool);
	}
	return node;
}

static uint64_t look_up(uint64_t key)
{
	const struct node *node = root;

	for (uint64_t level = height;; level--) {
		unsigned slot = 0;

		for (unsigned i = 1; i < FANOUT; i++)
			slot += node->keys[i] != 0 && node->keys[i] <= key;
		if (level == 1)
			return node->keys[slot] == key ? node->slots[slot].value : UINT64_MAX;
		node = node->slots[slot].child;
	}
}

static void work(struct worker *w)
{
	uint64_t first = block_start(nr_keys, w->index, w->nr_workers);
	uint64_t nr_own = block_start(nr_keys, w->index + 1, w->nr_workers) - first;
	uint64_t nr_lookups = nr_iterations << 18;

	for (uint64_t i = 0; i < nr_lookups; i++) {
		uint64_t random = mix(w->index * nr_lookups + i);
		uint64_t key = own && random % 16 != 0 ? first + (random >> 4) % nr_own
						       : (random >> 4) % nr_keys;

		w->nr_wrong += look_up(2 * key) != 3 * key;
		w->sum += key;
	}
}

int main(int argc, char **argv)
{
	uint64_t nr_nodes = 0;
	struct node *pool;

	workload_arguments(&workload, argc, argv);
	nr_keys = (size_mib << 20) / sizeof(*root) * (FANOUT - 1);
	for (uint64_t nr = nr_keys; height == 0 || nr > 1; height++) {
		nr = (nr + FANOUT - 1) / FANOUT;
		nr_nodes += nr;
	}
	pool = check_memory(calloc(nr_nodes, sizeof(*pool)));
	root = build(height, 0, &pool);
	return workload_run(&workload, work);
}
