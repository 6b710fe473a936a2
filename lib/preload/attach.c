/* Finding the launcher's memory by raw system calls; see the header. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/preload/attach.h"
#include "lib/preload/rules.h"
#include "schemas/wire.h"

/* Up to ten digits: more than a pid or descriptor has. Return: behind them, NULL without one. */
static const char *parse_number(const char *text, unsigned long *number)
{
	unsigned long value = 0;
	int nr_digits = 0;

	for (; *text >= '0' && *text <= '9' && nr_digits < 10; text++, nr_digits++)
		value = value * 10 + (unsigned long)(*text - '0');
	*number = value;
	return nr_digits > 0 ? text : NULL;
}

bool npg_attach_parse(const char *text, struct npg_attach_place *place)
{
	struct npg_attach_place found;

	text = parse_number(text, &found.pid);
	if (text == NULL || *text != ':' || found.pid == 0)
		return false;
	text = parse_number(text + 1, &found.fd);
	if (text == NULL || *text != '\0')
		return false;
	*place = found;
	return true;
}

bool npg_attach_has_environment(void)
{
	return environ != NULL;
}

/* Is @entry "NAME=..."? Return: the value, or NULL. */
static char *value_of(char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1
									 : NULL;
}

static char **find_variable(const char *name)
{
	if (environ != NULL)
		for (char **entry = environ; *entry != NULL; entry++)
			if (value_of(*entry, name) != NULL)
				return entry;
	return NULL;
}

const char *npg_attach_getenv(const char *name)
{
	char **entry = find_variable(name);

	return entry == NULL ? NULL : value_of(*entry, name);
}

static char *append_number(char *end, unsigned long number)
{
	char digits[24];
	int nr_digits = 0;

	do {
		digits[nr_digits++] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	while (nr_digits > 0)
		*end++ = digits[--nr_digits];
	return end;
}

static int open_place(const struct npg_attach_place *place, bool is_writable)
{
	char path[64] = "/proc/";
	char *end = append_number(path + strlen(path), place->pid);

	memcpy(end, "/fd/", 4);
	end = append_number(end + 4, place->fd);
	*end = '\0';
	return (int)syscall(SYS_openat, AT_FDCWD, path,
			    (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK, 0);
}

static void *map_file(int fd, bool is_writable, size_t minimum_bytes, size_t *size_bytes)
{
	struct stat st;
	void *memory;
	uint32_t head[2];

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(head) ||
	    (size_t)st.st_size < minimum_bytes)
		return NULL;
	memory = (void *)syscall(SYS_mmap, NULL, (size_t)st.st_size,
				 PROT_READ | (is_writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0L);
	if (memory == MAP_FAILED)
		return NULL;
	memcpy(head, memory, sizeof(head));
	if (head[0] != NPG_WIRE_MAGIC || head[1] != NPG_WIRE_VERSION) {
		syscall(SYS_munmap, memory, (size_t)st.st_size);
		return NULL;
	}
	*size_bytes = (size_t)st.st_size;
	return memory;
}

void *npg_attach_map(const char *name, bool is_writable, size_t minimum_bytes, size_t *size_bytes)
{
	const char *text = npg_attach_getenv(name);
	struct npg_attach_place place;
	int fd, saved_errno = errno;
	void *memory = NULL;

	if (text != NULL && npg_attach_parse(text, &place)) {
		fd = open_place(&place, is_writable);
		if (fd >= 0) {
			memory = map_file(fd, is_writable, minimum_bytes, size_bytes);
			syscall(SYS_close, fd);
		}
	}
	errno = saved_errno;
	return memory;
}

static bool is_separator(char c)
{
	return c == ':' || c == ' ';
}

bool npg_attach_remove_entry(char *list, const char *entry)
{
	size_t length = strlen(entry);
	char *from = list, *to = list;

	while (*from != '\0') {
		char *start = from;

		while (*from != '\0' && !is_separator(*from))
			from++;
		if ((size_t)(from - start) != length || memcmp(start, entry, length) != 0) {
			memmove(to, start, (size_t)(from - start));
			to += from - start;
			if (*from != '\0')
				*to++ = *from;
		}
		if (*from != '\0')
			from++;
	}
	while (to > list && is_separator(to[-1]))
		to--;
	*to = '\0';
	return to > list;
}

static void remove_variable(char **entry)
{
	do {
		entry[0] = entry[1];
	} while (*entry++ != NULL);
}

/* Name under which the loader found this object: what stands in LD_PRELOAD. */
static const char *own_name(void)
{
	static char anchor;
	struct dl_find_object own;

	return _dl_find_object(&anchor, &own) == 0 ? own.dlfo_link_map->l_name : "";
}

void npg_attach_leave_environment(const char *name)
{
	char **preload = find_variable("LD_PRELOAD"), **variable;

	if (preload != NULL &&
	    !npg_attach_remove_entry(value_of(*preload, "LD_PRELOAD"), own_name()))
		remove_variable(preload);
	variable = find_variable(name);
	if (variable != NULL)
		remove_variable(variable);
}
