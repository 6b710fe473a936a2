/*
 * Writing a plan: JSON whose lines are entries, so that two plans compare well line by line.
 * jansson makes the text of each entry; the layout of lines is made here.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "lib/plan.h"

#define LINE_FLAGS (JSON_ENCODE_ANY | JSON_REAL_PRECISION(6))

struct writer {
	FILE *out;
	bool has_failed; /* out of memory, or a number that JSON has no form for */
};

/* Length of the UTF-8 sequence at @p; 0: none is there. */
static size_t utf8_length(const unsigned char *p)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* A JSON text of any C string: what is not UTF-8 becomes U+FFFD. */
static json_t *text_of(const char *text)
{
	size_t size = (strlen(text) * 3) + 1, used = 0;
	char *clean = malloc(size);
	json_t *json = NULL;

	if (clean == NULL)
		return NULL;
	while (*text != '\0') {
		size_t n = utf8_length((const unsigned char *)text);

		memcpy(clean + used, n > 0 ? text : "\xef\xbf\xbd", n > 0 ? n : 3);
		used += n > 0 ? n : 3;
		text += n > 0 ? n : 1;
	}
	json = json_stringn(clean, used);
	free(clean);
	return json;
}

static json_t *u64_of(uint64_t number)
{
	return number > INT64_MAX ? NULL : json_integer((json_int_t)number);
}

static void add(struct writer *w, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) < 0)
		w->has_failed = true;
}

static void add_text(struct writer *w, json_t *object, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		add(w, object, key, text_of(text));
}

static void append(struct writer *w, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		w->has_failed = true;
}

static void put_json(struct writer *w, json_t *json)
{
	if (json == NULL || json_dumpf(json, w->out, LINE_FLAGS) < 0)
		w->has_failed = true;
	json_decref(json);
}

static void put_line(struct writer *w, const char *indent, json_t *json, bool is_last)
{
	fputs(indent, w->out);
	put_json(w, json);
	fputs(is_last ? "\n" : ",\n", w->out);
}

static void put_field(struct writer *w, const char *indent, const char *key, json_t *value)
{
	fprintf(w->out, "%s\"%s\": ", indent, key);
	put_json(w, value);
	fputs(",\n", w->out);
}

static void put_text_field(struct writer *w, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		put_field(w, "  ", key, text_of(text));
}

static json_t *extent_of(struct writer *w, uint64_t first, uint64_t nr)
{
	json_t *array = json_array();

	append(w, array, u64_of(first));
	append(w, array, u64_of(nr));
	return array;
}

static json_t *bytes_of(struct writer *w, const uint8_t *bytes, int nr)
{
	json_t *array = json_array();

	for (int i = 0; i < nr; i++)
		append(w, array, json_integer(bytes[i]));
	return array;
}

static json_t *range_of(struct writer *w, const struct npg_plan_range *range)
{
	json_t *json = json_object();

	add(w, json, "pages", extent_of(w, range->first_page, range->nr_pages));
	if (range->policy == NPG_POLICY_BIND) {
		add(w, json, "node", json_integer(range->nodes[0]));
		return json;
	}
	add(w, json, "interleave", bytes_of(w, range->nodes, range->nr_nodes));
	if (range->weights[0] != 0)
		add(w, json, "weights", bytes_of(w, range->weights, range->nr_nodes));
	return json;
}

static json_t *table_of(struct writer *w, const struct npg_plan_table_range *range)
{
	json_t *json = json_object();

	add(w, json, "regions", extent_of(w, range->first_region, range->nr_regions));
	add(w, json, "node", json_integer(range->node));
	return json;
}

static json_t *frame_of(struct writer *w, const struct npg_plan_frame *frame)
{
	json_t *json = json_object();

	if (frame->module >= 0)
		add(w, json, "module", json_integer(frame->module));
	add(w, json, "offset_bytes", u64_of(frame->offset_bytes));
	add_text(w, json, "function", frame->function);
	return json;
}

static json_t *head_of(struct writer *w, const struct npg_plan_object *o)
{
	static const char *const which[] = { "all", "site_ordinal", "thread_ordinal" };
	json_t *json = json_object();

	add_text(w, json, "kind", o->kind);
	add_text(w, json, "name", o->name);
	if (o->module >= 0) {
		add(w, json, "module", json_integer(o->module));
		add(w, json, "offset_bytes", u64_of(o->offset_bytes));
	}
	add(w, json, "size_bytes", u64_of(o->size_bytes));
	if (o->which != NPG_PLAN_ALL) {
		add(w, json, "which", json_string(which[o->which]));
		add(w, json, "ordinal", u64_of(o->ordinal));
	}
	add_text(w, json, "creator", o->creator);
	add(w, json, "share", json_real(o->share));
	add(w, json, "confidence", json_real(o->confidence));
	add_text(w, json, "reason", o->reason);
	return json;
}

/* An object: its head on the first line, then one line per frame and range. */
static void put_object(struct writer *w, const struct npg_plan_object *o, bool is_last)
{
	char *head = NULL;
	json_t *json = head_of(w, o);

	head = json_dumps(json, LINE_FLAGS);
	json_decref(json);
	if (head == NULL) {
		w->has_failed = true;
		return;
	}
	fprintf(w->out, "    %.*s", (int)strlen(head) - 1, head);
	free(head);
	for (size_t i = 0; i < o->nr_frames; i++) {
		fputs(i == 0 ? ", \"frames\": [\n" : "", w->out);
		put_line(w, "      ", frame_of(w, &o->frames[i]), i + 1 == o->nr_frames);
	}
	fputs(o->nr_frames > 0 ? "    ]" : "", w->out);
	for (size_t i = 0; i < o->nr_ranges; i++) {
		fputs(i == 0 ? ", \"ranges\": [\n" : "", w->out);
		put_line(w, "      ", range_of(w, &o->ranges[i]), i + 1 == o->nr_ranges);
	}
	fputs(o->nr_ranges > 0 ? "    ]" : "", w->out);
	for (size_t i = 0; i < o->nr_table_ranges; i++) {
		fputs(i == 0 ? ", \"tables\": [\n" : "", w->out);
		put_line(w, "      ", table_of(w, &o->table_ranges[i]),
			 i + 1 == o->nr_table_ranges);
	}
	fputs(o->nr_table_ranges > 0 ? "    ]}" : "}", w->out);
	fputs(is_last ? "\n" : ",\n", w->out);
}

static json_t *thread_of(struct writer *w, const struct npg_plan_thread *thread)
{
	json_t *json = json_object();

	add_text(w, json, "path", thread->path);
	add_text(w, json, "name", thread->name);
	if (thread->start_module >= 0) {
		add(w, json, "start_module", json_integer(thread->start_module));
		add(w, json, "start_offset_bytes", u64_of(thread->start_offset_bytes));
	}
	add(w, json, "node", json_integer(thread->node));
	add(w, json, "share", json_real(thread->share));
	return json;
}

static json_t *prediction_of(struct writer *w, const struct npg_plan_prediction *x)
{
	json_t *json = json_object();

	add_text(w, json, "placement", x->placement);
	add(w, json, "lar", json_real(x->lar));
	add(w, json, "memory_ns", json_real(x->memory_ns));
	add(w, json, "walk_ns", json_real(x->walk_ns));
	add(w, json, "remote_walks", json_real(x->remote_walks));
	return json;
}

static json_t *module_of(struct writer *w, const char *path, const char *build_id)
{
	json_t *json = json_object();

	add(w, json, "path", text_of(path != NULL ? path : ""));
	add_text(w, json, "build_id", build_id);
	return json;
}

static void put_machine(struct writer *w, const struct npg_plan *plan)
{
	fputs("  \"machine\": {\n", w->out);
	if (plan->machine != NULL)
		put_field(w, "    ", "name", text_of(plan->machine));
	if (plan->fingerprint[0] != '\0')
		put_field(w, "    ", "fingerprint", text_of(plan->fingerprint));
	put_field(w, "    ", "page_size_bytes", u64_of(plan->page_size_bytes));
	fputs("    \"nodes\": [\n", w->out);
	for (int i = 0; i < plan->nr_nodes; i++) {
		json_t *json = json_object();

		add(w, json, "memory_bytes", u64_of(plan->nodes[i].memory_bytes));
		add(w, json, "nr_cpus", json_integer(plan->nodes[i].nr_cpus));
		put_line(w, "      ", json, i + 1 == plan->nr_nodes);
	}
	fputs("    ],\n    \"distance_ns\": [\n", w->out);
	for (int i = 0; i < plan->nr_nodes; i++) {
		json_t *row = json_array();

		for (int j = 0; j < plan->nr_nodes; j++)
			append(w, row, json_real(plan->distance_ns[(i * plan->nr_nodes) + j]));
		put_line(w, "      ", row, i + 1 == plan->nr_nodes);
	}
	fputs("    ]\n  },\n", w->out);
}

static void put_lists(struct writer *w, const struct npg_plan *plan)
{
	fputs("  \"modules\": [\n", w->out);
	for (size_t i = 0; i < plan->nr_modules; i++)
		put_line(w, "    ", module_of(w, plan->modules[i].path, plan->modules[i].build_id),
			 i + 1 == plan->nr_modules);
	fputs("  ],\n  \"threads\": [\n", w->out);
	for (size_t i = 0; i < plan->nr_threads; i++)
		put_line(w, "    ", thread_of(w, &plan->threads[i]), i + 1 == plan->nr_threads);
	fputs("  ],\n  \"objects\": [\n", w->out);
	for (size_t i = 0; i < plan->nr_objects; i++)
		put_object(w, &plan->objects[i], i + 1 == plan->nr_objects);
	fputs("  ],\n  \"predictions\": [\n", w->out);
	for (size_t i = 0; i < plan->nr_predictions; i++)
		put_line(w, "    ", prediction_of(w, &plan->predictions[i]),
			 i + 1 == plan->nr_predictions);
	fputs("  ]\n}\n", w->out);
}

static void put_plan(struct writer *w, const struct npg_plan *plan)
{
	fputs("{\n", w->out);
	put_text_field(w, "format", NPG_PLAN_FORMAT);
	put_field(w, "  ", "version", json_integer(NPG_PLAN_VERSION));
	put_text_field(w, "command", plan->command);
	put_field(w, "  ", "program", module_of(w, plan->program, plan->program_build_id));
	put_text_field(w, "recording", plan->recording);
	put_text_field(w, "objective", plan->objective);
	if (plan->min_object_bytes > 0)
		put_field(w, "  ", "min_object_bytes", u64_of(plan->min_object_bytes));
	put_field(w, "  ", "leave", json_boolean(plan->leave));
	put_text_field(w, "leave_reason", plan->leave_reason);
	put_machine(w, plan);
	put_lists(w, plan);
}

/* What would be refused when read is refused when written. */
static int check_text(const char *text, size_t length, struct npg_error *err)
{
	struct npg_plan *copy = NULL;
	int ret = npg_plan_from_text(text, length, "new plan", &copy, err);

	npg_plan_free(copy);
	return ret;
}

int npg_plan_to_text(const struct npg_plan *plan, char **text, size_t *length,
		     struct npg_error *err)
{
	char *new_text = NULL;
	size_t new_length = 0;
	struct writer w = { NULL, false };
	int ret = 0;

	if (plan->nr_nodes < 1 || plan->nodes == NULL || plan->distance_ns == NULL)
		return npg_error_set(err, -EINVAL, "new plan: no nodes or no distances");
	w.out = open_memstream(&new_text, &new_length);
	if (w.out == NULL)
		return npg_error_set(err, -ENOMEM, "new plan: out of memory");
	put_plan(&w, plan);
	if (fclose(w.out) != 0)
		ret = npg_error_set(err, -ENOMEM, "new plan: out of memory");
	else if (w.has_failed)
		ret = npg_error_set(err, -EINVAL,
				    "new plan: a number that is not finite, or out of memory");
	else
		ret = check_text(new_text, new_length, err);
	if (ret < 0) {
		free(new_text);
		return ret;
	}
	*text = new_text;
	*length = new_length;
	return 0;
}

static int write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = write(fd, text, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		length -= (size_t)n;
	}
	return 0;
}

static int write_renamed(const char *path, const char *text, size_t length, struct npg_error *err)
{
	size_t size = strlen(path) + 8;
	char *partial = malloc(size);
	mode_t mask = umask(0);
	int fd, ret;

	umask(mask);
	if (partial == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	snprintf(partial, size, "%s.XXXXXX", path);
	fd = mkostemp(partial, O_CLOEXEC);
	ret = fd < 0 ? -errno : write_all(fd, text, length);
	if (ret == 0 && (fchmod(fd, 0666 & ~mask) < 0 || rename(partial, path) < 0))
		ret = -errno;
	if (fd >= 0) {
		close(fd);
		if (ret < 0)
			unlink(partial);
	}
	if (ret < 0)
		npg_error_set(err, ret, "%s: cannot write the plan: %s; %s", path, strerror(-ret),
			      ret == -ENOSPC ? "free some space, or write elsewhere with -o"
					     : "check the directory, or write elsewhere with -o");
	free(partial);
	return ret;
}

/* A pipe or a device, as in -o /dev/stdout, is written to and not replaced. */
static int write_direct(const char *path, const char *text, size_t length, struct npg_error *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : write_all(fd, text, length);

	if (fd >= 0)
		close(fd);
	if (ret < 0)
		npg_error_set(err, ret, "%s: cannot write the plan: %s", path, strerror(-ret));
	return ret;
}

int npg_plan_write(const struct npg_plan *plan, const char *path, struct npg_error *err)
{
	size_t length = 0;
	char *text = NULL, *target = NULL;
	struct stat st;
	int ret = npg_plan_to_text(plan, &text, &length, err);

	if (ret == 0 && stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		ret = write_direct(path, text, length, err);
	} else if (ret == 0) {
		target = realpath(path, NULL); /* a link stays a link */
		ret = write_renamed(target != NULL ? target : path, text, length, err);
	}
	free(target);
	free(text);
	return ret;
}
