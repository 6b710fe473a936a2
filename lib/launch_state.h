/* Between launch_check.c and launch.c: what the program shall inherit. */
#ifndef NPG_LIB_LAUNCH_STATE_H
#define NPG_LIB_LAUNCH_STATE_H

/**
 * npg_launch_save_state() - remember signal dispositions, signal mask and resource limits of this
 * process, for the program that is going to be launched; one set per process. MT-Unsafe.
 */
void npg_launch_save_state(void);

#endif
