/* Building the placing table and sharing it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/preload/hash.h"
#include "replayer/placing.h"
#include "replayer/ranges.h"

#define GIB           (UINT64_C(1) << 30)
#define REGION_BYTES  (UINT64_C(2) << 20)
#define STATUS_ALIGN  65536 /* a multiple of any page size up to it */
#define MAX_ARENA     (64 * 1024 * GIB)
#define TABLES_PER_IT 512 /* pages of a 2 MiB region: one of them is touched ahead */

/* An object with the site that it is allocated at. */
struct sited {
	uint64_t hash;
	struct npg_wire_object object;
};

static int by_site(const void *a, const void *b)
{
	const struct sited *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->object.which != y->object.which)
		return x->object.which < y->object.which ? -1 : 1;
	if (x->object.creator_hash != y->object.creator_hash)
		return x->object.creator_hash < y->object.creator_hash ? -1 : 1;
	if (x->object.ordinal != y->object.ordinal)
		return x->object.ordinal < y->object.ordinal ? -1 : 1;
	return x->object.plan_index < y->object.plan_index ? -1 : 1;
}

static uint64_t hash_path(const char *path)
{
	return path == NULL ? 0 : npg_hash_bytes(NPG_HASH_SEED, path, strlen(path));
}

/* One policy for all of it, also where it grows; and one for the page tables, or none. */
static bool is_uniform(const struct npg_build *build, const struct npg_wire_object *o)
{
	const struct npg_wire_range *ranges = build->ranges.items, *tables = build->tables.items;
	uint64_t page = build->options->page_size_bytes;

	if (o->nr_ranges != 1 || o->nr_tables > 1 || ranges[o->first_range].first != 0 ||
	    ranges[o->first_range].nr < o->size_bytes / page)
		return false;
	return o->nr_tables == 0 || (tables[o->first_table].first == 0 &&
				     tables[o->first_table].nr >= o->size_bytes / REGION_BYTES);
}

static int add_heap_object(struct npg_build *build, size_t i, struct npg_list *sited)
{
	const struct npg_plan_object *o = &build->plan->objects[i];
	struct sited s = { .hash = npg_plan_site_hash(build->plan, o) };
	struct npg_extent extent;
	int ret = npg_ranges_add(build, o, &extent);

	if (ret < 0 || extent.nr_ranges + extent.nr_tables == 0)
		return ret;
	s.object = (struct npg_wire_object){
		.creator_hash = hash_path(o->creator),
		.ordinal = o->which == NPG_PLAN_ALL ? 0 : o->ordinal,
		.size_bytes = o->size_bytes,
		.which = (uint32_t)o->which,
		.counter = NPG_WIRE_NONE_INDEX,
		.first_range = extent.first_range,
		.nr_ranges = extent.nr_ranges,
		.first_table = extent.first_table,
		.nr_tables = extent.nr_tables,
		.plan_index = (uint32_t)i,
	};
	if (o->which == NPG_PLAN_SITE_ORDINAL)
		s.object.creator_hash = 0;
	s.object.is_uniform = is_uniform(build, &s.object);
	return npg_list_append(sited, &s) != NULL ? 0 : -ENOMEM;
}

/* Objects with the same policies throughout take each other's place; others only their own. */
static void set_pool(struct npg_build *build, struct npg_wire_object *o)
{
	const struct npg_wire_object *others = build->objects.items;
	const struct npg_wire_range *ranges = build->ranges.items, *tables = build->tables.items;

	for (size_t i = 0; o->is_uniform && i < build->objects.nr; i++)
		if (others[i].is_uniform && others[i].nr_tables == o->nr_tables &&
		    ranges[others[i].first_range].policy == ranges[o->first_range].policy &&
		    (o->nr_tables == 0 ||
		     tables[others[i].first_table].policy == tables[o->first_table].policy)) {
			o->pool = others[i].pool;
			return;
		}
	o->pool = build->nr_pools++;
}

/* Sites and counters of the sorted objects. A second entry for the same allocation is left out. */
static int add_sites(struct npg_build *build, const struct npg_list *sited)
{
	const struct sited *all = sited->items;
	struct npg_wire_site *site = NULL;

	for (size_t i = 0; i < sited->nr; i++) {
		const struct sited *before = i > 0 ? &all[i - 1] : NULL;
		bool is_new_site = before == NULL || before->hash != all[i].hash;
		bool is_new_creator = is_new_site || before->object.which != all[i].object.which ||
				      before->object.creator_hash != all[i].object.creator_hash;
		struct npg_wire_object o = all[i].object;

		if (!is_new_creator && before->object.ordinal == o.ordinal)
			continue;
		if (is_new_site) {
			struct npg_wire_site new_site = { .hash = all[i].hash,
							  .first_object =
							      (uint32_t)build->objects.nr };

			site = npg_list_append(&build->sites, &new_site);
			if (site == NULL)
				return -ENOMEM;
		}
		if (o.which == NPG_PLAN_THREAD_ORDINAL) {
			build->nr_counters += is_new_creator;
			o.counter = build->nr_counters - 1;
		}
		set_pool(build, &o);
		if (npg_list_append(&build->objects, &o) == NULL)
			return -ENOMEM;
		site->nr_objects++;
	}
	return 0;
}

/* The smallest allocation worth a look: what the recorder counted, or half of the smallest. */
static void set_min_bytes(struct npg_build *build)
{
	const struct npg_wire_object *objects = build->objects.items;
	uint64_t page = build->options->page_size_bytes;
	bool has_ordinals = false;

	build->min_bytes = UINT64_MAX;
	for (size_t i = 0; i < build->objects.nr; i++) {
		has_ordinals = has_ordinals || objects[i].which != NPG_PLAN_ALL;
		if (objects[i].size_bytes / 2 < build->min_bytes)
			build->min_bytes = objects[i].size_bytes / 2;
	}
	if (has_ordinals && build->plan->min_object_bytes > 0)
		build->min_bytes = build->plan->min_object_bytes;
	if (build->min_bytes < page)
		build->min_bytes = page;
}

static int add_heap(struct npg_build *build)
{
	struct npg_list sited = { .item_size = sizeof(struct sited) };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < build->plan->nr_objects; i++)
		if (strcmp(build->plan->objects[i].kind, "static") != 0 && !build->fit->is_stale[i])
			ret = add_heap_object(build, i, &sited);
	if (ret == 0 && sited.nr > 0) {
		qsort(sited.items, sited.nr, sizeof(struct sited), by_site);
		ret = add_sites(build, &sited);
	}
	free(sited.items);
	set_min_bytes(build);
	return ret;
}

static int by_path_hash(const void *a, const void *b)
{
	const struct npg_wire_pin *x = a, *y = b;

	return x->path_hash < y->path_hash ? -1 : x->path_hash > y->path_hash;
}

static int add_threads(struct npg_build *build)
{
	const struct npg_resolution *res = build->res;

	for (int n = 0; n < res->nr_planned; n++)
		if (npg_list_append(&build->cpusets, res->nodes[n].cpus.words) == NULL)
			return -ENOMEM;
	for (size_t i = 0; !build->options->leaves_threads && i < build->plan->nr_threads; i++) {
		const struct npg_plan_thread *t = &build->plan->threads[i];
		int nr = npg_cpuset_count(&res->nodes[t->node].cpus);
		struct npg_wire_pin pin = { .path_hash = hash_path(t->path),
					    .cpuset = (uint32_t)t->node,
					    .plan_index = (uint32_t)i };

		if (nr > 0 && nr < npg_cpuset_count(&res->allowed_cpus) &&
		    npg_list_append(&build->threads, &pin) == NULL)
			return -ENOMEM;
	}
	if (build->threads.nr > 0)
		qsort(build->threads.items, build->threads.nr, sizeof(struct npg_wire_pin),
		      by_path_hash);
	return 0;
}

/* Room for a list behind the others. */
static void lay_out(size_t *end, const struct npg_list *list, struct npg_wire_list *wire)
{
	wire->nr = (uint32_t)list->nr;
	wire->offset_bytes = (uint32_t)*end;
	*end += list->nr * list->item_size;
	*end = (*end + 7) & ~(size_t)7;
}

static void set_limits(const struct npg_build *build, struct npg_wire_table *head)
{
	const struct npg_placing_options *options = build->options;
	uint64_t arena = options->memory_bytes * 4;

	head->magic = NPG_WIRE_MAGIC;
	head->version = NPG_WIRE_VERSION;
	head->flags = (options->has_children ? NPG_WIRE_FOLLOW_CHILDREN : 0) |
		      (options->overrides_affinity ? NPG_WIRE_OVERRIDE_AFFINITY : 0) |
		      (options->has_huge_pages ? NPG_WIRE_NO_TABLES : 0);
	head->page_size_bytes = (uint32_t)options->page_size_bytes;
	head->min_bytes = build->min_bytes;
	arena = arena < 16 * GIB ? 16 * GIB : arena > MAX_ARENA ? MAX_ARENA : arena;
	head->arena_bytes = build->objects.nr > 0 ? arena & ~(REGION_BYTES - 1) : 0;
	head->max_populate_pages = options->memory_bytes / TABLES_PER_IT / options->page_size_bytes;
	head->max_mappings = (uint32_t)(options->max_map_count / 16);
	head->nr_counters = build->nr_counters;
	head->nr_pools = build->nr_pools;
	head->nr_plan_objects = (uint32_t)build->plan->nr_objects;
	for (size_t i = 0; i < build->plan->nr_objects; i++)
		if (build->plan->objects[i].nr_frames > head->max_frames)
			head->max_frames = (uint32_t)build->plan->objects[i].nr_frames;
}

static int serialise(struct npg_build *build, struct npg_placing *table, struct npg_error *err)
{
	struct npg_wire_table head = { 0 };
	struct npg_list *lists[] = { &build->sites,   &build->objects, &build->statics,
				     &build->ranges,  &build->tables,  &build->policies,
				     &build->threads, &build->cpusets };
	struct npg_wire_list *wires[] = {
		&head.sites,  &head.objects,  &head.statics, &head.ranges,
		&head.tables, &head.policies, &head.threads, &head.cpusets
	};
	size_t end = sizeof(head), outcomes;

	set_limits(build, &head);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(lists); i++)
		lay_out(&end, lists[i], wires[i]);
	end = (end + STATUS_ALIGN - 1) & ~(size_t)(STATUS_ALIGN - 1);
	outcomes = build->plan->nr_objects * sizeof(struct npg_wire_outcome);
	if (end > UINT32_MAX || outcomes > UINT32_MAX)
		return npg_error_set(err, -E2BIG, "the plan is too large to be replayed");
	head.status_offset_bytes = (uint32_t)end;
	table->image = calloc(1, end);
	if (table->image == NULL)
		return npg_error_set(err, -ENOMEM, "out of memory");
	memcpy(table->image, &head, sizeof(head));
	for (size_t i = 0; i < NPG_ARRAY_SIZE(lists); i++)
		if (lists[i]->nr > 0)
			memcpy((char *)table->image + wires[i]->offset_bytes, lists[i]->items,
			       lists[i]->nr * lists[i]->item_size);
	table->size_bytes = end + sizeof(struct npg_wire_status) + outcomes;
	table->nr_objects = build->objects.nr + build->statics.nr;
	table->nr_pins = build->threads.nr;
	return 0;
}

int npg_placing_build(const struct npg_plan *plan, const struct npg_resolution *res,
		      const struct npg_fit *fit, const struct npg_placing_options *options,
		      struct npg_placing *table, struct npg_error *err)
{
	struct npg_build build = {
		.plan = plan,
		.res = res,
		.fit = fit,
		.options = options,
		.sites = { .item_size = sizeof(struct npg_wire_site) },
		.objects = { .item_size = sizeof(struct npg_wire_object) },
		.statics = { .item_size = sizeof(struct npg_wire_static) },
		.ranges = { .item_size = sizeof(struct npg_wire_range) },
		.tables = { .item_size = sizeof(struct npg_wire_range) },
		.policies = { .item_size = sizeof(struct npg_wire_policy) },
		.threads = { .item_size = sizeof(struct npg_wire_pin) },
		.cpusets = { .item_size = sizeof(struct npg_wire_cpuset) },
		.min_bytes = UINT64_MAX,
	};
	int ret = options->leaves_memory ? 0 : add_heap(&build);

	memset(table, 0, sizeof(*table));
	if (ret == 0 && !options->leaves_memory)
		ret = npg_statics_add(&build);
	if (ret == 0)
		ret = add_threads(&build);
	if (ret == 0)
		ret = serialise(&build, table, err);
	else
		npg_error_set(err, ret, "out of memory");
	free(build.sites.items);
	free(build.objects.items);
	free(build.statics.items);
	free(build.ranges.items);
	free(build.tables.items);
	free(build.policies.items);
	free(build.threads.items);
	free(build.cpusets.items);
	return ret;
}

void npg_placing_release(struct npg_placing *table)
{
	free(table->image);
	memset(table, 0, sizeof(*table));
}

static size_t status_size(const struct npg_placing *table)
{
	return table->size_bytes - table->image->status_offset_bytes;
}

static int fill(int fd, const struct npg_placing *table, struct npg_wire_status **status)
{
	const char *from = (const char *)table->image;
	size_t left = table->image->status_offset_bytes;

	if (ftruncate(fd, (off_t)table->size_bytes) < 0)
		return -errno;
	while (left > 0) {
		ssize_t n = write(fd, from, left);

		if (n < 0)
			return -errno;
		from += n;
		left -= (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	*status = mmap(NULL, status_size(table), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       (off_t)table->image->status_offset_bytes);
	return *status == MAP_FAILED ? -errno : 0;
}

int npg_placing_share(const struct npg_placing *table, struct npg_wire_status **status,
		      struct npg_error *err)
{
	int fd = memfd_create("numapgo-replay", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ret = fd < 0 ? -errno : fill(fd, table, status);

	if (ret < 0) {
		if (fd >= 0)
			close(fd);
		return npg_error_set(err, ret,
				     "cannot share the placing table: %s; check limits "
				     "on memory and open files",
				     strerror(-ret));
	}
	return fd;
}

void npg_placing_unshare(const struct npg_placing *table, struct npg_wire_status *status, int fd)
{
	munmap(status, status_size(table));
	close(fd);
}

struct npg_wire_outcome *npg_placing_outcomes(struct npg_wire_status *status)
{
	return (struct npg_wire_outcome *)(status + 1);
}
