/* Making a plan: everything in it is a copy of its own; see the header. */
#include <errno.h>
#include <math.h>

#include "analyzer/plan_make.h"

#define THREAD_LEAST 0.05 /* CPUs kept busy: less, and no samples, and it is not pinned */

struct maker {
	const struct npg_analysis *a;
	const struct npg_decisions *d;
	struct npg_plan *plan;
	int *module; /* per module of the profile: its place in the plan, or NPG_NONE */
};

static int copy_text(const char *text, char **copy)
{
	*copy = NULL;
	if (text == NULL)
		return 0;
	*copy = strdup(text);
	return *copy != NULL ? 0 : -ENOMEM;
}

static void copy_hex(const char *text, char *copy, size_t size)
{
	size_t n = strlen(text);

	if (n % 2 != 0 || n >= size || strspn(text, "0123456789abcdef") != n)
		n = 0; /* not an identity */
	memcpy(copy, text, n);
	copy[n] = '\0';
}

static int set_head(struct maker *m, const char *recording)
{
	const struct npg_profile *p = m->a->profile;
	struct npg_plan *plan = m->plan;

	if (copy_text(p->command, &plan->command) < 0 ||
	    copy_text(p->program[0] != '\0' ? p->program : "unknown", &plan->program) < 0 ||
	    copy_text(recording, &plan->recording) < 0 ||
	    copy_text(m->a->options.objective == NPG_OBJECTIVE_MAKESPAN ? "makespan" : "throughput",
		      &plan->objective) < 0 ||
	    copy_text(m->a->topology->name, &plan->machine) < 0 ||
	    copy_text(m->a->leave ? m->a->leave_reason : NULL, &plan->leave_reason) < 0)
		return -ENOMEM;
	copy_hex(p->program_build_id, plan->program_build_id, sizeof(plan->program_build_id));
	memcpy(plan->fingerprint, m->a->topology->fingerprint, sizeof(plan->fingerprint));
	plan->page_size_bytes = p->page_bytes;
	plan->leave = m->a->leave;
	return 0;
}

static int set_machine(struct maker *m)
{
	const struct npg_cost *cost = m->a->cost;
	size_t n = (size_t)cost->nr_nodes;

	m->plan->nodes = calloc(n, sizeof(*m->plan->nodes));
	m->plan->distance_ns = calloc(n * n, sizeof(double));
	if (m->plan->nodes == NULL || m->plan->distance_ns == NULL)
		return -ENOMEM;
	m->plan->nr_nodes = cost->nr_nodes;
	for (size_t i = 0; i < n; i++)
		m->plan->nodes[i] =
		    (struct npg_plan_node){ cost->memory_bytes[i], cost->nr_cpus[i] };
	memcpy(m->plan->distance_ns, cost->latency_ns, n * n * sizeof(double));
	return 0;
}

static int set_predictions(struct maker *m)
{
	m->plan->predictions = calloc(NPG_NR_ALTERNATIVES, sizeof(*m->plan->predictions));
	if (m->plan->predictions == NULL)
		return -ENOMEM;
	for (int i = 0; i < NPG_NR_ALTERNATIVES; i++) {
		const struct npg_prediction *from = &m->a->predictions[i];
		struct npg_plan_prediction *to = &m->plan->predictions[m->plan->nr_predictions];

		if (!from->is_possible)
			continue;
		m->plan->nr_predictions++;
		to->lar = fmin(from->score.lar, 1.0);
		to->memory_ns = from->score.memory_ns;
		to->walk_ns = from->score.walk_ns;
		to->remote_walks = fmin(from->score.remote_walks, 1.0);
		if (copy_text(from->name, &to->placement) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The plan's module for one of the profile, added when it is needed first. */
static int module_of(struct maker *m, int module, int *place)
{
	const struct npg_profile_module *from;
	struct npg_plan_module *to;

	*place = NPG_NONE;
	if (module < 0)
		return 0;
	if (m->module[module] == NPG_NONE) {
		from = &m->a->profile->modules[module];
		to = &m->plan->modules[m->plan->nr_modules];
		if (copy_text(from->path, &to->path) < 0)
			return -ENOMEM;
		copy_hex(from->build_id, to->build_id, sizeof(to->build_id));
		m->module[module] = (int)m->plan->nr_modules++;
	}
	*place = m->module[module];
	return 0;
}

static int set_threads(struct maker *m)
{
	const struct npg_profile *p = m->a->profile;

	m->plan->threads = calloc(p->nr_threads + 1, sizeof(*m->plan->threads));
	if (m->plan->threads == NULL)
		return -ENOMEM;
	for (size_t t = 0; t < p->nr_threads; t++) {
		const struct npg_profile_thread *from = &p->threads[t];
		struct npg_plan_thread *to = &m->plan->threads[m->plan->nr_threads];

		if (from->samples <= 0.0 && from->busy < THREAD_LEAST)
			continue;
		m->plan->nr_threads++;
		if (copy_text(from->path, &to->path) < 0 || copy_text(from->name, &to->name) < 0 ||
		    module_of(m, from->start_module, &to->start_module) < 0)
			return -ENOMEM;
		to->start_offset_bytes = from->start_offset_bytes;
		to->node = m->a->solution.thread_node[t];
		to->share = fmin(1.0, from->samples / p->nr_samples);
	}
	return 0;
}

static int set_frames(struct maker *m, int site, struct npg_plan_object *o)
{
	const struct npg_profile_site *s = &m->a->profile->sites[site];

	o->frames = calloc(s->nr_frames + 1, sizeof(*o->frames));
	if (o->frames == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_frames; i++) {
		o->nr_frames++;
		o->frames[i].offset_bytes = s->frames[i].offset_bytes;
		if (module_of(m, s->frames[i].module, &o->frames[i].module) < 0 ||
		    copy_text(s->frames[i].function, &o->frames[i].function) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int copy_ranges(const struct npg_decision *d, struct npg_plan_object *o)
{
	o->ranges = calloc(d->nr_ranges + 1, sizeof(*o->ranges));
	o->table_ranges = calloc(d->nr_table_ranges + 1, sizeof(*o->table_ranges));
	if (o->ranges == NULL || o->table_ranges == NULL)
		return -ENOMEM;
	o->nr_ranges = d->nr_ranges;
	o->nr_table_ranges = d->nr_table_ranges;
	if (d->nr_ranges > 0)
		memcpy(o->ranges, d->ranges, d->nr_ranges * sizeof(*o->ranges));
	if (d->nr_table_ranges > 0)
		memcpy(o->table_ranges, d->table_ranges,
		       d->nr_table_ranges * sizeof(*o->table_ranges));
	return 0;
}

static int add_object(struct maker *m, const struct npg_decision *d)
{
	const struct npg_group *g = &m->a->grouping.groups[d->group];
	struct npg_plan_object *o = &m->plan->objects[m->plan->nr_objects++];
	int ret;

	o->module = NPG_NONE;
	o->size_bytes = g->size_bytes;
	o->which = g->which;
	o->ordinal = g->ordinal;
	o->confidence = fmin(d->confidence, 1.0);
	o->share = fmin(d->share, 1.0);
	if (copy_text(npg_object_kind_name(g->kind), &o->kind) < 0 ||
	    copy_text(g->name, &o->name) < 0 || copy_text(d->reason, &o->reason) < 0)
		return -ENOMEM;
	if (g->which == NPG_PLAN_THREAD_ORDINAL &&
	    copy_text(m->a->profile->threads[g->creator].path, &o->creator) < 0)
		return -ENOMEM;
	if (g->kind == NPG_OBJECT_STATIC) {
		o->offset_bytes = g->offset_bytes;
		ret = module_of(m, g->module, &o->module);
	} else {
		ret = set_frames(m, g->site, o);
	}
	return ret < 0 ? ret : copy_ranges(d, o);
}

static bool same_range(const struct npg_plan_range *a, const struct npg_plan_range *b)
{
	return a->policy == b->policy && a->nr_nodes == b->nr_nodes &&
	       memcmp(a->nodes, b->nodes, sizeof(a->nodes)) == 0 &&
	       memcmp(a->weights, b->weights, sizeof(a->weights)) == 0;
}

/*
 * Are all allocations of a site placed as one range, in the same way? Where nobody owns them, the
 * nodes of their tables are chance, and need not agree.
 */
static bool site_agrees(const struct maker *m, const struct npg_group *g)
{
	const struct npg_decision *first = &m->d->decisions[g->first_of_site];

	for (size_t i = 0; i < g->nr_of_site; i++) {
		const struct npg_decision *d = &first[i];

		if (!d->is_placed || d->nr_ranges != 1 || d->nr_table_ranges > 1 ||
		    !same_range(&first->ranges[0], &d->ranges[0]))
			return false;
		if (first->ranges[0].policy == NPG_POLICY_BIND && d->nr_table_ranges == 1 &&
		    first->nr_table_ranges == 1 &&
		    d->table_ranges[0].node != first->table_ranges[0].node)
			return false;
	}
	return true;
}

/* One object for all allocations of a site that agree. */
static int add_site(struct maker *m, const struct npg_group *g)
{
	const struct npg_decision *decisions = &m->d->decisions[g->first_of_site];
	struct npg_decision all = decisions[0];
	struct npg_plan_object *o;
	double share = 0.0, confidence = 0.0, samples = 0.0;
	int ret;

	for (size_t i = 0; i < g->nr_of_site; i++) {
		const struct npg_decision *d = &decisions[i];

		share += d->share;
		samples += d->nr_samples;
		confidence += d->share * d->confidence;
		if (m->a->grouping.groups[d->group].size_bytes >
		    m->a->grouping.groups[all.group].size_bytes)
			all = *d;
	}
	if (share <= 0.0)
		return 0;
	if (all.ranges[0].policy == NPG_POLICY_INTERLEAVE)
		all.nr_table_ranges = 0;
	all.share = share;
	all.confidence = confidence / share;
	snprintf(all.reason, sizeof(all.reason),
		 "all %zu allocations of the site alike, by %.0f samples", g->nr_of_site, samples);
	ret = add_object(m, &all);
	o = &m->plan->objects[m->plan->nr_objects - 1];
	o->which = NPG_PLAN_ALL;
	o->ordinal = 0;
	free(o->creator);
	o->creator = NULL;
	return ret;
}

static int by_share(const void *a, const void *b)
{
	const struct npg_plan_object *x = a, *y = b;

	if (x->share < y->share || x->share > y->share)
		return x->share < y->share ? 1 : -1;
	if (x->ordinal != y->ordinal)
		return x->ordinal < y->ordinal ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int set_objects(struct maker *m)
{
	const struct npg_grouping *grouping = &m->a->grouping;
	int ret = 0;

	m->plan->objects = calloc(grouping->nr_groups + 1, sizeof(*m->plan->objects));
	if (m->plan->objects == NULL)
		return -ENOMEM;
	for (size_t i = 0; ret == 0 && i < grouping->nr_groups;) {
		const struct npg_group *g = &grouping->groups[i];
		size_t nr = g->is_plannable ? g->nr_of_site : 1;

		if (nr > 1 && site_agrees(m, g))
			ret = add_site(m, g);
		else
			for (size_t j = i; ret == 0 && j < i + nr; j++)
				if (m->d->decisions[j].is_placed)
					ret = add_object(m, &m->d->decisions[j]);
		i += nr;
	}
	qsort(m->plan->objects, m->plan->nr_objects, sizeof(*m->plan->objects), by_share);
	return ret;
}

static int make(struct maker *m, const char *recording)
{
	const struct npg_profile *p = m->a->profile;
	int ret;

	m->module = calloc(p->nr_modules + 1, sizeof(int));
	m->plan->modules = calloc(p->nr_modules + 1, sizeof(*m->plan->modules));
	if (m->module == NULL || m->plan->modules == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_modules; i++)
		m->module[i] = NPG_NONE;
	ret = set_head(m, recording);
	if (ret == 0)
		ret = set_machine(m);
	if (ret == 0)
		ret = set_predictions(m);
	if (ret < 0 || m->a->leave)
		return ret;
	ret = set_threads(m);
	return ret < 0 ? ret : set_objects(m);
}

int npg_plan_make(const struct npg_analysis *analysis, const struct npg_decisions *decisions,
		  const char *recording, struct npg_plan **plan)
{
	struct maker m = { .a = analysis, .d = decisions, .plan = npg_plan_new() };
	int ret = m.plan != NULL ? make(&m, recording) : -ENOMEM;

	free(m.module);
	if (ret < 0)
		npg_plan_free(m.plan);
	else
		*plan = m.plan;
	return ret;
}
