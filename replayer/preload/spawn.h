/* Ways to start a program, hooked so that the plan's CPU masks are not inherited. */
#ifndef NPG_REPLAYER_PRELOAD_SPAWN_H
#define NPG_REPLAYER_PRELOAD_SPAWN_H

/** npg_spawn_resolve() - find the real functions, before a vfork child needs them. MT-Safe. */
void npg_spawn_resolve(void);

#endif
