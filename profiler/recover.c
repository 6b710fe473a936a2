/* Functions and recovered accesses of modules, each worked out once; see module.h and block.h. */
#include "profiler/module.h"

#define MAX_FUNCTION_BYTES (1u << 20)
#define MAX_PARTS          16 /* other code that a function branches to, looked at */
#define SEEN_ONCE          UINT64_MAX

/* Bounds by the unwind tables, else by the symbol table if it is loaded. */
static bool find_bounds(const struct npg_elf_file *elf, uint64_t vaddr, uint64_t *start,
			uint64_t *size)
{
	const struct npg_elf_symbol *symbol;

	if (npg_elf_file_frame_at(elf, vaddr, start, size) == 0)
		return *size <= MAX_FUNCTION_BYTES;
	symbol = npg_elf_file_function_at(elf, vaddr);
	if (symbol == NULL)
		return false;
	*start = symbol->vaddr;
	*size = symbol->size_bytes;
	return *size <= MAX_FUNCTION_BYTES;
}

static const unsigned char *code_at(const struct npg_module *module, uint64_t vaddr, uint64_t size)
{
	for (size_t i = 0; i < module->elf->nr_segments; i++) {
		const struct npg_elf_segment *s = &module->elf->segments[i];

		if (s->is_executable && vaddr >= s->vaddr && vaddr - s->vaddr < s->file_bytes &&
		    size <= s->file_bytes - (vaddr - s->vaddr) &&
		    s->file_offset + s->file_bytes <= module->data_bytes)
			return module->data + s->file_offset + (vaddr - s->vaddr);
	}
	return NULL;
}

static bool analyse(const struct npg_module *module, uint64_t start, uint64_t size,
		    struct npg_function *function)
{
	const unsigned char *code = code_at(module, start, size);

	return code != NULL && npg_function_init(code, size, function) == 0;
}

/*
 * Parts that the compiler moved away, "cold" ones, may branch back into the function's middle. An
 * unconditional branch to where something begins is a call at the function's end instead.
 */
static void look_at_parts(const struct npg_module *module, uint64_t start,
			  struct npg_function *function)
{
	uint64_t seen[MAX_PARTS], part, size;
	size_t at = 0, nr_seen = 0, i;
	struct npg_function other;
	bool is_conditional;
	int64_t target;

	while ((at = npg_function_next_exit(function, at, &target, &is_conditional)) != 0) {
		if (!find_bounds(module->elf, start + (uint64_t)target, &part, &size) ||
		    (!is_conditional && part == start + (uint64_t)target))
			continue;
		for (i = 0; i < nr_seen && seen[i] != part; i++)
			;
		if (i < nr_seen)
			continue;
		if (nr_seen == MAX_PARTS || !analyse(module, part, size, &other)) {
			function->has_unknown_targets = true;
			return;
		}
		seen[nr_seen++] = part;
		npg_function_add_targets(function, &other, (int64_t)(part - start));
		npg_function_release(&other);
	}
}

static struct npg_function *keep_function(struct npg_modules *modules,
					  const struct npg_module *module, uint64_t start,
					  struct npg_function *function)
{
	struct npg_function *grown =
	    reallocarray(modules->functions, modules->nr_functions + 1, sizeof(*grown));

	if (grown != NULL)
		modules->functions = grown;
	if (grown == NULL || npg_table_put(&modules->function_index, (uintptr_t)module, start,
					   modules->nr_functions + 1) < 0) {
		npg_function_release(function);
		return NULL;
	}
	grown[modules->nr_functions] = *function;
	return &grown[modules->nr_functions++];
}

/*
 * Analysing a function costs more than its sample is worth if there will be only one, as in
 * programs with thousands of functions; so it is put off to the second.
 */
static struct npg_function *function_of(struct npg_modules *modules, struct npg_module *module,
					uint64_t vaddr, uint64_t *start, bool *is_put_off)
{
	struct npg_function function;
	uint64_t size, at;

	if (!find_bounds(module->elf, vaddr, start, &size))
		return NULL;
	at = npg_table_get(&modules->function_index, (uintptr_t)module, *start);
	if (at == 0) {
		*is_put_off = npg_table_put(&modules->function_index, (uintptr_t)module, *start,
					    SEEN_ONCE) == 0;
		return NULL;
	}
	if (at != SEEN_ONCE)
		return &modules->functions[at - 1];
	if (!analyse(module, *start, size, &function))
		return NULL;
	look_at_parts(module, *start, &function);
	return keep_function(modules, module, *start, &function);
}

/* Return: false if it is put off. */
static bool recover(struct npg_modules *modules, struct npg_module *module, uint64_t file_offset,
		    struct npg_recovery *recovery)
{
	struct npg_function *function = NULL;
	uint64_t vaddr, start = 0;
	bool is_put_off = false;

	*recovery = (struct npg_recovery){ .way = NPG_RECOVERY_NONE };
	if (module->elf == NULL || module->data == NULL || !module->elf->is_native)
		return true;
	if (npg_elf_file_vaddr_of_offset(module->elf, file_offset, &vaddr) == 0)
		function = function_of(modules, module, vaddr, &start, &is_put_off);
	if (function != NULL)
		npg_function_recover(function, (size_t)(vaddr - start), recovery);
	return !is_put_off;
}

static const struct npg_recovery *keep_recovery(struct npg_modules *modules,
						const struct npg_module *module,
						uint64_t file_offset,
						const struct npg_recovery *recovery)
{
	struct npg_recovery *grown =
	    reallocarray(modules->recoveries, modules->nr_recoveries + 1, sizeof(*grown));

	if (grown == NULL)
		return NULL;
	modules->recoveries = grown;
	if (npg_table_put(&modules->recovery_index, (uintptr_t)module, file_offset,
			  modules->nr_recoveries + 1) < 0)
		return NULL;
	grown[modules->nr_recoveries] = *recovery;
	return &grown[modules->nr_recoveries++];
}

const struct npg_recovery *npg_modules_recover(struct npg_modules *modules,
					       struct npg_module *module, uint64_t file_offset)
{
	uint64_t at = npg_table_get(&modules->recovery_index, (uintptr_t)module, file_offset);
	const struct npg_recovery *kept;
	struct npg_recovery recovery;

	if (at != 0)
		kept = &modules->recoveries[at - 1];
	else if (recover(modules, module, file_offset, &recovery))
		kept = keep_recovery(modules, module, file_offset, &recovery);
	else
		kept = NULL;
	return kept != NULL && kept->way != NPG_RECOVERY_NONE ? kept : NULL;
}

void npg_modules_release_code(struct npg_modules *modules)
{
	for (size_t i = 0; i < modules->nr_functions; i++)
		npg_function_release(&modules->functions[i]);
	free(modules->functions);
	free(modules->recoveries);
	npg_table_release(&modules->function_index);
	npg_table_release(&modules->recovery_index);
}
