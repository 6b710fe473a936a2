/* plan diff: objects and threads that were added, went, or moved. */
#include <inttypes.h>

#include <jansson.h>

#include "analyzer/cmd_plan.h"
#include "analyzer/json_text.h"
#include "analyzer/text.h"
#include "lib/log.h"

struct diff {
	const struct npg_plan *a, *b;
	json_t *changes; /* objects with kind, what, change and from/to */
	size_t nr_gone, nr_added, nr_moved, nr_same;
};

static bool same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The same thing to both plans, wherever it is placed. */
static bool same_identity(const struct diff *d, const struct npg_plan_object *x,
			  const struct npg_plan_object *y)
{
	if (strcmp(x->kind, y->kind) != 0 || x->which != y->which || x->ordinal != y->ordinal ||
	    !same_text(x->creator, y->creator))
		return false;
	if (strcmp(x->kind, "static") == 0)
		return x->offset_bytes == y->offset_bytes && same_text(x->name, y->name) &&
		       npg_plan_module_key(&d->a->modules[x->module]) ==
			   npg_plan_module_key(&d->b->modules[y->module]);
	return npg_plan_site_hash(d->a, x) == npg_plan_site_hash(d->b, y);
}

static bool same_place(const struct npg_plan_object *x, const struct npg_plan_object *y)
{
	if (x->nr_ranges != y->nr_ranges || x->nr_table_ranges != y->nr_table_ranges)
		return false;
	for (size_t i = 0; i < x->nr_ranges; i++) {
		const struct npg_plan_range *r = &x->ranges[i], *s = &y->ranges[i];

		if (r->first_page != s->first_page || r->nr_pages != s->nr_pages ||
		    r->policy != s->policy || r->nr_nodes != s->nr_nodes ||
		    memcmp(r->nodes, s->nodes, sizeof(r->nodes)) != 0 ||
		    memcmp(r->weights, s->weights, sizeof(r->weights)) != 0)
			return false;
	}
	for (size_t i = 0; i < x->nr_table_ranges; i++)
		if (x->table_ranges[i].first_region != y->table_ranges[i].first_region ||
		    x->table_ranges[i].nr_regions != y->table_ranges[i].nr_regions ||
		    x->table_ranges[i].node != y->table_ranges[i].node)
			return false;
	return true;
}

static void place_text(const struct npg_plan_object *o, char *text, size_t size)
{
	if (o->nr_ranges == 1)
		npg_plan_describe_range(&o->ranges[0], text, size);
	else
		snprintf(text, size, "%zu ranges", o->nr_ranges);
}

static void add_change(struct diff *d, const char *kind, const char *change, const char *what,
		       const char *from, const char *to)
{
	json_t *entry = json_pack("{s:s, s:s, s:o}", "kind", kind, "change", change, "what",
				  npg_json_text(what));

	if (from != NULL)
		json_object_set_new(entry, "from", json_string(from));
	if (to != NULL)
		json_object_set_new(entry, "to", json_string(to));
	json_array_append_new(d->changes, entry);
}

static void compare_objects(struct diff *d)
{
	bool *is_found = calloc(d->b->nr_objects + 1, sizeof(*is_found));
	char what[512], from[256], to[256];

	for (size_t i = 0; is_found != NULL && i < d->a->nr_objects; i++) {
		const struct npg_plan_object *x = &d->a->objects[i];
		size_t j = 0;

		npg_plan_describe_object(x, what, sizeof(what));
		place_text(x, from, sizeof(from));
		while (j < d->b->nr_objects &&
		       (is_found[j] || !same_identity(d, x, &d->b->objects[j])))
			j++;
		if (j == d->b->nr_objects) {
			d->nr_gone++;
			add_change(d, "object", "gone", what, from, NULL);
			continue;
		}
		is_found[j] = true;
		place_text(&d->b->objects[j], to, sizeof(to));
		if (same_place(x, &d->b->objects[j])) {
			d->nr_same++;
			continue;
		}
		d->nr_moved++;
		add_change(d, "object", "moved", what, from, to);
	}
	for (size_t j = 0; is_found != NULL && j < d->b->nr_objects; j++) {
		if (is_found[j])
			continue;
		d->nr_added++;
		place_text(&d->b->objects[j], to, sizeof(to));
		add_change(d, "object", "added",
			   npg_plan_describe_object(&d->b->objects[j], what, sizeof(what)), NULL,
			   to);
	}
	free(is_found);
}

static const struct npg_plan_thread *find_thread(const struct npg_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nr_threads; i++)
		if (strcmp(plan->threads[i].path, path) == 0)
			return &plan->threads[i];
	return NULL;
}

static void compare_threads(struct diff *d)
{
	char from[32], to[32];

	for (size_t i = 0; i < d->a->nr_threads; i++) {
		const struct npg_plan_thread *x = &d->a->threads[i];
		const struct npg_plan_thread *y = find_thread(d->b, x->path);

		snprintf(from, sizeof(from), "node %d", x->node);
		if (y == NULL) {
			d->nr_gone++;
			add_change(d, "thread", "gone", x->path, from, NULL);
		} else if (x->node != y->node) {
			d->nr_moved++;
			snprintf(to, sizeof(to), "node %d", y->node);
			add_change(d, "thread", "moved", x->path, from, to);
		} else {
			d->nr_same++;
		}
	}
	for (size_t i = 0; i < d->b->nr_threads; i++) {
		if (find_thread(d->a, d->b->threads[i].path) != NULL)
			continue;
		d->nr_added++;
		snprintf(to, sizeof(to), "node %d", d->b->threads[i].node);
		add_change(d, "thread", "added", d->b->threads[i].path, NULL, to);
	}
}

static const char *field(const json_t *entry, const char *key)
{
	const char *text = json_string_value(json_object_get(entry, key));

	return text != NULL ? text : "";
}

static void print_text(const struct diff *d)
{
	size_t columns = npg_text_columns();
	char name[2048];

	for (size_t i = 0; i < json_array_size(d->changes); i++) {
		const json_t *entry = json_array_get(d->changes, i);
		const char *change = field(entry, "change");
		const char *from = field(entry, "from"), *to = field(entry, "to");

		printf("%c %s %s: %s%s%s\n",
		       change[0] == 'g'   ? '-'
		       : change[0] == 'a' ? '+'
					  : '~',
		       field(entry, "kind"),
		       npg_text_elide(field(entry, "what"), columns > 60 ? columns - 40 : 20, name,
				      sizeof(name)),
		       from, from[0] != '\0' && to[0] != '\0' ? " -> " : "", to);
	}
	printf("%zu gone, %zu added, %zu moved, %zu the same\n", d->nr_gone, d->nr_added,
	       d->nr_moved, d->nr_same);
}

int npg_plan_print_diff(const struct plan_options *options, const struct npg_plan *a,
			const struct npg_plan *b)
{
	struct diff d = { .a = a, .b = b, .changes = json_array() };
	bool differs;

	if (a->leave != b->leave)
		add_change(&d, "plan", "moved", "leave everything as it is",
			   a->leave ? "yes" : "no", b->leave ? "yes" : "no");
	if (!same_text(a->machine, b->machine) || strcmp(a->fingerprint, b->fingerprint) != 0)
		npg_warn("plan: the plans are for different machines, %s and %s",
			 a->machine != NULL ? a->machine : "unknown",
			 b->machine != NULL ? b->machine : "unknown");
	compare_threads(&d);
	compare_objects(&d);
	differs = json_array_size(d.changes) > 0;
	if (options->common.json) {
		json_t *root =
		    json_pack("{s:s, s:b, s:I, s:O}", "schema", "numapgo.plan-diff/1", "differs",
			      differs, "nr_same", (json_int_t)d.nr_same, "changes", d.changes);

		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(root);
	} else {
		print_text(&d);
	}
	json_decref(d.changes);
	return differs && options->exit_code ? NPG_EXIT_FAILED : NPG_EXIT_OK;
}
