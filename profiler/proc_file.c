/* Small files of /proc and /sys, see the header. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "profiler/proc_file.h"

size_t npg_proc_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	text[0] = '\0';
	if (fd < 0)
		return 0;
	got = read(fd, text, size - 1);
	close(fd);
	if (got < 0)
		got = 0;
	text[got] = '\0';
	return (size_t)got;
}

int64_t npg_proc_read_i64(const char *path, int64_t missing)
{
	char text[64], *end;
	long long value;

	if (npg_proc_read(path, text, sizeof(text)) == 0)
		return missing;
	value = strtoll(text, &end, 10);
	return end == text ? missing : value;
}

int npg_proc_read_all(const char *path, char **text, size_t *length)
{
	size_t used = 0, size = 16384;
	char *buffer = malloc(size);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : 1;

	while (buffer != NULL && got > 0) {
		got = read(fd, buffer + used, size - used - 1);
		if (got > 0)
			used += (size_t)got;
		if (used + 1 == size) {
			char *bigger = realloc(buffer, size * 2);

			if (bigger == NULL)
				free(buffer);
			buffer = bigger;
			size *= 2;
		}
	}
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	if (buffer == NULL)
		return -ENOMEM;
	if (got < 0) {
		free(buffer);
		return -errno;
	}
	buffer[used] = '\0';
	*text = buffer;
	*length = used;
	return 0;
}
