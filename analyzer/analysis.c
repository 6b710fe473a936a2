/* The steps of an analysis; see the header. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "analyzer/analysis.h"

#define NOISE      2.0  /* standard errors that a gain must have */
#define LEAST_GAIN 0.02 /* share of first touch's time */

static const char *const names[NPG_NR_ALTERNATIVES] = { "first touch", "interleave", "single node",
							"plan" };

struct npg_predict_input npg_analysis_predict_input(const struct npg_analysis *a)
{
	return (struct npg_predict_input){ .profile = a->profile,
					   .grouping = &a->grouping,
					   .first_touch = &a->first_touch,
					   .cost = a->cost,
					   .busy = a->busy };
}

struct npg_placement npg_analysis_placement(const struct npg_analysis *a,
					    enum npg_alternative alternative)
{
	struct npg_placement p = { .kind = NPG_PLACE_FIRST_TOUCH, .thread_node = a->spread_node };

	if (alternative == NPG_ALTERNATIVE_INTERLEAVE)
		p.kind = NPG_PLACE_INTERLEAVE;
	if (alternative == NPG_ALTERNATIVE_SINGLE) {
		p.kind = NPG_PLACE_SINGLE;
		p.thread_node = a->single_node;
		p.node = a->single_node[0];
	}
	if (alternative == NPG_ALTERNATIVE_PLAN && !a->leave) {
		p.kind = NPG_PLACE_PLAN;
		p.thread_node = a->solution.thread_node;
		p.affinity = &a->affinity;
		p.solution = &a->solution;
	}
	return p;
}

int npg_analysis_matrix(const struct npg_analysis *a, enum npg_alternative alternative,
			double **matrix)
{
	struct npg_predict_input input = npg_analysis_predict_input(a);
	struct npg_placement p = npg_analysis_placement(a, alternative);
	size_t n = (size_t)a->cost->nr_nodes;
	double *sums = calloc(n * n, sizeof(*sums)), all = 0.0;
	struct npg_traffic traffic = { 0 };

	if (sums == NULL || npg_traffic_init(&traffic, a->profile->nr_threads, (int)n) < 0) {
		free(sums);
		return -ENOMEM;
	}
	npg_predict_traffic(&input, &p, &a->cells, &traffic);
	for (size_t t = 0; t < a->profile->nr_threads; t++) {
		for (size_t h = 0; h < n; h++) {
			sums[(size_t)p.thread_node[t] * n + h] += traffic.accesses[t * n + h];
			all += traffic.accesses[t * n + h];
		}
	}
	for (size_t i = 0; all > 0.0 && i < n * n; i++)
		sums[i] /= all;
	npg_traffic_release(&traffic);
	*matrix = sums;
	return 0;
}

/* Nodes by index where the threads ran, if they ran on a machine of this shape with nodes. */
static int find_recorded_nodes(struct npg_analysis *a)
{
	const struct npg_profile *p = a->profile;

	if (a->topology->nr_nodes < 2 || strcmp(p->fingerprint, a->topology->fingerprint) != 0)
		return 0;
	a->recorded_node = calloc(p->nr_threads + 1, sizeof(int));
	if (a->recorded_node == NULL)
		return -ENOMEM;
	for (size_t t = 0; t < p->nr_threads; t++)
		a->recorded_node[t] =
		    npg_topology_index_of_node(a->topology, p->threads[t].recorded_node);
	return 0;
}

/* The node that could hold threads and memory alone, with the most CPUs, then memory. */
static void find_single_node(struct npg_analysis *a)
{
	struct npg_prediction *single = &a->predictions[NPG_ALTERNATIVE_SINGLE];
	const struct npg_cost *cost = a->cost;
	bool allowed[NPG_COST_MAX_NODES] = { false };
	double bytes = 0.0;
	int best = 0;

	for (int n = 1; n < cost->nr_nodes; n++)
		if (cost->nr_cpus[n] > cost->nr_cpus[best] ||
		    (cost->nr_cpus[n] == cost->nr_cpus[best] &&
		     cost->memory_bytes[n] > cost->memory_bytes[best]))
			best = n;
	for (size_t t = 0; t < a->profile->nr_threads; t++)
		a->single_node[t] = best;
	for (size_t u = 0; u < a->affinity.nr_units; u++)
		bytes += (double)a->affinity.units[u].bytes;
	allowed[best] = true;
	single->is_possible = false;
	if (!npg_solver_fits_cpus(cost, a->profile->nr_threads, a->busy, allowed))
		snprintf(single->why_not, sizeof(single->why_not),
			 "more busy threads than the %d CPUs of a node", cost->nr_cpus[best]);
	else if (bytes > (double)cost->memory_bytes[best])
		snprintf(single->why_not, sizeof(single->why_not),
			 "%.0f MiB do not fit into the memory of a node", bytes / 1048576.0);
	else
		single->is_possible = true;
}

static int solve(const struct npg_analysis *a, const struct npg_affinity *affinity,
		 struct npg_solution *solution)
{
	struct npg_problem problem = { .cost = a->cost,
				       .nr_threads = a->profile->nr_threads,
				       .busy = a->busy,
				       .recorded_node = a->recorded_node,
				       .nr_units = affinity->nr_units,
				       .units = affinity->units,
				       .nr_tables = affinity->nr_tables,
				       .tables = affinity->tables,
				       .objective = a->options.objective,
				       .max_nodes = a->options.max_nodes };

	return npg_solver_solve(&problem, solution);
}

static struct npg_affinity_input affinity_input(const struct npg_analysis *a,
						const struct npg_cells *cells)
{
	return (struct npg_affinity_input){ .profile = a->profile,
					    .grouping = &a->grouping,
					    .first_touch = &a->first_touch,
					    .cells = cells,
					    .plan_tables = a->options.plan_tables };
}

/* The parts of two halves: shares by the weight behind them, times as sums. */
static void add_score(struct npg_score *sum, const struct npg_score *half, double share)
{
	sum->lar += share * half->lar;
	sum->remote_walks += share * half->remote_walks;
	sum->memory_ns += half->memory_ns;
	sum->walk_ns += half->walk_ns;
	sum->slowest_ns += half->slowest_ns;
	sum->highest_load = fmax(sum->highest_load, half->highest_load);
}

/* Makes a plan from @fit and scores it on @held_out; the gain over first touch there. */
static int cross_score(struct npg_analysis *a, const struct npg_cells *fit,
		       const struct npg_cells *held_out, struct npg_score *score, double *gain,
		       double *variance)
{
	struct npg_affinity_input input = affinity_input(a, fit);
	struct npg_predict_input predict = npg_analysis_predict_input(a);
	struct npg_placement first_touch = npg_analysis_placement(a, NPG_ALTERNATIVE_FIRST_TOUCH);
	struct npg_solution solution = { 0 };
	struct npg_affinity affinity = { 0 };
	struct npg_placement plan = { .kind = NPG_PLACE_PLAN,
				      .affinity = &affinity,
				      .solution = &solution };
	int ret = npg_affinity_make(&input, &affinity);

	if (ret == 0)
		ret = solve(a, &affinity, &solution);
	if (ret == 0) {
		plan.thread_node = solution.thread_node;
		ret = npg_predict_score(&predict, &plan, held_out, score);
	}
	if (ret == 0)
		npg_predict_gain(&predict, &first_touch, &plan, held_out, gain, variance);
	npg_solution_release(&solution);
	npg_affinity_release(&affinity);
	return ret;
}

static double weight_of(const struct npg_cells *cells)
{
	double sum = 0.0;

	for (size_t i = 0; i < cells->nr_cells; i++)
		sum += (double)cells->cells[i].weight;
	return sum;
}

/* Predicts the plan on held-out samples; sets the gain in the units of idle latency. */
static int cross_validate(struct npg_analysis *a, double *gain, double *variance)
{
	struct npg_prediction *plan = &a->predictions[NPG_ALTERNATIVE_PLAN];
	struct npg_cells halves[2] = { { 0 } };
	struct npg_score score;
	double weights[2] = { 0.0 };
	int ret = npg_cells_make(a->profile, &a->grouping, NPG_HALF_FIRST, &halves[0]);

	if (ret == 0)
		ret = npg_cells_make(a->profile, &a->grouping, NPG_HALF_SECOND, &halves[1]);
	for (int i = 0; ret == 0 && i < 2; i++)
		weights[i] = weight_of(&halves[i]);
	for (int i = 0; ret == 0 && i < 2; i++) {
		ret = cross_score(a, &halves[1 - i], &halves[i], &score, gain, variance);
		if (ret == 0)
			add_score(&plan->score, &score, weights[i] / (weights[0] + weights[1]));
	}
	plan->is_possible = true;
	npg_cells_release(&halves[0]);
	npg_cells_release(&halves[1]);
	return ret;
}

static int predict(struct npg_analysis *a)
{
	struct npg_predict_input input = npg_analysis_predict_input(a);
	int ret = 0;

	find_single_node(a);
	for (int i = 0; ret == 0 && i < NPG_ALTERNATIVE_PLAN; i++) {
		struct npg_placement p = npg_analysis_placement(a, (enum npg_alternative)i);

		a->predictions[i].is_possible |= i != NPG_ALTERNATIVE_SINGLE;
		if (a->predictions[i].is_possible)
			ret = npg_predict_score(&input, &p, &a->cells, &a->predictions[i].score);
	}
	return ret;
}

/* "Never worse": is the gain on held-out samples more than noise? */
static void decide_to_leave(struct npg_analysis *a, double gain, double variance)
{
	const struct npg_score *first = &a->predictions[NPG_ALTERNATIVE_FIRST_TOUCH].score;
	struct npg_prediction *plan = &a->predictions[NPG_ALTERNATIVE_PLAN];
	double before = first->memory_ns + first->walk_ns;
	double after = plan->score.memory_ns + plan->score.walk_ns;

	if (a->options.objective == NPG_OBJECTIVE_MAKESPAN) {
		before = first->slowest_ns;
		after = plan->score.slowest_ns;
	}
	a->gain = before > 0.0 ? (before - after) / before : 0.0;
	a->gain_error = gain > 0.0 ? fabs(a->gain) * sqrt(variance) / gain : HUGE_VAL;
	if (a->topology->nr_nodes < 2) {
		a->leave = true;
		snprintf(a->leave_reason, sizeof(a->leave_reason),
			 "the machine has one node: all memory is local");
	} else if (a->gain < LEAST_GAIN || a->gain < NOISE * a->gain_error) {
		a->leave = true;
		snprintf(a->leave_reason, sizeof(a->leave_reason),
			 "first touch is as good: the plan would save %.1f %% of the memory time, "
			 "and %.0f samples cannot tell less than %.1f %% from nothing",
			 100.0 * fmax(a->gain, 0.0), a->profile->nr_samples,
			 100.0 * fmax(LEAST_GAIN,
				      isinf(a->gain_error) ? LEAST_GAIN : NOISE * a->gain_error));
	}
	if (a->leave)
		plan->score = first[0];
}

/* From normalised samples to time: see the header of analyzer/cost.h and profile.h. */
static void scale_predictions(struct npg_analysis *a)
{
	double scale = a->profile->access_scale;

	if (a->profile->access_is_time)
		scale /= a->cost->local_ns;
	for (int i = 0; i < NPG_NR_ALTERNATIVES; i++) {
		a->predictions[i].score.memory_ns *= scale;
		a->predictions[i].score.walk_ns *= scale;
		a->predictions[i].score.slowest_ns *= scale;
	}
}

static int run(struct npg_analysis *a)
{
	struct npg_affinity_input input = affinity_input(a, &a->cells);
	double gain = 0.0, variance = 0.0;
	int ret = find_recorded_nodes(a);

	if (ret == 0)
		ret = npg_grouping_make(a->profile, &a->grouping);
	if (ret == 0)
		ret = npg_first_touch_make(a->profile, &a->grouping, &a->first_touch);
	if (ret == 0)
		ret = npg_cells_make(a->profile, &a->grouping, NPG_HALF_BOTH, &a->cells);
	if (ret == 0)
		ret = npg_affinity_make(&input, &a->affinity);
	if (ret == 0)
		ret = solve(a, &a->affinity, &a->solution);
	if (ret < 0)
		return ret;
	npg_solver_spread(a->cost, a->profile->nr_threads, a->busy, NULL, a->spread_node);
	ret = predict(a);
	if (ret == 0)
		ret = cross_validate(a, &gain, &variance);
	if (ret < 0)
		return ret;
	decide_to_leave(a, gain, variance);
	scale_predictions(a);
	return 0;
}

int npg_analysis_run(const struct npg_profile *profile, const struct npg_topology *topology,
		     const struct npg_analysis_options *options, struct npg_analysis **analysis,
		     struct npg_error *err)
{
	struct npg_analysis *a;
	int ret;

	if (profile->nr_samples <= 0.0 || profile->nr_threads == 0)
		return npg_error_set(err, -ENODATA, "no address sample of the program");
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return npg_error_set(err, -ENOMEM, "out of memory");
	a->profile = profile;
	a->topology = topology;
	a->options = *options;
	a->cost = npg_cost_new(topology);
	a->busy = calloc(profile->nr_threads, sizeof(double));
	a->spread_node = calloc(profile->nr_threads, sizeof(int));
	a->single_node = calloc(profile->nr_threads, sizeof(int));
	for (int i = 0; i < NPG_NR_ALTERNATIVES; i++)
		a->predictions[i].name = names[i];
	ret = a->cost != NULL && a->busy != NULL && a->spread_node != NULL && a->single_node != NULL
		  ? 0
		  : -ENOMEM;
	for (size_t t = 0; ret == 0 && t < profile->nr_threads; t++)
		a->busy[t] = fmin(profile->threads[t].busy, 1.0);
	if (ret == 0)
		ret = run(a);
	if (ret == 0) {
		*analysis = a;
		return 0;
	}
	npg_analysis_free(a);
	if (ret == -EINVAL)
		return npg_error_set(err, ret,
				     "machine %s: no node has CPUs; choose another with "
				     "--machine",
				     topology->name);
	return npg_error_set(err, ret, "out of memory");
}

void npg_analysis_free(struct npg_analysis *a)
{
	if (a == NULL)
		return;
	npg_cost_free(a->cost);
	npg_grouping_release(&a->grouping);
	npg_first_touch_release(&a->first_touch);
	npg_cells_release(&a->cells);
	npg_affinity_release(&a->affinity);
	npg_solution_release(&a->solution);
	free(a->busy);
	free(a->spread_node);
	free(a->single_node);
	free(a->recorded_node);
	free(a);
}
