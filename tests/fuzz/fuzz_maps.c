/* Any bytes as /proc/PID/maps. */
#include "profiler/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct npg_maps_entry entry;
	size_t at = 0;
	int ret;

	while ((ret = npg_maps_next(text, size, &at, &entry)) != 0) {
		if (at > size)
			abort();
		if (ret == 1 &&
		    (entry.end <= entry.start || entry.name + entry.name_length > text + size))
			abort();
	}
	return 0;
}
