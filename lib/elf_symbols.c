/*
 * Symbols of ELF files: data objects and functions, by address, without overlap.
 *
 * Two symbols of equal address are aliases: the larger stays, then the better known (global, weak,
 * local), then the one with fewer leading underscores, then by name, so that the choice is the
 * same in every build. One inside another is dropped; one that runs into the next is shortened
 * (the red zones of AddressSanitizer do that).
 */
#include <errno.h>

#include <gelf.h>

#include "lib/elf_internal.h"

struct candidate {
	struct npg_elf_symbol symbol;
	int rank; /* of the binding: 0 is best */
};

struct table {
	Elf_Scn *scn;
	GElf_Shdr header;
	Elf_Data *symbols;
	Elf_Data *wide_indexes; /* SHT_SYMTAB_SHNDX, or NULL */
	size_t nr;
};

struct collection {
	struct candidate *items;
	size_t nr;
};

static Elf_Scn *find_section(Elf *elf, uint32_t type, GElf_Shdr *header)
{
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn != NULL; scn = elf_nextscn(elf, scn))
		if (gelf_getshdr(scn, header) != NULL && header->sh_type == type)
			return scn;
	return NULL;
}

static bool is_plain(Elf *elf, size_t i_section)
{
	GElf_Shdr header;
	Elf_Scn *scn = elf_getscn(elf, i_section);

	return scn != NULL && gelf_getshdr(scn, &header) != NULL && header.sh_type == SHT_STRTAB &&
	       (header.sh_flags & SHF_COMPRESSED) == 0;
}

/* Return: 1 a table, 0 the file has none of this type, -ENOEXEC. */
static int open_table(const struct npg_elf_file *file, uint32_t type, struct table *t,
		      struct npg_error *err)
{
	const struct npg_elf_private *private = file->handle;
	size_t entry_bytes = gelf_fsize(private->elf, ELF_T_SYM, 1, EV_CURRENT);
	GElf_Shdr wide;
	Elf_Scn *wide_scn;

	memset(t, 0, sizeof(*t));
	t->scn = find_section(private->elf, type, &t->header);
	if (t->scn == NULL)
		return 0;
	if ((t->header.sh_flags & SHF_COMPRESSED) != 0 ||
	    !is_plain(private->elf, t->header.sh_link))
		return npg_elf_broken(file, err, "its symbol table is compressed or has no names");
	t->symbols = elf_getdata(t->scn, NULL);
	if (t->symbols == NULL || t->symbols->d_buf == NULL || entry_bytes == 0)
		return npg_elf_broken(file, err, "its symbol table cannot be read");
	t->nr = t->symbols->d_size / entry_bytes;
	wide_scn = find_section(private->elf, SHT_SYMTAB_SHNDX, &wide);
	if (wide_scn != NULL && type == SHT_SYMTAB)
		t->wide_indexes = elf_getdata(wide_scn, NULL);
	return 1;
}

static bool read_symbol(const struct table *t, size_t i, GElf_Sym *symbol, size_t *i_section)
{
	Elf32_Word wide = 0;

	if (gelf_getsymshndx(t->symbols, t->wide_indexes, (int)i, symbol, &wide) == NULL)
		return false;
	if (symbol->st_shndx == SHN_XINDEX)
		*i_section = wide;
	else if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
		return false; /* elsewhere, absolute, or not yet placed */
	else
		*i_section = symbol->st_shndx;
	return true;
}

/* Cut the symbol to its section. Return: false if it is no memory of the program. */
static bool clamp_to_section(Elf *elf, size_t i_section, GElf_Sym *symbol)
{
	Elf_Scn *scn = elf_getscn(elf, i_section);
	GElf_Shdr s;
	uint64_t offset;

	if (scn == NULL || gelf_getshdr(scn, &s) == NULL || (s.sh_flags & SHF_ALLOC) == 0 ||
	    (s.sh_flags & SHF_TLS) != 0 || symbol->st_value < s.sh_addr)
		return false;
	offset = symbol->st_value - s.sh_addr;
	if (offset >= s.sh_size || s.sh_addr > UINT64_MAX - s.sh_size)
		return false;
	if (symbol->st_size > s.sh_size - offset)
		symbol->st_size = s.sh_size - offset;
	return true;
}

static int rank_of(unsigned char info)
{
	switch (GELF_ST_BIND(info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 0;
	case STB_WEAK:
		return 1;
	default:
		return 2;
	}
}

/* Return: where the symbol belongs, or NULL. */
static struct collection *collection_of(unsigned char info, struct collection *objects,
					struct collection *functions)
{
	switch (GELF_ST_TYPE(info)) {
	case STT_OBJECT:
	case STT_COMMON:
		return objects;
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return functions;
	default:
		return NULL;
	}
}

/* Return: how many entries were not sound. */
static size_t collect(const struct npg_elf_file *file, const struct table *t,
		      struct collection *objects, struct collection *functions)
{
	const struct npg_elf_private *private = file->handle;
	size_t nr_broken = 0;

	for (size_t i = 1; i < t->nr; i++) {
		struct collection *to;
		size_t i_section;
		const char *name;
		GElf_Sym s;

		if (!read_symbol(t, i, &s, &i_section) || s.st_size == 0)
			continue;
		to = collection_of(s.st_info, objects, functions);
		if (to == NULL || !clamp_to_section(private->elf, i_section, &s))
			continue;
		name = elf_strptr(private->elf, t->header.sh_link, s.st_name);
		if (name == NULL) {
			nr_broken++;
			continue;
		}
		if (name[0] == '\0')
			continue;
		to->items[to->nr++] =
		    (struct candidate){ { s.st_value, s.st_size, name }, rank_of(s.st_info) };
	}
	return nr_broken;
}

static size_t nr_underscores(const char *name)
{
	return strspn(name, "_");
}

static int compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->symbol.vaddr != b->symbol.vaddr)
		return a->symbol.vaddr < b->symbol.vaddr ? -1 : 1;
	if (a->symbol.size_bytes != b->symbol.size_bytes)
		return a->symbol.size_bytes > b->symbol.size_bytes ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (nr_underscores(a->symbol.name) != nr_underscores(b->symbol.name))
		return nr_underscores(a->symbol.name) < nr_underscores(b->symbol.name) ? -1 : 1;
	return strcmp(a->symbol.name, b->symbol.name);
}

static int merge(struct collection *c, struct npg_elf_symbol **symbols, size_t *nr)
{
	struct npg_elf_symbol *result = calloc(c->nr + 1, sizeof(*result));
	size_t count = 0;

	if (result == NULL)
		return -ENOMEM;
	qsort(c->items, c->nr, sizeof(*c->items), compare);
	for (size_t i = 0; i < c->nr; i++) {
		const struct npg_elf_symbol *s = &c->items[i].symbol;

		if (count > 0) {
			struct npg_elf_symbol *last = &result[count - 1];
			uint64_t distance = s->vaddr - last->vaddr;

			if (distance < last->size_bytes) {
				if (s->size_bytes <= last->size_bytes - distance)
					continue;
				if (distance == 0)
					continue;
				last->size_bytes = distance;
			}
		}
		result[count++] = *s;
	}
	*symbols = result;
	*nr = count;
	return 0;
}

static int load_table(struct npg_elf_file *file, const struct table *t, struct npg_error *err)
{
	struct collection objects = { NULL, 0 }, functions = { NULL, 0 };
	size_t nr_broken;
	int ret = -ENOMEM;

	objects.items = calloc(t->nr + 1, sizeof(*objects.items));
	functions.items = calloc(t->nr + 1, sizeof(*functions.items));
	if (objects.items == NULL || functions.items == NULL) {
		npg_error_set(err, ret, "%s: out of memory", file->path);
		goto out;
	}
	nr_broken = collect(file, t, &objects, &functions);
	if (merge(&objects, &file->objects, &file->nr_objects) < 0 ||
	    merge(&functions, &file->functions, &file->nr_functions) < 0) {
		npg_error_set(err, ret, "%s: out of memory", file->path);
		goto out;
	}
	ret = 0;
	if (nr_broken > 0)
		ret = npg_error_set(err, -ENOEXEC,
				    "%s: broken ELF file: %zu symbols have names outside its name "
				    "table; the other symbols are used",
				    file->path, nr_broken);
out:
	free(objects.items);
	free(functions.items);
	return ret;
}

int npg_elf_file_load_symbols(struct npg_elf_file *file, struct npg_error *err)
{
	struct table t;
	int ret;

	if (file->objects != NULL)
		return 0;
	ret = open_table(file, SHT_SYMTAB, &t, err);
	if (ret <= 0) {
		int dynamic = open_table(file, SHT_DYNSYM, &t, ret < 0 ? NULL : err);

		if (dynamic <= 0)
			return ret < 0 ? ret : dynamic;
		dynamic = load_table(file, &t, ret < 0 ? NULL : err);
		return ret < 0 ? ret : dynamic;
	}
	return load_table(file, &t, err);
}

bool npg_elf_has_sanitizer_symbol(const struct npg_elf_file *file)
{
	/* the last one is wanted by every runtime with an allocator, also a static one */
	static const char *const names[] = { "__asan_init", "__tsan_init",
					     "__msan_init", "__hwasan_init",
					     "__lsan_init", "__sanitizer_malloc_hook" };
	const struct npg_elf_private *private = file->handle;
	struct table t;

	if (open_table(file, SHT_DYNSYM, &t, NULL) <= 0)
		return false;
	for (size_t i = 1; i < t.nr; i++) {
		const char *name;
		GElf_Sym s;

		if (gelf_getsym(t.symbols, (int)i, &s) == NULL)
			break;
		name = elf_strptr(private->elf, t.header.sh_link, s.st_name);
		for (size_t n = 0; name != NULL && n < NPG_ARRAY_SIZE(names); n++)
			if (strcmp(name, names[n]) == 0)
				return true;
	}
	return false;
}

static const struct npg_elf_symbol *find(const struct npg_elf_symbol *symbols, size_t nr,
					 uint64_t vaddr)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || vaddr - symbols[low - 1].vaddr >= symbols[low - 1].size_bytes)
		return NULL;
	return &symbols[low - 1];
}

const struct npg_elf_symbol *npg_elf_file_object_at(const struct npg_elf_file *file, uint64_t vaddr)
{
	return find(file->objects, file->nr_objects, vaddr);
}

const struct npg_elf_symbol *npg_elf_file_function_at(const struct npg_elf_file *file,
						      uint64_t vaddr)
{
	return find(file->functions, file->nr_functions, vaddr);
}
