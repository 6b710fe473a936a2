/* Error texts: formatting only, see the header for the contract. */
#include <errno.h>
#include <stdarg.h>

#include "lib/error.h"

int npg_error_set(struct npg_error *err, int status, const char *format, ...)
{
	va_list args;
	int saved = errno;

	if (err != NULL) {
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
	}
	errno = saved;
	return status;
}

int npg_error_prefix(struct npg_error *err, int status, const char *format, ...)
{
	char old[sizeof(err->text)];
	va_list args;
	size_t used;
	int saved = errno;

	if (err != NULL) {
		memcpy(old, err->text, sizeof(old));
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
		used = strlen(err->text);
		snprintf(err->text + used, sizeof(err->text) - used, ": %s", old);
	}
	errno = saved;
	return status;
}
