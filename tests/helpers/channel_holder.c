/*
 * Runs a program with the recording object active and nothing else of numapgo: makes a channel,
 * drains it, ends as the program ended. So the hooks are tested without the recorder.
 *
 *	channel_holder [-fn] [-m MIN_BYTES] [-o FILE] [--] CMD [ARGS...]
 *
 * -f follows children; -o writes each record as a line of text, then a line with the counters;
 * -n runs the program without the object, to compare.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/launch.h"
#include "profiler/channel.h"

static const char *const names[NPG_WIRE_NR_TYPES] = {
	[NPG_WIRE_PROCESS_START] = "process-start",
	[NPG_WIRE_ALLOC] = "alloc",
	[NPG_WIRE_FREE] = "free",
	[NPG_WIRE_MMAP] = "mmap",
	[NPG_WIRE_MUNMAP] = "munmap",
	[NPG_WIRE_MREMAP] = "mremap",
	[NPG_WIRE_SHMAT] = "shmat",
	[NPG_WIRE_SHMDT] = "shmdt",
	[NPG_WIRE_BRK] = "brk",
	[NPG_WIRE_THREAD_CREATE] = "thread-create",
	[NPG_WIRE_THREAD_START] = "thread-start",
	[NPG_WIRE_THREAD_EXIT] = "thread-exit",
	[NPG_WIRE_SMALL_SITES] = "small-sites",
};

static void write_record(const struct npg_wire_record *record, void *arg)
{
	FILE *out = arg;

	if (out == NULL)
		return;
	fprintf(out,
		"%s pid=%" PRIu32 " tid=%" PRIu32 " address=%#" PRIx64 " size=%" PRIu64
		" value=%" PRIu64 " value2=%" PRIu64 " frames=%d\n",
		names[record->type], record->pid, record->tid, record->address, record->size_bytes,
		record->value, record->value2, record->nr_frames);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int wait_and_drain(struct npg_channel *channel, pid_t pid, FILE *out)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int status = 0;
	pid_t ended;

	do {
		ended = waitpid(pid, &status, WNOHANG);
		npg_channel_drain(channel, now_ns(), false, write_record, out);
		if (ended == 0)
			nanosleep(&pause, NULL);
	} while (ended == 0 || (ended < 0 && errno == EINTR));
	npg_channel_drain(channel, now_ns(), true, write_record, out);
	return status;
}

static void write_stats(const struct npg_channel *channel, FILE *out)
{
	struct npg_channel_stats stats;

	npg_channel_get_stats(channel, &stats);
	fprintf(out,
		"stats records=%" PRIu64 " lost=%" PRIu64 " holes=%" PRIu64 " malformed=%" PRIu64
		" faults=%" PRIu64 "\n",
		stats.nr_records, stats.nr_lost, stats.nr_holes, stats.nr_malformed,
		stats.nr_faults);
}

static int run(char **argv, struct npg_channel *channel, bool is_bare, FILE *out)
{
	struct npg_launch launch;
	struct npg_error err = { "" };
	char object[4096];
	bool is_plain;
	int status = npg_launch_check(&launch, argv, &err);

	if (status != 0)
		goto failed;
	status = npg_launch_find_object("libnumapgo-record.so", object, sizeof(object), &err);
	if (status != 0)
		goto failed;
	is_plain = is_bare || launch.why_no_preload != NULL;
	if (launch.kind == NPG_LAUNCH_STATIC) /* what it execs can be preloaded */
		is_plain = is_bare;
	status = npg_launch_prepare(&launch, argv, is_plain ? NULL : object,
				    is_plain ? NULL : npg_channel_variable(channel), &err);
	if (status == 0)
		status = npg_launch_go(&launch, &err);
	if (status != 0)
		goto failed;
	npg_launch_forward_signals(&launch);
	status = wait_and_drain(channel, launch.pid, out);
	npg_launch_release(&launch);
	if (out != NULL) {
		write_stats(channel, out);
		fclose(out);
	}
	return npg_launch_exit_like(status);
failed:
	fprintf(stderr, "channel_holder: %s\n", err.text);
	return status == -ENOENT ? 127 : 126;
}

int main(int argc, char **argv)
{
	struct npg_channel_options options = {
		.nr_slots = 1 << 16,
		.min_object_bytes = 4096,
		.max_frames = NPG_WIRE_MAX_FRAMES,
	};
	struct npg_channel *channel = NULL;
	struct npg_error err = { "" };
	bool is_bare = false;
	FILE *out = NULL;
	int option;

	while ((option = getopt(argc, argv, "+fnm:o:")) != -1) {
		if (option == 'f')
			options.follows_children = true;
		else if (option == 'n')
			is_bare = true;
		else if (option == 'm')
			options.min_object_bytes = strtoull(optarg, NULL, 10);
		else if (option == 'o')
			out = fopen(optarg, "we");
		else
			return 125;
	}
	if (optind >= argc || npg_channel_create(&channel, &options, &err) != 0) {
		fprintf(stderr, "channel_holder: %s\n", optind >= argc ? "no program" : err.text);
		return 125;
	}
	return run(argv + optind, channel, is_bare, out);
}
