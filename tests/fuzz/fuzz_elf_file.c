/* ELF files: no crash; symbols are in order and do not overlap. */
#include "lib/elf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_order(const struct npg_elf_symbol *symbols, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (symbols[i].size_bytes == 0 ||
		    (i > 0 && symbols[i].vaddr - symbols[i - 1].vaddr < symbols[i - 1].size_bytes))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_elf_file *file;
	uint64_t vaddr;

	if (npg_elf_file_from_memory(data, size, &file, NULL) < 0)
		return 0;
	(void)!npg_elf_file_load_symbols(file, NULL);
	check_order(file->objects, file->nr_objects);
	check_order(file->functions, file->nr_functions);
	if (npg_elf_file_vaddr_of_offset(file, 64, &vaddr) == 0)
		npg_elf_file_function_at(file, vaddr);
	npg_elf_file_free(file);
	return 0;
}
