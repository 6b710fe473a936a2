/* The verbs, in the order of the help. Each is defined by the cmd_NAME.c of its stage. */
#ifndef NPG_CLI_VERBS_H
#define NPG_CLI_VERBS_H

#include "lib/command.h"

/* clang-format off */
#define NPG_VERBS         \
	NPG_VERB(doctor)  \
	NPG_VERB(record)  \
	NPG_VERB(import)  \
	NPG_VERB(analyze) \
	NPG_VERB(plan)    \
	NPG_VERB(replay)  \
	NPG_VERB(report)  \
	NPG_VERB(topo)    \
	NPG_VERB(sql)
/* clang-format on */

#define NPG_VERB(name) extern const struct npg_command npg_command_##name;
NPG_VERBS
#undef NPG_VERB

#endif
