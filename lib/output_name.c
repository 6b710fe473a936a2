/* File names from patterns, for many processes, hosts and ranks; declared in lib/recording.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/recording.h"

/*
 * The rank as launchers tell it, the most specific first. SLURM_PROCID comes last since it is
 * also set, to 0, in a batch script outside any step.
 */
static const char *const rank_variables[] = {
	"NUMAPGO_RANK",        "OMPI_COMM_WORLD_RANK", "PMIX_RANK",   "PMI_RANK",
	"MV2_COMM_WORLD_RANK", "ALPS_APP_PE",          "PALS_RANKID", "SLURM_PROCID",
};

static const char *const job_variables[] = {
	"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",    "JOB_ID",
	"OAR_JOB_ID",   "PJM_JOBID", "COBALT_JOBID", "FLUX_JOB_ID",
};

struct expansion {
	const char *pattern;
	char *path;
	size_t size;
	size_t used;
	struct npg_error *err;
};

static int put(struct expansion *x, const char *text, size_t length)
{
	if (length >= x->size - x->used)
		return npg_error_set(x->err, -ENAMETOOLONG,
				     "'%s': the file name becomes longer than %zu bytes",
				     x->pattern, x->size - 1);
	memcpy(x->path + x->used, text, length);
	x->used += length;
	x->path[x->used] = '\0';
	return 0;
}

static const char *first_set(const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const char *value = getenv(names[i]);

		if (value != NULL && value[0] != '\0')
			return names[i];
	}
	return NULL;
}

const char *npg_output_rank_variable(void)
{
	return first_set(rank_variables, NPG_ARRAY_SIZE(rank_variables));
}

const char *npg_output_job_variable(void)
{
	return first_set(job_variables, NPG_ARRAY_SIZE(job_variables));
}

static int put_launcher_value(struct expansion *x, const char *variable, const char *what)
{
	if (variable != NULL)
		return put(x, getenv(variable), strlen(getenv(variable)));
	return npg_error_set(x->err, -EINVAL,
			     "'%s': no launcher has set %s; use %%p, or %%q{VAR} with a variable "
			     "of yours",
			     x->pattern, what);
}

static int put_host(struct expansion *x)
{
	char host[256];

	if (gethostname(host, sizeof(host)) < 0)
		return npg_error_set(x->err, -EINVAL, "'%s': %%h: the host has no name",
				     x->pattern);
	host[sizeof(host) - 1] = '\0';
	return put(x, host, strlen(host));
}

/* *at stands on "q"; on success it is moved to the closing brace */
static int put_variable(struct expansion *x, const char **at)
{
	const char *open = *at + 1, *close;
	const char *value;
	char name[128];

	close = open[0] == '{' ? strchr(open, '}') : NULL;
	if (close == NULL || close == open + 1 || (size_t)(close - open) > sizeof(name))
		return npg_error_set(x->err, -EINVAL, "'%s': %%q must be written %%q{VAR}",
				     x->pattern);
	memcpy(name, open + 1, (size_t)(close - open) - 1);
	name[close - open - 1] = '\0';
	value = getenv(name);
	if (value == NULL)
		return npg_error_set(x->err, -EINVAL,
				     "'%s': the environment variable %s is not set", x->pattern,
				     name);
	*at = close;
	return put(x, value, strlen(value));
}

static int put_letter(struct expansion *x, const char **at, const char *program, int pid)
{
	const char *slash = strrchr(program, '/');
	const char *base = slash != NULL && slash[1] != '\0' ? slash + 1 : program;
	char number[16];

	switch (**at) {
	case 'p':
		snprintf(number, sizeof(number), "%d", pid);
		return put(x, number, strlen(number));
	case 'h':
		return put_host(x);
	case 'r':
		return put_launcher_value(x, npg_output_rank_variable(), "a rank (%r)");
	case 'j':
		return put_launcher_value(x, npg_output_job_variable(), "a job (%j)");
	case 'e':
		return put(x, base, strlen(base));
	case 'q':
		return put_variable(x, at);
	case '%':
		return put(x, "%", 1);
	default:
		return npg_error_set(x->err, -EINVAL,
				     "'%s': unknown letter after %% (known: %%p %%h %%r %%j %%e "
				     "%%q{VAR} %%%%)",
				     x->pattern);
	}
}

int npg_output_expand(const char *pattern, const char *program, int pid, char *path, size_t size,
		      struct npg_error *err)
{
	struct expansion x = { pattern, path, size, 0, err };
	int ret = 0;

	for (const char *at = pattern; *at != '\0' && ret == 0; at++) {
		if (*at != '%') {
			ret = put(&x, at, 1);
			continue;
		}
		at++;
		if (*at == '\0')
			return npg_error_set(err, -EINVAL, "'%s' ends in a single %%; write %%%%",
					     pattern);
		ret = put_letter(&x, &at, program, pid);
	}
	if (ret == 0 && x.used == 0)
		return npg_error_set(err, -EINVAL, "the name of the output file is empty");
	return ret;
}

bool npg_output_is_foreign(const char *path, const char *mark)
{
	char head[256];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t size;

	if (fd < 0)
		return errno != ENOENT;
	size = read(fd, head, sizeof(head));
	close(fd);
	return size != 0 && (size < 0 || memmem(head, (size_t)size, mark, strlen(mark)) == NULL);
}
