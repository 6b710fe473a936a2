/* Addresses recovered along a basic block: hand-assembled code with known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <asm/perf_regs.h>
#include <cmocka.h>

#include "profiler/block.h"
#include "profiler/perf_decode.h"

#define CODE(...) ((const unsigned char[]){ __VA_ARGS__ })

enum {
	AX = PERF_REG_X86_AX,
	CX = PERF_REG_X86_CX,
	DX = PERF_REG_X86_DX,
	SI = PERF_REG_X86_SI,
	DI = PERF_REG_X86_DI,
	IP = PERF_REG_X86_IP,
};

/* Registers with values that no sum of a few others gives by chance. */
static void fill(uint64_t *regs)
{
	for (int r = 0; r < NPG_PERF_NR_REGS; r++)
		regs[r] = UINT64_C(0x100000001) * (uint64_t)(r + 3) * (uint64_t)(r + 7);
}

static struct npg_recovery recover(const unsigned char *code, size_t size, size_t offset)
{
	struct npg_function function;
	struct npg_recovery recovery;

	assert_int_equal(npg_function_init(code, size, &function), 0);
	npg_function_recover(&function, offset, &recovery);
	npg_function_release(&function);
	return recovery;
}

static void expect(const struct npg_recovery *recovery, int way, uint64_t address, int access)
{
	uint64_t regs[NPG_PERF_NR_REGS];

	fill(regs);
	assert_int_equal(recovery->way, way);
	assert_int_equal(recovery->nr_accesses, 1);
	assert_int_equal(npg_recovered_address(&recovery->accesses[0], regs), address);
	assert_int_equal(recovery->accesses[0].access, access);
}

/* add %r15,(%rax); add $8,%rax; cmp %rax,%rdx; jne to the beginning */
static void undoes_a_step(void **state)
{
	const unsigned char *loop =
	    CODE(0x4c, 0x01, 0x38, 0x48, 0x83, 0xc0, 0x08, 0x48, 0x39, 0xc2, 0x75, 0xf4);
	uint64_t regs[NPG_PERF_NR_REGS];
	struct npg_recovery recovery;

	(void)state;
	fill(regs);
	recovery = recover(loop, 12, 3);
	expect(&recovery, NPG_RECOVERY_BACKWARD, regs[AX], NPG_ACCESS_READ_WRITE);
	recovery = recover(loop, 12, 7);
	expect(&recovery, NPG_RECOVERY_BACKWARD, regs[AX] - 8, NPG_ACCESS_READ_WRITE);
	recovery = recover(loop, 12, 10);
	expect(&recovery, NPG_RECOVERY_BACKWARD, regs[AX] - 8, NPG_ACCESS_READ_WRITE);
}

/* mov (%rdi),%rax; je behind the nop; nop; inc %rcx; ret: two ways lead to inc */
static void does_not_cross_a_branch_target(void **state)
{
	const unsigned char *code =
	    CODE(0x48, 0x8b, 0x07, 0x74, 0x01, 0x90, 0x48, 0xff, 0xc1, 0x0f, 0x05);
	uint64_t regs[NPG_PERF_NR_REGS];
	struct npg_recovery recovery = recover(code, 11, 6);

	(void)state;
	fill(regs);
	assert_int_equal(recovery.way, NPG_RECOVERY_NONE);
	assert_int_equal(recover(code, 11, 9).way, NPG_RECOVERY_NONE);
	recovery = recover(code, 11, 5); /* behind the branch, not led to: it fell through */
	expect(&recovery, NPG_RECOVERY_BACKWARD, regs[DI], NPG_ACCESS_READ);
}

/* mov (%rax),%rax; inc %rcx; mov (%rax),%rdx: the first address is lost, the next is at hand */
static void goes_forward_when_the_base_is_lost(void **state)
{
	const unsigned char *code = CODE(0x48, 0x8b, 0x00, 0x48, 0xff, 0xc1, 0x48, 0x8b, 0x10);
	uint64_t regs[NPG_PERF_NR_REGS];
	struct npg_recovery recovery = recover(code, 9, 3);

	(void)state;
	fill(regs);
	expect(&recovery, NPG_RECOVERY_FORWARD, regs[AX], NPG_ACCESS_READ);
	assert_int_equal(recover(code, 6, 3).way, NPG_RECOVERY_NONE);
}

/* mov (%rdi),%rax; mov %rdi,%rsi; xor %edi,%edi; nop: the copy still has the address */
static void finds_a_copy(void **state)
{
	const unsigned char *code = CODE(0x48, 0x8b, 0x07, 0x48, 0x89, 0xfe, 0x31, 0xff, 0x90);
	uint64_t regs[NPG_PERF_NR_REGS];
	struct npg_recovery recovery = recover(code, 9, 8);

	(void)state;
	fill(regs);
	expect(&recovery, NPG_RECOVERY_BACKWARD, regs[SI], NPG_ACCESS_READ);
}

/* mov (%rdi,%rcx,8),%rax; lea 3(%rcx,%rdx),%rcx; nop */
static void undoes_a_sum_of_registers(void **state)
{
	const unsigned char *code =
	    CODE(0x48, 0x8b, 0x04, 0xcf, 0x48, 0x8d, 0x4c, 0x11, 0x03, 0x90);
	uint64_t regs[NPG_PERF_NR_REGS];
	struct npg_recovery recovery = recover(code, 10, 9);

	(void)state;
	fill(regs);
	expect(&recovery, NPG_RECOVERY_BACKWARD, regs[DI] + 8 * (regs[CX] - regs[DX] - 3),
	       NPG_ACCESS_READ);
}

/* mov 0x10(%rip),%rax; nop */
static void knows_where_the_code_is(void **state)
{
	const unsigned char *code = CODE(0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x90);
	uint64_t regs[NPG_PERF_NR_REGS];
	struct npg_recovery recovery = recover(code, 8, 7);

	(void)state;
	fill(regs);
	expect(&recovery, NPG_RECOVERY_BACKWARD, regs[IP] + 0x10, NPG_ACCESS_READ);
}

/* mov %eax,(%rdi); mov %eax,%edi; nop: a 32-bit copy cuts the address, nothing is certain */
static void trusts_no_32_bit_copy(void **state)
{
	const unsigned char *code = CODE(0x89, 0x07, 0x89, 0xc7, 0x90);

	(void)state;
	assert_int_equal(recover(code, 5, 4).way, NPG_RECOVERY_NONE);
}

/* mov (%rdi),%rax; nop; ...; jmp *%rax: a jump table may lead anywhere, so only forward */
static void trusts_no_code_with_jump_tables(void **state)
{
	const unsigned char *code = CODE(0x48, 0x8b, 0x07, 0x90, 0xff, 0xe0);

	(void)state;
	assert_int_equal(recover(code, 4, 3).way, NPG_RECOVERY_BACKWARD);
	assert_int_equal(recover(code, 6, 3).way, NPG_RECOVERY_NONE);
}

/* Another part of the function branches into its middle. */
static void counts_branches_from_elsewhere(void **state)
{
	const unsigned char *code = CODE(0x48, 0x8b, 0x07, 0x90, 0x0f, 0x84, 0xf6, 0, 0, 0);
	const unsigned char *cold = CODE(0xe9, 0xfe, 0xfe, 0xff, 0xff); /* 0x100 + 5 - 0x102 = 3 */
	struct npg_function function, other;
	struct npg_recovery recovery;
	bool is_conditional = false;
	int64_t target = 0;

	(void)state;
	assert_int_equal(npg_function_init(code, 10, &function), 0);
	assert_int_equal(npg_function_init(cold, 5, &other), 0);
	assert_int_equal(npg_function_next_exit(&function, 0, &target, &is_conditional), 10);
	assert_int_equal(target, 0x100);
	assert_true(is_conditional);
	assert_int_equal(npg_function_next_exit(&function, 10, &target, &is_conditional), 0);
	npg_function_recover(&function, 3, &recovery);
	assert_int_equal(recovery.way, NPG_RECOVERY_BACKWARD);
	npg_function_add_targets(&function, &other, 0x100);
	npg_function_recover(&function, 3, &recovery);
	assert_int_equal(recovery.way, NPG_RECOVERY_NONE);
	npg_function_release(&function);
	npg_function_release(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undoes_a_step),
		cmocka_unit_test(does_not_cross_a_branch_target),
		cmocka_unit_test(goes_forward_when_the_base_is_lost),
		cmocka_unit_test(finds_a_copy),
		cmocka_unit_test(undoes_a_sum_of_registers),
		cmocka_unit_test(knows_where_the_code_is),
		cmocka_unit_test(trusts_no_32_bit_copy),
		cmocka_unit_test(trusts_no_code_with_jump_tables),
		cmocka_unit_test(counts_branches_from_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
