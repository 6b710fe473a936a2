/* CPU lists: what parses comes back from its own text. */
#include "lib/cpulist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_cpuset set, again;
	char text[NPG_CPULIST_SIZE];
	size_t length;

	if (npg_cpulist_parse((const char *)data, size, &set) < 0)
		return 0;
	length = npg_cpulist_format(&set, text, sizeof(text));
	if (length >= sizeof(text) || npg_cpulist_parse(text, length, &again) < 0 ||
	    memcmp(&set, &again, sizeof(set)) != 0)
		abort();
	return 0;
}
