/* Messages on stderr; one write per line so that lines of several processes do not mix. */
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "lib/log.h"

static enum npg_log_level level = NPG_LOG_NORMAL;

void npg_log_set_level(enum npg_log_level new_level)
{
	level = new_level;
}

static NPG_PRINTF(2, 0) void print_line(const char *kind, const char *format, va_list args)
{
	char line[2048];
	int saved = errno;
	size_t used;

	snprintf(line, sizeof(line), "numapgo: %s", kind);
	used = strlen(line);
	vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	used = strlen(line);
	line[used] = '\n';
	if (write(STDERR_FILENO, line, used + 1) < 0) {
		/* nobody is left to be told */
	}
	errno = saved;
}

#define PRINT_AT(minimum, kind)                                                                    \
	do {                                                                                       \
		va_list args;                                                                      \
		if (level < (minimum))                                                             \
			return;                                                                    \
		va_start(args, format);                                                            \
		print_line(kind, format, args);                                                    \
		va_end(args);                                                                      \
	} while (0)

void npg_error_print(const char *format, ...)
{
	PRINT_AT(NPG_LOG_QUIET, "error: ");
}

void npg_warn(const char *format, ...)
{
	PRINT_AT(NPG_LOG_NORMAL, "warning: ");
}

void npg_info(const char *format, ...)
{
	PRINT_AT(NPG_LOG_NORMAL, "");
}

void npg_verbose(const char *format, ...)
{
	PRINT_AT(NPG_LOG_VERBOSE, "");
}

bool npg_use_color(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color != NULL && no_color[0] != '\0')
		return false;
	if (term != NULL && strcmp(term, "dumb") == 0)
		return false;
	return isatty(fd) == 1;
}
