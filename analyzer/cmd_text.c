/* Printing for the commands of this stage; see the header. */
#include <stdarg.h>
#include <stdbool.h>

#include "analyzer/cmd_text.h"
#include "analyzer/text.h"

static void print_words(FILE *out, const char *text, size_t at, size_t indent)
{
	size_t columns = npg_text_columns();
	bool is_first = true; /* word of its line */

	while (*text != '\0') {
		size_t bytes = strcspn(text, " ");
		size_t width = npg_text_width(text) - npg_text_width(text + bytes);

		if (!is_first && at + 1 + width > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!is_first) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", (int)bytes, text);
		at += width;
		is_first = false;
		text += bytes;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void npg_text_wrap(FILE *out, size_t at, size_t indent, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) >= 0)
		print_words(out, text, at, indent);
	free(text);
	va_end(args);
}
