/* Where the machine files are: datasets/machines of the source tree, or the installed copy. */
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "lib/topology_internal.h"

static const char *const places[] = {
	"../share/numapgo/machines",  /* PREFIX/bin/numapgo */
	"../datasets/machines",       /* build/numapgo */
	"../../datasets/machines",    /* build/clang/numapgo, build/unit/test_X */
	"../../../datasets/machines", /* build/clang/unit/test_X */
};

/* The directory of the running program. */
static int program_directory(char *directory, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", directory, size - 1);
	char *slash;

	if (length < 0)
		return -errno;
	directory[length] = '\0';
	slash = strrchr(directory, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static int machines_directory(char *directory, size_t size)
{
	char base[2048];
	int ret = program_directory(base, sizeof(base));

	for (size_t i = 0; ret == 0 && i < NPG_ARRAY_SIZE(places); i++) {
		int length = snprintf(directory, size, "%s/%s", base, places[i]);

		if (length > 0 && (size_t)length < size && access(directory, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

int npg_machine_find(const char *name, char *path, size_t size)
{
	char directory[3072];
	int length;

	if (name[0] == '\0' || name[0] == '.' || strpbrk(name, "/: ") != NULL ||
	    machines_directory(directory, sizeof(directory)) < 0)
		return -ENOENT;
	length = snprintf(path, size, "%s/%s.json", directory, name);
	if (length < 0 || (size_t)length >= size || access(path, F_OK) < 0)
		return -ENOENT;
	return 0;
}

static int is_machine(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

void npg_machine_names(char *names, size_t size)
{
	char directory[3072];
	struct dirent **entries = NULL;
	size_t used = 0;
	int nr = -1;

	snprintf(names, size, "(no machine files are installed)");
	if (machines_directory(directory, sizeof(directory)) == 0)
		nr = scandir(directory, &entries, is_machine, versionsort);
	for (int i = 0; i < nr; i++) {
		int length = (int)strlen(entries[i]->d_name) - 5;
		int more = snprintf(names + used, size - used, "%s%.*s", i > 0 ? ", " : "", length,
				    entries[i]->d_name);

		if (more > 0 && (size_t)more < size - used)
			used += (size_t)more;
		else
			names[used] = '\0';
		free(entries[i]);
	}
	free(entries);
}
