/*
 * Verbs of the command line: one constant per verb, one table of options, help made from it.
 *
 * A verb is a struct npg_command, exported by its cmd_VERB.c and listed once in cli/main.c. Its
 * options are rows of struct npg_option that name a field of the verb's own options struct by
 * offset; the struct's first member is a struct npg_common. Parsing stops at the first argument
 * that is not an option, or after "--".
 */
#ifndef NPG_LIB_COMMAND_H
#define NPG_LIB_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/compiler.h"
#include "lib/error.h"

/* Exit statuses (design: launcher verbs otherwise end with the status of the program they ran). */
enum npg_exit {
	NPG_EXIT_OK = 0,
	NPG_EXIT_FAILED = 1,
	NPG_EXIT_USAGE = 2,
	NPG_EXIT_LAUNCH_FAILED = 125, /* numapgo failed before the program ran */
	NPG_EXIT_CANNOT_RUN = 126,
	NPG_EXIT_NOT_FOUND = 127,
};

/* Options that every verb has; the first member of each verb's options struct. */
struct npg_common {
	bool help;
	bool json;
	bool verbose;
	bool quiet;
};

enum npg_option_type {
	NPG_OPTION_FLAG,   /* bool */
	NPG_OPTION_STRING, /* const char *, points into argv */
	NPG_OPTION_UINT,   /* uint64_t */
	NPG_OPTION_BYTES,  /* uint64_t; accepts suffixes K, M, G, T (powers of 1024) */
	NPG_OPTION_REAL,   /* double, not negative */
	NPG_OPTION_CHOICE, /* int: index into .choices */
};

struct npg_option {
	const char *name; /* without the leading "--" */
	char letter;      /* 0: none */
	enum npg_option_type type;
	size_t offset;              /* of the field in the options struct */
	const char *arg;            /* name of the argument in the help; NULL for a flag */
	const char *help;           /* one sentence; defaults are stated here */
	const char *const *choices; /* NULL-terminated, for NPG_OPTION_CHOICE */
};

struct npg_command {
	const char *name;
	const char *summary;              /* one line, for the table of verbs */
	const char *operands;             /* as in the usage line: "[--] CMD [ARGS...]" */
	const char *description;          /* paragraphs; shown by --help, printed as they are */
	const char *examples;             /* lines "  numapgo ...", shown by --help */
	const struct npg_option *options; /* the verb's own, without the common ones */
	size_t nr_options;
	size_t options_size;             /* of the options struct */
	void (*defaults)(void *options); /* may be NULL: all zero */
	int (*run)(const struct npg_command *command, void *options, int argc, char **argv);
	bool is_launcher; /* bad usage ends with 125, not 2, as env(1) does */
};

/**
 * npg_command_main() - parse @argv for @command and run it.
 * @argc, @argv: start at the verb's name.
 *
 * Handles --help (stdout, status 0), -v and -q (lib/log.h), usage errors (stderr: the error, the
 * usage line and where to find help), and checks after the run that stdout was really written.
 *
 * Return: the exit status.
 * MT-Unsafe.
 */
int npg_command_main(const struct npg_command *command, int argc, char **argv);

/**
 * npg_command_parse() - parse options into @options.
 * @options: @command->options_size bytes, caller's storage; cleared, then defaults applied.
 * @i_operand: index of the first operand in @argv.
 *
 * Long options may be written "--name=value" or "--name value"; letters may be joined ("-vq").
 *
 * Return: 0; -EINVAL with @err set.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_command_parse(const struct npg_command *command, int argc, char **argv,
				     void *options, int *i_operand, struct npg_error *err);

/**
 * npg_command_help() - print what --help prints. MT-Safe. Not AS-Safe.
 */
void npg_command_help(const struct npg_command *command, FILE *out);

/**
 * npg_parse_bytes() - "4096", "64K", "2M", "1G", "1T" to a number of bytes.
 *
 * Return: 0; -EINVAL (not a number), -ERANGE (does not fit).
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_parse_bytes(const char *text, uint64_t *bytes);

/**
 * npg_common_options() - the options that every verb has, for help and documentation tests.
 * @nr: number of rows.
 * MT-Safe.
 */
const struct npg_option *npg_common_options(size_t *nr);

#endif
