/* Lines of /proc/PID/maps: "start-end perm offset major:minor inode   name". */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "profiler/maps.h"

struct cursor {
	const char *at;
	const char *end;
};

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool read_number(struct cursor *c, int base, char after, uint64_t *value)
{
	const char *begin = c->at;

	*value = 0;
	for (; c->at < c->end; c->at++) {
		int digit = digit_of(*c->at);

		if (digit < 0 || digit >= base)
			break;
		if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
		    __builtin_add_overflow(*value, (uint64_t)digit, value))
			return false;
	}
	if (c->at == begin)
		return false;
	if (after == '\0')
		return true;
	if (c->at == c->end || *c->at != after)
		return false;
	c->at++;
	return true;
}

static bool read_permissions(struct cursor *c, struct npg_maps_entry *entry)
{
	const char *p = c->at;

	if (c->end - c->at < 5 || p[4] != ' ')
		return false;
	entry->protection =
	    (uint32_t)((p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		       (p[2] == 'x' ? PROT_EXEC : 0));
	entry->is_shared = p[3] == 's';
	c->at += 5;
	return true;
}

static bool read_line(struct cursor c, struct npg_maps_entry *entry)
{
	uint64_t major, minor;

	if (!read_number(&c, 16, '-', &entry->start) || !read_number(&c, 16, ' ', &entry->end) ||
	    entry->end <= entry->start || !read_permissions(&c, entry) ||
	    !read_number(&c, 16, ' ', &entry->file_offset) || !read_number(&c, 16, ':', &major) ||
	    !read_number(&c, 16, ' ', &minor) || !read_number(&c, 10, '\0', &entry->inode))
		return false;
	entry->device = major << 32 | (minor & UINT32_MAX);
	while (c.at < c.end && *c.at == ' ')
		c.at++;
	entry->name = c.at;
	entry->name_length = (size_t)(c.end - c.at);
	return true;
}

int npg_maps_next(const char *text, size_t length, size_t *position, struct npg_maps_entry *entry)
{
	struct cursor line;
	const char *newline;

	if (*position >= length)
		return 0;
	line.at = text + *position;
	newline = memchr(line.at, '\n', length - *position);
	line.end = newline != NULL ? newline : text + length;
	*position = (size_t)(line.end - text) + (newline != NULL ? 1 : 0);
	return read_line(line, entry) ? 1 : -EBADMSG;
}
