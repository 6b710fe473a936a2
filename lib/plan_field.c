/* Fields of a plan's JSON, each with its check. */
#include <errno.h>
#include <stdarg.h>

#include "lib/plan_field.h"

int npg_field_bad(const struct npg_plan_place *p, const char *key, const char *format, ...)
{
	const char *dot = p->path[0] != '\0' && key[0] != '\0' ? "." : "";
	char reason[256];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return npg_error_set(p->r->err, -EINVAL,
			     "%s: not a usable plan: %s%s%s: %s; make it again with 'numapgo "
			     "analyze'",
			     p->r->origin, p->path, dot, key, reason);
}

int npg_field_no_memory(const struct npg_plan_reader *r)
{
	return npg_error_set(r->err, -ENOMEM, "%s: out of memory", r->origin);
}

static bool is_listed(const char *key, const char *const *keys)
{
	for (; *keys != NULL; keys++)
		if (strcmp(key, *keys) == 0)
			return true;
	return false;
}

int npg_field_open(struct npg_plan_place *p, const struct npg_plan_reader *r, json_t *json,
		   const char *const *keys, const char *name, size_t index)
{
	const char *key;
	json_t *value;

	p->r = r;
	p->json = json;
	if (index == SIZE_MAX)
		snprintf(p->path, sizeof(p->path), "%s", name);
	else
		snprintf(p->path, sizeof(p->path), "%s[%zu]", name, index);
	if (!json_is_object(json))
		return npg_field_bad(p, "", "an object is wanted");
	json_object_foreach(json, key, value) if (!is_listed(key, keys)) return npg_field_bad(
	    p, key, "unknown entry");
	return 0;
}

int npg_field_text(const struct npg_plan_place *p, const char *key, bool is_required, char **text)
{
	json_t *value = json_object_get(p->json, key);

	if (value == NULL || json_is_null(value))
		return is_required ? npg_field_bad(p, key, "missing") : 0;
	if (!json_is_string(value))
		return npg_field_bad(p, key, "a text is wanted");
	*text = strdup(json_string_value(value));
	return *text != NULL ? 0 : npg_field_no_memory(p->r);
}

int npg_field_u64(const struct npg_plan_place *p, const char *key, bool is_required, uint64_t max,
		  uint64_t *number)
{
	json_t *value = json_object_get(p->json, key);

	if (value == NULL)
		return is_required ? npg_field_bad(p, key, "missing") : 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return npg_field_bad(p, key, "a whole number, not negative, is wanted");
	if ((uint64_t)json_integer_value(value) > max)
		return npg_field_bad(p, key, "%lld is above %llu",
				     (long long)json_integer_value(value), (unsigned long long)max);
	*number = (uint64_t)json_integer_value(value);
	return 0;
}

int npg_field_real(const struct npg_plan_place *p, const char *key, double max, double *number)
{
	json_t *value = json_object_get(p->json, key);
	double real;

	if (value == NULL)
		return 0;
	real = json_number_value(value);
	if (!json_is_number(value) || !(real >= 0.0 && real <= max))
		return npg_field_bad(p, key, "a number from 0 to %g is wanted", max);
	*number = real;
	return 0;
}

int npg_field_build_id(const struct npg_plan_place *p, const char *key, char *build_id)
{
	const json_t *value = json_object_get(p->json, key);
	const char *text = json_string_value(value);
	size_t length;

	if (value == NULL)
		return 0;
	length = text != NULL ? strlen(text) : 1;
	if (length % 2 != 0 || length > (size_t)2 * NPG_BUILD_ID_MAX ||
	    strspn(text, "0123456789abcdef") != length)
		return npg_field_bad(p, key, "a build ID in lower-case hexadecimal is wanted");
	memcpy(build_id, text, length + 1);
	return 0;
}

int npg_field_module(const struct npg_plan_place *p, const char *key, bool is_required, int *module)
{
	uint64_t number = 0;
	int ret;

	*module = -1;
	if (!is_required && json_object_get(p->json, key) == NULL)
		return 0;
	ret = npg_field_u64(p, key, true, INT32_MAX, &number);
	if (ret < 0)
		return ret;
	if (number >= p->r->plan->nr_modules)
		return npg_field_bad(p, key, "there are only %zu modules", p->r->plan->nr_modules);
	*module = (int)number;
	return 0;
}

int npg_field_node(const struct npg_plan_place *p, const char *key, uint8_t *node)
{
	uint64_t number = 0;
	int ret = npg_field_u64(p, key, true, UINT64_MAX >> 1, &number);

	if (ret < 0)
		return ret;
	if (number >= (uint64_t)p->r->plan->nr_nodes)
		return npg_field_bad(p, key, "%llu is not one of the plan's %d nodes",
				     (unsigned long long)number, p->r->plan->nr_nodes);
	*node = (uint8_t)number;
	return 0;
}

int npg_field_array(const struct npg_plan_place *p, const char *key, bool is_required, size_t max,
		    json_t **array, size_t *nr)
{
	*array = json_object_get(p->json, key);
	*nr = json_array_size(*array);
	if (*array == NULL)
		return is_required ? npg_field_bad(p, key, "missing") : 0;
	if (!json_is_array(*array))
		return npg_field_bad(p, key, "an array is wanted");
	if (*nr > max)
		return npg_field_bad(p, key, "%zu entries, more than %zu", *nr, max);
	return 0;
}

bool npg_field_is_thread_path(const char *path)
{
	if (path[0] != '0' || (path[1] != '\0' && path[1] != '.'))
		return false;
	for (const char *c = path + 1; *c != '\0'; c++) {
		if (*c == '.' && (c[1] < '0' || c[1] > '9'))
			return false;
		if (*c != '.' && (*c < '0' || *c > '9'))
			return false;
	}
	return true;
}

/* Two whole numbers [first, count]; their sum stays below 2^60. */
int npg_field_extent(const struct npg_plan_place *p, const char *key, uint64_t *first, uint64_t *nr)
{
	json_t *array, *a, *b;
	size_t n;
	int ret = npg_field_array(p, key, true, 2, &array, &n);

	if (ret < 0)
		return ret;
	a = json_array_get(array, 0);
	b = json_array_get(array, 1);
	if (!json_is_integer(a) || !json_is_integer(b) || json_integer_value(a) < 0 ||
	    json_integer_value(b) < 1 || (uint64_t)json_integer_value(a) > NPG_PLAN_MAX_BYTES ||
	    (uint64_t)json_integer_value(b) > NPG_PLAN_MAX_BYTES)
		return npg_field_bad(p, key, "[first, count] with a count from 1 is wanted");
	*first = (uint64_t)json_integer_value(a);
	*nr = (uint64_t)json_integer_value(b);
	return 0;
}
