/* Records of the kernel and of the agent, applied to processes, threads and memory. */
#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>

#include "profiler/live_types.h"
#include "profiler/proc_file.h"

int npg_live_map_open(const struct npg_live_options *options, struct npg_writer *writer,
		      struct npg_live_map **live)
{
	struct npg_live_map *new_live = calloc(1, sizeof(*new_live));

	if (new_live == NULL)
		return -ENOMEM;
	new_live->options = *options;
	new_live->writer = writer;
	*live = new_live;
	return 0;
}

void npg_live_map_close(struct npg_live_map *live)
{
	if (live == NULL)
		return;
	while (live->processes != NULL)
		npg_process_end(live->processes, live->now_ns);
	npg_sites_release(live);
	npg_modules_release(&live->modules);
	npg_table_release(&live->by_pid);
	npg_table_release(&live->by_tid);
	npg_table_release(&live->counted);
	free(live->count_rows);
	free(live);
}

struct npg_source_count *npg_live_map_counts(struct npg_live_map *live, enum npg_source source)
{
	return &live->counts[source];
}

static void attach_thread(struct npg_live_map *live, pid_t pid, pid_t tid, int64_t time_ns)
{
	struct npg_thread *thread = npg_thread_need(live, pid, tid, time_ns);
	char path[64], name[64];
	size_t length;

	if (thread == NULL)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	length = npg_proc_read(path, name, sizeof(name));
	if (length == 0)
		return;
	name[length - 1] = '\0';
	thread->name_id = npg_writer_string(live->writer, name);
	if (tid == pid)
		thread->process->comm_id = thread->name_id;
}

void npg_live_map_attach(struct npg_live_map *live, pid_t pid, int64_t time_ns)
{
	struct npg_process *process = npg_process_need(live, pid, time_ns);
	char path[64];
	struct dirent *entry;
	DIR *dir;

	live->now_ns = time_ns;
	if (process == NULL)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			attach_thread(live, pid, tid, time_ns);
	}
	if (dir != NULL)
		closedir(dir);
	npg_space_read_maps(process, time_ns);
}

static void on_mmap(struct npg_live_map *live, const struct npg_perf_record *record)
{
	struct npg_process *process = npg_process_need(live, (pid_t)record->pid, live->now_ns);
	struct npg_vma_event event = {
		.start = record->address,
		.end = record->address + record->size_bytes,
		.file_offset = record->file_offset,
		.inode = record->inode,
		.protection = record->protection,
		.is_shared = (record->flags & MAP_SHARED) != 0,
		.name = record->name != NULL ? record->name : "",
		.build_id = record->build_id_size > 0 ? record->build_id : NULL,
		.build_id_size = record->build_id_size,
	};

	if (process != NULL)
		npg_space_mapped(process, &event);
}

/* execve: another program in the same process. */
static struct npg_process *on_exec(struct npg_live_map *live, pid_t pid, int64_t time_ns)
{
	struct npg_process *old = npg_process_of_pid(live, pid);
	int64_t parent = old != NULL ? old->parent_id : NPG_NULL;

	if (old != NULL)
		npg_process_end(old, time_ns);
	return npg_process_new(live, pid, parent, time_ns);
}

static void on_comm(struct npg_live_map *live, const struct npg_perf_record *record)
{
	struct npg_process *process;
	struct npg_thread *thread;
	int64_t name = npg_writer_string(live->writer, record->name);

	if (record->is_exec) {
		process = on_exec(live, (pid_t)record->pid, live->now_ns);
		if (process == NULL)
			return;
		process->comm_id = name;
		process->was_maps_read = true; /* the kernel tells everything from here on */
		process->threads->name_id = name;
		return;
	}
	thread = npg_thread_need(live, (pid_t)record->pid, (pid_t)record->tid, live->now_ns);
	if (thread == NULL)
		return;
	thread->name_id = name;
	thread->is_row_dirty = true;
	if (record->pid == record->tid)
		thread->process->comm_id = name;
}

static void on_fork(struct npg_live_map *live, const struct npg_perf_record *record)
{
	struct npg_thread *parent = npg_thread_need(live, (pid_t)record->parent_pid,
						    (pid_t)record->parent_tid, live->now_ns);
	struct npg_process *child;

	if (parent == NULL)
		return;
	if (record->pid == record->parent_pid) {
		npg_thread_new(parent->process, (pid_t)record->tid, parent, -1, live->now_ns);
		return;
	}
	if (live->options.only_pid != 0)
		return;
	child = npg_process_new(live, (pid_t)record->pid, parent->process->id, live->now_ns);
	if (child != NULL)
		npg_space_copy(child, parent->process);
}

static void on_exit_record(struct npg_live_map *live, const struct npg_perf_record *record)
{
	struct npg_thread *thread = npg_thread_of_tid(live, (pid_t)record->tid);
	struct npg_process *process;

	if (thread == NULL || thread->process->pid != (pid_t)record->pid)
		return;
	process = thread->process;
	npg_thread_end(thread, live->now_ns);
	if (process->nr_living == 0)
		npg_process_end(process, live->now_ns);
}

void npg_live_map_perf(struct npg_live_map *live, const struct npg_perf_record *record)
{
	live->now_ns = (int64_t)record->time_ns;
	switch (record->kind) {
	case NPG_PERF_MMAP:
		on_mmap(live, record);
		break;
	case NPG_PERF_COMM:
		on_comm(live, record);
		break;
	case NPG_PERF_FORK:
		on_fork(live, record);
		break;
	case NPG_PERF_EXIT:
		on_exit_record(live, record);
		break;
	case NPG_PERF_SAMPLE:
	case NPG_PERF_LOST:
	case NPG_PERF_THROTTLE:
	case NPG_PERF_OTHER:
		break;
	}
}

static void on_start(struct npg_live_map *live, const struct npg_wire_record *record)
{
	struct npg_process *process = npg_process_of_pid(live, (pid_t)record->pid);

	if (process == NULL)
		process = npg_process_new(live, (pid_t)record->pid, NPG_NULL, live->now_ns);
	else if (process->agent != NULL && !live->options.has_perf)
		process = on_exec(live, (pid_t)record->pid, live->now_ns);
	if (process == NULL)
		return;
	process->agent = "active";
	if (!process->was_maps_read)
		npg_space_read_maps(process, live->now_ns);
}

static void add_object(struct npg_range_map *map, struct npg_thread *thread,
		       enum npg_object_kind kind, const struct npg_wire_record *record,
		       const struct npg_vma *file)
{
	struct npg_object *object =
	    npg_object_new(thread->process, kind, record->address, record->size_bytes);

	if (object == NULL)
		return;
	object->thread = thread;
	object->site = npg_site_get(thread->process, record->frames, record->nr_frames);
	npg_site_number(object);
	if (file != NULL && file->module != NULL) {
		object->module = file->module;
		object->row.offset_bytes = (int64_t)(file->bias + record->address);
		object->row.name_id =
		    npg_writer_string(thread->process->live->writer, file->module->path);
	}
	if (npg_range_map_insert(map, record->address, record->address + record->size_bytes,
				 object) < 0)
		npg_object_drop(thread->process, object);
}

static void on_alloc(struct npg_thread *thread, const struct npg_wire_record *record)
{
	struct npg_range *range = npg_range_map_find(&thread->process->vmas, record->address);

	if (range != NULL)
		((struct npg_vma *)range->value)->has_blocks = true;
	add_object(&thread->process->blocks, thread, NPG_OBJECT_HEAP, record, NULL);
}

static void on_agent_mmap(struct npg_thread *thread, const struct npg_wire_record *record)
{
	struct npg_range *range;
	struct npg_vma *vma = NULL;
	uint32_t flags = (uint32_t)(record->value >> 32);
	enum npg_object_kind kind = NPG_OBJECT_MMAP;

	if (flags & MAP_ANONYMOUS) {
		kind = (flags & MAP_TYPE) == MAP_PRIVATE ? NPG_OBJECT_MMAP : NPG_OBJECT_SHARED;
	} else {
		range = npg_space_vma(thread->process, record->address);
		vma = range != NULL ? range->value : NULL;
		kind = vma != NULL && vma->kind == NPG_VMA_SHARED ? NPG_OBJECT_SHARED
								  : NPG_OBJECT_FILE;
	}
	add_object(&thread->process->areas, thread, kind, record, vma);
}

static void move_vma(struct npg_process *process, const struct npg_wire_record *record)
{
	struct npg_range *range = npg_range_map_find(&process->vmas, record->address);
	struct npg_vma *vma = NULL;

	if (range != NULL && (vma = malloc(sizeof(*vma))) != NULL) {
		*vma = *(const struct npg_vma *)range->value;
		vma->nr_ranges = 1;
		vma->object = NULL;
		vma->is_row_written = false;
		vma->bias += record->address - record->value;
	}
	npg_range_map_clear(&process->vmas, record->address, record->address + record->size_bytes);
	if (vma != NULL && npg_range_map_insert(&process->vmas, record->value,
						record->value + record->value2, vma) < 0)
		free(vma);
}

/* The object keeps its identity: site and ordinals; at another address it has another row. */
static void on_mremap(struct npg_thread *thread, const struct npg_wire_record *record)
{
	struct npg_process *process = thread->process;
	struct npg_range *range = npg_range_map_find(&process->areas, record->address);
	struct npg_object *old = range != NULL ? range->value : NULL;
	struct npg_object *object =
	    old == NULL ? NULL
			: npg_object_new(process, old->row.kind, record->value, record->value2);

	if (object != NULL) {
		object->thread = old->thread;
		object->site = old->site;
		object->module = old->module;
		object->row.name_id = old->row.name_id;
		object->row.offset_bytes = old->row.offset_bytes;
		object->row.site_ordinal = old->row.site_ordinal;
		object->row.thread_ordinal = old->row.thread_ordinal;
	}
	npg_range_map_clear(&process->areas, record->address, record->address + record->size_bytes);
	if (object != NULL && npg_range_map_insert(&process->areas, record->value,
						   record->value + record->value2, object) < 0)
		npg_object_drop(process, object);
	move_vma(process, record);
}

static void on_shmdt(struct npg_process *process, uint64_t address)
{
	struct npg_range *range = npg_range_map_find(&process->areas, address);

	if (range != NULL && range->start == address)
		npg_space_unmapped(process, range->start, range->end);
}

static void on_thread_start(struct npg_live_map *live, struct npg_thread *thread,
			    const struct npg_wire_record *record)
{
	struct npg_thread *creator = npg_thread_of_tid(live, (pid_t)record->address);

	thread->start_routine = record->value;
	thread->is_row_dirty = true;
	if (creator != NULL && creator->process == thread->process && creator != thread)
		npg_thread_set_ordinal(thread, creator, (uint32_t)record->value2);
}

static struct npg_small_site *small_site(struct npg_process *process, struct npg_site *site)
{
	uint64_t at = npg_table_get(&process->small_index, (uintptr_t)site, 0);
	size_t nr = process->nr_small_sites;
	struct npg_small_site *grown;

	if (at != 0)
		return &process->small_sites[at - 1];
	grown = reallocarray(process->small_sites, nr + 1, sizeof(*grown));
	if (grown == NULL)
		return NULL;
	process->small_sites = grown;
	if (npg_table_put(&process->small_index, (uintptr_t)site, 0, nr + 1) < 0)
		return NULL;
	process->small_sites[nr] = (struct npg_small_site){ .site = site };
	process->nr_small_sites++;
	return &process->small_sites[nr];
}

static void on_small_sites(struct npg_process *process, const struct npg_wire_record *record)
{
	struct npg_site *site = npg_site_get(process, record->frames, record->nr_frames);
	struct npg_small_site *small = site != NULL ? small_site(process, site) : NULL;

	if (small == NULL)
		return;
	small->nr_objects += record->value;
	small->size_bytes += record->value2;
}

static void on_free(struct npg_process *process, uint64_t address)
{
	struct npg_range *range = npg_range_map_find(&process->blocks, address);

	if (range != NULL && range->start == address)
		npg_range_map_clear(&process->blocks, range->start, range->end);
}

static void on_memory(struct npg_thread *thread, const struct npg_wire_record *record)
{
	struct npg_process *process = thread->process;

	switch ((enum npg_wire_type)record->type) {
	case NPG_WIRE_ALLOC:
		on_alloc(thread, record);
		break;
	case NPG_WIRE_FREE:
		on_free(process, record->address);
		break;
	case NPG_WIRE_MMAP:
		on_agent_mmap(thread, record);
		break;
	case NPG_WIRE_MUNMAP:
		npg_space_unmapped(process, record->address, record->address + record->size_bytes);
		break;
	case NPG_WIRE_MREMAP:
		on_mremap(thread, record);
		break;
	case NPG_WIRE_SHMAT:
		add_object(&process->areas, thread, NPG_OBJECT_SHARED, record, NULL);
		break;
	case NPG_WIRE_SHMDT:
		on_shmdt(process, record->address);
		break;
	case NPG_WIRE_SMALL_SITES:
		on_small_sites(process, record);
		break;
	case NPG_WIRE_NONE:
	case NPG_WIRE_BRK: /* the kernel reports how the heap grows */
	case NPG_WIRE_PROCESS_START:
	case NPG_WIRE_THREAD_CREATE:
	case NPG_WIRE_THREAD_START:
	case NPG_WIRE_THREAD_EXIT:
	case NPG_WIRE_NR_TYPES:
		break;
	}
}

static bool is_sound(const struct npg_wire_record *record)
{
	uint64_t end;

	return record->nr_frames <= NPG_WIRE_MAX_FRAMES && record->pid != 0 && record->tid != 0 &&
	       !__builtin_add_overflow(record->address, record->size_bytes, &end) &&
	       !__builtin_add_overflow(record->value, record->value2, &end);
}

void npg_live_map_wire(struct npg_live_map *live, const struct npg_wire_record *record)
{
	struct npg_thread *thread;

	if (!is_sound(record) ||
	    (live->options.only_pid != 0 && (pid_t)record->pid != live->options.only_pid))
		return;
	live->now_ns = (int64_t)record->time_ns;
	if (record->type == NPG_WIRE_PROCESS_START) {
		on_start(live, record);
		return;
	}
	thread = npg_thread_need(live, (pid_t)record->pid, (pid_t)record->tid, live->now_ns);
	if (thread == NULL)
		return;
	if (record->type == NPG_WIRE_THREAD_START)
		on_thread_start(live, thread, record);
	else if (record->type == NPG_WIRE_THREAD_EXIT && !live->options.has_perf &&
		 record->tid != record->pid)
		npg_thread_end(thread, live->now_ns);
	else
		on_memory(thread, record);
}

void npg_live_map_finish(struct npg_live_map *live, int64_t time_ns, const char *agent_of_first)
{
	struct npg_process *first = live->processes;

	live->now_ns = time_ns;
	while (first != NULL && first->next != NULL)
		first = first->next;
	if (first != NULL && first->agent == NULL && first->parent_id == NPG_NULL)
		first->agent = agent_of_first;
	while (live->processes != NULL)
		npg_process_end(live->processes, time_ns);
	npg_live_flush_counts(live);
	npg_sites_name(live);
}
