/* The allowed CPUs and nodes from any text. */
#include "replayer/resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct npg_allowed allowed;

	(void)!npg_allowed_parse((const char *)data, size, &allowed);
	return 0;
}
