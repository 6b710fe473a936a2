/*
 * Threads to CPUs of their node. A mask that the program, its OpenMP runtime or a launcher between
 * numapgo and the program has set is left as it is, unless the table says to override.
 */
#ifndef NPG_REPLAYER_PRELOAD_PIN_H
#define NPG_REPLAYER_PRELOAD_PIN_H

#include "replayer/preload/state.h"

/** npg_pin_init() - remember the mask that the program starts with. MT-Unsafe. */
void npg_pin_init(void);

/**
 * npg_pin_thread() - give the calling thread its mask: that of the plan, else the one that the
 * program started with, so that children of a pinned thread are not pinned with it.
 * @path_hash: of the thread's creation path; 0: it has none.
 *
 * MT-Safe. AS-Safe. errno may change.
 */
void npg_pin_thread(uint64_t path_hash);

/**
 * npg_pin_main() - pin the main thread, once: when the program turns out to have threads, so that
 * what it decides before by the size of its mask stays as it was; at start if it is the plan's
 * only thread. MT-Safe. AS-Safe. errno may change.
 */
void npg_pin_main(void);

/**
 * npg_pin_suspend() - give the calling thread the mask that the program started with, because a
 * program that it starts now would inherit the plan's.
 * @before: the mask to go back to.
 *
 * Return: true if npg_pin_resume() is due. MT-Safe. AS-Safe. errno is kept.
 */
bool npg_pin_suspend(struct npg_wire_cpuset *before);

/** npg_pin_resume() - back to @before. MT-Safe. AS-Safe. errno is kept. */
void npg_pin_resume(const struct npg_wire_cpuset *before);

#endif
