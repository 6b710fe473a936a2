/* Memory operands: each addressing form, from real encodings. */
#include <asm/perf_regs.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiler/operand.h"
#include "profiler/perf_decode.h"

#define IP 0x401000

struct row {
	const char *code; /* bytes of one instruction */
	size_t size;
	int nr_operands;
	uint64_t address; /* of the first */
	int access;
	uint32_t size_bytes;
	bool has_unknown;
};

#define CODE(text) (text), sizeof(text) - 1

static uint64_t regs[NPG_PERF_NR_REGS];

static void set_registers(void)
{
	for (int i = 0; i < NPG_PERF_NR_REGS; i++)
		regs[i] = (uint64_t)(i + 1) * 0x100000;
	regs[PERF_REG_X86_SP] = 0x7ffc00000000;
	regs[PERF_REG_X86_AX] = 0x1000;
	regs[PERF_REG_X86_CX] = 0x20;
	regs[PERF_REG_X86_SI] = 0x300000;
	regs[PERF_REG_X86_DI] = 0x400000;
	regs[PERF_REG_X86_R8] = 0xffffffffffffff00;
}

static void check(const struct row *row, bool is_64)
{
	struct npg_insn insn;

	assert_int_equal(npg_insn_decode(row->code, row->size, is_64, &insn), 0);
	assert_int_equal(insn.length, row->size);
	assert_int_equal(insn.nr_operands, row->nr_operands);
	assert_int_equal(insn.has_unknown, row->has_unknown);
	if (row->nr_operands == 0)
		return;
	assert_int_equal(npg_operand_address(&insn, &insn.operands[0], IP, regs), row->address);
	assert_int_equal(insn.operands[0].access, row->access);
	assert_int_equal(insn.operands[0].size_bytes, row->size_bytes);
}

static void test_explicit(void **state)
{
	static const struct row rows[] = {
		{ CODE("\x48\x8b\x00"), 1, 0x1000, NPG_ACCESS_READ, 8, false }, /* mov rax,[rax] */
		{ CODE("\x89\x48\x10"), 1, 0x1010, NPG_ACCESS_WRITE, 4,
		  false }, /* mov [rax+16],ecx */
		{ CODE("\x01\x08"), 1, 0x1000, NPG_ACCESS_READ_WRITE, 4,
		  false }, /* add [rax],ecx */
		{ CODE("\x8a\x44\x88\xff"), 1, 0x107f, NPG_ACCESS_READ, 1,
		  false }, /* [rax+rcx*4-1] */
		{ CODE("\x8b\x04\x8d\x00\x10\x00\x00"), 1, 0x1080, NPG_ACCESS_READ, 4,
		  false }, /* [rcx*4+0x1000] */
		{ CODE("\x8b\x05\x10\x00\x00\x00"), 1, IP + 6 + 16, NPG_ACCESS_READ, 4,
		  false }, /* [rip+16] */
	};

	(void)state;
	set_registers();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i], true);
}

static void test_high_registers_wrap(void **state)
{
	/* addsd xmm0, [r9 + r8] with r8 = -256 */
	const struct row row = {
		CODE("\xf2\x43\x0f\x58\x04\x01"), 1, 0, NPG_ACCESS_READ, 8, false
	};
	struct row expected = row;

	(void)state;
	set_registers();
	expected.address = regs[PERF_REG_X86_R9] - 0x100;
	check(&expected, true);
}

static void test_implicit_stack(void **state)
{
	static const struct row rows[] = {
		{ CODE("\x50"), 1, 0x7ffbfffffff8, NPG_ACCESS_WRITE, 8, false }, /* push rax */
		{ CODE("\x58"), 1, 0x7ffc00000000, NPG_ACCESS_READ, 8, false },  /* pop rax */
		{ CODE("\xc3"), 1, 0x7ffc00000000, NPG_ACCESS_READ, 8, false },  /* ret */
		{ CODE("\xe8\x00\x00\x00\x00"), 1, 0x7ffbfffffff8, NPG_ACCESS_WRITE, 8,
		  false },                                                  /* call */
		{ CODE("\xff\x30"), 1, 0x1000, NPG_ACCESS_READ, 8, false }, /* push [rax] */
		{ CODE("\x8f\x44\x24\x08"), 1, 0x7ffc00000010, NPG_ACCESS_WRITE, 8,
		  false }, /* pop [rsp+8]: after the pointer has moved */
	};

	(void)state;
	set_registers();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i], true);
}

static void test_string_moves_have_two(void **state)
{
	struct npg_insn insn;
	bool is_read = false, is_written = false;

	(void)state;
	set_registers();
	assert_int_equal(npg_insn_decode("\xf3\x48\xa5", 3, true, &insn), 0); /* rep movsq */
	assert_int_equal(insn.nr_operands, 2);
	for (int i = 0; i < 2; i++) {
		uint64_t at = npg_operand_address(&insn, &insn.operands[i], IP, regs);

		is_written |= at == 0x400000 && insn.operands[i].access == NPG_ACCESS_WRITE;
		is_read |= at == 0x300000 && insn.operands[i].access == NPG_ACCESS_READ;
	}
	assert_true(is_read && is_written);
}

static void test_none_and_unknown(void **state)
{
	static const struct row rows[] = {
		{ CODE("\x48\x8d\x04\x08"), 0, 0, 0, 0, false }, /* lea */
		{ CODE("\x0f\x1f\x40\x00"), 0, 0, 0, 0, false }, /* nop [rax] */
		{ CODE("\x0f\x18\x08"), 0, 0, 0, 0, false },     /* prefetcht0 */
		{ CODE("\x48\x01\xc8"), 0, 0, 0, 0, false },     /* add rax,rcx */
		{ CODE("\x64\x48\x8b\x04\x25\x28\x00\x00\x00"), 0, 0, 0, 0, true }, /* fs:0x28 */
		{ CODE("\xc4\xe2\x75\x90\x04\x98"), 0, 0, 0, 0, true },             /* vpgatherdd */
		{ CODE("\x48\x0f\xa3\x08"), 0, 0, 0, 0, true }, /* bt [rax],rcx */
		{ CODE("\xd7"), 0, 0, 0, 0, true },             /* xlat */
	};

	(void)state;
	set_registers();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i], true);
}

static void test_short_addresses(void **state)
{
	/* addr32 mov eax,[r8d]; and the same register in 32-bit mode */
	static const struct row in_64 = { CODE("\x67\x41\x8b\x00"), 1, 0xffffff00,
					  NPG_ACCESS_READ,          4, false };
	static const struct row in_32 = {
		CODE("\x8b\x04\x88"), 1, 0x1080, NPG_ACCESS_READ, 4, false
	};

	(void)state;
	set_registers();
	check(&in_64, true);
	check(&in_32, false);
}

static void test_broken(void **state)
{
	struct npg_insn insn;

	(void)state;
	assert_int_equal(npg_insn_decode("\x48\x8b", 2, true, &insn), -EBADMSG);
	assert_int_equal(npg_insn_decode("", 0, true, &insn), -EBADMSG);
	assert_int_equal(npg_insn_decode("\x06", 1, true, &insn), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_explicit),
		cmocka_unit_test(test_high_registers_wrap),
		cmocka_unit_test(test_implicit_stack),
		cmocka_unit_test(test_string_moves_have_two),
		cmocka_unit_test(test_none_and_unknown),
		cmocka_unit_test(test_short_addresses),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests_name("operand", tests, NULL, NULL);
}
