/*
 * A process's address space: what is mapped where, in four layers. Heap blocks and areas come from
 * the agent, mappings from the kernel, loads are derived from the mappings of ELF files.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "lib/preload/hash.h"
#include "profiler/live_types.h"
#include "profiler/maps.h"
#include "profiler/proc_file.h"

/* Reported objects of this size have a row even if no sample ever hits them; all have one where
 * there are no samples. */
#define LARGE_OBJECT_BYTES (1 << 20)

/* Where the kernel puts the heap: it is named as such only once it has grown. */
#define HEAP_GAP_BYTES (UINT64_C(1) << 30)

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum npg_vma_kind kind_of_name(const char *name)
{
	if (has_prefix(name, "[heap]"))
		return NPG_VMA_HEAP;
	if (has_prefix(name, "[stack"))
		return NPG_VMA_STACK;
	if (has_prefix(name, "[v") || has_prefix(name, "[uprobes]"))
		return NPG_VMA_KERNEL;
	if (has_prefix(name, "/memfd:") || has_prefix(name, "/SYSV") ||
	    has_prefix(name, "/dev/shm/") || has_prefix(name, "/dev/zero"))
		return NPG_VMA_SHARED;
	if (name[0] != '/' || has_prefix(name, "//") || has_prefix(name, "/anon_hugepage"))
		return NPG_VMA_ANONYMOUS;
	return NPG_VMA_FILE;
}

static void keep_vma(void *value)
{
	struct npg_vma *vma = value;

	vma->nr_ranges++;
}

static void keep_load(void *value)
{
	struct npg_load *load = value;

	load->nr_ranges++;
}

static void keep_object(void *value)
{
	struct npg_object *object = value;

	object->nr_ranges++;
}

static bool deserves_row(const struct npg_object *object)
{
	return (object->row.size_bytes >= LARGE_OBJECT_BYTES ||
		!object->process->live->options.has_perf) &&
	       (object->row.kind == NPG_OBJECT_HEAP || object->row.kind == NPG_OBJECT_MMAP ||
		object->row.kind == NPG_OBJECT_SHARED);
}

void npg_object_drop(struct npg_process *process, struct npg_object *object)
{
	if (--object->nr_ranges > 0)
		return;
	if (object->row.id != NPG_NULL || deserves_row(object)) {
		object->row.end_ns =
		    process->end_ns != NPG_NULL ? process->end_ns : process->live->now_ns;
		if (object->row.id == NPG_NULL)
			npg_object_row(object);
		else
			npg_writer_object(process->live->writer, &object->row);
	}
	free(object);
}

static void drop_object(void *context, void *value)
{
	npg_object_drop(context, value);
}

static void drop_vma(void *context, void *value)
{
	struct npg_vma *vma = value;

	if (--vma->nr_ranges > 0)
		return;
	if (vma->object != NULL)
		drop_object(context, vma->object);
	free(vma);
}

static void drop_load(void *context, void *value)
{
	struct npg_load *load = value;

	(void)context;
	if (--load->nr_ranges == 0)
		free(load);
}

void npg_space_init(struct npg_process *process)
{
	npg_range_map_init(&process->vmas, keep_vma, drop_vma, process);
	npg_range_map_init(&process->loads, keep_load, drop_load, process);
	npg_range_map_init(&process->areas, keep_object, drop_object, process);
	npg_range_map_init(&process->blocks, keep_object, drop_object, process);
}

void npg_space_release(struct npg_process *process)
{
	npg_range_map_release(&process->blocks);
	npg_range_map_release(&process->areas);
	npg_range_map_release(&process->vmas);
	npg_range_map_release(&process->loads);
	for (size_t i = 0; i < process->statics.nr_slots; i++)
		if (process->statics.slots[i].value != 0)
			drop_object(process, (void *)(uintptr_t)process->statics.slots[i].value);
	npg_table_release(&process->statics);
	npg_table_release(&process->ordinals);
	npg_table_release(&process->site_cache);
	npg_table_release(&process->touched);
}

struct npg_object *npg_object_new(struct npg_process *process, enum npg_object_kind kind,
				  uint64_t start, uint64_t size_bytes)
{
	struct npg_object *object = calloc(1, sizeof(*object));

	if (object == NULL) {
		process->live->is_out_of_memory = true;
		return NULL;
	}
	object->nr_ranges = 1;
	object->process = process;
	object->row = (struct npg_object_row){
		.id = NPG_NULL,
		.process_id = process->id,
		.name_id = NPG_NULL,
		.module_id = NPG_NULL,
		.offset_bytes = NPG_NULL,
		.callsite_id = NPG_NULL,
		.thread_id = NPG_NULL,
		.site_ordinal = NPG_NULL,
		.thread_ordinal = NPG_NULL,
		.start_address = (int64_t)start,
		.size_bytes = (int64_t)size_bytes,
		.start_ns = process->live->now_ns,
		.end_ns = NPG_NULL,
		.kind = kind,
	};
	return object;
}

void npg_object_row(struct npg_object *object)
{
	struct npg_writer *writer = object->process->live->writer;

	if (object->row.id != NPG_NULL)
		return;
	object->row.id = npg_writer_new_id(writer);
	if (!object->process->is_row_written)
		npg_process_row(object->process);
	if (object->thread != NULL)
		object->row.thread_id = npg_thread_row(object->thread);
	if (object->site != NULL)
		object->row.callsite_id = npg_site_row(object->process->live, object->site);
	if (object->module != NULL)
		object->row.module_id = npg_module_row(object->module, writer);
	npg_writer_object(writer, &object->row);
}

static uint64_t page_down(const struct npg_process *process, uint64_t address)
{
	return address & ~(process->live->options.page_bytes - 1);
}

static uint64_t page_up(const struct npg_process *process, uint64_t address)
{
	return page_down(process, address + process->live->options.page_bytes - 1);
}

/* The executable segment whose pages a mapping shows tells where the module lies. */
static void add_load(struct npg_process *process, struct npg_module *module,
		     const struct npg_vma_event *event)
{
	struct npg_elf_file *elf = npg_module_elf(module, process->pid);
	uint64_t low = UINT64_MAX, high = 0, bias = 0;
	bool is_found = false;
	struct npg_load *load;

	for (size_t i = 0; elf != NULL && i < elf->nr_segments; i++) {
		const struct npg_elf_segment *s = &elf->segments[i];

		low = s->vaddr < low ? s->vaddr : low;
		high = s->vaddr + s->memory_bytes > high ? s->vaddr + s->memory_bytes : high;
		if (s->is_executable && !is_found &&
		    event->file_offset >= page_down(process, s->file_offset) &&
		    event->file_offset < s->file_offset + s->file_bytes) {
			bias = event->start - (s->vaddr - s->file_offset + event->file_offset);
			is_found = true;
		}
	}
	load = is_found ? calloc(1, sizeof(*load)) : NULL;
	if (load == NULL)
		return;
	*load = (struct npg_load){ .nr_ranges = 1, .module = module, .bias = bias };
	if (npg_range_map_insert(&process->loads, page_down(process, low + bias),
				 page_up(process, high + bias), load) < 0)
		free(load);
	npg_table_release(&process->site_cache);
	if (process->exe == NULL) {
		process->exe = module;
		process->exe_end = page_up(process, high + bias);
		process->exe_id = npg_writer_string(process->live->writer, module->path);
	}
}

/* Something else lies over a module's code or is another file: the module is gone. */
static void check_load(struct npg_process *process, const struct npg_vma_event *event,
		       const struct npg_module *module)
{
	struct npg_range *range = npg_range_map_next(&process->loads, event->start);
	struct npg_load *load;

	if (range == NULL || range->start >= event->end)
		return;
	load = range->value;
	if (load->module == module)
		return;
	for (size_t i = 0; module == NULL && i < load->module->elf->nr_segments; i++) {
		const struct npg_elf_segment *s = &load->module->elf->segments[i];

		if (s->is_executable && event->start < s->vaddr + s->file_bytes + load->bias &&
		    event->end > s->vaddr + load->bias) {
			npg_range_map_clear(&process->loads, range->start, range->end);
			return;
		}
	}
	if (module != NULL)
		npg_range_map_clear(&process->loads, event->start, event->end);
}

static bool is_same_memory(const struct npg_vma *a, const struct npg_vma *b)
{
	return a->kind == b->kind && a->module == b->module &&
	       (a->module == NULL || a->bias == b->bias);
}

/* A mapping that grew or changed its protection is still the same object. */
static void inherit_from_old(struct npg_process *process, struct npg_vma *vma, uint64_t start,
			     uint64_t end)
{
	struct npg_range *range = npg_range_map_next(&process->vmas, start);

	for (; range != NULL && range->start < end;
	     range = npg_range_map_next(&process->vmas, range->end)) {
		struct npg_vma *old = range->value;

		if (!is_same_memory(old, vma))
			continue;
		vma->has_blocks |= old->has_blocks;
		vma->is_many_stacks |= old->is_many_stacks;
		if (vma->stack_of == NULL)
			vma->stack_of = old->stack_of;
		if (vma->object == NULL && old->object != NULL) {
			vma->object = old->object;
			vma->object->nr_ranges++;
			vma->object->row.start_address = (int64_t)start;
			vma->object->row.size_bytes = (int64_t)(end - start);
		}
	}
}

static struct npg_vma *new_vma(struct npg_process *process, const struct npg_vma_event *event)
{
	struct npg_vma *vma = calloc(1, sizeof(*vma));
	enum npg_vma_kind kind = kind_of_name(event->name);

	if (vma == NULL) {
		process->live->is_out_of_memory = true;
		return NULL;
	}
	if (kind == NPG_VMA_ANONYMOUS && process->exe != NULL && event->start >= process->exe_end &&
	    event->start - process->exe_end < HEAP_GAP_BYTES)
		kind = NPG_VMA_HEAP;
	vma->nr_ranges = 1;
	vma->kind = (char)kind;
	vma->protection = event->protection;
	vma->is_shared = event->is_shared;
	vma->bias = event->file_offset - event->start;
	vma->name_id = NPG_NULL;
	if (kind == NPG_VMA_FILE || kind == NPG_VMA_SHARED) {
		struct npg_module_identity identity = { .path = event->name,
							.build_id = event->build_id,
							.build_id_size = event->build_id_size,
							.inode = event->inode };

		vma->module = npg_modules_get(&process->live->modules, &identity);
	}
	return vma;
}

void npg_space_mapped(struct npg_process *process, const struct npg_vma_event *event)
{
	struct npg_vma *vma;
	struct npg_range *old;

	if (event->end <= event->start || (vma = new_vma(process, event)) == NULL)
		return;
	old = npg_range_map_find(&process->vmas, event->start);
	if (old != NULL && old->start == event->start && old->end == event->end) {
		struct npg_vma *same = old->value;

		if (is_same_memory(same, vma) && same->protection == vma->protection) {
			free(vma);
			return;
		}
	}
	inherit_from_old(process, vma, event->start, event->end);
	if (vma->kind != NPG_VMA_ANONYMOUS && vma->kind != NPG_VMA_HEAP)
		npg_range_map_clear(&process->areas, event->start, event->end);
	check_load(process, event, vma->module);
	if (npg_range_map_insert(&process->vmas, event->start, event->end, vma) < 0) {
		drop_vma(process, vma);
		return;
	}
	if (vma->kind == NPG_VMA_FILE && (event->protection & PROT_EXEC) && vma->module != NULL)
		add_load(process, vma->module, event);
}

void npg_space_unmapped(struct npg_process *process, uint64_t start, uint64_t end)
{
	npg_range_map_clear(&process->areas, start, end);
	npg_range_map_clear(&process->vmas, start, end);
	npg_range_map_clear(&process->loads, start, end);
}

static void copy_objects(struct npg_process *child, struct npg_range_map *to,
			 const struct npg_range_map *from)
{
	struct npg_range *range = npg_range_map_next(from, 0);

	for (; range != NULL; range = npg_range_map_next(from, range->end)) {
		const struct npg_object *old = range->value;
		struct npg_object *object =
		    npg_object_new(child, old->row.kind, (uint64_t)old->row.start_address,
				   (uint64_t)old->row.size_bytes);

		if (object == NULL)
			return;
		object->thread = child->threads;
		object->site = old->site;
		object->module = old->module;
		object->row.name_id = old->row.name_id;
		object->row.offset_bytes = old->row.offset_bytes;
		object->row.site_ordinal = old->row.site_ordinal;
		object->row.thread_ordinal = old->row.thread_ordinal;
		if (npg_range_map_insert(to, range->start, range->end, object) < 0)
			npg_object_drop(child, object);
	}
}

static void copy_vmas(struct npg_process *child, const struct npg_process *parent)
{
	struct npg_range *range = npg_range_map_next(&parent->vmas, 0);

	for (; range != NULL; range = npg_range_map_next(&parent->vmas, range->end)) {
		struct npg_vma *vma = malloc(sizeof(*vma));

		if (vma == NULL)
			return;
		*vma = *(const struct npg_vma *)range->value;
		vma->nr_ranges = 1;
		vma->stack_of = NULL;
		vma->object = NULL;
		vma->is_row_written = false;
		if (npg_range_map_insert(&child->vmas, range->start, range->end, vma) < 0)
			free(vma);
	}
}

/* What a forked child has of its parent; objects get rows of their own if they get samples. */
void npg_space_copy(struct npg_process *child, const struct npg_process *parent)
{
	struct npg_range *range = npg_range_map_next(&parent->loads, 0);

	for (; range != NULL; range = npg_range_map_next(&parent->loads, range->end)) {
		keep_load(range->value);
		if (npg_range_map_insert(&child->loads, range->start, range->end, range->value) < 0)
			drop_load(child, range->value);
	}
	copy_vmas(child, parent);
	copy_objects(child, &child->areas, &parent->areas);
	copy_objects(child, &child->blocks, &parent->blocks);
	for (size_t i = 0; i < parent->ordinals.nr_slots; i++) {
		const struct npg_table_slot *slot = &parent->ordinals.slots[i];

		if (slot->value != 0 && slot->key[1] == 0 &&
		    npg_table_put(&child->ordinals, slot->key[0], 0, slot->value) < 0)
			child->live->is_out_of_memory = true;
	}
	child->exe = parent->exe;
	child->exe_end = parent->exe_end;
	child->exe_id = parent->exe_id;
	child->comm_id = parent->comm_id;
	child->was_maps_read = parent->was_maps_read;
}

/* By any living thread: a main thread that has ended shows no memory any more. */
static int read_maps_text(const struct npg_process *process, char **text, size_t *length)
{
	char path[64];

	for (const struct npg_thread *t = process->threads; t != NULL; t = t->next) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", (int)process->pid,
			 (int)t->tid);
		if (t->end_ns != NPG_NULL || npg_proc_read_all(path, text, length) < 0)
			continue;
		if (*length > 0)
			return 0;
		free(*text);
	}
	return -ESRCH;
}

void npg_space_read_maps(struct npg_process *process, int64_t time_ns)
{
	char name[4096], *text;
	size_t length, position = 0;
	struct npg_maps_entry entry;
	int ret;

	process->was_maps_read = true;
	process->maps_read_ns = time_ns;
	if (read_maps_text(process, &text, &length) < 0)
		return;
	while ((ret = npg_maps_next(text, length, &position, &entry)) != 0) {
		struct npg_vma_event event = { .start = entry.start,
					       .end = entry.end,
					       .file_offset = entry.file_offset,
					       .inode = entry.inode,
					       .protection = entry.protection,
					       .is_shared = entry.is_shared,
					       .name = name };

		if (ret < 0 || entry.name_length >= sizeof(name))
			continue;
		memcpy(name, entry.name, entry.name_length);
		name[entry.name_length] = '\0';
		npg_space_mapped(process, &event);
	}
	free(text);
}

struct npg_range *npg_space_vma(struct npg_process *process, uint64_t address)
{
	struct npg_range *range = npg_range_map_find(&process->vmas, address);
	bool may_read =
	    !process->was_maps_read || process->live->now_ns - process->maps_read_ns > 200000000;

	if (range != NULL || !may_read)
		return range;
	npg_space_read_maps(process, process->live->now_ns);
	return npg_range_map_find(&process->vmas, address);
}
