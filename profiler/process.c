/*
 * Processes and threads. A row is written when the first sample needs it, or at the end of its
 * process or thread; only ids are kept after that.
 */
#include <errno.h>
#include <inttypes.h>

#include "profiler/live_types.h"

struct npg_process *npg_process_of_pid(struct npg_live_map *live, pid_t pid)
{
	return (struct npg_process *)(uintptr_t)npg_table_get(&live->by_pid, (uint64_t)pid, 0);
}

struct npg_thread *npg_thread_of_tid(struct npg_live_map *live, pid_t tid)
{
	return (struct npg_thread *)(uintptr_t)npg_table_get(&live->by_tid, (uint64_t)tid, 0);
}

/* A pid or tid that comes again belongs to the newest. */
struct npg_process *npg_process_new(struct npg_live_map *live, pid_t pid, int64_t parent_id,
				    int64_t time_ns)
{
	struct npg_process *process = calloc(1, sizeof(*process));

	if (process == NULL ||
	    npg_table_put(&live->by_pid, (uint64_t)pid, 0, (uintptr_t)process) < 0) {
		free(process);
		live->is_out_of_memory = true;
		return NULL;
	}
	process->live = live;
	process->id = npg_writer_new_id(live->writer);
	process->parent_id = parent_id;
	process->pid = pid;
	process->exe_id = process->comm_id = NPG_NULL;
	process->start_ns = time_ns;
	process->end_ns = NPG_NULL;
	npg_space_init(process);
	process->next = live->processes;
	process->link = &live->processes;
	if (process->next != NULL)
		process->next->link = &process->next;
	live->processes = process;
	if (npg_thread_new(process, pid, NULL, 0, time_ns) == NULL) {
		npg_process_end(process, time_ns);
		return NULL;
	}
	return process;
}

/* A process that no record announced: lost records, or a program that was running already. */
struct npg_process *npg_process_need(struct npg_live_map *live, pid_t pid, int64_t time_ns)
{
	struct npg_process *process = npg_process_of_pid(live, pid);

	if (process == NULL)
		process = npg_process_new(live, pid, NPG_NULL, time_ns);
	return process;
}

void npg_process_row(struct npg_process *process)
{
	struct npg_process_row row = {
		.id = process->id,
		.pid = process->pid,
		.parent_id = process->parent_id,
		.exe_id = process->exe_id,
		.comm_id = process->comm_id,
		.start_ns = process->start_ns,
		.end_ns = process->end_ns,
		.agent = process->agent != NULL ? process->agent : "none seen",
	};

	process->is_row_written = true;
	npg_writer_process(process->live->writer, &row);
}

static const char *why_no_agent(struct npg_process *process)
{
	struct npg_elf_file *elf =
	    process->exe != NULL ? npg_module_elf(process->exe, process->pid) : NULL;

	if (elf != NULL && !elf->has_interpreter)
		return "static";
	return "none seen";
}

static void free_threads(struct npg_process *process)
{
	while (process->threads != NULL) {
		struct npg_thread *thread = process->threads;

		process->threads = thread->next;
		if (npg_thread_of_tid(process->live, thread->tid) == thread)
			npg_table_remove(&process->live->by_tid, (uint64_t)thread->tid, 0);
		free(thread->path);
		free(thread);
	}
}

static void write_small_sites(struct npg_process *process)
{
	for (size_t i = 0; i < process->nr_small_sites; i++)
		npg_writer_small_site(process->live->writer, process->id,
				      npg_site_row(process->live, process->small_sites[i].site),
				      (int64_t)process->small_sites[i].nr_objects,
				      (int64_t)process->small_sites[i].size_bytes);
}

void npg_process_end(struct npg_process *process, int64_t time_ns)
{
	struct npg_live_map *live = process->live;

	process->end_ns = time_ns;
	if (process->agent == NULL)
		process->agent = why_no_agent(process);
	for (struct npg_thread *t = process->threads; t != NULL; t = t->next) {
		npg_thread_end(t, time_ns);
		t->is_row_dirty = true;
		npg_thread_row(t);
	}
	npg_process_row(process);
	write_small_sites(process);
	npg_space_release(process);
	free_threads(process);
	if (npg_process_of_pid(live, process->pid) == process)
		npg_table_remove(&live->by_pid, (uint64_t)process->pid, 0);
	*process->link = process->next;
	if (process->next != NULL)
		process->next->link = process->link;
	npg_table_release(&process->small_index);
	free(process->small_sites);
	free(process);
}

static char *path_of(const struct npg_thread *parent, uint32_t ordinal)
{
	size_t size = (parent != NULL ? strlen(parent->path) : 0) + 16;
	char *path = malloc(size);

	if (path == NULL)
		return NULL;
	if (parent == NULL)
		snprintf(path, size, "0");
	else
		snprintf(path, size, "%s.%" PRIu32, parent->path, ordinal);
	return path;
}

/* @ordinal below 0: the parent's next. */
struct npg_thread *npg_thread_new(struct npg_process *process, pid_t tid, struct npg_thread *parent,
				  int64_t ordinal, int64_t time_ns)
{
	struct npg_live_map *live = process->live;
	struct npg_thread *thread = calloc(1, sizeof(*thread));
	uint32_t number = 0;

	if (parent != NULL) {
		number = ordinal >= 0 ? (uint32_t)ordinal : parent->nr_children;
		if (number >= parent->nr_children)
			parent->nr_children = number + 1;
	}
	if (thread == NULL || (thread->path = path_of(parent, number)) == NULL ||
	    npg_table_put(&live->by_tid, (uint64_t)tid, 0, (uintptr_t)thread) < 0) {
		if (thread != NULL)
			free(thread->path);
		free(thread);
		live->is_out_of_memory = true;
		return NULL;
	}
	thread->process = process;
	thread->id = npg_writer_new_id(live->writer);
	thread->parent_id = parent != NULL ? parent->id : NPG_NULL;
	thread->tid = tid;
	thread->name_id = process->comm_id;
	thread->start_ns = time_ns;
	thread->end_ns = NPG_NULL;
	thread->next = process->threads;
	process->threads = thread;
	process->nr_living++;
	return thread;
}

static struct npg_thread *main_thread(struct npg_process *process)
{
	struct npg_thread *thread = process->threads;

	while (thread != NULL && thread->next != NULL)
		thread = thread->next;
	return thread;
}

struct npg_thread *npg_thread_need(struct npg_live_map *live, pid_t pid, pid_t tid, int64_t time_ns)
{
	struct npg_thread *thread = npg_thread_of_tid(live, tid);
	struct npg_process *process;

	if (thread != NULL && thread->process->pid == pid)
		return thread;
	process = npg_process_need(live, pid, time_ns);
	if (process == NULL)
		return NULL;
	thread = npg_thread_of_tid(live, tid);
	if (thread != NULL && thread->process == process)
		return thread;
	return npg_thread_new(process, tid, main_thread(process), -1, time_ns);
}

void npg_thread_set_ordinal(struct npg_thread *thread, struct npg_thread *parent, uint32_t ordinal)
{
	char *path = path_of(parent, ordinal);

	if (path == NULL || strcmp(path, thread->path) == 0) {
		free(path);
		return;
	}
	free(thread->path);
	thread->path = path;
	thread->parent_id = parent->id;
	thread->is_row_dirty = true;
	if (ordinal >= parent->nr_children)
		parent->nr_children = ordinal + 1;
}

void npg_thread_end(struct npg_thread *thread, int64_t time_ns)
{
	if (thread->end_ns != NPG_NULL)
		return;
	thread->end_ns = time_ns;
	thread->is_row_dirty = true;
	thread->process->nr_living--;
	if (npg_thread_of_tid(thread->process->live, thread->tid) == thread)
		npg_table_remove(&thread->process->live->by_tid, (uint64_t)thread->tid, 0);
}

static void find_start(struct npg_thread *thread, struct npg_thread_row *row)
{
	struct npg_range *range =
	    thread->start_routine != 0
		? npg_range_map_find(&thread->process->loads, thread->start_routine)
		: NULL;
	struct npg_load *load;

	row->start_module_id = row->start_offset_bytes = NPG_NULL;
	if (range == NULL)
		return;
	load = range->value;
	row->start_module_id = npg_module_row(load->module, thread->process->live->writer);
	row->start_offset_bytes = (int64_t)(thread->start_routine - load->bias);
}

int64_t npg_thread_row(struct npg_thread *thread)
{
	struct npg_thread_row row;

	if (thread->is_row_written && !thread->is_row_dirty)
		return thread->id;
	if (!thread->process->is_row_written)
		npg_process_row(thread->process);
	thread->is_row_written = true;
	thread->is_row_dirty = false;
	row = (struct npg_thread_row){
		.id = thread->id,
		.process_id = thread->process->id,
		.tid = thread->tid,
		.parent_id = thread->parent_id,
		.name_id = thread->name_id,
		.start_ns = thread->start_ns,
		.end_ns = thread->end_ns,
		.cpu_ns = thread->cpu_ns > 0 ? thread->cpu_ns : NPG_NULL,
		.path = thread->path,
	};
	find_start(thread, &row);
	npg_writer_thread(thread->process->live->writer, &row);
	return thread->id;
}
