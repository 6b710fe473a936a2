/* Call sites: frames to (module, ELF address), hashed as the replayer hashes them, each once. */
#include <errno.h>

#include "lib/preload/hash.h"
#include "profiler/live_types.h"

static const struct npg_load *load_of_frame(struct npg_process *process, uint64_t address)
{
	struct npg_range *range = npg_range_map_find(&process->loads, address - 1);

	if (range == NULL && (!process->live->options.has_perf || !process->was_maps_read)) {
		npg_space_vma(process, address - 1); /* reads /proc/PID/maps if it may */
		range = npg_range_map_find(&process->loads, address - 1);
	}
	return range != NULL ? range->value : NULL;
}

/* Place of a frame in live->frames. */
static int frame_place(struct npg_live_map *live, struct npg_module *module, uint64_t vaddr,
		       size_t *place)
{
	uint64_t at = npg_table_get(&live->frame_ids, (uintptr_t)module, vaddr);
	struct npg_frame *grown;

	if (at != 0) {
		*place = at - 1;
		return 0;
	}
	if ((live->nr_frames & (live->nr_frames - 1)) == 0) { /* full at each power of two */
		grown = reallocarray(live->frames, live->nr_frames == 0 ? 1 : 2 * live->nr_frames,
				     sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		live->frames = grown;
	}
	if (npg_table_put(&live->frame_ids, (uintptr_t)module, vaddr, live->nr_frames + 1) < 0)
		return -ENOMEM;
	live->frames[live->nr_frames] =
	    (struct npg_frame){ .id = NPG_NULL, .module = module, .vaddr = vaddr };
	*place = live->nr_frames++;
	return 0;
}

static int64_t frame_row(struct npg_live_map *live, struct npg_frame *frame)
{
	if (frame->id == NPG_NULL)
		frame->id = npg_writer_frame(
		    live->writer,
		    frame->module != NULL ? npg_module_row(frame->module, live->writer) : NPG_NULL,
		    (int64_t)frame->vaddr);
	return frame->id;
}

int64_t npg_site_row(struct npg_live_map *live, struct npg_site *site)
{
	int64_t ids[NPG_WIRE_MAX_FRAMES];

	if (site->is_row_written)
		return site->id;
	for (int i = 0; i < site->nr_frames; i++)
		ids[i] = frame_row(live, &live->frames[site->frames[i]]);
	npg_writer_callsite(live->writer, site->id, site->hash, ids, site->nr_frames);
	site->is_row_written = true;
	return site->id;
}

static int keep_site(struct npg_live_map *live, struct npg_site *site)
{
	if ((live->nr_sites & (live->nr_sites - 1)) == 0) {
		struct npg_site **grown =
		    reallocarray(live->all_sites, live->nr_sites == 0 ? 1 : 2 * live->nr_sites,
				 sizeof(struct npg_site *));

		if (grown == NULL)
			return -ENOMEM;
		live->all_sites = grown;
	}
	if (npg_table_put(&live->sites, site->hash, (uint64_t)site->nr_frames, (uintptr_t)site) < 0)
		return -ENOMEM;
	live->all_sites[live->nr_sites++] = site;
	return 0;
}

static struct npg_site *new_site(struct npg_live_map *live, uint64_t hash,
				 const struct npg_frame *frames, int nr_frames)
{
	struct npg_site *site = malloc(sizeof(*site) + (size_t)nr_frames * sizeof(size_t));

	if (site == NULL)
		return NULL;
	site->is_row_written = false;
	site->hash = hash;
	site->nr_frames = nr_frames;
	for (int i = 0; i < nr_frames; i++)
		if (frame_place(live, frames[i].module, frames[i].vaddr, &site->frames[i]) < 0) {
			free(site);
			return NULL;
		}
	if (keep_site(live, site) < 0) {
		free(site);
		return NULL;
	}
	site->id = npg_writer_new_id(live->writer);
	return site;
}

static struct npg_site *resolve(struct npg_process *process, const uint64_t *addresses,
				int nr_frames)
{
	struct npg_frame frames[NPG_WIRE_MAX_FRAMES] = { { 0 } };
	uint64_t hash = NPG_HASH_SEED, at;

	for (int i = 0; i < nr_frames; i++) {
		const struct npg_load *load = load_of_frame(process, addresses[i]);

		frames[i].vaddr = addresses[i];
		if (load == NULL) {
			hash = npg_hash_frame(hash, 0, 0);
			continue;
		}
		frames[i].module = load->module;
		frames[i].vaddr -= load->bias;
		hash = npg_hash_frame(hash, load->module->key,
				      load->module->is_system ? 0 : frames[i].vaddr);
	}
	at = npg_table_get(&process->live->sites, hash, (uint64_t)nr_frames);
	if (at != 0)
		return (struct npg_site *)(uintptr_t)at;
	return new_site(process->live, hash, frames, nr_frames);
}

struct npg_site *npg_site_get(struct npg_process *process, const uint64_t *frames, int nr_frames)
{
	uint64_t key, at;
	struct npg_site *site;

	if (nr_frames <= 0)
		return NULL;
	if (nr_frames > NPG_WIRE_MAX_FRAMES)
		nr_frames = NPG_WIRE_MAX_FRAMES;
	key = npg_hash_bytes(NPG_HASH_SEED, frames, (size_t)nr_frames * sizeof(*frames));
	at = npg_table_get(&process->site_cache, key, (uint64_t)nr_frames);
	if (at != 0)
		return (struct npg_site *)(uintptr_t)at;
	site = resolve(process, frames, nr_frames);
	if (site == NULL ||
	    npg_table_put(&process->site_cache, key, (uint64_t)nr_frames, (uintptr_t)site) < 0)
		process->live->is_out_of_memory |= site == NULL;
	return site;
}

static int64_t count_up(struct npg_process *process, uint64_t key0, uint64_t key1)
{
	uint64_t nr = npg_table_get(&process->ordinals, key0, key1);

	if (npg_table_put(&process->ordinals, key0, key1, nr + 1) < 0)
		process->live->is_out_of_memory = true;
	return (int64_t)nr;
}

void npg_site_number(struct npg_object *object)
{
	if (object->site == NULL)
		return;
	object->row.site_ordinal = count_up(object->process, (uint64_t)object->site->id, 0);
	if (object->thread != NULL)
		object->row.thread_ordinal = count_up(object->process, (uint64_t)object->site->id,
						      (uint64_t)object->thread->id);
}

/* Code that only passes allocations on: the site is named by whoever called it. */
static bool is_runtime(const struct npg_module *module)
{
	return module == NULL || module->is_system || strstr(module->path, "/libstdc++.so") ||
	       strstr(module->path, "/libgfortran.so") || strstr(module->path, "/libjemalloc") ||
	       strstr(module->path, "/libtcmalloc");
}

static int64_t name_frame(struct npg_live_map *live, const struct npg_frame *frame)
{
	struct npg_elf_file *elf =
	    frame->module != NULL ? npg_module_symbols(frame->module, 0) : NULL;
	const struct npg_elf_symbol *symbol =
	    elf != NULL ? npg_elf_file_function_at(elf, frame->vaddr - 1) : NULL;
	int64_t name;

	if (symbol == NULL || symbol->name == NULL)
		return NPG_NULL;
	name = npg_writer_string(live->writer, symbol->name);
	npg_writer_frame_function(live->writer, frame->id, name);
	return name;
}

void npg_sites_name(struct npg_live_map *live)
{
	int64_t *names = calloc(live->nr_frames + 1, sizeof(*names));

	if (names == NULL)
		return;
	for (size_t i = 0; i < live->nr_frames; i++)
		names[i] =
		    live->frames[i].id != NPG_NULL ? name_frame(live, &live->frames[i]) : NPG_NULL;
	for (size_t i = 0; i < live->nr_sites; i++) {
		const struct npg_site *site = live->all_sites[i];
		int64_t name = NPG_NULL;

		for (int k = 0; k < site->nr_frames && name == NPG_NULL; k++)
			if (!is_runtime(live->frames[site->frames[k]].module))
				name = names[site->frames[k]];
		if (name == NPG_NULL && site->nr_frames > 0)
			name = names[site->frames[0]];
		if (name != NPG_NULL && site->is_row_written)
			npg_writer_site_name(live->writer, site->id, name);
	}
	free(names);
}

void npg_sites_release(struct npg_live_map *live)
{
	for (size_t i = 0; i < live->nr_sites; i++)
		free(live->all_sites[i]);
	free(live->all_sites);
	free(live->frames);
	npg_table_release(&live->sites);
	npg_table_release(&live->frame_ids);
}
