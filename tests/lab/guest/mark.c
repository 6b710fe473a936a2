/*
 * mark CMD [ARGS]: run CMD between the plugin's marks; ends as a shell would say it ended. It first
 * tells the plugin the time (CLOCK_MONOTONIC), so that traces have the guest's clock.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lab/guest/lab.h"

int main(int argc, char **argv)
{
	struct timespec now;
	int status = 0;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: mark CMD [ARGS]\n");
		return 125;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	lab_say((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	lab_begin();
	child = fork();
	if (child == 0) {
		execvp(argv[1], argv + 1);
		fprintf(stderr, "mark: cannot run %s: %s\n", argv[1], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	lab_end();
	if (child < 0)
		return 125;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
