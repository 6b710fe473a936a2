/*
 * Function bounds from .eh_frame_hdr. Only the encodings that linkers write are read: a sorted
 * table of 32-bit offsets relative to the header, and entries with 32-bit PC-relative starts.
 */
#include <errno.h>

#include <gelf.h>

#include "lib/elf_file.h"
#include "lib/elf_internal.h"

/* pointer encodings of the LSB core specification, 10.5 */
#define PCREL_SDATA4   0x1b
#define UDATA4         0x03
#define DATAREL_SDATA4 0x3b

#define HEADER_BYTES 12 /* version, three encodings, .eh_frame's address, number of entries */
#define ENTRY_BYTES  8
#define FDE_BYTES    16 /* length, CIE pointer, start, size */

struct table {
	const unsigned char *entries;
	uint64_t nr_entries;
	uint64_t vaddr; /* of the header, which offsets are relative to */
};

static int32_t read_i32(const unsigned char *p)
{
	int32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static bool find_header(Elf *elf, GElf_Phdr *header)
{
	size_t nr;

	if (elf_getphdrnum(elf, &nr) < 0)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (gelf_getphdr(elf, (int)i, header) != NULL && header->p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

static bool find_table(const struct npg_elf_file *file, struct table *table)
{
	struct npg_elf_private *private = file->handle;
	const unsigned char *bytes;
	GElf_Phdr header;
	Elf_Data *data;

	if (!file->is_native || !find_header(private->elf, &header) ||
	    header.p_filesz < HEADER_BYTES)
		return false;
	data = elf_getdata_rawchunk(private->elf, (int64_t)header.p_offset, header.p_filesz,
				    ELF_T_BYTE);
	if (data == NULL || data->d_size < HEADER_BYTES)
		return false;
	bytes = data->d_buf;
	if (bytes[0] != 1 || bytes[1] != PCREL_SDATA4 || bytes[2] != UDATA4 ||
	    bytes[3] != DATAREL_SDATA4)
		return false;
	table->entries = bytes + HEADER_BYTES;
	table->nr_entries = (uint32_t)read_i32(bytes + 8);
	table->vaddr = header.p_vaddr;
	return table->nr_entries <= (data->d_size - HEADER_BYTES) / ENTRY_BYTES;
}

static uint64_t start_of(const struct table *table, uint64_t i)
{
	return table->vaddr + (uint64_t)(int64_t)read_i32(table->entries + i * ENTRY_BYTES);
}

/* The entry's own idea of its start must agree, or its encoding is another one. */
static int read_entry(const struct npg_elf_file *file, uint64_t fde_vaddr, uint64_t start,
		      uint64_t *size_bytes)
{
	struct npg_elf_private *private = file->handle;
	const unsigned char *fde;
	uint64_t offset;
	Elf_Data *data;

	if (npg_elf_offset_of_vaddr(file, fde_vaddr, &offset) < 0)
		return -ENOENT;
	data = elf_getdata_rawchunk(private->elf, (int64_t)offset, FDE_BYTES, ELF_T_BYTE);
	if (data == NULL || data->d_size < FDE_BYTES)
		return -ENOENT;
	fde = data->d_buf;
	if (fde_vaddr + 8 + (uint64_t)(int64_t)read_i32(fde + 8) != start)
		return -ENOENT;
	*size_bytes = (uint32_t)read_i32(fde + 12);
	return 0;
}

int npg_elf_file_frame_at(const struct npg_elf_file *file, uint64_t vaddr, uint64_t *start,
			  uint64_t *size_bytes)
{
	uint64_t low = 0, high, found, size = 0;
	struct table table;

	if (!find_table(file, &table))
		return -ENOENT;
	high = table.nr_entries;
	while (low < high) { /* first entry that starts behind vaddr */
		uint64_t middle = low + (high - low) / 2;

		if (start_of(&table, middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return -ENOENT;
	found = start_of(&table, low - 1);
	if (read_entry(file,
		       table.vaddr +
			   (uint64_t)(int64_t)read_i32(table.entries + (low - 1) * ENTRY_BYTES + 4),
		       found, &size) < 0 ||
	    vaddr - found >= size)
		return -ENOENT;
	*start = found;
	*size_bytes = size;
	return 0;
}
