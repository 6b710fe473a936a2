/* numapgo sql: read-only queries on a recording. */
#include <inttypes.h>

#include "lib/command.h"
#include "lib/db.h"
#include "lib/log.h"

struct sql_options {
	struct npg_common common;
};

static int sql_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	(void)command;
	(void)options;
	(void)argc;
	(void)argv;
	return NPG_EXIT_FAILED;
}

const struct npg_command npg_command_sql = {
	.name = "sql",
	.summary = "read-only query on a recording",
	.operands = "DB 'QUERY'",
	.description = "Runs one query on a recording and prints its rows.",
	.options_size = sizeof(struct sql_options),
	.run = sql_run,
};
