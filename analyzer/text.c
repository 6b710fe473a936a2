/* Text for people; see the header. */
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyzer/text.h"
#include "lib/compiler.h"

const char *npg_text_bytes(uint64_t bytes, char text[NPG_TEXT_SIZE])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024.0 && unit + 1 < NPG_ARRAY_SIZE(units)) {
		value /= 1024.0;
		unit++;
	}
	snprintf(text, NPG_TEXT_SIZE, "%.*f %s", unit > 0 && value < 10.0 ? 1 : 0, value,
		 units[unit]);
	return text;
}

const char *npg_text_ns(double ns, char text[NPG_TEXT_SIZE])
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1.0, "ns" } };
	size_t u = 0;

	while (u + 1 < NPG_ARRAY_SIZE(units) && ns < units[u].ns)
		u++;
	ns /= units[u].ns;
	snprintf(text, NPG_TEXT_SIZE, "%.*f %s",
		 ns < 10.0    ? 2
		 : ns < 100.0 ? 1
			      : 0,
		 ns, units[u].name);
	return text;
}

const char *npg_text_percent(double share, char text[NPG_TEXT_SIZE])
{
	snprintf(text, NPG_TEXT_SIZE, "%.1f %%", 100.0 * share);
	return text;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t npg_text_width(const char *text)
{
	size_t nr = 0;

	for (; *text != '\0'; text++)
		nr += !is_continuation(*text);
	return nr;
}

/* Appends up to @nr characters of @from, as many as fit. Returns the new length. */
static size_t append(char *text, size_t size, size_t used, const char *from, size_t nr)
{
	for (size_t i = 0; from[0] != '\0'; from++) {
		unsigned char c = (unsigned char)from[0];

		if (!is_continuation(from[0]) && i++ == nr)
			break;
		if (used + 1 >= size)
			break;
		text[used++] = c < 0x20 || c == 0x7f ? '?' : from[0];
	}
	text[used] = '\0';
	return used;
}

const char *npg_text_elide(const char *name, size_t width, char *text, size_t size)
{
	size_t nr = npg_text_width(name), head, tail, used, skip;
	const char *rest = name;

	if (nr <= width) {
		append(text, size, 0, name, nr);
		return text;
	}
	head = width > 2 ? (width - 2) / 2 : 0;
	tail = width > 2 ? width - 2 - head : 0;
	skip = nr - tail;
	while (skip > 0 || is_continuation(*rest)) {
		skip -= is_continuation(*rest) ? 0 : 1;
		rest++;
	}
	used = append(text, size, 0, name, head);
	used = append(text, size, used, "..", 2);
	append(text, size, used, rest, tail);
	return text;
}

size_t npg_text_columns(void)
{
	const char *variable = getenv("COLUMNS");
	unsigned long columns = variable != NULL ? strtoul(variable, NULL, 10) : 0;
	struct winsize window;

	if (columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
		columns = window.ws_col;
	if (columns == 0)
		columns = 80;
	return columns < 40 ? 40 : columns > 500 ? 500 : columns;
}

const char *npg_text_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}
