/* An address to the object that it belongs to, and an instruction pointer to its instruction. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "profiler/live_types.h"

/* glibc's arenas are cut from reservations of this size and alignment. */
#define ARENA_ALIGN_BYTES (UINT64_C(64) << 20)

static struct npg_object *static_object(struct npg_process *process, struct npg_module *module,
					enum npg_object_kind kind, uint64_t bias,
					const struct npg_elf_symbol *symbol)
{
	uint64_t start = bias + symbol->vaddr;
	uint64_t at = npg_table_get(&process->statics, start, (uintptr_t)module);
	struct npg_object *object = (struct npg_object *)(uintptr_t)at;

	if (object != NULL)
		return object;
	object = npg_object_new(process, kind, start, symbol->size_bytes);
	if (object == NULL)
		return NULL;
	object->module = module;
	object->row.offset_bytes = (int64_t)symbol->vaddr;
	object->row.name_id = npg_writer_string(process->live->writer, symbol->name);
	object->row.start_ns = process->start_ns;
	if (npg_table_put(&process->statics, start, (uintptr_t)module, (uintptr_t)object) < 0) {
		npg_object_drop(process, object);
		return NULL;
	}
	return object;
}

/* By symbol; what no symbol covers belongs to a nameless object, one per load segment. */
static struct npg_object *find_in_module(struct npg_process *process, const struct npg_load *load,
					 uint64_t address)
{
	struct npg_elf_file *elf = npg_module_symbols(load->module, process->pid);
	uint64_t vaddr = address - load->bias;
	const struct npg_elf_symbol *symbol;

	if (elf == NULL)
		return NULL;
	symbol = npg_elf_file_object_at(elf, vaddr);
	if (symbol != NULL)
		return static_object(process, load->module, NPG_OBJECT_STATIC, load->bias, symbol);
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct npg_elf_segment *s = &elf->segments[i];
		uint64_t page = process->live->options.page_bytes;
		uint64_t start = s->vaddr & ~(page - 1);
		uint64_t end = (s->vaddr + s->memory_bytes + page - 1) & ~(page - 1);
		struct npg_elf_symbol segment = { .vaddr = s->vaddr,
						  .size_bytes = s->memory_bytes };

		if (vaddr >= start && vaddr < end)
			return static_object(process, load->module,
					     s->is_executable ? NPG_OBJECT_CODE : NPG_OBJECT_STATIC,
					     load->bias, &segment);
	}
	return NULL;
}

static enum npg_object_kind kind_of_anonymous(const struct npg_range *range)
{
	const struct npg_vma *vma = range->value;

	if (vma->stack_of != NULL && !vma->is_many_stacks)
		return NPG_OBJECT_STACK;
	if (vma->has_blocks || (range->start % ARENA_ALIGN_BYTES == 0 &&
				range->end - range->start <= ARENA_ALIGN_BYTES))
		return NPG_OBJECT_SMALL_HEAP;
	return NPG_OBJECT_ANONYMOUS;
}

static enum npg_object_kind kind_of_vma(const struct npg_range *range)
{
	const struct npg_vma *vma = range->value;

	switch ((enum npg_vma_kind)vma->kind) {
	case NPG_VMA_ANONYMOUS:
		return kind_of_anonymous(range);
	case NPG_VMA_FILE:
		return NPG_OBJECT_FILE;
	case NPG_VMA_SHARED:
		return NPG_OBJECT_SHARED;
	case NPG_VMA_HEAP:
		return NPG_OBJECT_SMALL_HEAP;
	case NPG_VMA_STACK:
		return NPG_OBJECT_STACK;
	case NPG_VMA_KERNEL:
		break;
	}
	return NPG_OBJECT_KERNEL;
}

static struct npg_thread *main_thread(struct npg_process *process)
{
	struct npg_thread *thread = process->threads;

	while (thread->next != NULL)
		thread = thread->next;
	return thread;
}

static void write_mapping(struct npg_process *process, const struct npg_range *range)
{
	struct npg_vma *vma = range->value;
	char text[5] = { vma->protection & PROT_READ ? 'r' : '-',
			 vma->protection & PROT_WRITE ? 'w' : '-',
			 vma->protection & PROT_EXEC ? 'x' : '-', vma->is_shared ? 's' : 'p',
			 '\0' };
	struct npg_mapping_row row = {
		.process_id = process->id,
		.start_address = (int64_t)range->start,
		.size_bytes = (int64_t)(range->end - range->start),
		.file_offset_bytes =
		    vma->module != NULL ? (int64_t)(vma->bias + range->start) : NPG_NULL,
		.module_id = vma->module != NULL
				 ? npg_module_row(vma->module, process->live->writer)
				 : NPG_NULL,
		.start_ns = process->live->now_ns,
		.protection = text,
	};

	vma->is_row_written = true;
	if (!process->is_row_written)
		npg_process_row(process);
	npg_writer_mapping(process->live->writer, &row);
}

static struct npg_object *object_of_vma(struct npg_process *process, struct npg_range *range)
{
	struct npg_vma *vma = range->value;
	enum npg_object_kind kind = kind_of_vma(range);
	struct npg_object *object = vma->object;

	if (object != NULL && (object->row.kind == kind || kind == NPG_OBJECT_ANONYMOUS))
		return object; /* anonymous: what it was before is not known better now */
	object = npg_object_new(process, kind, range->start, range->end - range->start);
	if (object == NULL)
		return NULL;
	object->module = vma->module;
	if (vma->module != NULL) {
		object->row.offset_bytes = (int64_t)(vma->bias + range->start);
		object->row.name_id = npg_writer_string(process->live->writer, vma->module->path);
	}
	if (kind == NPG_OBJECT_STACK)
		object->thread = vma->kind == NPG_VMA_STACK ? main_thread(process) : vma->stack_of;
	if (vma->object != NULL)
		npg_object_drop(process, vma->object);
	vma->object = object;
	return object;
}

struct npg_object *npg_attribute(struct npg_process *process, uint64_t address)
{
	struct npg_range *range = npg_range_map_find(&process->blocks, address);
	struct npg_object *object = NULL;

	if (range == NULL)
		range = npg_range_map_find(&process->areas, address);
	if (range != NULL)
		return range->value;
	range = npg_range_map_find(&process->loads, address);
	if (range != NULL)
		object = find_in_module(process, range->value, address);
	if (object != NULL)
		return object;
	range = npg_space_vma(process, address);
	if (range == NULL)
		return NULL;
	if (!((struct npg_vma *)range->value)->is_row_written)
		write_mapping(process, range);
	return object_of_vma(process, range);
}

void npg_attribute_stack(struct npg_thread *thread, uint64_t stack_pointer)
{
	struct npg_process *process = thread->process;
	struct npg_range *range;
	struct npg_vma *vma;

	if (stack_pointer >= thread->stack_start && stack_pointer < thread->stack_end)
		return;
	range = npg_range_map_find(&process->vmas, stack_pointer);
	if (range == NULL)
		return;
	thread->stack_start = range->start;
	thread->stack_end = range->end;
	vma = range->value;
	if (vma->kind != NPG_VMA_ANONYMOUS)
		return;
	if (vma->stack_of != NULL && vma->stack_of != thread && vma->stack_of->end_ns == NPG_NULL)
		vma->is_many_stacks = true;
	if (vma->stack_of != NULL && vma->stack_of != thread && vma->object != NULL &&
	    !vma->is_many_stacks) { /* the C library hands an ended thread's stack on */
		npg_object_drop(process, vma->object);
		vma->object = NULL;
	}
	vma->stack_of = thread;
}

/* Code outside files (just-in-time compiled, vdso) may change: it is read each time. */
static const struct npg_insn *read_insn(const struct npg_process *process, uint64_t ip, bool is_64,
					struct npg_insn *scratch)
{
	unsigned char code[NPG_INSN_MAX_BYTES];
	struct iovec local = { .iov_base = code, .iov_len = sizeof(code) };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)ip, .iov_len = sizeof(code) };
	ssize_t got = process_vm_readv(process->pid, &local, 1, &remote, 1, 0);

	if (got < 0) { /* the page behind may be missing */
		remote.iov_len = 4096 - (size_t)(ip % 4096);
		if (remote.iov_len >= sizeof(code))
			return NULL;
		got = process_vm_readv(process->pid, &local, 1, &remote, 1, 0);
	}
	if (got <= 0 || npg_insn_decode(code, (size_t)got, is_64, scratch) < 0)
		return NULL;
	return scratch;
}

const struct npg_insn *npg_attribute_insn(struct npg_process *process, uint64_t ip, bool is_64,
					  struct npg_insn *scratch)
{
	struct npg_range *range = npg_space_vma(process, ip);
	struct npg_vma *vma;

	if (range == NULL)
		return NULL;
	vma = range->value;
	if (!vma->is_row_written)
		write_mapping(process, range);
	if (vma->module == NULL)
		return read_insn(process, ip, is_64, scratch);
	return npg_modules_insn(&process->live->modules, vma->module, process->pid, vma->bias + ip);
}

/* For code in files only: other code has no known function bounds. */
const struct npg_recovery *npg_attribute_recover(struct npg_process *process, uint64_t ip)
{
	struct npg_range *range = npg_space_vma(process, ip);
	struct npg_vma *vma = range != NULL ? range->value : NULL;

	if (vma == NULL || vma->module == NULL)
		return NULL;
	return npg_modules_recover(&process->live->modules, vma->module, vma->bias + ip);
}
