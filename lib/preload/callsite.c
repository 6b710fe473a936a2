/*
 * Call stacks and their hash.
 *
 * A module's key is its build ID hashed, read from the program headers in memory. Keys are cached
 * in a fixed table; an entry is believed only if the module lies where it lay and the first bytes
 * of the build ID in memory are still the same, so another module at the same address is noticed.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include <unwind.h>

#include "lib/preload/callsite.h"
#include "lib/preload/hash.h"
#include "lib/preload/rules.h"

#define HEADER_BYTES 4096 /* of a module that are mapped for certain: its first page */
#define NR_CACHED    256

extern const char __ehdr_start[], _end[]; /* bounds of this object, from the linker */

struct walk {
	uint64_t *frames;
	int nr_frames;
	int max_frames;
	uint64_t stack_pointer;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *arg)
{
	struct walk *walk = arg;
	uint64_t ip = _Unwind_GetIP(context), stack_pointer = _Unwind_GetCFA(context);

	/* Towards the caller the stack pointer rises, or the unwind tables are wrong. */
	if (ip == 0 || stack_pointer < walk->stack_pointer || stack_pointer % sizeof(void *) != 0)
		return _URC_END_OF_STACK;
	walk->stack_pointer = stack_pointer;
	if (ip - (uintptr_t)__ehdr_start < (uintptr_t)_end - (uintptr_t)__ehdr_start)
		return _URC_NO_REASON;
	walk->frames[walk->nr_frames++] = ip;
	return walk->nr_frames == walk->max_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

int npg_callsite_capture(uint64_t *frames, int max_frames)
{
	struct walk walk = { .frames = frames, .max_frames = max_frames };
	int saved_errno = errno;

	if (max_frames > 0)
		_Unwind_Backtrace(on_frame, &walk);
	errno = saved_errno;
	return walk.nr_frames;
}

struct module {
	uint64_t key;
	uint64_t bias;
	bool is_by_name; /* C library or loader: offsets do not count */
};

/* A build ID in memory. */
struct build_id {
	const unsigned char *bytes;
	size_t size;
};

static bool find_in_notes(const unsigned char *notes, size_t size, size_t align,
			  struct build_id *id)
{
	ElfW(Nhdr) note;
	size_t at = 0, desc;

	while (size - at >= sizeof(note)) {
		memcpy(&note, notes + at, sizeof(note));
		desc = at + sizeof(note) + note.n_namesz;
		desc = (desc + align - 1) & ~(align - 1);
		if (note.n_namesz > size || note.n_descsz > size || desc > size ||
		    note.n_descsz > size - desc)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz > 0 &&
		    memcmp(notes + at + sizeof(note), "GNU", 4) == 0) {
			id->bytes = notes + desc;
			id->size = note.n_descsz;
			return true;
		}
		at = (desc + note.n_descsz + align - 1) & ~(align - 1);
		if (at > size)
			return false;
	}
	return false;
}

/* Are the bytes in one load segment's file part, so that they are mapped? */
static bool is_loaded(const ElfW(Phdr) * headers, size_t nr_headers, ElfW(Addr) vaddr,
		      ElfW(Xword) size)
{
	for (size_t i = 0; i < nr_headers; i++)
		if (headers[i].p_type == PT_LOAD && vaddr >= headers[i].p_vaddr &&
		    vaddr - headers[i].p_vaddr <= headers[i].p_filesz &&
		    size <= headers[i].p_filesz - (vaddr - headers[i].p_vaddr))
			return true;
	return false;
}

static bool find_build_id(const struct dl_find_object *object, struct build_id *id)
{
	const char *base = object->dlfo_map_start;
	uint64_t bias = object->dlfo_link_map->l_addr;
	const ElfW(Phdr) * headers;
	ElfW(Ehdr) ehdr;

	memcpy(&ehdr, base, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_phentsize != sizeof(*headers) ||
	    ehdr.e_phoff > HEADER_BYTES || ehdr.e_phoff % sizeof(uint64_t) != 0 ||
	    ehdr.e_phnum > (HEADER_BYTES - ehdr.e_phoff) / sizeof(*headers))
		return false;
	headers = (const void *)(base + ehdr.e_phoff);
	for (size_t i = 0; i < ehdr.e_phnum; i++)
		if (headers[i].p_type == PT_NOTE &&
		    is_loaded(headers, ehdr.e_phnum, headers[i].p_vaddr, headers[i].p_filesz) &&
		    find_in_notes((const void *)(uintptr_t)(bias + headers[i].p_vaddr),
				  headers[i].p_filesz, headers[i].p_align == 8 ? 8 : 4, id))
			return true;
	return false;
}

/* Key by file name; the main program has an empty name in its link map. */
static uint64_t key_by_name(const char *name)
{
	char path[256];
	ssize_t length;

	if (name[0] != '\0')
		return npg_hash_module_name(name);
	length =
	    (ssize_t)syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	return npg_hash_module_name(path);
}

/* What is kept of a module, in words so that each is read and written by one atomic operation. */
enum {
	WORD_MAP,
	WORD_START,
	WORD_END,
	WORD_ID_OFFSET,
	WORD_ID_HEAD,
	WORD_KEY,
	WORD_BIAS,
	WORD_IS_BY_NAME,
	NR_WORDS,
};

static struct cached {
	uint64_t version; /* odd: being written */
	uint64_t words[NR_WORDS];
} cache[NR_CACHED];

static struct cached *cache_entry(const struct link_map *map)
{
	return &cache[((uintptr_t)map >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

static bool cache_get(const struct dl_find_object *object, struct module *module)
{
	struct cached *entry = cache_entry(object->dlfo_link_map);
	uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_ACQUIRE);
	uint64_t words[NR_WORDS], head;

	for (int i = 0; i < NR_WORDS; i++)
		words[i] = __atomic_load_n(&entry->words[i], __ATOMIC_ACQUIRE);
	if (version % 2 != 0 || version != __atomic_load_n(&entry->version, __ATOMIC_RELAXED) ||
	    words[WORD_MAP] != (uintptr_t)object->dlfo_link_map ||
	    words[WORD_START] != (uintptr_t)object->dlfo_map_start ||
	    words[WORD_END] != (uintptr_t)object->dlfo_map_end)
		return false;
	memcpy(&head, (const char *)object->dlfo_map_start + words[WORD_ID_OFFSET], sizeof(head));
	module->key = words[WORD_KEY];
	module->bias = words[WORD_BIAS];
	module->is_by_name = words[WORD_IS_BY_NAME] != 0;
	return head == words[WORD_ID_HEAD];
}

static void cache_put(const struct dl_find_object *object, const struct build_id *id,
		      const struct module *module)
{
	struct cached *entry = cache_entry(object->dlfo_link_map);
	size_t offset = (size_t)(id->bytes - (const unsigned char *)object->dlfo_map_start);
	uint64_t version = __atomic_load_n(&entry->version, __ATOMIC_RELAXED);
	uint64_t words[NR_WORDS] = {
		[WORD_MAP] = (uintptr_t)object->dlfo_link_map,
		[WORD_START] = (uintptr_t)object->dlfo_map_start,
		[WORD_END] = (uintptr_t)object->dlfo_map_end,
		[WORD_ID_OFFSET] = offset,
		[WORD_KEY] = module->key,
		[WORD_BIAS] = module->bias,
		[WORD_IS_BY_NAME] = module->is_by_name,
	};

	if (id->size < sizeof(uint64_t) || offset > HEADER_BYTES - sizeof(uint64_t))
		return;
	memcpy(&words[WORD_ID_HEAD], id->bytes, sizeof(uint64_t));
	if (version % 2 != 0 ||
	    !__atomic_compare_exchange_n(&entry->version, &version, version + 1, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	for (int i = 0; i < NR_WORDS; i++)
		__atomic_store_n(&entry->words[i], words[i], __ATOMIC_RELEASE);
	__atomic_store_n(&entry->version, version + 2, __ATOMIC_RELEASE);
}

static void find_module(const struct dl_find_object *object, struct module *module)
{
	const char *name = object->dlfo_link_map->l_name;
	struct build_id id;
	bool has_id;

	if (cache_get(object, module))
		return;
	has_id = find_build_id(object, &id);
	module->bias = object->dlfo_link_map->l_addr;
	module->is_by_name = npg_hash_is_system_module(name);
	if (has_id && !module->is_by_name)
		module->key = npg_hash_build_id(id.bytes, id.size);
	else
		module->key = key_by_name(name);
	if (has_id)
		cache_put(object, &id, module);
}

uint64_t npg_callsite_hash(const uint64_t *frames, int nr_frames)
{
	uint64_t hash = NPG_HASH_SEED;
	struct dl_find_object object;
	struct module module;
	int saved_errno = errno;

	for (int i = 0; i < nr_frames; i++) {
		module = (struct module){ .is_by_name = true };
		/* a return address behind a call that never returns may be the next module's */
		if (_dl_find_object((void *)(uintptr_t)(frames[i] - 1), &object) == 0)
			find_module(&object, &module);
		hash = npg_hash_frame(hash, module.key,
				      module.is_by_name ? 0 : frames[i] - module.bias);
	}
	errno = saved_errno;
	return hash;
}
