/* Option tables: parsing, help, sizes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "lib/command.h"

struct options {
	struct npg_common common;
	bool flag;
	const char *text;
	uint64_t number;
	uint64_t bytes;
	double real;
	int choice;
};

static const char *const colors[] = { "red", "green", NULL };

static const struct npg_option table[] = {
	{ "flag", 'f', NPG_OPTION_FLAG, offsetof(struct options, flag), NULL, "A flag.", NULL },
	{ "text", 't', NPG_OPTION_STRING, offsetof(struct options, text), "T", "A text.", NULL },
	{ "number", 'n', NPG_OPTION_UINT, offsetof(struct options, number), "N", "A number.",
	  NULL },
	{ "bytes", 0, NPG_OPTION_BYTES, offsetof(struct options, bytes), "B", "A size.", NULL },
	{ "real", 0, NPG_OPTION_REAL, offsetof(struct options, real), "R", "A real.", NULL },
	{ "color", 0, NPG_OPTION_CHOICE, offsetof(struct options, choice), "C", "A choice.",
	  colors },
};

static void set_defaults(void *options)
{
	struct options *o = options;

	o->number = 7;
}

static const struct npg_command command = {
	.name = "try",
	.summary = "a verb for tests",
	.operands = "[--] CMD",
	.description = "Describes itself.",
	.examples = "  numapgo try --flag\n",
	.options = table,
	.nr_options = NPG_ARRAY_SIZE(table),
	.options_size = sizeof(struct options),
	.defaults = set_defaults,
};

static struct npg_error err;

/* @line is cut at blanks. Return: as npg_command_parse(). */
static int parse(const char *line, struct options *o, int *i_operand)
{
	static char copy[256];
	char *argv[32], *rest = copy;
	int argc = 0;

	snprintf(copy, sizeof(copy), "try %s", line);
	for (char *word; (word = strsep(&rest, " ")) != NULL;)
		if (word[0] != '\0')
			argv[argc++] = word;
	argv[argc] = NULL;
	err.text[0] = '\0';
	return npg_command_parse(&command, argc, argv, o, i_operand, &err);
}

static void reads_every_type(void **state)
{
	struct options o;
	int i;

	(void)state;
	assert_int_equal(parse("--flag --text=a=b --number 42 --bytes 2M --real .5 --color green "
			       "cmd --flag",
			       &o, &i),
			 0);
	assert_true(o.flag);
	assert_string_equal(o.text, "a=b");
	assert_int_equal(o.number, 42);
	assert_int_equal(o.bytes, 2 << 20);
	assert_true(o.real > 0.49 && o.real < 0.51);
	assert_int_equal(o.choice, 1);
	assert_int_equal(i, 10 + 1); /* parsing ends at the first operand */
}

static void joins_letters(void **state)
{
	struct options o;
	int i;

	(void)state;
	assert_int_equal(parse("-fvq -n5 -t x -- -f", &o, &i), 0);
	assert_true(o.flag && o.common.verbose && o.common.quiet);
	assert_int_equal(o.number, 5);
	assert_string_equal(o.text, "x");
	assert_int_equal(i, 6);
}

static void applies_defaults(void **state)
{
	struct options o;
	int i;

	(void)state;
	memset(&o, 0xff, sizeof(o));
	assert_int_equal(parse("-", &o, &i), 0); /* "-" is an operand */
	assert_int_equal(o.number, 7);
	assert_false(o.flag);
	assert_null(o.text);
	assert_int_equal(i, 1);
}

static void refuses_with_a_reason(void **state)
{
	static const struct {
		const char *line;
		const char *says;
	} cases[] = {
		{ "--nope", "unknown option '--nope'" },
		{ "--fla", "unknown option '--fla'" },
		{ "-x", "unknown option '-x'" },
		{ "--flag=1", "takes no value" },
		{ "--text", "needs a value: T" },
		{ "-n", "needs a value: N" },
		{ "-n -1", "'-1' is not a whole number" },
		{ "--number=1x", "not a whole number" },
		{ "--number=99999999999999999999", "not a whole number" },
		{ "--bytes=1Q", "not a size" },
		{ "--bytes=99999999T", "not a size" },
		{ "--real=-1", "not a number" },
		{ "--real=nan", "not a number" },
		{ "--color=blue", "none of: red, green" },
	};
	struct options o;
	int i;

	(void)state;
	for (size_t c = 0; c < NPG_ARRAY_SIZE(cases); c++) {
		assert_int_equal(parse(cases[c].line, &o, &i), -EINVAL);
		if (strstr(err.text, cases[c].says) == NULL)
			fail_msg("%s: %s", cases[c].line, err.text);
	}
}

static void reads_sizes(void **state)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0, 0 },
		{ "4096", 0, 4096 },
		{ "64K", 0, 65536 },
		{ "1g", 0, 1 << 30 },
		{ "2MiB", 0, 2 << 20 },
		{ "16777215T", 0, UINT64_C(16777215) << 40 },
		{ "16777216T", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "K", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "1KB", -EINVAL, 0 },
		{ "1 K", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(cases); i++) {
		uint64_t bytes = 0;

		assert_int_equal(npg_parse_bytes(cases[i].text, &bytes), cases[i].ret);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void help_names_every_option(void **state)
{
	char *text = NULL;
	size_t size, nr_common;
	FILE *out = open_memstream(&text, &size);
	const struct npg_option *common = npg_common_options(&nr_common);

	(void)state;
	assert_non_null(out);
	npg_command_help(&command, out);
	fclose(out);
	assert_non_null(strstr(text, "usage: numapgo try"));
	assert_non_null(strstr(text, "Describes itself."));
	assert_non_null(strstr(text, "numapgo try --flag"));
	for (size_t i = 0; i < NPG_ARRAY_SIZE(table); i++)
		assert_non_null(strstr(text, table[i].help));
	for (size_t i = 0; i < nr_common; i++)
		assert_non_null(strstr(text, common[i].help));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_type), cmocka_unit_test(joins_letters),
		cmocka_unit_test(applies_defaults), cmocka_unit_test(refuses_with_a_reason),
		cmocka_unit_test(reads_sizes),      cmocka_unit_test(help_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
