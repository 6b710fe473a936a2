/*
 * Messages for people, on stderr only. Results go to stdout and are not this module's business.
 * Commands call these; library code returns errors instead (lib/error.h).
 */
#ifndef NPG_LIB_LOG_H
#define NPG_LIB_LOG_H

#include <stdbool.h>

#include "lib/compiler.h"

enum npg_log_level {
	NPG_LOG_QUIET,   /* errors only (-q) */
	NPG_LOG_NORMAL,  /* warnings and the one-line results of a launcher verb */
	NPG_LOG_VERBOSE, /* details (-v) */
};

/**
 * npg_log_set_level() - choose what is printed from now on. Set once, before threads start.
 * MT-Unsafe.
 */
void npg_log_set_level(enum npg_log_level level);

/**
 * npg_error_print() - "numapgo: error: TEXT"; printed at every level. MT-Safe. Not AS-Safe.
 */
void npg_error_print(const char *format, ...) NPG_PRINTF(1, 2);

/**
 * npg_warn() - "numapgo: warning: TEXT", unless -q. errno is kept. MT-Safe. Not AS-Safe.
 */
void npg_warn(const char *format, ...) NPG_PRINTF(1, 2);

/**
 * npg_info() - "numapgo: TEXT", unless -q. errno is kept. MT-Safe. Not AS-Safe.
 */
void npg_info(const char *format, ...) NPG_PRINTF(1, 2);

/**
 * npg_verbose() - "numapgo: TEXT", only with -v. errno is kept. MT-Safe. Not AS-Safe.
 */
void npg_verbose(const char *format, ...) NPG_PRINTF(1, 2);

/**
 * npg_use_color() - may escape sequences go to the stream with descriptor @fd?
 *
 * Return: true if @fd is a terminal, NO_COLOR is unset or empty (no-color.org) and TERM is not
 * "dumb".
 * MT-Safe env. Not AS-Safe.
 */
bool npg_use_color(int fd);

#endif
