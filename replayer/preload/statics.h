/* Static objects of the modules that are loaded when the program starts. */
#ifndef NPG_REPLAYER_PRELOAD_STATICS_H
#define NPG_REPLAYER_PRELOAD_STATICS_H

#include "replayer/preload/state.h"

/** npg_statics_place() - place them; pages that are there already move. Before main(). MT-Unsafe.
 */
void npg_statics_place(void);

#endif
