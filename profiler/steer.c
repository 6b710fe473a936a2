/* Overhead control. Interrupts cost the program, decoding and writing cost the recorder. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/perf_ring.h"
#include "profiler/steer.h"

#define USUAL_INTERRUPT_NS 2500
#define RECORDER_NS        2000 /* per sample, until it is known */
#define MIN_PERIOD_NS      UINT64_C(100000)
#define MAX_PERIOD_NS      UINT64_C(50000000)
#define MEASURE_PERIOD_NS  20000
#define MEASURE_LOOPS      400000

uint64_t npg_steer_prime(uint64_t n)
{
	for (n |= 1;; n += 2) {
		uint64_t d = 3;

		while (d * d <= n && n % d != 0)
			d += 2;
		if (d * d > n)
			return n;
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t time_loop(void)
{
	volatile uint64_t sink = 0;
	uint64_t begin = cpu_ns();

	for (int i = 0; i < MEASURE_LOOPS; i++)
		sink = sink + 1;
	return cpu_ns() - begin;
}

static void count_record(void *context, const void *record, size_t size_bytes)
{
	uint64_t *nr = context;

	(void)record;
	(void)size_bytes;
	++*nr;
}

static int open_on_self(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = MEASURE_PERIOD_NS,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = 0xff01ff,
		.disabled = 1,
		.exclude_kernel = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

uint64_t npg_steer_measure_ns(void)
{
	struct npg_perf_ring ring = { 0 };
	uint64_t bare = UINT64_MAX, sampled = UINT64_MAX, nr = 0, cost;
	int fd = open_on_self();

	if (fd < 0)
		return USUAL_INTERRUPT_NS;
	if (npg_perf_ring_map(fd, 16, &ring) < 0) {
		close(fd);
		return USUAL_INTERRUPT_NS;
	}
	for (int i = 0; i < 3; i++) { /* the least of three: others may run here */
		uint64_t took = time_loop(), now;

		bare = took < bare ? took : bare;
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		took = time_loop();
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		now = 0;
		npg_perf_ring_drain(&ring, count_record, &now);
		if (took < sampled) {
			sampled = took;
			nr = now;
		}
	}
	npg_perf_ring_unmap(&ring);
	close(fd);
	cost = nr > 0 && sampled > bare ? (sampled - bare) / nr : USUAL_INTERRUPT_NS;
	return cost < 200 ? 200 : cost > 50000 ? 50000 : cost;
}

static uint64_t within_limits(double period_ns)
{
	if (period_ns < (double)MIN_PERIOD_NS)
		return npg_steer_prime(MIN_PERIOD_NS);
	if (period_ns > (double)MAX_PERIOD_NS)
		return npg_steer_prime(MAX_PERIOD_NS);
	return npg_steer_prime((uint64_t)period_ns);
}

void npg_steer_init(struct npg_steer *steer, double overhead_percent, uint64_t period_ns,
		    uint64_t interrupt_ns)
{
	*steer = (struct npg_steer){ .overhead_percent = overhead_percent,
				     .interrupt_ns = interrupt_ns,
				     .is_fixed = period_ns != 0,
				     .period_ns = period_ns };
	if (period_ns == 0)
		steer->period_ns =
		    within_limits((double)(interrupt_ns + RECORDER_NS) * 100 / overhead_percent);
}

bool npg_steer_update(struct npg_steer *steer, uint64_t now_ns, int64_t nr_samples,
		      int64_t recorder_ns)
{
	double program_ns, cost_ns, percent;
	uint64_t period;

	if (steer->is_fixed || now_ns - steer->last_ns < 1000000000)
		return false;
	program_ns = (double)(nr_samples - steer->last_samples) * (double)steer->period_ns;
	cost_ns = (double)(nr_samples - steer->last_samples) * (double)steer->interrupt_ns +
		  (double)(recorder_ns - steer->last_recorder_ns);
	steer->last_ns = now_ns;
	steer->last_samples = nr_samples;
	steer->last_recorder_ns = recorder_ns;
	if (program_ns < 1e8) /* too little to judge by */
		return false;
	percent = cost_ns * 100 / program_ns;
	if (percent < steer->overhead_percent && percent > steer->overhead_percent / 2)
		return false;
	period = within_limits((double)steer->period_ns * percent * 1.2 / steer->overhead_percent);
	if (period == steer->period_ns)
		return false;
	steer->period_ns = period;
	return true;
}
