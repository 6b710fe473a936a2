/* Plans: round trip, stable bytes, agreement with the schema, refusal of what is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "lib/plan.h"
#include "lib/preload/hash.h"
#include "lib/schemas.h"

static const char small[] =
    "{\"format\":\"numapgo-plan\",\"version\":1,\"min_object_bytes\":65536,\"program\":{\"path\":"
    "\"/bin/app\"},"
    "\"machine\":{\"page_size_bytes\":4096,\"nodes\":[{\"memory_bytes\":1,\"nr_cpus\":1},"
    "{\"memory_bytes\":1,\"nr_cpus\":1}],\"distance_ns\":[[80,140],[140,80]]},"
    "\"modules\":[{\"path\":\"/bin/app\",\"build_id\":\"00ff\"},{\"path\":\"/lib/libc.so.6\"}],"
    "\"threads\":[{\"path\":\"0.2\",\"node\":1}],"
    "\"objects\":[{\"kind\":\"heap\",\"name\":\"main\",\"size_bytes\":8388608,"
    "\"frames\":[{\"module\":0,\"offset_bytes\":291},{\"module\":1,\"offset_bytes\":7}],"
    "\"which\":\"thread_ordinal\",\"ordinal\":3,\"creator\":\"0.1\","
    "\"ranges\":[{\"pages\":[0,1024],\"node\":1},{\"pages\":[1024,1024],"
    "\"interleave\":[0,1],\"weights\":[1,3]}],\"tables\":[{\"regions\":[0,4],\"node\":1}]},"
    "{\"kind\":\"static\",\"module\":0,\"offset_bytes\":4096,\"size_bytes\":65536,"
    "\"ranges\":[{\"pages\":[0,16],\"node\":0}]}],"
    "\"predictions\":[{\"placement\":\"plan\",\"lar\":0.95,\"memory_ns\":12345678.5}]}";

static struct npg_plan *parse(const char *text)
{
	struct npg_error err = { "" };
	struct npg_plan *plan = NULL;
	int ret = npg_plan_from_text(text, strlen(text), "test", &plan, &err);

	if (ret < 0)
		fail_msg("%s", err.text);
	return plan;
}

static void test_fields(void **state)
{
	struct npg_plan *plan = parse(small);
	const struct npg_plan_object *o = &plan->objects[0];

	(void)state;
	assert_int_equal(plan->nr_nodes, 2);
	assert_true(plan->distance_ns[1] == 140.0);
	assert_int_equal(plan->nr_objects, 2);
	assert_int_equal(o->which, NPG_PLAN_THREAD_ORDINAL);
	assert_int_equal(o->ordinal, 3);
	assert_int_equal(o->nr_ranges, 2);
	assert_int_equal(o->ranges[1].policy, NPG_POLICY_INTERLEAVE);
	assert_int_equal(o->ranges[1].nodes[1], 1);
	assert_int_equal(o->ranges[1].weights[1], 3);
	assert_int_equal(o->table_ranges[0].nr_regions, 4);
	assert_int_equal(plan->threads[0].node, 1);
	assert_int_equal(plan->threads[0].start_module, -1);
	assert_int_equal(plan->objects[1].module, 0);
	assert_false(plan->leave);
	npg_plan_free(plan);
}

static void test_round_trip(void **state)
{
	struct npg_plan *plan = parse(small), *again;
	char *text = NULL, *text2 = NULL;
	size_t length = 0, length2 = 0;

	(void)state;
	assert_int_equal(npg_plan_to_text(plan, &text, &length, NULL), 0);
	again = parse(text);
	assert_int_equal(npg_plan_to_text(again, &text2, &length2, NULL), 0);
	assert_string_equal(text, text2);
	assert_int_equal(length, strlen(text));
	assert_int_equal(again->objects[0].ranges[1].weights[1], 3);
	assert_string_equal(again->objects[0].creator, "0.1");
	free(text);
	free(text2);
	npg_plan_free(plan);
	npg_plan_free(again);
}

/* The part of JSON Schema that schemas/plan.schema.json uses; anything else in it is a failure. */
static void check_schema(json_t *root, json_t *schema, json_t *value, const char *place);

static void check_object(json_t *root, json_t *schema, json_t *value, const char *place)
{
	json_t *properties = json_object_get(schema, "properties"), *field, *name;
	const char *key;
	char path[512];
	size_t i;

	json_object_foreach(value, key, field)
	{
		snprintf(path, sizeof(path), "%s.%s", place, key);
		if (json_object_get(properties, key) == NULL)
			fail_msg("%s: not in the schema", path);
		check_schema(root, json_object_get(properties, key), field, path);
	}
	json_array_foreach(json_object_get(schema, "required"), i,
			   name) if (json_object_get(value, json_string_value(name)) == NULL)
	    fail_msg("%s: %s is missing", place, json_string_value(name));
}

static void check_type(const char *type, json_t *value, const char *place)
{
	bool ok = (strcmp(type, "object") == 0 && json_is_object(value)) ||
		  (strcmp(type, "array") == 0 && json_is_array(value)) ||
		  (strcmp(type, "string") == 0 && json_is_string(value)) ||
		  (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
		  (strcmp(type, "number") == 0 && json_is_number(value)) ||
		  (strcmp(type, "boolean") == 0 && json_is_boolean(value));

	if (!ok)
		fail_msg("%s: not of type %s", place, type);
}

static void check_values(json_t *schema, json_t *value, const char *place)
{
	json_t *limit, *allowed;
	bool found = false;
	size_t i;

	limit = json_object_get(schema, "const");
	if (limit != NULL && !json_equal(limit, value))
		fail_msg("%s: not the constant", place);
	limit = json_object_get(schema, "minimum");
	if (limit != NULL && json_number_value(value) < json_number_value(limit))
		fail_msg("%s: below the minimum", place);
	limit = json_object_get(schema, "maximum");
	if (limit != NULL && json_number_value(value) > json_number_value(limit))
		fail_msg("%s: above the maximum", place);
	limit = json_object_get(schema, "minItems");
	if (limit != NULL && (json_int_t)json_array_size(value) < json_integer_value(limit))
		fail_msg("%s: too few", place);
	limit = json_object_get(schema, "maxItems");
	if (limit != NULL && (json_int_t)json_array_size(value) > json_integer_value(limit))
		fail_msg("%s: too many", place);
	json_array_foreach(json_object_get(schema, "enum"), i, allowed) found =
	    found || json_equal(allowed, value);
	if (json_object_get(schema, "enum") != NULL && !found)
		fail_msg("%s: none of the allowed values", place);
}

static void check_schema(json_t *root, json_t *schema, json_t *value, const char *place)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	const char *type = json_string_value(json_object_get(schema, "type"));
	json_t *item;
	char path[512];
	size_t i;

	assert_non_null(schema);
	if (ref != NULL) {
		assert_int_equal(strncmp(ref, "#/$defs/", 8), 0);
		schema = json_object_get(json_object_get(root, "$defs"), ref + 8);
		check_schema(root, schema, value, place);
		return;
	}
	if (type != NULL)
		check_type(type, value, place);
	check_values(schema, value, place);
	if (json_is_object(value))
		check_object(root, schema, value, place);
	json_array_foreach(value, i, item)
	{
		snprintf(path, sizeof(path), "%s[%zu]", place, i);
		check_schema(root, json_object_get(schema, "items"), item, path);
	}
}

static void test_schema(void **state)
{
	json_t *schema = json_loads(npg_plan_schema_json, JSON_REJECT_DUPLICATES, NULL);
	struct npg_plan *plan = parse(small);
	char *text = NULL;
	size_t length = 0;
	json_t *json;

	(void)state;
	assert_non_null(schema);
	assert_int_equal(npg_plan_to_text(plan, &text, &length, NULL), 0);
	json = json_loadb(text, length, 0, NULL);
	check_schema(schema, schema, json, "");
	json_decref(json);
	json_decref(schema);
	free(text);
	npg_plan_free(plan);
}

/* One replacement in the small plan, and a part of the error that it must give. */
struct fault {
	const char *from, *to, *error;
};

static const struct fault faults[] = {
	{ "\"node\":1}]", "\"node\":2}]", "threads[0].node" },
	{ "[1024,1024]", "[1000,1024]", "objects[0].ranges[1].pages: overlaps" },
	{ "[1024,1024]", "[1024,4096]", "beyond the object" },
	{ "[1024,1024]", "[1024,0]", "count from 1" },
	{ "[1024,1024]", "[1024,9223372036854775807]", "count from 1" },
	{ "\"weights\":[1,3]", "\"weights\":[1]", "1 weights for 2 nodes" },
	{ "\"weights\":[1,3]", "\"weights\":[0,3]", "from 1 to 255" },
	{ "\"interleave\":[0,1]", "\"interleave\":[1,0]", "ascend" },
	{ "\"interleave\":[0,1]", "\"interleave\":[]", "no node" },
	{ "\"regions\":[0,4]", "\"regions\":[6,4]", "objects[0].tables[0].regions" },
	{ "\"module\":1", "\"module\":2", "objects[0].frames[1].module: there are only 2" },
	{ "\"kind\":\"heap\"", "\"kind\":\"heep\"", "objects[0].kind" },
	{ "\"creator\":\"0.1\"", "\"creator\":\"0..1\"", "objects[0].creator" },
	{ "\"creator\":\"0.1\",", "", "objects[0].creator: missing" },
	{ "\"path\":\"0.2\"", "\"path\":\"1.2\"", "threads[0].path" },
	{ "\"version\":1", "\"version\":2", "reads version 1" },
	{ "numapgo-plan", "other", "not a plan" },
	{ "\"ordinal\":3", "\"ordinal\":-3", "objects[0].ordinal" },
	{ "\"ordinal\":3", "\"ordinal\":3.5", "objects[0].ordinal" },
	{ "\"ordinal\":3", "\"ordnal\":3", "objects[0].ordnal: unknown" },
	{ "00ff", "00f", "modules[0].build_id" },
	{ "00ff", "00FF", "modules[0].build_id" },
	{ "[80,140]", "[80]", "distance_ns" },
	{ "[80,140]", "[0,140]", "distance_ns" },
	{ "\"page_size_bytes\":4096", "\"page_size_bytes\":4097", "power of two" },
	{ "\"size_bytes\":65536", "\"size_bytes\":\"64K\"", "objects[1].size_bytes" },
	{ "\"kind\":\"static\",\"module\":0,", "\"kind\":\"static\",", "objects[1].module" },
	{ "\"lar\":0.95", "\"lar\":95", "predictions[0].lar" },
};

static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(faults); i++) {
		const struct fault *f = &faults[i];
		const char *at = strstr(small, f->from);
		struct npg_error err = { "" };
		struct npg_plan *plan = NULL;
		char text[4096];

		assert_non_null(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - small), small, f->to,
			 at + strlen(f->from));
		assert_int_equal(npg_plan_from_text(text, strlen(text), "test", &plan, &err),
				 -EINVAL);
		assert_null(plan);
		if (strstr(err.text, f->error) == NULL)
			fail_msg("'%s' is not in '%s'", f->error, err.text);
	}
}

static void test_every_cut(void **state)
{
	(void)state;
	for (size_t length = 0; length < strlen(small); length++) {
		struct npg_error err = { "" };
		struct npg_plan *plan = NULL;

		assert_int_equal(npg_plan_from_text(small, length, "cut", &plan, &err), -EINVAL);
		assert_true(err.text[0] != '\0');
	}
}

static void test_site_hash(void **state)
{
	static const unsigned char id[] = { 0x00, 0xff };
	struct npg_plan *plan = parse(small);
	uint64_t want = NPG_HASH_SEED;

	(void)state;
	want = npg_hash_frame(want, npg_hash_build_id(id, sizeof(id)), 291);
	want = npg_hash_frame(want, npg_hash_module_name("libc.so.6"), 0);
	assert_true(npg_plan_site_hash(plan, &plan->objects[0]) == want);
	npg_plan_free(plan);
}

static void test_files(void **state)
{
	char dir[] = "/tmp/npg-test-plan-XXXXXX", path[64], link[64];
	struct npg_plan *plan = parse(small), *again = NULL;
	struct npg_error err = { "" };
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.plan", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(npg_plan_read(path, &again, &err), -ENOENT);
	assert_non_null(strstr(err.text, "numapgo analyze"));
	assert_int_equal(npg_plan_read(dir, &again, &err), -EINVAL);
	assert_int_equal(npg_plan_write(plan, path, &err), 0);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(npg_plan_write(plan, link, &err), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(npg_plan_read(link, &again, &err), 0);
	npg_plan_free(again);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(mkfifo(link, 0600), 0);
	assert_int_equal(npg_plan_read(link, &again, &err), -EINVAL);
	assert_int_equal(npg_plan_write(plan, "/nowhere/a.plan", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/a.plan"));
	unlink(link);
	unlink(path);
	assert_int_equal(rmdir(dir), 0); /* no temporary file was left */
	npg_plan_free(plan);
}

static void test_refuses_to_write(void **state)
{
	struct npg_plan *plan = parse(small);
	struct npg_error err = { "" };
	size_t length = 0;
	char *text = NULL;

	(void)state;
	plan->threads[0].node = 7;
	assert_int_equal(npg_plan_to_text(plan, &text, &length, &err), -EINVAL);
	assert_non_null(strstr(err.text, "threads[0].node"));
	plan->threads[0].node = 1;
	free(plan->command);
	plan->command = strdup("caf\xc3\xa9 \xff \xed\xa0\x80");
	assert_int_equal(npg_plan_to_text(plan, &text, &length, &err), 0);
	assert_non_null(strstr(text, "caf\xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd"));
	free(text);
	npg_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),    cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_schema),    cmocka_unit_test(test_faults),
		cmocka_unit_test(test_every_cut), cmocka_unit_test(test_site_hash),
		cmocka_unit_test(test_files),     cmocka_unit_test(test_refuses_to_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
