/*
 * The consumer of the recording channel.
 *
 * Any process that has the memory mapped can write anywhere in it at any time. So the number of
 * slots and the position of the tail are kept here, not read back; head is only compared with it;
 * a record is copied out before it is looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/channel.h"

struct npg_channel {
	int fd;
	struct npg_wire_channel *shared;
	struct npg_wire_record *slots;
	size_t size_bytes;
	uint32_t nr_slots;
	uint64_t tail;
	uint64_t hole_since_ns; /* when the slot at the tail was first found unpublished; or 0 */
	struct npg_channel_stats stats;
	char variable[sizeof(NPG_WIRE_RECORD_ENV) + 32];
};

static int check_options(const struct npg_channel_options *options, struct npg_error *err)
{
	if (options->nr_slots < 2 || (options->nr_slots & (options->nr_slots - 1)) != 0 ||
	    options->nr_slots > UINT32_C(1) << 24)
		return npg_error_set(err, -EINVAL,
				     "recording channel: %" PRIu32 " slots; the number must be a "
				     "power of two from 2 to 16777216",
				     options->nr_slots);
	if (options->max_frames > NPG_WIRE_MAX_FRAMES)
		return npg_error_set(err, -EINVAL,
				     "recording channel: %" PRIu32
				     " frames per record; at most %d are possible",
				     options->max_frames, NPG_WIRE_MAX_FRAMES);
	return 0;
}

static int map_channel(struct npg_channel *channel, struct npg_error *err)
{
	int status;

	channel->fd = memfd_create("numapgo-record", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (channel->fd < 0 || ftruncate(channel->fd, (off_t)channel->size_bytes) != 0 ||
	    fcntl(channel->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		goto failed;
	channel->shared =
	    mmap(NULL, channel->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, channel->fd, 0);
	if (channel->shared != MAP_FAILED)
		return 0;
	channel->shared = NULL;
failed:
	status = -errno;
	return npg_error_set(err, status,
			     "recording channel: cannot make %zu bytes of shared memory: %s; try "
			     "a higher limit of open files or less memory for the channel",
			     channel->size_bytes, strerror(-status));
}

int npg_channel_create(struct npg_channel **channel, const struct npg_channel_options *options,
		       struct npg_error *err)
{
	struct npg_channel *new_channel;
	int status = check_options(options, err);

	if (status != 0)
		return status;
	new_channel = calloc(1, sizeof(*new_channel));
	if (new_channel == NULL)
		return npg_error_set(err, -ENOMEM, "recording channel: out of memory");
	new_channel->nr_slots = options->nr_slots;
	new_channel->size_bytes =
	    sizeof(struct npg_wire_channel) + (size_t)options->nr_slots * NPG_WIRE_SLOT_BYTES;
	status = map_channel(new_channel, err);
	if (status != 0) {
		npg_channel_close(new_channel);
		return status;
	}
	new_channel->slots = (struct npg_wire_record *)(new_channel->shared + 1);
	*new_channel->shared = (struct npg_wire_channel){
		.magic = NPG_WIRE_MAGIC,
		.version = NPG_WIRE_VERSION,
		.nr_slots = options->nr_slots,
		.is_enabled = 1,
		.min_object_bytes = options->min_object_bytes,
		.max_frames = options->max_frames,
		.follows_children = options->follows_children,
	};
	snprintf(new_channel->variable, sizeof(new_channel->variable), "%s=%ld:%d",
		 NPG_WIRE_RECORD_ENV, (long)getpid(), new_channel->fd);
	*channel = new_channel;
	return 0;
}

void npg_channel_close(struct npg_channel *channel)
{
	if (channel == NULL)
		return;
	if (channel->shared != NULL) {
		npg_channel_stop(channel);
		munmap(channel->shared, channel->size_bytes);
	}
	if (channel->fd >= 0)
		close(channel->fd);
	free(channel);
}

const char *npg_channel_variable(const struct npg_channel *channel)
{
	return channel->variable;
}

void npg_channel_stop(struct npg_channel *channel)
{
	__atomic_store_n(&channel->shared->is_enabled, 0, __ATOMIC_RELAXED);
}

int npg_channel_decode(const void *data, size_t size_bytes, struct npg_wire_record *record)
{
	struct npg_wire_record copy;

	if (size_bytes < sizeof(copy))
		return -EINVAL;
	memcpy(&copy, data, sizeof(copy));
	if (copy.type == NPG_WIRE_NONE || copy.type >= NPG_WIRE_NR_TYPES || copy.pid == 0 ||
	    copy.tid == 0 || copy.nr_frames > NPG_WIRE_MAX_FRAMES)
		return -EINVAL;
	for (size_t i = copy.nr_frames; i < NPG_WIRE_MAX_FRAMES; i++)
		copy.frames[i] = 0;
	*record = copy;
	return 0;
}

/* The slot at the tail is reserved, but not published. May it be given up? */
static bool is_hole(struct npg_channel *channel, uint64_t now_ns, bool is_over)
{
	if (channel->hole_since_ns == 0)
		channel->hole_since_ns = now_ns;
	return is_over || now_ns - channel->hole_since_ns >= NPG_CHANNEL_HOLE_NS;
}

/* The slot at the tail, if it is published, else NULL. */
static const struct npg_wire_record *published(const struct npg_channel *channel)
{
	const struct npg_wire_record *slot =
	    &channel->slots[channel->tail & (channel->nr_slots - 1)];

	return __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) == channel->tail + 1 ? slot
										       : NULL;
}

static void step(struct npg_channel *channel)
{
	channel->tail++;
	channel->hole_since_ns = 0;
	__atomic_store_n(&channel->shared->tail, channel->tail, __ATOMIC_RELEASE);
}

size_t npg_channel_drain(struct npg_channel *channel, uint64_t now_ns, bool is_over,
			 void (*take)(const struct npg_wire_record *record, void *arg), void *arg)
{
	uint64_t nr_waiting =
	    __atomic_load_n(&channel->shared->head, __ATOMIC_RELAXED) - channel->tail;
	const struct npg_wire_record *slot;
	struct npg_wire_record record;
	size_t nr_taken = 0;

	if (nr_waiting > channel->nr_slots) /* overwritten: no more than the ring can be there */
		nr_waiting = channel->nr_slots;
	for (; nr_waiting > 0; nr_waiting--) {
		slot = published(channel);
		if (slot == NULL) {
			if (!is_hole(channel, now_ns, is_over))
				break;
			channel->stats.nr_holes++;
		} else if (npg_channel_decode(slot, sizeof(*slot), &record) == 0) {
			take(&record, arg);
			nr_taken++;
		} else {
			channel->stats.nr_malformed++;
		}
		step(channel);
	}
	channel->stats.nr_records += nr_taken;
	return nr_taken;
}

void npg_channel_get_stats(const struct npg_channel *channel, struct npg_channel_stats *stats)
{
	*stats = channel->stats;
	stats->nr_lost = __atomic_load_n(&channel->shared->nr_lost, __ATOMIC_RELAXED);
	stats->nr_faults = __atomic_load_n(&channel->shared->nr_faults, __ATOMIC_RELAXED);
}
