/* ELF files: real ones built on the spot, odd ones, broken ones. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/elf_file.h"

static char directory[64];
static struct npg_error err;

static const char source[] =
    "#include <stdio.h>\n"
    "double shared_vec[100000];\n"
    "extern double alias_vec[100000] __attribute__((alias(\"shared_vec\")));\n"
    "char pool[70000] = \"x\";\n"
    "static int table[4096] __attribute__((used)) = { 1 };\n"
    "__thread char tls_buf[5000];\n"
    "int common_block[10000];\n"
    "static int f1(void) { return 1; }\n"
    "static int (*pick(void))(void) { return f1; }\n"
    "int picked(void) __attribute__((ifunc(\"pick\")));\n"
    "int main(void) { return picked() + table[1] + (int)shared_vec[1] + pool[1] + "
    "tls_buf[0] + common_block[3] > 5 ? puts(\"x\") : 0; }\n";

static void run(const char *format, ...) NPG_PRINTF(1, 2);

static void run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static const char *in_directory(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static int set_up(void **state)
{
	FILE *file;

	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/numapgo-test-elf.XXXXXX");
	if (mkdtemp(directory) == NULL)
		return -1;
	file = fopen(in_directory("a.c"), "we");
	if (file == NULL)
		return -1;
	fputs(source, file);
	return fclose(file);
}

static int tear_down(void **state)
{
	(void)state;
	run("rm -rf %s", directory);
	return 0;
}

static const char *build(const char *options)
{
	run("gcc -O1 -w %s -o %s/a.out %s/a.c", options, directory, directory);
	return in_directory("a.out");
}

static struct npg_elf_file *open_file(const char *path)
{
	struct npg_elf_file *f;

	if (npg_elf_file_open(path, &f, &err) < 0)
		fail_msg("%s", err.text);
	return f;
}

static const struct npg_elf_symbol *find(const struct npg_elf_symbol *symbols, size_t nr,
					 const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (strcmp(symbols[i].name, name) == 0)
			return &symbols[i];
	return NULL;
}

static void check_order(const struct npg_elf_symbol *symbols, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		assert_true(symbols[i].size_bytes > 0);
		if (i > 0)
			assert_true(symbols[i].vaddr >=
				    symbols[i - 1].vaddr + symbols[i - 1].size_bytes);
	}
}

static void check_objects(const struct npg_elf_file *f)
{
	static const struct {
		const char *name;
		uint64_t size_bytes;
	} want[] = { { "pool", 70000 }, { "table", 16384 }, { "common_block", 40000 } };
	const struct npg_elf_symbol *s;

	for (size_t i = 0; i < NPG_ARRAY_SIZE(want); i++) {
		s = find(f->objects, f->nr_objects, want[i].name);
		assert_non_null(s);
		assert_int_equal(s->size_bytes, want[i].size_bytes);
		assert_ptr_equal(npg_elf_file_object_at(f, s->vaddr), s);
		assert_ptr_equal(npg_elf_file_object_at(f, s->vaddr + s->size_bytes - 1), s);
		assert_ptr_not_equal(npg_elf_file_object_at(f, s->vaddr + s->size_bytes), s);
	}
	/* one object, one name, the same in every build; never one at a TLS offset */
	s = find(f->objects, f->nr_objects, "alias_vec");
	assert_non_null(s);
	assert_int_equal(s->size_bytes, 800000);
	assert_null(find(f->objects, f->nr_objects, "shared_vec"));
	assert_null(find(f->objects, f->nr_objects, "tls_buf"));
	assert_null(npg_elf_file_object_at(f, 0));
	check_order(f->objects, f->nr_objects);
}

static void finds_symbols_of_every_kind_of_link(void **state)
{
	static const struct {
		const char *options;
		bool has_interpreter;
	} cases[] = {
		{ "", true }, { "-no-pie", true }, { "-static", false }, { "-static-pie", false }
	};

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(cases); i++) {
		struct npg_elf_file *f = open_file(build(cases[i].options));

		assert_true(f->is_native);
		assert_true(f->is_executable);
		assert_int_equal(f->has_interpreter, cases[i].has_interpreter);
		assert_false(f->is_sanitized);
		assert_int_equal(strlen(f->build_id), 40);
		if (npg_elf_file_load_symbols(f, &err) < 0)
			fail_msg("%s", err.text);
		check_objects(f);
		assert_non_null(find(f->functions, f->nr_functions, "picked"));
		assert_non_null(find(f->functions, f->nr_functions, "main"));
		check_order(f->functions, f->nr_functions);
		npg_elf_file_free(f);
	}
}

static void stripped_has_no_symbols_and_no_error(void **state)
{
	struct npg_elf_file *f = open_file(build("-s"));

	(void)state;
	assert_int_equal(npg_elf_file_load_symbols(f, &err), 0);
	assert_null(find(f->objects, f->nr_objects, "pool"));
	assert_null(npg_elf_file_function_at(f, 0x1000000));
	npg_elf_file_free(f);
}

static void library_gives_its_dynamic_symbols(void **state)
{
	struct npg_elf_file *f =
	    open_file(build("-shared -fPIC -s -Wl,--build-id=0x0123456789abcdef"));

	(void)state;
	assert_false(f->is_executable);
	assert_false(f->has_interpreter);
	assert_string_equal(f->build_id, "0123456789abcdef");
	assert_int_equal(npg_elf_file_load_symbols(f, &err), 0);
	assert_non_null(find(f->objects, f->nr_objects, "pool"));
	assert_null(find(f->objects, f->nr_objects, "table")); /* static */
	npg_elf_file_free(f);
	f = open_file(build("-Wl,--build-id=none"));
	assert_string_equal(f->build_id, "");
	npg_elf_file_free(f);
}

static void sanitizers_are_seen(void **state)
{
	static const char *const options[] = { "-fsanitize=address",
					       "-fsanitize=address -static-libasan",
					       "-fsanitize=thread -fPIE -pie" };

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(options); i++) {
		struct npg_elf_file *f = open_file(build(options[i]));

		assert_true(f->is_sanitized);
		assert_int_equal(npg_elf_file_load_symbols(f, &err), 0);
		check_order(f->objects, f->nr_objects);
		npg_elf_file_free(f);
	}
}

static void offsets_become_addresses(void **state)
{
	struct npg_elf_file *f = open_file(build("-no-pie"));
	uint64_t vaddr;

	(void)state;
	assert_true(f->nr_segments >= 2);
	for (size_t i = 0; i < f->nr_segments; i++) {
		const struct npg_elf_segment *s = &f->segments[i];

		assert_true(s->file_bytes <= s->memory_bytes);
		assert_int_equal(npg_elf_file_vaddr_of_offset(f, s->file_offset + 8, &vaddr), 0);
		assert_int_equal(vaddr, s->vaddr + 8);
	}
	assert_int_equal(npg_elf_file_vaddr_of_offset(f, UINT64_MAX, &vaddr), -ENOENT);
	npg_elf_file_free(f);
}

static void other_files_are_refused(void **state)
{
	static const struct {
		const char *make; /* shell, makes "x" */
		int ret;
		const char *says;
	} cases[] = {
		{ "rm -f x", -ENOENT, "No such file" },
		{ ": > x", -ENOEXEC, "not an ELF file" },
		{ "echo text > x", -ENOEXEC, "not an ELF file" },
		{ "rm -f x; mkfifo x", -ENOEXEC, "not a regular file" },
		{ "rm -f x; mkdir x", -ENOEXEC, "not a regular file" },
		{ "rmdir x; gcc -c -w -o o.o a.c && ar rc x o.o", -ENOEXEC, "archive" },
	};
	struct npg_elf_file *f;

	(void)state;
	for (size_t i = 0; i < NPG_ARRAY_SIZE(cases); i++) {
		run("cd %s && { %s; }", directory, cases[i].make);
		assert_int_equal(npg_elf_file_open(in_directory("x"), &f, &err), cases[i].ret);
		if (strstr(err.text, cases[i].says) == NULL)
			fail_msg("%s: %s", cases[i].make, err.text);
	}
	npg_elf_file_free(NULL);
}

static void relocatable_and_foreign_files_are_read(void **state)
{
	unsigned char header[64] = { 0 };
	struct npg_elf_file *f;

	(void)state;
	f = open_file(build("-c"));
	assert_false(f->is_executable);
	assert_int_equal(f->nr_segments, 0);
	assert_int_equal(npg_elf_file_load_symbols(f, &err), 0);
	npg_elf_file_free(f);
	memcpy(header, ELFMAG, SELFMAG);
	header[EI_CLASS] = ELFCLASS32;
	header[EI_DATA] = ELFDATA2MSB;
	header[EI_VERSION] = EV_CURRENT;
	assert_int_equal(npg_elf_file_from_memory(header, sizeof(header), &f, &err), 0);
	assert_false(f->is_native);
	assert_int_equal(npg_elf_file_load_symbols(f, &err), 0);
	npg_elf_file_free(f);
}

static char *read_file(const char *path, size_t *size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*size = (size_t)st.st_size;
	bytes = malloc(*size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, *size), st.st_size);
	close(fd);
	return bytes;
}

/* All that a file says, once; whatever it is, there is no crash and no broken order. */
static void exercise(const char *bytes, size_t size)
{
	struct npg_elf_file *f;

	err.text[0] = '\0';
	if (npg_elf_file_from_memory(bytes, size, &f, &err) < 0) {
		assert_true(err.text[0] != '\0');
		return;
	}
	if (npg_elf_file_load_symbols(f, &err) < 0)
		assert_true(err.text[0] != '\0');
	check_order(f->objects, f->nr_objects);
	check_order(f->functions, f->nr_functions);
	npg_elf_file_free(f);
}

static void cut_files_do_no_harm(void **state)
{
	size_t size;
	char *bytes = read_file(build(""), &size);

	(void)state;
	for (size_t length = 0; length < size; length += 64) {
		char *part = malloc(length + 1); /* so that a sanitizer sees the end */

		assert_non_null(part);
		memcpy(part, bytes, length);
		exercise(part, length);
		free(part);
	}
	free(bytes);
}

static void garbage_does_no_harm(void **state)
{
	size_t size;
	char *bytes = read_file(build(""), &size);
	uint64_t random = 88172645463325252;

	(void)state;
	for (int round = 0; round < 300; round++) {
		char *copy = malloc(size);

		assert_non_null(copy);
		memcpy(copy, bytes, size);
		for (int i = 0; i < 40; i++) {
			size_t at;

			random ^= random << 13; /* xorshift64, Marsaglia 2003 */
			random ^= random >> 7;
			random ^= random << 17;
			/* half of them in the headers */
			at = i % 2 == 0 ? random % 1024 : random % size;
			if (at >= 6)
				copy[at] = (char)(random >> 32);
		}
		exercise(copy, size);
		free(copy);
	}
	free(bytes);
}

static void broken_names_keep_the_sound_ones(void **state)
{
	size_t size;
	char *bytes = read_file(build(""), &size);
	Elf64_Ehdr header;
	struct npg_elf_file *f;

	(void)state;
	if (sizeof(void *) != 8)
		skip();
	memcpy(&header, bytes, sizeof(header));
	for (size_t i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr s;

		memcpy(&s, bytes + header.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_SYMTAB)
			continue;
		for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Sym); k++) {
			char *at = bytes + s.sh_offset + k * sizeof(Elf64_Sym);
			Elf64_Sym symbol;

			memcpy(&symbol, at, sizeof(symbol));
			if (symbol.st_size == 70000)
				symbol.st_name = 0x7fffffff;
			memcpy(at, &symbol, sizeof(symbol));
		}
	}
	assert_int_equal(npg_elf_file_from_memory(bytes, size, &f, &err), 0);
	assert_int_equal(npg_elf_file_load_symbols(f, &err), -ENOEXEC);
	assert_non_null(strstr(err.text, "1 symbols"));
	assert_null(find(f->objects, f->nr_objects, "pool"));
	assert_non_null(find(f->objects, f->nr_objects, "table"));
	npg_elf_file_free(f);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_symbols_of_every_kind_of_link),
		cmocka_unit_test(stripped_has_no_symbols_and_no_error),
		cmocka_unit_test(library_gives_its_dynamic_symbols),
		cmocka_unit_test(sanitizers_are_seen),
		cmocka_unit_test(offsets_become_addresses),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(relocatable_and_foreign_files_are_read),
		cmocka_unit_test(cut_files_do_no_harm),
		cmocka_unit_test(garbage_does_no_harm),
		cmocka_unit_test(broken_names_keep_the_sound_ones),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
