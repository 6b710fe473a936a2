/* A plan in memory: its lifetime, and the identity of its call sites. */
#include "lib/plan.h"
#include "lib/preload/hash.h"

struct npg_plan *npg_plan_new(void)
{
	return calloc(1, sizeof(struct npg_plan));
}

static void free_objects(struct npg_plan *plan)
{
	for (size_t i = 0; plan->objects != NULL && i < plan->nr_objects; i++) {
		struct npg_plan_object *o = &plan->objects[i];

		for (size_t f = 0; o->frames != NULL && f < o->nr_frames; f++)
			free(o->frames[f].function);
		free(o->frames);
		free(o->ranges);
		free(o->table_ranges);
		free(o->kind);
		free(o->name);
		free(o->creator);
		free(o->reason);
	}
	free(plan->objects);
}

void npg_plan_free(struct npg_plan *plan)
{
	if (plan == NULL)
		return;
	free_objects(plan);
	for (size_t i = 0; plan->modules != NULL && i < plan->nr_modules; i++)
		free(plan->modules[i].path);
	for (size_t i = 0; plan->threads != NULL && i < plan->nr_threads; i++) {
		free(plan->threads[i].path);
		free(plan->threads[i].name);
	}
	for (size_t i = 0; plan->predictions != NULL && i < plan->nr_predictions; i++)
		free(plan->predictions[i].placement);
	free(plan->modules);
	free(plan->threads);
	free(plan->predictions);
	free(plan->nodes);
	free(plan->distance_ns);
	free(plan->command);
	free(plan->program);
	free(plan->recording);
	free(plan->objective);
	free(plan->machine);
	free(plan->leave_reason);
	free(plan);
}

static unsigned int hex_digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10) & 15;
}

/* @text: lower-case hexadecimal of even length, at most NPG_BUILD_ID_MAX bytes. */
static uint64_t hash_build_id_text(const char *text)
{
	unsigned char bytes[NPG_BUILD_ID_MAX];
	size_t n = 0;

	for (; text[0] != '\0' && text[1] != '\0' && n < sizeof(bytes); text += 2)
		bytes[n++] = (unsigned char)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
	return npg_hash_build_id(bytes, n);
}

uint64_t npg_plan_module_key(const struct npg_plan_module *module)
{
	if (module->build_id[0] == '\0' || npg_hash_is_system_module(module->path))
		return npg_hash_module_name(module->path);
	return hash_build_id_text(module->build_id);
}

uint64_t npg_plan_site_hash(const struct npg_plan *plan, const struct npg_plan_object *object)
{
	uint64_t hash = NPG_HASH_SEED;

	for (size_t i = 0; i < object->nr_frames; i++) {
		const struct npg_plan_frame *f = &object->frames[i];
		uint64_t key = 0, offset = 0;

		if (f->module >= 0) {
			key = npg_plan_module_key(&plan->modules[f->module]);
			if (!npg_hash_is_system_module(plan->modules[f->module].path))
				offset = f->offset_bytes;
		}
		hash = npg_hash_frame(hash, key, offset);
	}
	return hash;
}
