/* Who is who: creation paths by a trampoline, processes by a page that fork clears. */
#include <sched.h>
#include <sys/syscall.h>

#include "lib/preload/hash.h"
#include "lib/preload/reals.h"
#include "lib/preload/threads.h"

#define NR_BIRTHS 1024

_Thread_local struct npg_thread npg_thread;

/*
 * The pid of this process, in a page that the kernel clears in forked children (also those of raw
 * clone), so that a stale value is noticed by one load. The static word serves until there is such
 * a page, and where the kernel has none.
 */
static uint32_t first_process_pid;
static uint32_t *process_pid = &first_process_pid;
static uint32_t latest_pid; /* copied by fork: differs from the new pid in a forked child */

static void set_main_path(struct npg_thread *self)
{
	memset(self->path, 0, sizeof(self->path));
	self->path[0] = '0';
	self->path_hash = npg_hash_bytes(NPG_HASH_SEED, "0", 1);
	self->nr_children = 0;
}

NPG_NOINLINE static void identify(struct npg_thread *self)
{
	int saved_errno = errno;
	uint32_t none = 0, pid = (uint32_t)getpid(), before;
	bool is_forked = false;

	if (__atomic_compare_exchange_n(process_pid, &none, pid, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		before = __atomic_exchange_n(&latest_pid, pid, __ATOMIC_RELAXED);
		is_forked = before != 0 && before != pid;
	}
	self->pid = pid;
	self->tid = (uint32_t)syscall(SYS_gettid);
	if (self->tid == pid)
		set_main_path(self);
	if (is_forked)
		npg_on_fork();
	errno = saved_errno;
}

struct npg_thread *npg_thread_self(void)
{
	struct npg_thread *self = &npg_thread;

	if (NPG_UNLIKELY(self->tid == 0 ||
			 self->pid != __atomic_load_n(process_pid, __ATOMIC_RELAXED)))
		identify(self);
	return self;
}

static void in_forked_child(void)
{
	int saved_errno = npg_enter();

	__atomic_store_n(process_pid, 0, __ATOMIC_RELAXED);
	npg_thread_self();
	npg_leave(saved_errno);
}

void npg_threads_init(void)
{
	int saved_errno = errno;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

	npg_thread_self();
	if (page != MAP_FAILED) {
		if (madvise(page, size, MADV_WIPEONFORK) == 0) {
			*(uint32_t *)page = *process_pid;
			__atomic_store_n(&process_pid, (uint32_t *)page, __ATOMIC_RELEASE);
		} else {
			syscall(SYS_munmap, page, size);
		}
	}
	pthread_atfork(NULL, NULL, in_forked_child);
	errno = saved_errno;
}

static struct birth_slot {
	uint32_t is_taken;
	struct npg_thread_birth birth;
} births[NR_BIRTHS];

static struct birth_slot *take_slot(void)
{
	static uint32_t latest;

	for (int i = 0; i < NR_BIRTHS; i++) {
		uint32_t free_mark = 0,
			 at = __atomic_fetch_add(&latest, 1, __ATOMIC_RELAXED) % NR_BIRTHS;

		if (__atomic_compare_exchange_n(&births[at].is_taken, &free_mark, 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return &births[at];
	}
	return NULL;
}

static void give_slot(struct birth_slot *slot)
{
	__atomic_store_n(&slot->is_taken, 0, __ATOMIC_RELEASE);
}

/* The path of @self's next child. */
static void set_child_path(struct npg_thread_birth *birth, const struct npg_thread *self)
{
	char digits[12];
	size_t nr = 0, length = strlen(self->path);
	uint32_t number = self->nr_children;

	birth->path_hash = 0;
	memset(birth->path, 0, sizeof(birth->path));
	if (self->path_hash == 0)
		return;
	do {
		digits[sizeof(digits) - ++nr] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	digits[sizeof(digits) - ++nr] = '.';
	birth->path_hash = npg_hash_bytes(self->path_hash, digits + sizeof(digits) - nr, nr);
	if (length > 0 && length + nr < sizeof(birth->path)) {
		memcpy(birth->path, self->path, length);
		memcpy(birth->path + length, digits + sizeof(digits) - nr, nr);
	}
}

static void on_exit_of_thread(void *unused)
{
	int saved_errno = npg_enter();

	(void)unused;
	npg_on_thread_exit();
	npg_leave(saved_errno);
}

static void *trampoline(void *arg)
{
	struct birth_slot *slot = arg;
	struct npg_thread_birth birth = slot->birth;
	void *result;
	int saved_errno = npg_enter();

	give_slot(slot);
	npg_thread.path_hash = birth.path_hash;
	memcpy(npg_thread.path, birth.path, sizeof(birth.path));
	npg_thread_self();
	npg_on_thread_start(&birth);
	npg_leave(saved_errno);
	pthread_cleanup_push(on_exit_of_thread, NULL);
	result = birth.start(birth.arg);
	pthread_cleanup_pop(1);
	return result;
}

int npg_threads_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
		       void *arg)
{
	struct birth_slot *slot = npg_is_inside() ? NULL : take_slot();
	struct npg_thread_birth birth = { .start = start, .arg = arg };
	struct npg_thread *self;
	int saved_errno, status;

	if (slot == NULL)
		return npg_reals.fn_pthread_create(thread, attr, start, arg);
	saved_errno = npg_enter();
	self = npg_thread_self();
	birth.creator_tid = self->tid;
	birth.ordinal = self->nr_children;
	set_child_path(&birth, self);
	slot->birth = birth;
	npg_leave(saved_errno);
	status = npg_reals.fn_pthread_create(thread, attr, trampoline, slot);
	if (status != 0) {
		give_slot(slot);
		return status;
	}
	saved_errno = npg_enter();
	self->nr_children++;
	npg_on_thread_create(&birth);
	npg_leave(saved_errno);
	return 0;
}
