/*
 * Error texts that travel up to the command which prints them.
 *
 * A library function returns 0 or a negative errno and, when it fails, describes the failure in
 * the struct npg_error that its caller handed down: what failed, on which object, why, and what to
 * try. Only commands print. An error that is never set has an empty text.
 */
#ifndef NPG_LIB_ERROR_H
#define NPG_LIB_ERROR_H

#include "lib/compiler.h"

struct npg_error {
	char text[1024];
};

/**
 * npg_error_set() - describe a failure.
 * @err:    where; NULL is allowed and ignored.
 * @status: the negative errno the caller will return; handed back unchanged.
 * @format: printf format of one complete sentence without a final full stop.
 *
 * An earlier text is replaced; text beyond the buffer is cut. errno is kept.
 *
 * Return: @status.
 * MT-Safe (per object). Not AS-Safe.
 */
int npg_error_set(struct npg_error *err, int status, const char *format, ...) NPG_PRINTF(3, 4);

/**
 * npg_error_prefix() - put context in front of a text that is there already ("PREFIX: TEXT").
 * @err:    where; NULL is allowed.
 * @status: handed back unchanged.
 *
 * Return: @status.
 * MT-Safe (per object). Not AS-Safe.
 */
int npg_error_prefix(struct npg_error *err, int status, const char *format, ...) NPG_PRINTF(3, 4);

#endif
