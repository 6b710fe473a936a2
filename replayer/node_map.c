/* The search for a mapping of nodes; see the header for what is wanted. */
#include <errno.h>
#include <math.h>

#include "replayer/node_map.h"

#define MAX          NPG_PLAN_MAX_NODES
#define MAX_ARRANGED 40320.0 /* 8! */

/* What a shortage costs against a distance: distances are ratios of about 1 to 10. */
#define COST_NO_CPU    1e6
#define COST_NO_MEMORY 1e3
#define COST_FEW_CPUS  1.0

struct search {
	const struct npg_map_machine *plan;
	const struct npg_map_machine *here;
	double plan_ratio[MAX][MAX];
	double here_ratio[MAX][MAX];
	bool is_taken[MAX];
	int to[MAX];
	int best[MAX];
	double best_cost;
};

/* Distances relative to the mean local one: comparable between machines and units. */
static void set_ratios(const struct npg_map_machine *m, double ratio[MAX][MAX])
{
	double local = 0.0;

	for (int i = 0; i < m->nr_nodes; i++)
		local += m->distance[(i * m->nr_nodes) + i];
	local = local > 0.0 ? local / m->nr_nodes : 1.0;
	for (int i = 0; i < m->nr_nodes; i++)
		for (int j = 0; j < m->nr_nodes; j++)
			ratio[i][j] = m->distance[(i * m->nr_nodes) + j] / local;
}

static double cost_of_node(const struct search *s, int planned, int here)
{
	double cost = 0.0;

	if (s->plan->cpus[planned] > 0 && s->here->cpus[here] == 0)
		cost += COST_NO_CPU;
	else if (s->plan->cpus[planned] > s->here->cpus[here])
		cost +=
		    COST_FEW_CPUS * (1.0 - (double)s->here->cpus[here] / s->plan->cpus[planned]);
	if (s->plan->bytes[planned] > s->here->bytes[here])
		cost += COST_NO_MEMORY *
			(1.0 - (double)s->here->bytes[here] / (double)s->plan->bytes[planned]);
	return cost;
}

/* Cost of giving @here to the planned node @i, against those already placed: 0 .. @i - 1. */
static double cost_of_step(const struct search *s, int i, int here)
{
	double cost = cost_of_node(s, i, here);

	cost += fabs(s->plan_ratio[i][i] - s->here_ratio[here][here]);
	for (int j = 0; j < i; j++)
		cost += fabs(s->plan_ratio[i][j] - s->here_ratio[here][s->to[j]]) +
			fabs(s->plan_ratio[j][i] - s->here_ratio[s->to[j]][here]);
	return cost;
}

static double cost_of_all(struct search *s)
{
	double cost = 0.0;

	for (int i = 0; i < s->plan->nr_nodes; i++)
		cost += cost_of_step(s, i, s->to[i]);
	return cost;
}

/* Depth is at most 8 where all is tried. */
static void try_all(struct search *s, int i, double cost)
{
	if (cost >= s->best_cost - 1e-9)
		return;
	if (i == s->plan->nr_nodes) {
		s->best_cost = cost;
		memcpy(s->best, s->to, sizeof(s->best));
		return;
	}
	for (int h = 0; h < s->here->nr_nodes; h++) {
		if (s->is_taken[h])
			continue;
		s->is_taken[h] = true;
		s->to[i] = h;
		try_all(s, i + 1, cost + cost_of_step(s, i, h));
		s->is_taken[h] = false;
	}
}

static void try_greedy(struct search *s)
{
	for (int i = 0; i < s->plan->nr_nodes; i++) {
		double best = HUGE_VAL;

		for (int h = 0; h < s->here->nr_nodes; h++) {
			double cost = s->is_taken[h] ? HUGE_VAL : cost_of_step(s, i, h);

			if (cost < best - 1e-9) {
				best = cost;
				s->to[i] = h;
			}
		}
		s->is_taken[s->to[i]] = true;
	}
}

/* Give the planned node @i the node @h; whoever had it gets the old one of @i. */
static void exchange(struct search *s, int i, int h)
{
	for (int j = 0; j < s->plan->nr_nodes; j++)
		if (s->to[j] == h)
			s->to[j] = s->to[i];
	s->to[i] = h;
}

static void improve(struct search *s)
{
	bool has_improved = true;

	s->best_cost = cost_of_all(s);
	memcpy(s->best, s->to, sizeof(s->best));
	for (int round = 0; has_improved && round < 2 * MAX; round++) {
		has_improved = false;
		for (int i = 0; i < s->plan->nr_nodes; i++) {
			for (int h = 0; h < s->here->nr_nodes; h++) {
				double cost;

				exchange(s, i, h);
				cost = cost_of_all(s);
				if (cost < s->best_cost - 1e-9) {
					s->best_cost = cost;
					has_improved = true;
					memcpy(s->best, s->to, sizeof(s->best));
				} else {
					memcpy(s->to, s->best, sizeof(s->best));
				}
			}
		}
	}
}

static double nr_arrangements(int n, int m)
{
	double nr = 1.0;

	for (int i = 0; i < n; i++)
		nr *= m - i;
	return nr;
}

static bool find_arrangement(struct search *s)
{
	int n = s->plan->nr_nodes, m = s->here->nr_nodes;

	memset(s->is_taken, 0, sizeof(s->is_taken));
	memset(s->to, 0, sizeof(s->to));
	set_ratios(s->plan, s->plan_ratio);
	set_ratios(s->here, s->here_ratio);
	if (nr_arrangements(n, m) <= MAX_ARRANGED) {
		s->best_cost = HUGE_VAL;
		try_all(s, 0, 0.0);
		return true;
	}
	try_greedy(s);
	improve(s);
	return false;
}

/* Planned nodes joined into groups, as many as there are nodes here. */
struct folding {
	struct npg_map_machine machine; /* of the groups */
	double mean[MAX][MAX];          /* mean distance of the groups' nodes, both directions */
	double packed[MAX * MAX];       /* the same as machine.distance wants it */
	int nr_members[MAX];
	int group[MAX]; /* by planned node */
};

static void fold_begin(struct folding *f, const struct npg_map_machine *plan)
{
	int n = plan->nr_nodes;

	f->machine = *plan;
	f->machine.distance = f->packed;
	for (int i = 0; i < n; i++) {
		f->group[i] = i;
		f->nr_members[i] = 1;
		for (int j = 0; j < n; j++)
			f->mean[i][j] =
			    (plan->distance[(i * n) + j] + plan->distance[(j * n) + i]) / 2;
	}
}

/* Join group @h into @g, g < h, and close the gap. */
static void join(struct folding *f, int nr_planned, int g, int h)
{
	int last = --f->machine.nr_nodes;
	double a = f->nr_members[g], b = f->nr_members[h];

	for (int k = 0; k <= last; k++)
		f->mean[g][k] = f->mean[k][g] =
		    ((a * f->mean[g][k]) + (b * f->mean[h][k])) / (a + b);
	f->nr_members[g] += f->nr_members[h];
	f->machine.bytes[g] += f->machine.bytes[h];
	f->machine.cpus[g] += f->machine.cpus[h];
	for (int i = 0; i < nr_planned; i++)
		f->group[i] = f->group[i] == h ? g : f->group[i] - (f->group[i] > h);
	for (int k = h; k < last; k++) {
		f->nr_members[k] = f->nr_members[k + 1];
		f->machine.bytes[k] = f->machine.bytes[k + 1];
		f->machine.cpus[k] = f->machine.cpus[k + 1];
		memcpy(f->mean[k], f->mean[k + 1], sizeof(f->mean[k]));
	}
	for (int i = 0; i < last; i++)
		memmove(&f->mean[i][h], &f->mean[i][h + 1],
			(size_t)(last - h) * sizeof(f->mean[i][h]));
}

/* Share of all bytes and threads that two groups would have together, never zero. */
static double load_of_pair(const struct folding *f, int g, int h)
{
	double bytes = 1.0, cpus = 1.0;

	for (int k = 0; k < f->machine.nr_nodes; k++) {
		bytes += (double)f->machine.bytes[k];
		cpus += f->machine.cpus[k];
	}
	return 0.01 + (((double)f->machine.bytes[g] + (double)f->machine.bytes[h]) / bytes) +
	       ((f->machine.cpus[g] + f->machine.cpus[h]) / cpus);
}

static void fold(struct folding *f, const struct npg_map_machine *plan, int nr_wanted)
{
	fold_begin(f, plan);
	while (f->machine.nr_nodes > nr_wanted) {
		double best = HUGE_VAL;
		int at_g = 0, at_h = 1;

		for (int g = 0; g < f->machine.nr_nodes; g++)
			for (int h = g + 1; h < f->machine.nr_nodes; h++) {
				double cost = f->mean[g][h] * load_of_pair(f, g, h);

				if (cost < best - 1e-9) {
					best = cost;
					at_g = g;
					at_h = h;
				}
			}
		join(f, plan->nr_nodes, at_g, at_h);
	}
	for (int g = 0; g < nr_wanted; g++)
		for (int h = 0; h < nr_wanted; h++)
			f->packed[(g * nr_wanted) + h] = f->mean[g][h];
}

static void describe(const struct search *s, struct npg_node_map *map)
{
	int n = s->plan->nr_nodes;
	double sum = 0.0;

	map->nr_short_of_memory = 0;
	map->nr_without_cpus = 0;
	for (int i = 0; i < n; i++) {
		int h = s->best[i];

		map->nr_short_of_memory += s->plan->bytes[i] > s->here->bytes[h];
		map->nr_without_cpus += s->plan->cpus[i] > 0 && s->here->cpus[h] == 0;
		for (int j = 0; j < n; j++)
			sum += fabs(s->plan_ratio[i][j] - s->here_ratio[h][s->best[j]]);
	}
	map->mismatch = sum / (n * n);
}

struct work {
	struct search search;
	struct folding folding;
};

int npg_node_map_find(const struct npg_map_machine *plan, const struct npg_map_machine *here,
		      struct npg_node_map *map)
{
	struct work *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	w->search.plan = plan;
	w->search.here = here;
	memset(map, 0, sizeof(*map));
	map->is_folded = here->nr_nodes < plan->nr_nodes;
	if (map->is_folded) {
		fold(&w->folding, plan, here->nr_nodes);
		w->search.plan = &w->folding.machine;
	}
	map->is_exact = find_arrangement(&w->search);
	for (int i = 0; i < plan->nr_nodes; i++)
		map->to[i] = w->search.best[map->is_folded ? w->folding.group[i] : i];
	describe(&w->search, map);
	free(w);
	return 0;
}
