/* Build IDs in the plan against the files here. */
#include <errno.h>

#include "lib/preload/hash.h"
#include "replayer/modules.h"

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The file that stands for a module of the plan now. */
static const char *path_here(const struct npg_plan *plan, const struct npg_plan_module *module,
			     const char *program)
{
	if (program != NULL && strcmp(module->path, plan->program) == 0)
		return program;
	return module->path;
}

/* Find a rebuilt file's symbol of the same name and size. */
static void find_by_name(const struct npg_elf_file *file, const struct npg_plan_object *o,
			 struct npg_fit_static *found)
{
	size_t nr_found = 0;

	for (size_t i = 0; o->name != NULL && i < file->nr_objects; i++) {
		const struct npg_elf_symbol *symbol = &file->objects[i];

		if (symbol->size_bytes == o->size_bytes && strcmp(symbol->name, o->name) == 0) {
			found->vaddr = symbol->vaddr;
			nr_found++;
		}
	}
	found->is_here = found->is_by_name = nr_found == 1;
	memcpy(found->module.build_id, file->build_id, sizeof(found->module.build_id));
}

static void check_statics(const struct npg_plan *plan, int module, struct npg_elf_file *file,
			  struct npg_fit *fit)
{
	bool is_stale = fit->modules[module] == NPG_MODULE_STALE;

	if (is_stale && npg_elf_file_load_symbols(file, NULL) < 0)
		return; /* broken tables: what was sound is used */
	for (size_t i = 0; i < plan->nr_objects; i++) {
		const struct npg_plan_object *o = &plan->objects[i];
		struct npg_fit_static *here = &fit->statics[i];

		if (o->module != module || strcmp(o->kind, "static") != 0)
			continue;
		here->module = plan->modules[module];
		here->vaddr = o->offset_bytes;
		here->is_here = !is_stale;
		if (is_stale)
			find_by_name(file, o, here);
	}
}

static void check_module(const struct npg_plan *plan, int i, const char *program,
			 struct npg_fit *fit)
{
	const struct npg_plan_module *module = &plan->modules[i];
	struct npg_elf_file *file = NULL;

	if (npg_elf_file_open(path_here(plan, module, program), &file, NULL) < 0) {
		fit->modules[i] = NPG_MODULE_ABSENT;
		return;
	}
	if (strcmp(file->build_id, module->build_id) != 0) {
		fit->modules[i] = NPG_MODULE_STALE;
		fit->nr_stale_modules++;
	}
	check_statics(plan, i, file, fit);
	npg_elf_file_free(file);
}

/* Statics of a file that is not there are believed: their build ID is checked again inside. */
static void believe_absent(const struct npg_plan *plan, struct npg_fit *fit)
{
	for (size_t i = 0; i < plan->nr_objects; i++) {
		const struct npg_plan_object *o = &plan->objects[i];

		if (o->module < 0 || fit->modules[o->module] != NPG_MODULE_ABSENT)
			continue;
		fit->statics[i].is_here = true;
		fit->statics[i].vaddr = o->offset_bytes;
		fit->statics[i].module = plan->modules[o->module];
	}
}

static bool is_object_stale(const struct npg_plan *plan, const struct npg_fit *fit, size_t i)
{
	const struct npg_plan_object *o = &plan->objects[i];

	if (strcmp(o->kind, "static") == 0)
		return !fit->statics[i].is_here;
	for (size_t f = 0; f < o->nr_frames; f++) {
		int module = o->frames[f].module;

		if (module >= 0 && fit->modules[module] == NPG_MODULE_STALE &&
		    !npg_hash_is_system_module(plan->modules[module].path))
			return true;
	}
	return false;
}

static void count_stale(const struct npg_plan *plan, struct npg_fit *fit)
{
	for (size_t i = 0; i < plan->nr_objects; i++) {
		fit->is_stale[i] = is_object_stale(plan, fit, i);
		fit->nr_by_name += fit->statics[i].is_by_name;
		if (fit->is_stale[i]) {
			fit->nr_stale_objects++;
			fit->stale_share += plan->objects[i].share;
		}
	}
}

int npg_fit_check(const struct npg_plan *plan, const char *program, struct npg_fit *fit,
		  struct npg_error *err)
{
	memset(fit, 0, sizeof(*fit));
	fit->modules = calloc(plan->nr_modules + 1, sizeof(*fit->modules));
	fit->is_stale = calloc(plan->nr_objects + 1, sizeof(*fit->is_stale));
	fit->statics = calloc(plan->nr_objects + 1, sizeof(*fit->statics));
	if (fit->modules == NULL || fit->is_stale == NULL || fit->statics == NULL) {
		npg_fit_release(fit);
		return npg_error_set(err, -ENOMEM, "out of memory");
	}
	fit->is_other_program =
	    program != NULL && strcmp(last_component(program), last_component(plan->program)) != 0;
	for (size_t i = 0; i < plan->nr_modules; i++)
		check_module(plan, (int)i, program, fit);
	believe_absent(plan, fit);
	count_stale(plan, fit);
	return 0;
}

void npg_fit_release(struct npg_fit *fit)
{
	free(fit->modules);
	free(fit->is_stale);
	free(fit->statics);
	memset(fit, 0, sizeof(*fit));
}

void npg_fit_describe(const struct npg_plan *plan, const struct npg_fit *fit, char *text,
		      size_t size)
{
	const char *example = "";

	text[0] = '\0';
	for (size_t i = plan->nr_modules; i-- > 0;)
		if (fit->modules[i] == NPG_MODULE_STALE)
			example = last_component(plan->modules[i].path);
	if (fit->nr_stale_objects > 0)
		snprintf(text, size,
			 "%zu of %zu planned objects (%.1f %% of the samples) are stale: %s%s was "
			 "built anew since it was recorded; record and analyze again",
			 fit->nr_stale_objects, plan->nr_objects, 100.0 * fit->stale_share, example,
			 fit->nr_stale_modules > 1 ? " and others" : "");
	else if (fit->nr_by_name > 0)
		snprintf(text, size,
			 "%s%s was built anew since it was recorded; %zu static objects were found "
			 "again by name",
			 example, fit->nr_stale_modules > 1 ? " and others" : "", fit->nr_by_name);
}
