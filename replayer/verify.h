/*
 * Is the memory where it was put? Looks at some pages of placed ranges from outside, by
 * move_pages(2) without a target, while the program runs. Page-table pages cannot be seen so.
 */
#ifndef NPG_REPLAYER_VERIFY_H
#define NPG_REPLAYER_VERIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "replayer/placing.h"

struct npg_verify {
	uint64_t nr_looks;
	uint64_t nr_sampled; /* resident pages looked at */
	uint64_t nr_on_node; /* of these, on a node of their policy */
	bool is_refused;     /* the kernel does not let us look */
};

/**
 * npg_verify_look() - look at no more than 256 pages.
 * @pid: the program; ranges of other processes are looked at by the pid that they were told with.
 *
 * Everything in @status may have been written by a broken program; it is only read, and checked.
 * MT-Safe (per @verify). Not AS-Safe.
 */
void npg_verify_look(struct npg_verify *verify, pid_t pid, const struct npg_placing *table,
		     const struct npg_wire_status *status);

/**
 * npg_verify_wait() - wait for the end of the program, looking now and then: first after 20 ms,
 * then ever more rarely, at least every 10 s.
 * @wait_status: as waitpid(2) gives it.
 *
 * Return: 0; -ECHILD.
 */
NPG_MUST_CHECK int npg_verify_wait(struct npg_verify *verify, pid_t pid,
				   const struct npg_placing *table,
				   const struct npg_wire_status *status, int *wait_status);

#endif
