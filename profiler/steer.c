/* Overhead control. Interrupts cost the program, decoding and writing cost the recorder. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/perf_ring.h"
#include "profiler/steer.h"

#define USUAL_CLOCK_NS    2500
#define USUAL_FAULT_NS    700
#define RECORDER_NS       2000 /* per sample, until it is known */
#define MIN_PERIOD_NS     UINT64_C(100000)
#define MAX_PERIOD_NS     UINT64_C(50000000)
#define MEASURE_PERIOD_NS 20000
#define MEASURE_LOOPS     300000
#define MEASURE_PAGES     128 /* below what the kernel takes as too many samples per tick */
#define MEASURE_RUNS      3   /* the least counts: others may run here */

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

static void run_clock(void)
{
	volatile uint64_t sink = 0;

	for (int i = 0; i < MEASURE_LOOPS; i++)
		sink = sink + 1;
}

static void run_faults(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = MEASURE_PAGES * page;
	volatile char *memory =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	madvise((void *)(uintptr_t)memory, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += page)
		memory[i] = 1;
	munmap((void *)(uintptr_t)memory, size);
}

static void count_record(void *context, const void *record, size_t size_bytes)
{
	uint64_t *nr = context;

	(void)record;
	(void)size_bytes;
	++*nr;
}

static int open_on_self(uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = 0xff01ff, /* as many as the recorder takes */
		.disabled = 1,
		.exclude_kernel = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The difference between runs with and without the event, per sample; 0 if there is none. */
static uint64_t measure_on(int fd, struct npg_perf_ring *ring, void (*run)(void))
{
	uint64_t bare = UINT64_MAX, sampled = UINT64_MAX, nr_sampled = 0;

	for (int i = 0; i < MEASURE_RUNS; i++) {
		uint64_t begin = cpu_ns(), took, nr = 0;

		run();
		took = cpu_ns() - begin;
		bare = took < bare ? took : bare;
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		begin = cpu_ns();
		run();
		took = cpu_ns() - begin;
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		npg_perf_ring_drain(ring, count_record, &nr);
		if (took < sampled) {
			sampled = took;
			nr_sampled = nr;
		}
	}
	return nr_sampled > 0 && sampled > bare ? (sampled - bare) / nr_sampled : 0;
}

static uint64_t measure(uint64_t config, uint64_t period, void (*run)(void), uint64_t usual_ns)
{
	struct npg_perf_ring ring = { 0 };
	int fd = open_on_self(config, period);
	uint64_t cost = 0;

	if (fd < 0)
		return usual_ns;
	if (npg_perf_ring_map(fd, 32, &ring) == 0)
		cost = measure_on(fd, &ring, run);
	npg_perf_ring_unmap(&ring);
	close(fd);
	if (cost == 0)
		return usual_ns;
	return cost > 50000 ? 50000 : cost;
}

uint64_t npg_steer_clock_cost_ns(void)
{
	return measure(PERF_COUNT_SW_CPU_CLOCK, MEASURE_PERIOD_NS, run_clock, USUAL_CLOCK_NS);
}

uint64_t npg_steer_fault_cost_ns(void)
{
	return measure(PERF_COUNT_SW_PAGE_FAULTS, 1, run_faults, USUAL_FAULT_NS);
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
		    uint64_t clock_cost_ns)
{
	*steer = (struct npg_steer){ .overhead_percent = overhead_percent,
				     .clock_cost_ns = clock_cost_ns,
				     .is_fixed = period_ns != 0,
				     .period_ns = period_ns };
	if (period_ns == 0)
		steer->period_ns =
		    within_limits((double)(clock_cost_ns + RECORDER_NS) * 100 / overhead_percent);
}

bool npg_steer_update(struct npg_steer *steer, const struct npg_steer_totals *now)
{
	const struct npg_steer_totals *last = &steer->last;
	double program_ns = (double)(now->program_ns - last->program_ns);
	double cost_ns = (double)(now->interrupt_ns - last->interrupt_ns) +
			 (double)(now->recorder_ns - last->recorder_ns);
	double percent;
	uint64_t period;

	if (steer->is_fixed || now->time_ns - last->time_ns < 1000000000)
		return false;
	steer->last = *now;
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
