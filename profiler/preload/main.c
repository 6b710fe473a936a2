/* placeholder until the hooks land */
#include "schemas/wire.h"

extern int npg_record_version;
int npg_record_version = 1;
