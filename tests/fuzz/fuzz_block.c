/* Any bytes as a function's code: analysed and recovered from at every offset. */
#include "profiler/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_function function;
	struct npg_recovery recovery;
	bool is_conditional;
	int64_t target;
	size_t at = 0;

	if (size > 4096 || npg_function_init(data, size, &function) < 0)
		return 0;
	for (size_t i = 0; i < size; i++)
		npg_function_recover(&function, i, &recovery);
	while ((at = npg_function_next_exit(&function, at, &target, &is_conditional)) != 0)
		npg_function_add_targets(&function, &function, target);
	npg_function_release(&function);
	return 0;
}
