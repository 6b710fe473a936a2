/* sched_setaffinity(2) for the calling thread. */
#include <sys/syscall.h>

#include "lib/preload/hash.h"
#include "replayer/preload/pin.h"

#define WORDS NPG_WIRE_CPU_WORDS

static struct npg_wire_cpuset initial; /* the mask that the program started with */
static bool has_initial;

static bool get_mask(struct npg_wire_cpuset *mask)
{
	memset(mask, 0, sizeof(*mask));
	return syscall(SYS_sched_getaffinity, 0, sizeof(*mask), mask) > 0;
}

static bool is_equal(const struct npg_wire_cpuset *a, const struct npg_wire_cpuset *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* CPUs of a planned mask that the program may use. Return: false if there are none. */
static bool usable(uint32_t cpuset, struct npg_wire_cpuset *mask)
{
	uint64_t any = 0;

	for (int i = 0; i < WORDS; i++) {
		mask->cpus[i] = npg_state.cpusets[cpuset].cpus[i] & initial.cpus[i];
		any |= mask->cpus[i];
	}
	return any != 0;
}

void npg_pin_init(void)
{
	has_initial = get_mask(&initial);
}

static const struct npg_wire_pin *find(uint64_t path_hash)
{
	uint32_t low = 0, high = npg_state.table->threads.nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (npg_state.pins[middle].path_hash < path_hash)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < npg_state.table->threads.nr && npg_state.pins[low].path_hash == path_hash)
		return &npg_state.pins[low];
	return NULL;
}

/* Is it the mask that the program started with, or one that was set here? */
static bool is_ours(const struct npg_wire_cpuset *mask)
{
	struct npg_wire_cpuset planned;

	if (is_equal(mask, &initial))
		return true;
	for (uint32_t i = 0; i < npg_state.table->cpusets.nr; i++)
		if (usable(i, &planned) && is_equal(mask, &planned))
			return true;
	return false;
}

static void set_mask(const struct npg_wire_cpuset *mask, bool is_planned)
{
	if (syscall(SYS_sched_setaffinity, 0, sizeof(*mask), mask) != 0)
		npg_refuse(NPG_WIRE_PIN_FAILED, errno);
	else if (is_planned)
		npg_count(&npg_status->nr_pinned, 1);
}

void npg_pin_thread(uint64_t path_hash)
{
	const struct npg_wire_pin *pin = find(path_hash);
	struct npg_wire_cpuset now, wanted;

	if (npg_state.table->threads.nr == 0 || !has_initial || !get_mask(&now))
		return;
	if (!(npg_state.table->flags & NPG_WIRE_OVERRIDE_AFFINITY) && !is_ours(&now)) {
		if (pin != NULL)
			npg_refuse(NPG_WIRE_PIN_RESPECTED, 0);
		return;
	}
	if (pin == NULL) {
		if (is_ours(&now) && !is_equal(&now, &initial))
			set_mask(&initial, false);
		return;
	}
	if (usable(pin->cpuset, &wanted))
		set_mask(&wanted, true);
	else
		npg_refuse(NPG_WIRE_PIN_RESPECTED, 0);
}

void npg_pin_main(void)
{
	static bool is_done;

	if (!__atomic_exchange_n(&is_done, true, __ATOMIC_RELAXED))
		npg_pin_thread(npg_hash_bytes(NPG_HASH_SEED, "0", 1));
}

bool npg_pin_suspend(struct npg_wire_cpuset *before)
{
	int saved_errno = errno;
	bool is_due = has_initial && npg_state.table->threads.nr > 0 && get_mask(before) &&
		      !is_equal(before, &initial) && is_ours(before) &&
		      syscall(SYS_sched_setaffinity, 0, sizeof(initial), &initial) == 0;

	errno = saved_errno;
	return is_due;
}

void npg_pin_resume(const struct npg_wire_cpuset *before)
{
	int saved_errno = errno;

	syscall(SYS_sched_setaffinity, 0, sizeof(*before), before);
	errno = saved_errno;
}
