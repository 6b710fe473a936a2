/* Cache of mapped files, see the header. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/preload/hash.h"
#include "profiler/module.h"

static void hex_of(const uint8_t *bytes, size_t size, char *text)
{
	for (size_t i = 0; i < size && i < NPG_BUILD_ID_MAX; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static size_t bytes_of(const char *hex, uint8_t *bytes)
{
	size_t n = 0;

	for (; hex[0] != '\0' && hex[1] != '\0' && n < NPG_BUILD_ID_MAX; hex += 2, n++) {
		char pair[3] = { hex[0], hex[1], '\0' };

		bytes[n] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

static void set_key(struct npg_module *module)
{
	uint8_t raw[NPG_BUILD_ID_MAX];
	size_t size = bytes_of(module->build_id, raw);

	if (module->is_system || size == 0)
		module->key = npg_hash_module_name(module->path);
	else
		module->key = npg_hash_build_id(raw, size);
}

static struct npg_module *new_module(const struct npg_module_identity *identity)
{
	static const char deleted[] = " (deleted)";
	struct npg_module *module = calloc(1, sizeof(*module));
	size_t length;

	if (module == NULL)
		return NULL;
	module->path = strdup(identity->path);
	if (module->path == NULL) {
		free(module);
		return NULL;
	}
	length = strlen(module->path);
	if (length > sizeof(deleted) &&
	    strcmp(module->path + length - (sizeof(deleted) - 1), deleted) == 0)
		module->path[length - (sizeof(deleted) - 1)] = '\0';
	if (identity->build_id != NULL)
		hex_of(identity->build_id, identity->build_id_size, module->build_id);
	module->is_system = npg_hash_is_system_module(module->path);
	set_key(module);
	return module;
}

struct npg_module *npg_modules_get(struct npg_modules *modules,
				   const struct npg_module_identity *identity)
{
	uint64_t key0 = npg_hash_bytes(NPG_HASH_SEED, identity->path, strlen(identity->path));
	uint64_t key1 =
	    identity->build_id != NULL
		? npg_hash_bytes(NPG_HASH_SEED, identity->build_id, identity->build_id_size)
		: identity->inode;
	uint64_t at = npg_table_get(&modules->index, key0, key1);
	struct npg_module **grown, *module;

	if (at != 0)
		return modules->modules[at - 1];
	module = new_module(identity);
	grown = module == NULL ? NULL
			       : reallocarray(modules->modules, modules->nr_modules + 1,
					      sizeof(struct npg_module *));
	if (grown == NULL || npg_table_put(&modules->index, key0, key1, modules->nr_modules + 1)) {
		if (grown != NULL)
			modules->modules = grown;
		if (module != NULL)
			free(module->path);
		free(module);
		return NULL;
	}
	modules->modules = grown;
	modules->modules[modules->nr_modules++] = module;
	return module;
}

static int map_file(struct npg_module *module, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	void *data;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
		close(fd);
		return -ENOEXEC;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		return -errno;
	module->data = data;
	module->data_bytes = (size_t)st.st_size;
	return 0;
}

static void unmap_file(struct npg_module *module)
{
	if (module->data != NULL)
		munmap((void *)(uintptr_t)module->data, module->data_bytes);
	module->data = NULL;
	module->data_bytes = 0;
}

static int open_at(struct npg_module *module, const char *path)
{
	int ret = npg_elf_file_open(path, &module->elf, NULL);

	if (ret == 0 && module->build_id[0] != '\0' &&
	    strcmp(module->build_id, module->elf->build_id) != 0) {
		npg_elf_file_free(module->elf); /* replaced since it was mapped */
		ret = -ESTALE;
	}
	if (ret == 0 && map_file(module, path) < 0)
		module->data = NULL;
	if (ret < 0)
		module->elf = NULL;
	return ret;
}

struct npg_elf_file *npg_module_elf(struct npg_module *module, pid_t pid)
{
	char path[4096 + 32];

	if (module->is_tried)
		return module->elf;
	module->is_tried = true;
	if (module->path[0] != '/')
		return NULL;
	if (open_at(module, module->path) < 0) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, module->path);
		if (open_at(module, path) < 0)
			return NULL;
	}
	if (module->build_id[0] == '\0') {
		memcpy(module->build_id, module->elf->build_id, sizeof(module->build_id));
		set_key(module);
	}
	return module->elf;
}

struct npg_elf_file *npg_module_symbols(struct npg_module *module, pid_t pid)
{
	struct npg_elf_file *elf = npg_module_elf(module, pid);

	if (elf != NULL && !module->has_symbols) {
		module->has_symbols = true;
		if (npg_elf_file_load_symbols(elf, NULL) < 0)
			return elf; /* what was sound is there */
	}
	return elf;
}

int64_t npg_module_row(struct npg_module *module, struct npg_writer *writer)
{
	if (!module->is_row_written) {
		module->is_row_written = true;
		module->id = npg_writer_module(
		    writer, module->path, module->build_id[0] != '\0' ? module->build_id : NULL);
	}
	return module->id;
}

static const struct npg_insn *keep_insn(struct npg_modules *modules, struct npg_module *module,
					uint64_t file_offset, const struct npg_insn *insn)
{
	if (modules->nr_insns == modules->insns_size) {
		size_t size = modules->insns_size == 0 ? 1024 : modules->insns_size * 2;
		struct npg_insn *bigger = reallocarray(modules->insns, size, sizeof(*bigger));

		if (bigger == NULL)
			return NULL;
		modules->insns = bigger;
		modules->insns_size = size;
	}
	if (npg_table_put(&modules->insn_index, (uintptr_t)module, file_offset,
			  modules->nr_insns + 1) < 0)
		return NULL;
	modules->insns[modules->nr_insns] = *insn;
	return &modules->insns[modules->nr_insns++];
}

const struct npg_insn *npg_modules_insn(struct npg_modules *modules, struct npg_module *module,
					pid_t pid, uint64_t file_offset)
{
	uint64_t at = npg_table_get(&modules->insn_index, (uintptr_t)module, file_offset);
	struct npg_insn insn;
	size_t left;

	if (at != 0)
		return &modules->insns[at - 1];
	if (npg_module_elf(module, pid) == NULL || module->data == NULL ||
	    file_offset >= module->data_bytes)
		return NULL;
	left = module->data_bytes - (size_t)file_offset;
	if (npg_insn_decode(module->data + file_offset,
			    left < NPG_INSN_MAX_BYTES ? left : NPG_INSN_MAX_BYTES,
			    module->elf->is_native, &insn) < 0)
		return NULL;
	return keep_insn(modules, module, file_offset, &insn);
}

void npg_modules_release(struct npg_modules *modules)
{
	for (size_t i = 0; i < modules->nr_modules; i++) {
		unmap_file(modules->modules[i]);
		npg_elf_file_free(modules->modules[i]->elf);
		free(modules->modules[i]->path);
		free(modules->modules[i]);
	}
	npg_modules_release_code(modules);
	free(modules->modules);
	free(modules->insns);
	npg_table_release(&modules->index);
	npg_table_release(&modules->insn_index);
	*modules = (struct npg_modules){ 0 };
}
