/* A plan from any bytes; what is accepted can be written and read again. */
#include "lib/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_plan *plan = NULL;
	struct npg_error err = { "" };
	size_t length = 0;
	char *text = NULL;

	if (npg_plan_from_text((const char *)data, size, "fuzz", &plan, &err) < 0)
		return 0;
	for (size_t i = 0; i < plan->nr_objects; i++)
		(void)npg_plan_site_hash(plan, &plan->objects[i]);
	if (npg_plan_to_text(plan, &text, &length, &err) < 0)
		abort();
	free(text);
	npg_plan_free(plan);
	return 0;
}
