/*
 * Option tables: parsing and help. getopt_long is not used because help, parsing and the
 * documentation test must come from one table, and because its messages name no reason.
 */
#include <ctype.h>
#include <errno.h>

#include "lib/command.h"
#include "lib/log.h"

static const struct npg_option common_options[] = {
	{ "help", 'h', NPG_OPTION_FLAG, offsetof(struct npg_common, help), NULL,
	  "Print this help and exit.", NULL },
	{ "json", 0, NPG_OPTION_FLAG, offsetof(struct npg_common, json), NULL,
	  "Print the result as JSON on standard output.", NULL },
	{ "verbose", 'v', NPG_OPTION_FLAG, offsetof(struct npg_common, verbose), NULL,
	  "Say more on standard error.", NULL },
	{ "quiet", 'q', NPG_OPTION_FLAG, offsetof(struct npg_common, quiet), NULL,
	  "Print errors only.", NULL },
};

const struct npg_option *npg_common_options(size_t *nr)
{
	*nr = NPG_ARRAY_SIZE(common_options);
	return common_options;
}

static const struct npg_option *find_option(const struct npg_command *command, const char *name,
					    size_t length, char letter)
{
	const struct npg_option *tables[] = { common_options, command->options };
	size_t sizes[] = { NPG_ARRAY_SIZE(common_options), command->nr_options };

	for (size_t t = 0; t < 2; t++) {
		for (size_t i = 0; i < sizes[t]; i++) {
			const struct npg_option *o = &tables[t][i];

			if (name != NULL && strlen(o->name) == length &&
			    memcmp(o->name, name, length) == 0)
				return o;
			if (name == NULL && o->letter != 0 && o->letter == letter)
				return o;
		}
	}
	return NULL;
}

int npg_parse_bytes(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	uint64_t value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno == ERANGE)
		return -ERANGE;
	if (*end != '\0') {
		suffix = strchr(suffixes, toupper((unsigned char)*end));
		if (suffix == NULL)
			return -EINVAL;
		for (const char *s = suffixes; s <= suffix; s++)
			if (__builtin_mul_overflow(value, (uint64_t)1024, &value))
				return -ERANGE;
		end++;
		if (end[0] == 'i' && end[1] == 'B')
			end += 2;
		if (*end != '\0')
			return -EINVAL;
	}
	*bytes = value;
	return 0;
}

static int parse_uint(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno != 0 || *end != '\0' ? -EINVAL : 0;
}

static int parse_real(const char *text, double *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return -EINVAL;
	errno = 0;
	*value = strtod(text, &end);
	return errno != 0 || end == text || *end != '\0' ? -EINVAL : 0;
}

static int parse_choice(const struct npg_option *o, const char *text, int *value,
			struct npg_error *err)
{
	char list[256] = "";
	size_t used = 0;

	for (int i = 0; o->choices[i] != NULL; i++) {
		if (strcmp(o->choices[i], text) == 0) {
			*value = i;
			return 0;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 o->choices[i]);
		if (used >= sizeof(list))
			used = sizeof(list) - 1;
	}
	return npg_error_set(err, -EINVAL, "--%s: '%s' is none of: %s", o->name, text, list);
}

static int store_value(const struct npg_option *o, const char *text, void *options,
		       struct npg_error *err)
{
	char *field = (char *)options + o->offset;
	const char *want = NULL;
	uint64_t number;
	double real;
	int choice, ret = 0;

	switch (o->type) {
	case NPG_OPTION_FLAG:
		memcpy(field, &(bool){ true }, sizeof(bool));
		break;
	case NPG_OPTION_STRING:
		memcpy(field, &text, sizeof(text));
		break;
	case NPG_OPTION_UINT:
		ret = parse_uint(text, &number);
		want = "a whole number";
		if (ret == 0)
			memcpy(field, &number, sizeof(number));
		break;
	case NPG_OPTION_BYTES:
		ret = npg_parse_bytes(text, &number);
		want = "a size such as 65536, 64K or 2M";
		if (ret == 0)
			memcpy(field, &number, sizeof(number));
		break;
	case NPG_OPTION_REAL:
		ret = parse_real(text, &real);
		want = "a number such as 1 or 0.5";
		if (ret == 0)
			memcpy(field, &real, sizeof(real));
		break;
	case NPG_OPTION_CHOICE:
		ret = parse_choice(o, text, &choice, err);
		if (ret == 0)
			memcpy(field, &choice, sizeof(choice));
		return ret;
	}
	if (ret < 0)
		return npg_error_set(err, -EINVAL, "--%s: '%s' is not %s", o->name, text, want);
	return 0;
}

static int parse_long(const struct npg_command *command, int argc, char **argv, int *i,
		      void *options, struct npg_error *err)
{
	const char *name = argv[*i] + 2;
	const char *value = strchr(name, '=');
	size_t length = value != NULL ? (size_t)(value - name) : strlen(name);
	const struct npg_option *o = find_option(command, name, length, 0);

	if (o == NULL)
		return npg_error_set(err, -EINVAL, "unknown option '--%.*s'", (int)length, name);
	if (o->type == NPG_OPTION_FLAG && value != NULL)
		return npg_error_set(err, -EINVAL, "--%s takes no value", o->name);
	if (value != NULL)
		value++;
	else if (o->type != NPG_OPTION_FLAG) {
		if (*i + 1 >= argc)
			return npg_error_set(err, -EINVAL, "--%s needs a value: %s", o->name,
					     o->arg);
		value = argv[++*i];
	}
	return store_value(o, value, options, err);
}

static int parse_letters(const struct npg_command *command, int argc, char **argv, int *i,
			 void *options, struct npg_error *err)
{
	for (const char *p = argv[*i] + 1; *p != '\0'; p++) {
		const struct npg_option *o = find_option(command, NULL, 0, *p);
		const char *value = NULL;
		int ret;

		if (o == NULL)
			return npg_error_set(err, -EINVAL, "unknown option '-%c'", *p);
		if (o->type != NPG_OPTION_FLAG) {
			if (p[1] != '\0')
				value = p + 1;
			else if (*i + 1 < argc)
				value = argv[++*i];
			else
				return npg_error_set(err, -EINVAL, "-%c needs a value: %s", *p,
						     o->arg);
		}
		ret = store_value(o, value, options, err);
		if (ret < 0 || value != NULL)
			return ret;
	}
	return 0;
}

int npg_command_parse(const struct npg_command *command, int argc, char **argv, void *options,
		      int *i_operand, struct npg_error *err)
{
	int i, ret;

	memset(options, 0, command->options_size);
	if (command->defaults != NULL)
		command->defaults(options);
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			break;
		if (argv[i][1] == '-')
			ret = parse_long(command, argc, argv, &i, options, err);
		else
			ret = parse_letters(command, argc, argv, &i, options, err);
		if (ret < 0)
			return ret;
	}
	*i_operand = i;
	return 0;
}

static void print_option(const struct npg_option *o, FILE *out)
{
	char left[80];
	const char *text = o->help;

	snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
		 o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name, o->arg ? " " : "",
		 o->arg ? o->arg : "");
	fprintf(out, "  %-26s", left);
	if (strlen(left) > 25)
		fprintf(out, "\n  %-26s", "");
	while (strlen(text) > 70) { /* wrap at the last blank that fits */
		int cut = 70;

		while (cut > 0 && text[cut] != ' ')
			cut--;
		if (cut == 0)
			break;
		fprintf(out, "%.*s\n  %-26s", cut, text, "");
		text += cut + 1;
	}
	fprintf(out, "%s\n", text);
}

static void print_usage(const struct npg_command *command, FILE *out)
{
	const char *operands = command->operands;

	fprintf(out, "usage: numapgo %s [options]%s%s\n", command->name, operands[0] ? " " : "",
		operands);
}

void npg_command_help(const struct npg_command *command, FILE *out)
{
	print_usage(command, out);
	fprintf(out, "\n%s\n\noptions:\n", command->description);
	for (size_t i = 0; i < command->nr_options; i++)
		print_option(&command->options[i], out);
	for (size_t i = 0; i < NPG_ARRAY_SIZE(common_options); i++)
		print_option(&common_options[i], out);
	if (command->examples != NULL)
		fprintf(out, "\nexamples:\n%s\n", command->examples);
}

static void apply_common(const struct npg_common *common)
{
	if (common->quiet)
		npg_log_set_level(NPG_LOG_QUIET);
	else if (common->verbose)
		npg_log_set_level(NPG_LOG_VERBOSE);
}

static int flush_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno != EPIPE) /* a pager that was left early is no fault */
		npg_error_print("standard output: cannot write: %s; is the disk full?",
				strerror(errno));
	return status == NPG_EXIT_OK && errno != EPIPE ? NPG_EXIT_FAILED : status;
}

int npg_command_main(const struct npg_command *command, int argc, char **argv)
{
	struct npg_error err = { "" };
	struct npg_common common;
	int i_operand = 0, status;
	void *options = calloc(1, command->options_size);

	if (options == NULL) {
		npg_error_print("%s: out of memory", command->name);
		return command->is_launcher ? NPG_EXIT_LAUNCH_FAILED : NPG_EXIT_FAILED;
	}
	if (npg_command_parse(command, argc, argv, options, &i_operand, &err) < 0) {
		npg_error_print("%s: %s", command->name, err.text);
		print_usage(command, stderr);
		fprintf(stderr, "try: numapgo %s --help\n", command->name);
		free(options);
		return command->is_launcher ? NPG_EXIT_LAUNCH_FAILED : NPG_EXIT_USAGE;
	}
	memcpy(&common, options, sizeof(common));
	if (common.help) {
		npg_command_help(command, stdout);
		status = NPG_EXIT_OK;
	} else {
		apply_common(&common);
		status = command->run(command, options, argc - i_operand, argv + i_operand);
	}
	free(options);
	return flush_stdout(status);
}
