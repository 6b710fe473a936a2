/* Finding planned static objects by module and address. */
#include <link.h>

#include "lib/preload/callsite.h"
#include "replayer/preload/place.h"
#include "replayer/preload/statics.h"

/* Do the bytes lie in one writable segment of the module? */
static bool has_bytes(const struct dl_phdr_info *module, uint64_t vaddr, uint64_t size)
{
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &module->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && vaddr >= p->p_vaddr &&
		    vaddr - p->p_vaddr <= p->p_memsz && size <= p->p_memsz - (vaddr - p->p_vaddr))
			return true;
	}
	return false;
}

static void place(const struct npg_wire_static *s, uintptr_t start)
{
	uintptr_t page = npg_state.table->page_size_bytes;
	struct npg_memory memory = {
		.start = start,
		.size_bytes = s->size_bytes,
		.limit = (start + s->size_bytes + page - 1) & ~(page - 1),
		.planned_bytes = s->size_bytes,
		.plan_index = s->plan_index,
		.moves_pages = true,
	};
	size_t placed = npg_place_ranges(&memory, &npg_state.ranges[s->first_range], s->nr_ranges);

	npg_place_tables(&memory, &npg_state.tables[s->first_table], s->nr_tables);
	npg_count(&npg_outcomes[s->plan_index].nr_matched, 1);
	npg_count(&npg_outcomes[s->plan_index].nr_placed, placed > 0);
	npg_count(&npg_outcomes[s->plan_index].placed_bytes, placed);
}

static int in_module(struct dl_phdr_info *module, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (uint32_t i = 0; i < npg_state.table->statics.nr; i++) {
		const struct npg_wire_static *s = &npg_state.statics[i];
		uint64_t place_of = module->dlpi_addr + s->vaddr + 1;

		if (has_bytes(module, s->vaddr, s->size_bytes) &&
		    npg_callsite_hash(&place_of, 1) == s->check)
			place(s, module->dlpi_addr + s->vaddr);
	}
	return 0;
}

void npg_statics_place(void)
{
	if (npg_state.table->statics.nr > 0)
		dl_iterate_phdr(in_module, NULL);
}
