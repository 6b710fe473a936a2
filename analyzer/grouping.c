/* Grouping by sorting objects by their identity; see the header. */
#include <errno.h>
#include <fnmatch.h>

#include "analyzer/grouping.h"
#include "lib/preload/hash.h"

#define CHURN_LEAST 16  /* allocations; fewer are always told apart */
#define OWN_LEAST   0.8 /* share of samples by the objects' own creators */

static bool is_wrapper(const char *function)
{
	/* functions that hand out memory for others */
	static const char *const patterns[] = {
		"*alloc*",  "_Znw*", "_Zna*",  "operator new*",
		"*strdup*", "*_new", "*mmap*", "__libc_*",
	};

	for (size_t i = 0; i < NPG_ARRAY_SIZE(patterns); i++)
		if (fnmatch(patterns[i], function, 0) == 0)
			return true;
	return false;
}

/* The frame that people know a site by; NULL: none is known. */
static const struct npg_profile_frame *known_frame(const struct npg_profile *profile, int site)
{
	const struct npg_profile_site *s = &profile->sites[site];
	const struct npg_profile_frame *fallback = NULL;

	for (size_t i = 0; i < s->nr_frames; i++) {
		const struct npg_profile_frame *f = &s->frames[i];

		if (f->module < 0 || npg_hash_is_system_module(profile->modules[f->module].path))
			continue;
		if (f->function != NULL && !is_wrapper(f->function))
			return f;
		if (fallback == NULL)
			fallback = f;
	}
	return fallback;
}

const char *npg_site_name(const struct npg_profile *profile, int site)
{
	const struct npg_profile_frame *f = known_frame(profile, site);

	if (f == NULL)
		return NULL;
	return f->function != NULL ? f->function : profile->modules[f->module].path;
}

uint64_t npg_site_offset(const struct npg_profile *profile, int site)
{
	const struct npg_profile_frame *f = known_frame(profile, site);

	return f != NULL ? f->offset_bytes : 0;
}

/* What makes objects candidates for one group, and their order inside it. */
struct key {
	uint32_t object;
	int class;  /* 0: static, 1: call site, 2: by name */
	int a;      /* module, site or kind */
	uint64_t b; /* address in the module */
	const char *name;
	int thread;
	int64_t ordinal;
};

static int compare_names(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return (a != NULL) - (b != NULL);
	return a == b ? 0 : strcmp(a, b);
}

/* Equal for objects of the same static symbol, call site or name. */
static int compare_identity(const struct key *x, const struct key *y)
{
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->b != y->b)
		return x->b < y->b ? -1 : 1;
	return x->class == 2 ? compare_names(x->name, y->name) : 0;
}

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = compare_identity(x, y);

	if (order != 0)
		return order;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->ordinal != y->ordinal)
		return x->ordinal < y->ordinal ? -1 : 1;
	return (x->object > y->object) - (x->object < y->object);
}

static struct key key_of(const struct npg_profile *p, uint32_t object)
{
	const struct npg_profile_object *o = &p->objects[object];
	struct key key = { .object = object, .class = 2, .a = (int)o->kind, .name = o->name };

	if (o->kind == NPG_OBJECT_STATIC && o->module >= 0) {
		key = (struct key){ object, 0, o->module, o->offset_bytes, NULL, 0, 0 };
	} else if (npg_object_is_movable(o->kind) && o->site >= 0) {
		key = (struct key){ object, 1, o->site, 0, NULL, o->thread, o->thread_ordinal };
	} else if (o->kind == NPG_OBJECT_STACK && o->thread >= 0) {
		key.b = (uint64_t)o->thread;
		key.name = NULL;
	} else if (o->kind == NPG_OBJECT_FILE || o->kind == NPG_OBJECT_SHARED) {
		key.b = o->offset_bytes;
	}
	return key;
}

struct event {
	int64_t time_ns;
	int64_t bytes; /* negative: freed */
};

static int by_event(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* frees first */
}

/* Most objects and bytes alive at once. */
static int count_alive(const struct npg_profile *p, const struct key *keys, size_t nr,
		       size_t *most_objects, uint64_t *most_bytes)
{
	struct event *events = calloc(2 * nr + 1, sizeof(*events));
	uint64_t bytes = 0;
	size_t alive = 0;

	if (events == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct npg_profile_object *o = &p->objects[keys[i].object];
		int64_t size = o->size_bytes < INT64_MAX ? (int64_t)o->size_bytes : INT64_MAX;

		events[2 * i] = (struct event){ o->start_ns, size };
		events[2 * i + 1] = (struct event){ o->end_ns, -size };
	}
	qsort(events, 2 * nr, sizeof(*events), by_event);
	*most_objects = 0;
	*most_bytes = 0;
	for (size_t i = 0; i < 2 * nr; i++) {
		bytes += (uint64_t)events[i].bytes;
		alive += events[i].bytes >= 0 ? 1 : 0;
		alive -= events[i].bytes < 0 && alive > 0 ? 1 : 0;
		*most_objects = alive > *most_objects ? alive : *most_objects;
		*most_bytes = bytes > *most_bytes && bytes <= INT64_MAX ? bytes : *most_bytes;
	}
	free(events);
	return 0;
}

static const char *name_of(struct npg_grouping *g, const struct npg_profile *p,
			   const struct npg_profile_object *o)
{
	const char *name = o->site >= 0 ? npg_site_name(p, o->site) : NULL;
	char text[64];

	if (name != NULL)
		return name;
	if (o->kind == NPG_OBJECT_STACK && o->thread >= 0) {
		snprintf(text, sizeof(text), "stack of thread %s", p->threads[o->thread].path);
		return npg_arena_string(&g->arena, text);
	}
	if (o->name != NULL)
		return o->name;
	return o->module >= 0 ? p->modules[o->module].path : npg_object_kind_name(o->kind);
}

/* Can a plan name the call site? Frames outside any file are somewhere else in the next run. */
static bool is_site_known(const struct npg_profile *p, int site)
{
	if (site < 0 || p->sites[site].nr_frames == 0)
		return false;
	for (size_t i = 0; i < p->sites[site].nr_frames; i++)
		if (p->sites[site].frames[i].module < 0)
			return false;
	return true;
}

/* A group of the objects keys[0 .. nr-1]. */
static int add_group(struct npg_grouping *g, const struct npg_profile *p, const struct key *keys,
		     size_t nr, enum npg_plan_which which)
{
	struct npg_group *group = &g->groups[g->nr_groups];
	const struct npg_profile_object *o = &p->objects[keys[0].object];
	size_t most;

	*group = (struct npg_group){ .object = keys[0].object, .which = which, .nr_objects = nr };
	group->creator = o->thread;
	for (size_t i = 0; i < nr; i++) {
		const struct npg_profile_object *other = &p->objects[keys[i].object];

		if (other->size_bytes > p->objects[group->object].size_bytes)
			group->object = keys[i].object;
		if (other->thread != group->creator)
			group->creator = NPG_NONE;
		g->group_of[keys[i].object] = (uint32_t)g->nr_groups;
	}
	o = &p->objects[group->object];
	group->kind = o->kind;
	group->name = name_of(g, p, o);
	group->module = o->module;
	group->offset_bytes = o->offset_bytes;
	group->site = o->site;
	if (which != NPG_PLAN_ALL)
		group->ordinal = (uint64_t)(which == NPG_PLAN_SITE_ORDINAL ? o->site_ordinal
									   : o->thread_ordinal);
	group->size_bytes = o->size_bytes;
	group->nr_pages = npg_object_nr_pages(o, p->page_bytes);
	group->is_movable = npg_object_is_movable(o->kind);
	/* what is smaller than a page shares its pages with others */
	group->is_plannable =
	    o->size_bytes >= p->page_bytes && ((o->kind == NPG_OBJECT_STATIC && o->module >= 0) ||
					       (group->is_movable && is_site_known(p, o->site)));
	group->first_of_site = g->nr_groups;
	group->nr_of_site = 1;
	if (group->name == NULL || count_alive(p, keys, nr, &most, &group->alive_bytes) < 0)
		return -ENOMEM;
	g->nr_groups++;
	return 0;
}

static int by_site_ordinal(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->ordinal != y->ordinal)
		return x->ordinal < y->ordinal ? -1 : 1;
	return (x->object > y->object) - (x->object < y->object);
}

/* Groups of one call site. The keys are ordered by thread and ordinal. */
static int add_site(struct npg_grouping *g, const struct npg_profile *p, struct key *keys,
		    size_t nr)
{
	enum npg_plan_which which = NPG_PLAN_SITE_ORDINAL;
	size_t first = g->nr_groups, alive;
	bool is_known = true, any = false;
	uint64_t bytes;
	int ret = count_alive(p, keys, nr, &alive, &bytes);

	if (ret < 0)
		return ret;
	if (keys[0].thread != keys[nr - 1].thread)
		which = NPG_PLAN_THREAD_ORDINAL;
	for (size_t i = 0; i < nr; i++) {
		const struct npg_profile_object *o = &p->objects[keys[i].object];

		if (which == NPG_PLAN_SITE_ORDINAL)
			keys[i].ordinal = o->site_ordinal;
		is_known &=
		    keys[i].ordinal >= 0 && (keys[i].thread >= 0 || which == NPG_PLAN_SITE_ORDINAL);
	}
	if (which == NPG_PLAN_SITE_ORDINAL)
		qsort(keys, nr, sizeof(*keys), by_site_ordinal);
	if (nr == 1 || nr > NPG_GROUP_MAX_PER_SITE || !is_known ||
	    (nr > CHURN_LEAST && alive <= nr / 4))
		return add_group(g, p, keys, nr, NPG_PLAN_ALL);
	for (size_t i = 0, end; ret == 0 && i < nr; i = end) {
		/* several processes: the same ordinal of each */
		for (end = i + 1; end < nr && keys[end].ordinal == keys[i].ordinal &&
				  keys[end].thread == keys[i].thread;)
			end++;
		ret = add_group(g, p, keys + i, end - i, which);
	}
	for (size_t i = first; i < g->nr_groups; i++)
		any |= g->groups[i].is_plannable;
	for (size_t i = first; i < g->nr_groups; i++) {
		g->groups[i].is_plannable = any;
		g->groups[i].first_of_site = first;
		g->groups[i].nr_of_site = g->nr_groups - first;
	}
	return ret;
}

/* Finds the groups of many objects that are each used by their creator. */
static int find_thread_own(const struct npg_profile *p, struct npg_grouping *g)
{
	double *own = calloc(2 * g->nr_groups + 1, sizeof(*own));
	double *all = own + g->nr_groups;

	if (own == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_accesses; i++) {
		const struct npg_access *a = &p->accesses[i];
		uint32_t group = g->group_of[a->object];

		all[group] += a->nr_samples;
		if (p->objects[a->object].thread == (int)a->thread)
			own[group] += a->nr_samples;
	}
	for (size_t i = 0; i < g->nr_groups; i++) {
		struct npg_group *group = &g->groups[i];

		group->is_thread_own = group->is_movable && group->nr_objects > 1 &&
				       group->creator == NPG_NONE && group->which == NPG_PLAN_ALL &&
				       own[i] >= OWN_LEAST * all[i];
		if (group->is_thread_own)
			group->is_plannable = false;
	}
	free(own);
	return 0;
}

int npg_grouping_make(const struct npg_profile *profile, struct npg_grouping *grouping)
{
	size_t nr = profile->nr_objects;
	struct key *keys = calloc(nr + 1, sizeof(*keys));
	int ret = 0;

	*grouping = (struct npg_grouping){ 0 };
	grouping->groups = calloc(nr + 1, sizeof(*grouping->groups));
	grouping->group_of = calloc(nr + 1, sizeof(*grouping->group_of));
	if (keys == NULL || grouping->groups == NULL || grouping->group_of == NULL)
		ret = -ENOMEM;
	for (size_t i = 0; ret == 0 && i < nr; i++)
		keys[i] = key_of(profile, (uint32_t)i);
	if (ret == 0)
		qsort(keys, nr, sizeof(*keys), by_key);
	for (size_t i = 0, end; ret == 0 && i < nr; i = end) {
		for (end = i + 1; end < nr && compare_identity(&keys[i], &keys[end]) == 0;)
			end++;
		ret = keys[i].class == 1
			  ? add_site(grouping, profile, keys + i, end - i)
			  : add_group(grouping, profile, keys + i, end - i, NPG_PLAN_ALL);
	}
	free(keys);
	if (ret == 0)
		ret = find_thread_own(profile, grouping);
	if (ret < 0)
		npg_grouping_release(grouping);
	return ret;
}

void npg_grouping_release(struct npg_grouping *grouping)
{
	free(grouping->groups);
	free(grouping->group_of);
	npg_arena_release(&grouping->arena);
	*grouping = (struct npg_grouping){ 0 };
}
