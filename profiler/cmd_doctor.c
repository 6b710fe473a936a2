/* numapgo doctor: what is possible here, and what would make more possible. */
#include <unistd.h>

#include <jansson.h>

#include "lib/command.h"
#include "lib/log.h"
#include "profiler/doctor.h"

struct doctor_options {
	struct npg_common common;
};

static const char *const mark_names[] = { "ok", "warn", "no" };

static void print_text(const struct npg_doctor_check *checks, size_t nr, bool can_record)
{
	static const char *const colors[] = { "\033[32m", "\033[33m", "\033[31m" };
	bool use_color = npg_use_color(STDOUT_FILENO);

	for (size_t i = 0; i < nr; i++) {
		const struct npg_doctor_check *c = &checks[i];

		printf("%s%-4s%s  %-20s %s\n", use_color ? colors[c->mark] : "",
		       mark_names[c->mark], use_color ? "\033[0m" : "", c->name, c->text);
		if (c->fix[0] != '\0')
			printf("%27s%s %s\n", "",
			       c->mark == NPG_DOCTOR_OK ? "use:" : "change:", c->fix);
	}
	if (can_record)
		printf("\nnext: numapgo record -- ./app\n");
	else
		printf(
		    "\nNothing can be recorded here: no source works. The lines above say why.\n");
}

static int print_json(const struct npg_doctor_check *checks, size_t nr, bool can_record)
{
	json_t *list = json_array();
	json_t *top;
	int ret = -1;

	for (size_t i = 0; i < nr; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s}", "name", checks[i].name,
						"mark", mark_names[checks[i].mark], "text",
						checks[i].text, "change", checks[i].fix));
	top = json_pack("{s:b, s:o}", "can_record", can_record, "checks", list);
	if (top != NULL)
		ret = json_dumpf(top, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(top);
	return ret;
}

static int doctor_run(const struct npg_command *command, void *options, int argc, char **argv)
{
	const struct doctor_options *o = options;
	struct npg_doctor_check checks[NPG_DOCTOR_MAX_CHECKS];
	struct npg_doctor_facts facts;
	bool can_record;
	size_t nr;

	if (argc > 0) {
		npg_error_print("%s: unexpected '%s'", command->name, argv[0]);
		return NPG_EXIT_USAGE;
	}
	npg_doctor_probe(&facts);
	nr = npg_doctor_judge(&facts, checks);
	can_record = npg_doctor_can_record(&facts);
	if (!o->common.json)
		print_text(checks, nr, can_record);
	else if (print_json(checks, nr, can_record) < 0)
		npg_error_print("out of memory");
	return can_record ? NPG_EXIT_OK : NPG_EXIT_FAILED;
}

const struct npg_command npg_command_doctor = {
	.name = "doctor",
	.summary = "what this machine, kernel and container allow",
	.operands = "",
	.description =
	    "Tries what recording and replaying need, and prints one line for each: ok, warn\n"
	    "(works with a limit) or no, with the reason and the command that would change it.\n"
	    "\n"
	    "Exit status: 0 if at least one source of samples can be recorded, else 1.",
	.examples = "  numapgo doctor\n"
		    "  numapgo doctor --json\n",
	.options_size = sizeof(struct doctor_options),
	.run = doctor_run,
};
