/*
 * Reading and checking a plan. Everything in the file may be wrong; every value is checked against
 * the range that the rest of numapgo relies on, and an error names its place
 * ("objects[2].ranges[0]").
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/plan_field.h"

#define MAX_FILE     ((off_t)256 << 20)
#define REGION_BYTES (UINT64_C(2) << 20)
#define MAX_FRAMES   64

static int read_bytes_array(const struct npg_plan_place *p, const char *key, uint64_t max,
			    uint64_t min, uint8_t *bytes, int *nr)
{
	json_t *array;
	size_t n;
	int ret = npg_field_array(p, key, true, NPG_PLAN_MAX_NODES, &array, &n);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < n; i++) {
		json_t *value = json_array_get(array, i);

		if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)min ||
		    (uint64_t)json_integer_value(value) > max)
			return npg_field_bad(p, key, "whole numbers from %llu to %llu are wanted",
					     (unsigned long long)min, (unsigned long long)max);
		bytes[i] = (uint8_t)json_integer_value(value);
	}
	*nr = (int)n;
	return 0;
}

static int read_interleave(const struct npg_plan_place *p, struct npg_plan_range *range)
{
	int nr_weights = 0;
	int ret = read_bytes_array(p, "interleave", (uint64_t)p->r->plan->nr_nodes - 1, 0,
				   range->nodes, &range->nr_nodes);

	if (ret < 0)
		return ret;
	range->policy = NPG_POLICY_INTERLEAVE;
	if (range->nr_nodes == 0)
		return npg_field_bad(p, "interleave", "no node");
	for (int i = 1; i < range->nr_nodes; i++)
		if (range->nodes[i] <= range->nodes[i - 1])
			return npg_field_bad(p, "interleave", "nodes must ascend");
	if (json_object_get(p->json, "weights") == NULL)
		return 0;
	ret = read_bytes_array(p, "weights", UINT8_MAX, 1, range->weights, &nr_weights);
	if (ret == 0 && nr_weights != range->nr_nodes)
		return npg_field_bad(p, "weights", "%d weights for %d nodes", nr_weights,
				     range->nr_nodes);
	return ret;
}

static int read_range(const struct npg_plan_reader *r, json_t *json, const char *name, size_t i,
		      struct npg_plan_object *object)
{
	static const char *const keys[] = { "pages", "node", "interleave", "weights", NULL };
	struct npg_plan_range *range = &object->ranges[i];
	uint64_t last = (object->size_bytes / r->plan->page_size_bytes) + 2;
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	if (ret == 0)
		ret = npg_field_extent(&p, "pages", &range->first_page, &range->nr_pages);
	if (ret < 0)
		return ret;
	if (range->first_page + range->nr_pages > last)
		return npg_field_bad(&p, "pages", "beyond the object's size");
	if (i > 0 && range->first_page < range[-1].first_page + range[-1].nr_pages)
		return npg_field_bad(&p, "pages",
				     "overlaps the range before it, or is out of order");
	if (json_object_get(json, "interleave") != NULL) {
		if (json_object_get(json, "node") != NULL)
			return npg_field_bad(&p, "node", "either node or interleave");
		return read_interleave(&p, range);
	}
	if (json_object_get(json, "weights") != NULL)
		return npg_field_bad(&p, "weights", "only with interleave");
	range->policy = NPG_POLICY_BIND;
	range->nr_nodes = 1;
	return npg_field_node(&p, "node", &range->nodes[0]);
}

static int read_table_range(const struct npg_plan_reader *r, json_t *json, const char *name,
			    size_t i, struct npg_plan_object *object)
{
	static const char *const keys[] = { "regions", "node", NULL };
	struct npg_plan_table_range *range = &object->table_ranges[i];
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	if (ret == 0)
		ret = npg_field_extent(&p, "regions", &range->first_region, &range->nr_regions);
	if (ret < 0)
		return ret;
	if (range->first_region + range->nr_regions > (object->size_bytes / REGION_BYTES) + 2)
		return npg_field_bad(&p, "regions", "beyond the object's size");
	if (i > 0 && range->first_region < range[-1].first_region + range[-1].nr_regions)
		return npg_field_bad(&p, "regions",
				     "overlaps the range before it, or is out of order");
	return npg_field_node(&p, "node", &range->node);
}

static int read_frame(const struct npg_plan_reader *r, json_t *json, const char *name, size_t i,
		      struct npg_plan_object *object)
{
	static const char *const keys[] = { "module", "offset_bytes", "function", NULL };
	struct npg_plan_frame *frame = &object->frames[i];
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	if (ret == 0)
		ret = npg_field_module(&p, "module", false, &frame->module);
	if (ret == 0)
		ret = npg_field_u64(&p, "offset_bytes", true, NPG_PLAN_MAX_BYTES,
				    &frame->offset_bytes);
	if (ret == 0)
		ret = npg_field_text(&p, "function", false, &frame->function);
	return ret;
}

typedef int read_item(const struct npg_plan_reader *r, json_t *json, const char *name, size_t i,
		      struct npg_plan_object *object);

/* The elements of an array inside an object: room for them, then each by @read. */
static int read_items(const struct npg_plan_place *p, const char *key, size_t max, size_t item_size,
		      void **items, size_t *nr_items, read_item *read,
		      struct npg_plan_object *object)
{
	char name[160];
	json_t *array;
	size_t nr;
	int ret = npg_field_array(p, key, false, max, &array, &nr);

	if (ret < 0 || nr == 0)
		return ret;
	*items = calloc(nr, item_size);
	if (*items == NULL)
		return npg_field_no_memory(p->r);
	*nr_items = nr;
	snprintf(name, sizeof(name), "%s%s%s", p->path, p->path[0] ? "." : "", key);
	for (size_t i = 0; ret == 0 && i < nr; i++)
		ret = read(p->r, json_array_get(array, i), name, i, object);
	return ret;
}

static int read_which(const struct npg_plan_place *p, struct npg_plan_object *o)
{
	static const char *const names[] = { [NPG_PLAN_ALL] = "all",
					     [NPG_PLAN_SITE_ORDINAL] = "site_ordinal",
					     [NPG_PLAN_THREAD_ORDINAL] = "thread_ordinal" };
	const json_t *value = json_object_get(p->json, "which");
	const char *text = json_string_value(value);
	int found = -1;

	if (value == NULL)
		return 0;
	for (size_t i = 0; text != NULL && i < NPG_ARRAY_SIZE(names); i++)
		if (strcmp(text, names[i]) == 0)
			found = (int)i;
	if (found < 0)
		return npg_field_bad(p, "which",
				     "one of all, site_ordinal, thread_ordinal is wanted");
	o->which = (enum npg_plan_which)found;
	if (o->which == NPG_PLAN_THREAD_ORDINAL && o->creator == NULL)
		return npg_field_bad(p, "creator", "missing; thread_ordinal needs it");
	return 0;
}

static int check_object(const struct npg_plan_place *p, const struct npg_plan_object *o)
{
	bool is_static = strcmp(o->kind, "static") == 0;

	if (!is_static && strcmp(o->kind, "heap") != 0 && strcmp(o->kind, "mmap") != 0 &&
	    strcmp(o->kind, "shared") != 0)
		return npg_field_bad(p, "kind", "one of static, heap, mmap, shared is wanted");
	if (is_static && o->module < 0)
		return npg_field_bad(p, "module", "missing; a static object needs it");
	if (!is_static && o->nr_frames == 0)
		return npg_field_bad(p, "frames", "missing; only static objects have none");
	if (o->creator != NULL && !npg_field_is_thread_path(o->creator))
		return npg_field_bad(p, "creator", "a creation path such as 0.2 is wanted");
	return 0;
}

static int read_object(const struct npg_plan_reader *r, json_t *json, const char *name, size_t i,
		       struct npg_plan_object *unused)
{
	static const char *const keys[] = { "kind",   "name",    "module",     "offset_bytes",
					    "frames", "which",   "ordinal",    "size_bytes",
					    "reason", "creator", "confidence", "share",
					    "ranges", "tables",  NULL };
	struct npg_plan_object *o = &r->plan->objects[i];
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	(void)unused;
	o->module = -1;
	if (ret < 0 || (ret = npg_field_text(&p, "kind", true, &o->kind)) < 0 ||
	    (ret = npg_field_text(&p, "name", false, &o->name)) < 0 ||
	    (ret = npg_field_text(&p, "reason", false, &o->reason)) < 0 ||
	    (ret = npg_field_text(&p, "creator", false, &o->creator)) < 0 ||
	    (ret = npg_field_module(&p, "module", false, &o->module)) < 0 ||
	    (ret = npg_field_u64(&p, "offset_bytes", o->module >= 0, NPG_PLAN_MAX_BYTES,
				 &o->offset_bytes)) < 0 ||
	    (ret = npg_field_u64(&p, "size_bytes", true, NPG_PLAN_MAX_BYTES, &o->size_bytes)) < 0 ||
	    (ret = npg_field_u64(&p, "ordinal", false, NPG_PLAN_MAX_BYTES, &o->ordinal)) < 0 ||
	    (ret = npg_field_real(&p, "confidence", 1.0, &o->confidence)) < 0 ||
	    (ret = npg_field_real(&p, "share", 1.0, &o->share)) < 0 ||
	    (ret = read_which(&p, o)) < 0)
		return ret;
	if ((ret = read_items(&p, "frames", MAX_FRAMES, sizeof(*o->frames), (void **)&o->frames,
			      &o->nr_frames, read_frame, o)) < 0 ||
	    (ret = read_items(&p, "ranges", SIZE_MAX, sizeof(*o->ranges), (void **)&o->ranges,
			      &o->nr_ranges, read_range, o)) < 0 ||
	    (ret = read_items(&p, "tables", SIZE_MAX, sizeof(*o->table_ranges),
			      (void **)&o->table_ranges, &o->nr_table_ranges, read_table_range,
			      o)) < 0)
		return ret;
	return check_object(&p, o);
}

static int read_module(const struct npg_plan_reader *r, json_t *json, const char *name, size_t i,
		       struct npg_plan_object *unused)
{
	static const char *const keys[] = { "path", "build_id", NULL };
	struct npg_plan_module *module = &r->plan->modules[i];
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	(void)unused;
	if (ret == 0)
		ret = npg_field_text(&p, "path", true, &module->path);
	if (ret == 0)
		ret = npg_field_build_id(&p, "build_id", module->build_id);
	return ret;
}

static int read_thread(const struct npg_plan_reader *r, json_t *json, const char *name, size_t i,
		       struct npg_plan_object *unused)
{
	static const char *const keys[] = {
		"path", "name", "start_module", "start_offset_bytes", "node", "share", NULL
	};
	struct npg_plan_thread *thread = &r->plan->threads[i];
	uint8_t node = 0;
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	(void)unused;
	if (ret < 0 || (ret = npg_field_text(&p, "path", true, &thread->path)) < 0 ||
	    (ret = npg_field_text(&p, "name", false, &thread->name)) < 0 ||
	    (ret = npg_field_module(&p, "start_module", false, &thread->start_module)) < 0 ||
	    (ret = npg_field_u64(&p, "start_offset_bytes", false, NPG_PLAN_MAX_BYTES,
				 &thread->start_offset_bytes)) < 0 ||
	    (ret = npg_field_real(&p, "share", 1.0, &thread->share)) < 0 ||
	    (ret = npg_field_node(&p, "node", &node)) < 0)
		return ret;
	thread->node = node;
	if (!npg_field_is_thread_path(thread->path))
		return npg_field_bad(&p, "path", "a creation path such as 0.2 is wanted");
	return 0;
}

static int read_prediction(const struct npg_plan_reader *r, json_t *json, const char *name,
			   size_t i, struct npg_plan_object *unused)
{
	static const char *const keys[] = { "placement", "lar",          "memory_ns",
					    "walk_ns",   "remote_walks", NULL };
	struct npg_plan_prediction *x = &r->plan->predictions[i];
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	(void)unused;
	if (ret < 0 || (ret = npg_field_text(&p, "placement", true, &x->placement)) < 0 ||
	    (ret = npg_field_real(&p, "lar", 1.0, &x->lar)) < 0 ||
	    (ret = npg_field_real(&p, "memory_ns", 1e300, &x->memory_ns)) < 0 ||
	    (ret = npg_field_real(&p, "walk_ns", 1e300, &x->walk_ns)) < 0)
		return ret;
	return npg_field_real(&p, "remote_walks", 1.0, &x->remote_walks);
}

static int read_node(const struct npg_plan_reader *r, json_t *json, const char *name, size_t i,
		     struct npg_plan_object *unused)
{
	static const char *const keys[] = { "memory_bytes", "nr_cpus", NULL };
	uint64_t nr_cpus = 0;
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, name, i);

	(void)unused;
	if (ret == 0)
		ret = npg_field_u64(&p, "memory_bytes", true, NPG_PLAN_MAX_BYTES,
				    &r->plan->nodes[i].memory_bytes);
	if (ret == 0)
		ret = npg_field_u64(&p, "nr_cpus", true, 1 << 20, &nr_cpus);
	r->plan->nodes[i].nr_cpus = (int)nr_cpus;
	return ret;
}

static int read_distances(const struct npg_plan_place *p)
{
	struct npg_plan *plan = p->r->plan;
	size_t n = (size_t)plan->nr_nodes, nr_rows;
	json_t *rows;
	int ret = npg_field_array(p, "distance_ns", true, n, &rows, &nr_rows);

	if (ret < 0)
		return ret;
	plan->distance_ns = calloc(n * n, sizeof(double));
	if (plan->distance_ns == NULL)
		return npg_field_no_memory(p->r);
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(rows, i);

		if (json_array_size(row) != n)
			return npg_field_bad(p, "distance_ns", "%zu rows of %zu numbers are wanted",
					     n, n);
		for (size_t j = 0; j < n; j++) {
			double value = json_number_value(json_array_get(row, j));

			if (!(value > 0.0 && value <= 1e9))
				return npg_field_bad(p, "distance_ns", "[%zu][%zu] is no latency",
						     i, j);
			plan->distance_ns[(i * n) + j] = value;
		}
	}
	return 0;
}

static int read_machine(const struct npg_plan_reader *r, json_t *json)
{
	static const char *const keys[] = { "name",  "fingerprint", "page_size_bytes",
					    "nodes", "distance_ns", NULL };
	struct npg_plan *plan = r->plan;
	char *fingerprint = NULL;
	size_t nr_nodes = 0;
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, "machine", SIZE_MAX);

	if (ret < 0 || (ret = npg_field_text(&p, "name", false, &plan->machine)) < 0 ||
	    (ret = npg_field_text(&p, "fingerprint", false, &fingerprint)) < 0 ||
	    (ret = npg_field_u64(&p, "page_size_bytes", true, 1 << 30, &plan->page_size_bytes)) < 0)
		goto out;
	if (fingerprint != NULL)
		snprintf(plan->fingerprint, sizeof(plan->fingerprint), "%s", fingerprint);
	if (plan->page_size_bytes < 4096 ||
	    (plan->page_size_bytes & (plan->page_size_bytes - 1)) != 0)
		ret = npg_field_bad(&p, "page_size_bytes", "a power of two from 4096 is wanted");
	if (ret == 0)
		ret = read_items(&p, "nodes", NPG_PLAN_MAX_NODES, sizeof(*plan->nodes),
				 (void **)&plan->nodes, &nr_nodes, read_node, NULL);
	if (ret == 0 && nr_nodes == 0)
		ret = npg_field_bad(&p, "nodes", "at least one node is wanted");
	plan->nr_nodes = (int)nr_nodes;
	if (ret == 0)
		ret = read_distances(&p);
out:
	free(fingerprint);
	return ret;
}

static int read_program(const struct npg_plan_reader *r, json_t *json)
{
	static const char *const keys[] = { "path", "build_id", NULL };
	struct npg_plan_place p;
	int ret = npg_field_open(&p, r, json, keys, "program", SIZE_MAX);

	if (ret == 0)
		ret = npg_field_text(&p, "path", true, &r->plan->program);
	if (ret == 0)
		ret = npg_field_build_id(&p, "build_id", r->plan->program_build_id);
	return ret;
}

static int read_head(const struct npg_plan_place *p)
{
	struct npg_plan *plan = p->r->plan;
	const json_t *leave = json_object_get(p->json, "leave");
	uint64_t version = 0;
	int ret = npg_field_u64(p, "version", true, UINT64_MAX >> 1, &version);

	if (ret < 0)
		return ret;
	if (version != NPG_PLAN_VERSION)
		return npg_field_bad(p, "version", "%llu; this numapgo reads version %d",
				     (unsigned long long)version, NPG_PLAN_VERSION);
	if (leave != NULL && !json_is_boolean(leave))
		return npg_field_bad(p, "leave", "true or false is wanted");
	plan->leave = json_is_true(leave);
	if ((ret = npg_field_text(p, "leave_reason", false, &plan->leave_reason)) < 0 ||
	    (ret = npg_field_u64(p, "min_object_bytes", false, NPG_PLAN_MAX_BYTES,
				 &plan->min_object_bytes)) < 0 ||
	    (ret = npg_field_text(p, "command", false, &plan->command)) < 0 ||
	    (ret = npg_field_text(p, "recording", false, &plan->recording)) < 0 ||
	    (ret = npg_field_text(p, "objective", false, &plan->objective)) < 0)
		return ret;
	return 0;
}

static int read_top(const struct npg_plan_reader *r, json_t *json)
{
	static const char *const keys[] = {
		"format",    "version", "command",     "program",          "recording",
		"objective", "machine", "leave",       "leave_reason",     "modules",
		"threads",   "objects", "predictions", "min_object_bytes", NULL
	};
	struct npg_plan *plan = r->plan;
	const char *format = json_string_value(json_object_get(json, "format"));
	struct npg_plan_place p = { r, json, "" };
	int ret;

	if (format == NULL || strcmp(format, NPG_PLAN_FORMAT) != 0)
		return npg_error_set(r->err, -EINVAL,
				     "%s: not a plan: no entry \"format\": \"%s\"; give a file "
				     "made by 'numapgo analyze'",
				     r->origin, NPG_PLAN_FORMAT);
	if ((ret = read_head(&p)) < 0 || /* the version first: it explains unknown entries */
	    (ret = npg_field_open(&p, r, json, keys, "", SIZE_MAX)) < 0 ||
	    (ret = read_program(r, json_object_get(json, "program"))) < 0 ||
	    (ret = read_machine(r, json_object_get(json, "machine"))) < 0 ||
	    (ret = read_items(&p, "modules", INT32_MAX, sizeof(*plan->modules),
			      (void **)&plan->modules, &plan->nr_modules, read_module, NULL)) < 0 ||
	    (ret = read_items(&p, "threads", INT32_MAX, sizeof(*plan->threads),
			      (void **)&plan->threads, &plan->nr_threads, read_thread, NULL)) < 0 ||
	    (ret = read_items(&p, "objects", INT32_MAX, sizeof(*plan->objects),
			      (void **)&plan->objects, &plan->nr_objects, read_object, NULL)) < 0)
		return ret;
	return read_items(&p, "predictions", 64, sizeof(*plan->predictions),
			  (void **)&plan->predictions, &plan->nr_predictions, read_prediction,
			  NULL);
}

int npg_plan_from_text(const char *text, size_t length, const char *origin, struct npg_plan **plan,
		       struct npg_error *err)
{
	struct npg_plan_reader r = { origin, npg_plan_new(), err };
	json_error_t where;
	json_t *json;
	int ret;

	if (r.plan == NULL)
		return npg_field_no_memory(&r);
	json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
	if (json == NULL)
		ret = npg_error_set(err, -EINVAL,
				    "%s: not a plan: line %d, column %d: %s; give a file made by "
				    "'numapgo analyze'",
				    origin, where.line, where.column, where.text);
	else
		ret = read_top(&r, json);
	json_decref(json);
	if (ret < 0) {
		npg_plan_free(r.plan);
		return ret;
	}
	*plan = r.plan;
	return 0;
}

static int read_all(int fd, char *text, size_t size, size_t *length)
{
	*length = 0;
	while (*length < size) {
		ssize_t n = read(fd, text + *length, size - *length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*length += (size_t)n;
	}
	return 0;
}

static int read_file(int fd, const char *path, struct npg_plan **plan, struct npg_error *err)
{
	size_t length = 0;
	struct stat st;
	char *text;
	int ret;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
		return npg_error_set(err, -EINVAL,
				     "%s: not a plan: not a regular file of at most 256 MiB; give "
				     "a file made by 'numapgo analyze'",
				     path);
	text = malloc((size_t)st.st_size + 1);
	if (text == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	ret = read_all(fd, text, (size_t)st.st_size, &length);
	if (ret < 0)
		ret = npg_error_set(err, ret, "%s: cannot read: %s", path, strerror(-ret));
	else
		ret = npg_plan_from_text(text, length, path, plan, err);
	free(text);
	return ret;
}

int npg_plan_read(const char *path, struct npg_plan **plan, struct npg_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
	int ret;

	if (fd < 0)
		return npg_error_set(
		    err, -errno, "%s: cannot open the plan: %s; %s", path, strerror(errno),
		    errno == ENOENT ? "'numapgo analyze' makes one" : "check its owner and mode");
	ret = read_file(fd, path, plan, err);
	close(fd);
	return ret;
}
