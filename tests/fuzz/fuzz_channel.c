/* Decoder of recording channel slots. */
#include "profiler/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_wire_record record;

	if (npg_channel_decode(data, size, &record) != 0)
		return 0;
	if (record.type == NPG_WIRE_NONE || record.type >= NPG_WIRE_NR_TYPES ||
	    record.nr_frames > NPG_WIRE_MAX_FRAMES || record.tid == 0)
		abort();
	for (size_t i = record.nr_frames; i < NPG_WIRE_MAX_FRAMES; i++)
		if (record.frames[i] != 0)
			abort();
	return 0;
}
