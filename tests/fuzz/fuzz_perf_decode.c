/* Any bytes as a stream of perf records. */
#include "profiler/perf_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_perf_layout layout;
	struct npg_perf_record record;

	if (size < sizeof(layout))
		return 0;
	memcpy(&layout, data, sizeof(layout));
	data += sizeof(layout);
	size -= sizeof(layout);
	while (size > 0) {
		int length = npg_perf_decode(&layout, data, size, &record);

		if (length <= 0)
			break;
		if ((size_t)length > size || (record.name != NULL && strlen(record.name) >= size))
			abort();
		data += length;
		size -= (size_t)length;
	}
	return 0;
}
