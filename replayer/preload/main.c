/* placeholder until the hooks land */
#include "schemas/wire.h"

extern int npg_replay_version;
int npg_replay_version = 1;
