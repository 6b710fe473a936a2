/*
 * ELF headers by libelf: identity, kind, load segments. Symbols are in elf_symbols.c.
 *
 * libelf checks that what it hands out lies in the file; this file checks what the numbers in it
 * mean. Files are read, not mapped, so that one which shrinks meanwhile is an error, not a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gelf.h>

#include "lib/elf_file.h"
#include "lib/elf_internal.h"

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define NATIVE_MACHINE EM_PPC64
#elif defined(__s390x__)
#define NATIVE_MACHINE EM_S390
#elif defined(__riscv)
#define NATIVE_MACHINE EM_RISCV
#else
#error "add the ELF machine number of this processor"
#endif

#define NATIVE_DATA (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

int npg_elf_broken(const struct npg_elf_file *file, struct npg_error *err, const char *what)
{
	const char *why = elf_errmsg(-1);

	return npg_error_set(err, -ENOEXEC, "%s: broken ELF file: %s%s%s", file->path, what,
			     why != NULL ? ": " : "", why != NULL ? why : "");
}

static int read_header(struct npg_elf_file *file, struct npg_error *err)
{
	struct npg_elf_private *private = file->handle;
	GElf_Ehdr header;

	switch (elf_kind(private->elf)) {
	case ELF_K_ELF:
		break;
	case ELF_K_AR:
		return npg_error_set(err, -ENOEXEC, "%s: an archive, not an executable or library",
				     file->path);
	case ELF_K_NONE:
	case ELF_K_COFF:
	case ELF_K_NUM:
	default:
		return npg_error_set(err, -ENOEXEC, "%s: not an ELF file", file->path);
	}
	if (gelf_getehdr(private->elf, &header) == NULL)
		return npg_elf_broken(file, err, "no readable header");
	file->is_native =
	    header.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
	    header.e_ident[EI_DATA] == NATIVE_DATA && header.e_machine == NATIVE_MACHINE;
	file->is_executable = header.e_type == ET_EXEC;
	private->is_dynamic = header.e_type == ET_DYN;
	private->has_entry = header.e_entry != 0;
	return 0;
}

static int check_segment(const struct npg_elf_file *file, const GElf_Phdr *p, struct npg_error *err)
{
	uint64_t end;

	if (p->p_filesz > p->p_memsz || __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) ||
	    __builtin_add_overflow(p->p_offset, p->p_filesz, &end))
		return npg_error_set(err, -ENOEXEC,
				     "%s: broken ELF file: the load segment at 0x%llx has an "
				     "impossible size",
				     file->path, (unsigned long long)p->p_vaddr);
	return 0;
}

static void add_segment(struct npg_elf_file *file, const GElf_Phdr *p)
{
	file->segments[file->nr_segments++] = (struct npg_elf_segment){
		.vaddr = p->p_vaddr,
		.memory_bytes = p->p_memsz,
		.file_offset = p->p_offset,
		.file_bytes = p->p_filesz,
		.is_writable = (p->p_flags & PF_W) != 0,
		.is_executable = (p->p_flags & PF_X) != 0,
	};
}

static void read_build_id(struct npg_elf_file *file, Elf_Data *data)
{
	size_t offset = 0, name, desc, next;
	GElf_Nhdr note;

	while (data != NULL && file->build_id[0] == '\0' &&
	       (next = gelf_getnote(data, offset, &note, &name, &desc)) > offset) {
		const unsigned char *bytes = data->d_buf;

		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    memcmp(bytes + name, "GNU", sizeof("GNU")) == 0 &&
		    note.n_descsz <= NPG_BUILD_ID_MAX)
			for (size_t i = 0; i < note.n_descsz; i++)
				snprintf(file->build_id + 2 * i, 3, "%02x", bytes[desc + i]);
		offset = next;
	}
}

static bool is_sanitizer(const char *library)
{
	static const char *const starts[] = { "libasan.",          "libtsan.",
					      "liblsan.",          "libhwasan.",
					      "libclang_rt.asan",  "libclang_rt.tsan",
					      "libclang_rt.hwasan" };

	for (size_t i = 0; i < NPG_ARRAY_SIZE(starts); i++)
		if (strncmp(library, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* The dynamic section by its program header, which stripped files have too. */
static void read_dynamic(struct npg_elf_file *file, Elf_Data *data)
{
	struct npg_elf_private *private = file->handle;
	uint64_t strings_vaddr = 0, strings_bytes = 0, strings_offset;
	Elf_Data *strings = NULL;
	GElf_Dyn dyn;

	for (int i = 0; gelf_getdyn(data, i, &dyn) != NULL && dyn.d_tag != DT_NULL; i++) {
		if (dyn.d_tag == DT_STRTAB)
			strings_vaddr = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_STRSZ)
			strings_bytes = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_FLAGS_1 && (dyn.d_un.d_val & DF_1_PIE) != 0)
		private->is_pie = true;
	}
	if (npg_elf_offset_of_vaddr(file, strings_vaddr, &strings_offset) == 0)
		strings = elf_getdata_rawchunk(private->elf, (int64_t)strings_offset, strings_bytes,
					       ELF_T_BYTE);
	if (strings == NULL || strings->d_size == 0 ||
	    ((const char *)strings->d_buf)[strings->d_size - 1] != '\0')
		return;
	for (int i = 0; gelf_getdyn(data, i, &dyn) != NULL && dyn.d_tag != DT_NULL; i++)
		if (dyn.d_tag == DT_NEEDED && dyn.d_un.d_val < strings->d_size &&
		    is_sanitizer((const char *)strings->d_buf + dyn.d_un.d_val))
			file->is_sanitized = true;
}

static int read_program_headers(struct npg_elf_file *file, struct npg_error *err)
{
	struct npg_elf_private *private = file->handle;
	Elf *elf = private->elf;
	size_t nr;
	GElf_Phdr p, dynamic = { .p_type = PT_NULL };

	if (elf_getphdrnum(elf, &nr) < 0)
		return npg_elf_broken(file, err, "no readable program headers");
	file->segments = calloc(nr + 1, sizeof(*file->segments));
	if (file->segments == NULL)
		return npg_error_set(err, -ENOMEM, "%s: out of memory", file->path);
	for (size_t i = 0; i < nr; i++) {
		if (gelf_getphdr(elf, (int)i, &p) == NULL)
			return npg_elf_broken(file, err, "a program header cannot be read");
		if (p.p_type == PT_LOAD) {
			int ret = check_segment(file, &p, err);

			if (ret < 0)
				return ret;
			add_segment(file, &p);
		} else if (p.p_type == PT_INTERP)
			file->has_interpreter = true;
		else if (p.p_type == PT_DYNAMIC)
			dynamic = p;
		else if (p.p_type == PT_NOTE)
			read_build_id(
			    file, elf_getdata_rawchunk(elf, (int64_t)p.p_offset, p.p_filesz,
						       p.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
	}
	if (dynamic.p_type == PT_DYNAMIC)
		read_dynamic(file, elf_getdata_rawchunk(elf, (int64_t)dynamic.p_offset,
							dynamic.p_filesz, ELF_T_DYN));
	return 0;
}

/* Files without program headers that show it (relocatable, debug) have the note as a section. */
static void read_note_sections(struct npg_elf_file *file)
{
	struct npg_elf_private *private = file->handle;
	GElf_Shdr section;

	for (Elf_Scn *scn = elf_nextscn(private->elf, NULL);
	     scn != NULL && file->build_id[0] == '\0'; scn = elf_nextscn(private->elf, scn))
		if (gelf_getshdr(scn, &section) != NULL && section.sh_type == SHT_NOTE)
			read_build_id(file, elf_getdata(scn, NULL));
}

static int read_all(struct npg_elf_file *file, struct npg_error *err)
{
	struct npg_elf_private *private = file->handle;
	int ret = read_header(file, err);

	if (ret == 0)
		ret = read_program_headers(file, err);
	if (ret < 0)
		return ret;
	if (private->is_dynamic && private->has_entry && (file->has_interpreter || private->is_pie))
		file->is_executable = true;
	read_note_sections(file);
	if (npg_elf_has_sanitizer_symbol(file))
		file->is_sanitized = true;
	return 0;
}

static int begin(const char *path, struct npg_elf_file **file, struct npg_error *err)
{
	struct npg_elf_private *private = calloc(1, sizeof(*private));
	struct npg_elf_file *f = calloc(1, sizeof(*f));

	if (f != NULL && private != NULL)
		f->path = strdup(path);
	if (f == NULL || private == NULL || f->path == NULL) {
		free(f);
		free(private);
		return npg_error_set(err, -ENOMEM, "%s: out of memory", path);
	}
	private->fd = -1;
	f->handle = private;
	elf_version(EV_CURRENT);
	*file = f;
	return 0;
}

static int open_regular(const char *path, int *fd, struct npg_error *err)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
	if (*fd < 0)
		return npg_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(*fd, &st) < 0 || !S_ISREG(st.st_mode))
		return npg_error_set(err, -ENOEXEC, "%s: not a regular file", path);
	return 0;
}

int npg_elf_file_open(const char *path, struct npg_elf_file **file, struct npg_error *err)
{
	struct npg_elf_private *private;
	struct npg_elf_file *f = NULL;
	int ret = begin(path, &f, err);

	if (ret < 0)
		return ret;
	private = f->handle;
	ret = open_regular(path, &private->fd, err);
	if (ret == 0) {
		private->elf = elf_begin(private->fd, ELF_C_READ, NULL);
		ret =
		    private->elf != NULL ? read_all(f, err) : npg_elf_broken(f, err, "unreadable");
	}
	if (ret < 0) {
		npg_elf_file_free(f);
		return ret;
	}
	*file = f;
	return 0;
}

int npg_elf_file_from_memory(const void *data, size_t size_bytes, struct npg_elf_file **file,
			     struct npg_error *err)
{
	struct npg_elf_private *private;
	struct npg_elf_file *f = NULL;
	int ret = begin("(memory)", &f, err);

	if (ret < 0)
		return ret;
	private = f->handle;
	/* libelf's prototype lacks the const; descriptors that read do not write */
	private->elf = elf_memory((char *)(uintptr_t)data, size_bytes);
	ret = private->elf != NULL ? read_all(f, err) : npg_elf_broken(f, err, "unreadable");
	if (ret < 0) {
		npg_elf_file_free(f);
		return ret;
	}
	*file = f;
	return 0;
}

int npg_elf_offset_of_vaddr(const struct npg_elf_file *file, uint64_t vaddr, uint64_t *file_offset)
{
	for (size_t i = 0; i < file->nr_segments; i++) {
		const struct npg_elf_segment *s = &file->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_bytes) {
			*file_offset = s->file_offset + (vaddr - s->vaddr);
			return 0;
		}
	}
	return -ENOENT;
}

int npg_elf_file_vaddr_of_offset(const struct npg_elf_file *file, uint64_t file_offset,
				 uint64_t *vaddr)
{
	for (size_t i = 0; i < file->nr_segments; i++) {
		const struct npg_elf_segment *s = &file->segments[i];

		if (file_offset >= s->file_offset && file_offset - s->file_offset < s->file_bytes) {
			*vaddr = s->vaddr + (file_offset - s->file_offset);
			return 0;
		}
	}
	return -ENOENT;
}

void npg_elf_file_free(struct npg_elf_file *file)
{
	struct npg_elf_private *private;

	if (file == NULL)
		return;
	private = file->handle;
	elf_end(private->elf);
	if (private->fd >= 0)
		close(private->fd);
	free(private);
	free(file->path);
	free(file->segments);
	free(file->objects);
	free(file->functions);
	free(file);
}
