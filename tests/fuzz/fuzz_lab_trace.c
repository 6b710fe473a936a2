/* A line of the NUMA lab's files from any bytes. */
#include <stdlib.h>

#include "profiler/lab_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_lab_record record;

	if (npg_lab_record_parse((const char *)data, size, &record) == 0 &&
	    (record.kind == NPG_LAB_LOAD || record.kind == NPG_LAB_WALK) &&
	    (record.cpu < 0 || record.memory_node < 0))
		abort();
	return 0;
}
