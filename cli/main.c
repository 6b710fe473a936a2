/* The command table, and nothing else that thinks. A new verb is one row here. */
#include <string.h>

#include "cli/verbs.h"
#include "lib/command.h"
#include "lib/log.h"

static const struct npg_command *const verbs[] = {
#define NPG_VERB(name) &npg_command_##name,
	NPG_VERBS
#undef NPG_VERB
};

static void print_help(FILE *out)
{
	fprintf(out,
		"usage: numapgo VERB [options] [--] [ARGS...]\n"
		"\n"
		"Profile-guided placement for NUMA machines: record where a program's memory is\n"
		"used from, decide where pages, page tables and threads belong, and start later\n"
		"runs that way.\n"
		"\n"
		"verbs:\n");
	for (size_t i = 0; i < NPG_ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-9s %s\n", verbs[i]->name, verbs[i]->summary);
	fprintf(out, "\n"
		     "Begin with:  numapgo record -- ./app args\n"
		     "Each verb:   numapgo VERB --help\n");
}

static int print_to_stdout(void (*print)(FILE *))
{
	print(stdout);
	return fflush(stdout) == 0 ? NPG_EXIT_OK : NPG_EXIT_FAILED;
}

static void print_version(FILE *out)
{
	fprintf(out, "numapgo %s\n", NPG_VERSION);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return NPG_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return print_to_stdout(print_help);
	if (strcmp(argv[1], "--version") == 0)
		return print_to_stdout(print_version);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[1], verbs[i]->name) == 0)
			return npg_command_main(verbs[i], argc - 1, argv + 1);
	npg_error_print("unknown verb '%s'; 'numapgo --help' lists the verbs", argv[1]);
	return NPG_EXIT_USAGE;
}
