/* Records of the perf ring, see perf_event_open(2); the order of fields is the kernel's. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "profiler/perf_decode.h"

/* A reader that runs dry instead of out of bounds; .is_bad is looked at once, at the end. */
struct reader {
	const unsigned char *at;
	const unsigned char *end;
	bool is_bad;
};

static void read_bytes(struct reader *r, void *to, size_t size)
{
	if ((size_t)(r->end - r->at) < size) {
		memset(to, 0, size);
		r->is_bad = true;
		r->at = r->end;
		return;
	}
	memcpy(to, r->at, size);
	r->at += size;
}

static uint64_t read_u64(struct reader *r)
{
	uint64_t value;

	read_bytes(r, &value, sizeof(value));
	return value;
}

static uint32_t read_u32(struct reader *r)
{
	uint32_t value;

	read_bytes(r, &value, sizeof(value));
	return value;
}

/* The text up to and with its NUL; NULL if there is none. */
static const char *read_text(struct reader *r)
{
	size_t left = (size_t)(r->end - r->at);
	const unsigned char *nul = left > 0 ? memchr(r->at, 0, left) : NULL;
	const char *text = (const char *)r->at;

	if (nul == NULL) {
		r->is_bad = true;
		return NULL;
	}
	r->at = r->end;
	return text;
}

static void read_registers(const struct npg_perf_layout *layout, struct reader *r,
			   struct npg_perf_record *record)
{
	record->regs_abi = read_u64(r);
	if (record->regs_abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	for (int i = 0; i < NPG_PERF_NR_REGS; i++)
		if (layout->regs_mask >> i & 1)
			record->regs[i] = read_u64(r);
}

static void read_sample(const struct npg_perf_layout *layout, struct reader *r,
			struct npg_perf_record *record)
{
	uint64_t type = layout->sample_type;

	if (type & PERF_SAMPLE_IDENTIFIER)
		record->id = read_u64(r);
	if (type & PERF_SAMPLE_IP)
		record->ip = read_u64(r);
	if (type & PERF_SAMPLE_TID) {
		record->pid = read_u32(r);
		record->tid = read_u32(r);
	}
	if (type & PERF_SAMPLE_TIME)
		record->time_ns = read_u64(r);
	if (type & PERF_SAMPLE_ADDR)
		record->address = read_u64(r);
	if (type & PERF_SAMPLE_CPU) {
		record->cpu = read_u32(r);
		read_u32(r);
	}
	if (type & PERF_SAMPLE_PERIOD)
		record->period = read_u64(r);
	if (type & PERF_SAMPLE_REGS_USER)
		read_registers(layout, r, record);
}

/* The trailer that sample_id_all adds to every record that is not a sample; cut off from @r. */
static void read_trailer(const struct npg_perf_layout *layout, struct reader *r,
			 struct npg_perf_record *record)
{
	uint64_t type = layout->sample_type;
	struct reader trailer = *r;
	size_t size = (type & PERF_SAMPLE_TID ? 8U : 0) + (type & PERF_SAMPLE_TIME ? 8U : 0) +
		      (type & PERF_SAMPLE_CPU ? 8U : 0) + (type & PERF_SAMPLE_IDENTIFIER ? 8U : 0);

	if ((size_t)(r->end - r->at) < size) {
		r->is_bad = true;
		return;
	}
	r->end -= size;
	trailer.at = r->end;
	if (type & PERF_SAMPLE_TID) {
		record->pid = read_u32(&trailer);
		record->tid = read_u32(&trailer);
	}
	if (type & PERF_SAMPLE_TIME)
		record->time_ns = read_u64(&trailer);
	if (type & PERF_SAMPLE_CPU) {
		record->cpu = read_u32(&trailer);
		read_u32(&trailer);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		record->id = read_u64(&trailer);
}

static void read_mmap2(struct reader *r, bool has_build_id, struct npg_perf_record *record)
{
	record->kind = NPG_PERF_MMAP;
	record->pid = read_u32(r);
	record->tid = read_u32(r);
	record->address = read_u64(r);
	record->size_bytes = read_u64(r);
	record->file_offset = read_u64(r);
	if (has_build_id) {
		uint8_t skipped[3];

		read_bytes(r, &record->build_id_size, 1);
		read_bytes(r, skipped, sizeof(skipped));
		read_bytes(r, record->build_id, sizeof(record->build_id));
		if (record->build_id_size > sizeof(record->build_id))
			r->is_bad = true;
	} else {
		record->device = (uint64_t)read_u32(r) << 32;
		record->device |= read_u32(r);
		record->inode = read_u64(r);
		read_u64(r); /* generation */
	}
	record->protection = read_u32(r);
	record->flags = read_u32(r);
	record->name = read_text(r);
	if (record->address + record->size_bytes < record->address)
		r->is_bad = true;
}

static void read_comm(struct reader *r, struct npg_perf_record *record)
{
	record->kind = NPG_PERF_COMM;
	record->pid = read_u32(r);
	record->tid = read_u32(r);
	record->name = read_text(r);
}

static void read_task(struct reader *r, enum npg_perf_kind kind, struct npg_perf_record *record)
{
	record->kind = kind;
	record->pid = read_u32(r);
	record->parent_pid = read_u32(r);
	record->tid = read_u32(r);
	record->parent_tid = read_u32(r);
}

static void read_other(const struct perf_event_header *header, struct reader *r,
		       struct npg_perf_record *record)
{
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		read_mmap2(r, header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID, record);
		break;
	case PERF_RECORD_COMM:
		record->is_exec = header->misc & PERF_RECORD_MISC_COMM_EXEC;
		read_comm(r, record);
		break;
	case PERF_RECORD_FORK:
		read_task(r, NPG_PERF_FORK, record);
		break;
	case PERF_RECORD_EXIT:
		read_task(r, NPG_PERF_EXIT, record);
		break;
	case PERF_RECORD_LOST:
		record->kind = NPG_PERF_LOST;
		record->id = read_u64(r);
		record->nr_lost = read_u64(r);
		break;
	case PERF_RECORD_THROTTLE:
		record->kind = NPG_PERF_THROTTLE;
		break;
	default:
		break;
	}
}

int npg_perf_decode(const struct npg_perf_layout *layout, const void *data, size_t size_bytes,
		    struct npg_perf_record *record)
{
	struct perf_event_header header;
	struct reader r;

	if (size_bytes < sizeof(header))
		return -EBADMSG;
	memcpy(&header, data, sizeof(header));
	if (header.size < sizeof(header) || header.size > size_bytes)
		return -EBADMSG;
	memset(record, 0, sizeof(*record));
	r.at = (const unsigned char *)data + sizeof(header);
	r.end = (const unsigned char *)data + header.size;
	r.is_bad = false;
	if (header.type == PERF_RECORD_SAMPLE) {
		record->kind = NPG_PERF_SAMPLE;
		record->is_user =
		    (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
		read_sample(layout, &r, record);
	} else {
		uint64_t id;

		read_trailer(layout, &r, record);
		id = record->id;
		read_other(&header, &r, record);
		if (record->kind == NPG_PERF_LOST && record->id == 0)
			record->id = id;
	}
	return r.is_bad ? -EBADMSG : header.size;
}
