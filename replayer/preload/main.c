/* placeholder until the hooks land */
#include "lib/preload/threads.h"

void npg_on_thread_create(const struct npg_thread_birth *birth)
{
	(void)birth;
}

void npg_on_thread_start(const struct npg_thread_birth *birth)
{
	(void)birth;
}

void npg_on_thread_exit(void)
{
}

void npg_on_fork(void)
{
}
