/* Memory operands by Zydis; the header says what is reported and what is not. */
#include <asm/perf_regs.h>
#include <errno.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "profiler/operand.h"

#define MAX_OPERANDS ZYDIS_MAX_OPERAND_COUNT

/* Zydis numbers RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 ... in the encoding's order. */
static const int8_t perf_of_zydis[16] = {
	PERF_REG_X86_AX,  PERF_REG_X86_CX,  PERF_REG_X86_DX,  PERF_REG_X86_BX,
	PERF_REG_X86_SP,  PERF_REG_X86_BP,  PERF_REG_X86_SI,  PERF_REG_X86_DI,
	PERF_REG_X86_R8,  PERF_REG_X86_R9,  PERF_REG_X86_R10, PERF_REG_X86_R11,
	PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15,
};

/* A whole address register, or nothing: XLAT's AL or a vector index cannot be used. */
static bool find_register(ZydisMachineMode mode, ZydisRegister reg, unsigned width, int8_t *found)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	*found = -1;
	if (reg == ZYDIS_REGISTER_NONE)
		return true;
	if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) {
		*found = PERF_REG_X86_IP;
		return true;
	}
	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15 ||
	    ZydisRegisterGetWidth(mode, reg) != width)
		return false;
	*found = perf_of_zydis[whole - ZYDIS_REGISTER_RAX];
	return true;
}

static uint8_t access_of(ZydisOperandActions actions)
{
	return (uint8_t)((actions & ZYDIS_OPERAND_ACTION_MASK_READ ? NPG_ACCESS_READ : 0) |
			 (actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? NPG_ACCESS_WRITE : 0));
}

static bool is_hidden_stack(const ZydisDecodedOperand *op)
{
	return op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
	       op->mem.segment == ZYDIS_REGISTER_SS;
}

/* Instructions that name memory without touching it, or in a way that nobody uses. */
static bool is_no_access(const ZydisDecodedInstruction *in)
{
	return in->mnemonic == ZYDIS_MNEMONIC_NOP || in->mnemonic == ZYDIS_MNEMONIC_LEA ||
	       in->mnemonic == ZYDIS_MNEMONIC_ENTER ||
	       in->meta.category == ZYDIS_CATEGORY_PREFETCH ||
	       in->meta.category == ZYDIS_CATEGORY_WIDENOP;
}

/* Bit strings and table look-ups: a register that Zydis does not name is part of the address. */
static bool is_elsewhere(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	if (in->mnemonic == ZYDIS_MNEMONIC_XLAT)
		return true;
	return (in->mnemonic == ZYDIS_MNEMONIC_BT || in->mnemonic == ZYDIS_MNEMONIC_BTS ||
		in->mnemonic == ZYDIS_MNEMONIC_BTR || in->mnemonic == ZYDIS_MNEMONIC_BTC) &&
	       in->operand_count > 1 && ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static int convert(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op,
		   struct npg_operand *result)
{
	if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM || op->mem.segment == ZYDIS_REGISTER_FS ||
	    op->mem.segment == ZYDIS_REGISTER_GS)
		return -ENOENT;
	if (!find_register(in->machine_mode, op->mem.base, in->address_width, &result->base) ||
	    !find_register(in->machine_mode, op->mem.index, in->address_width, &result->index))
		return -ENOENT;
	result->scale = op->mem.scale;
	result->displacement = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	result->size_bytes = op->size / 8;
	result->access = access_of(op->actions);
	if (is_hidden_stack(op) && result->access == NPG_ACCESS_WRITE)
		result->displacement -= result->size_bytes; /* push stores below the pointer */
	if (in->mnemonic == ZYDIS_MNEMONIC_POP && result->base == PERF_REG_X86_SP &&
	    !is_hidden_stack(op))
		result->displacement += result->size_bytes; /* after the pointer has moved */
	return 0;
}

/* Either the operands that are written in the instruction, or its implicit stack operands. */
static void collect(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
		    bool want_stack, struct npg_insn *insn)
{
	for (int i = 0; i < in->operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->actions == 0 ||
		    op->mem.type == ZYDIS_MEMOP_TYPE_AGEN || is_hidden_stack(op) != want_stack)
			continue;
		if (insn->nr_operands == NPG_INSN_MAX_OPERANDS ||
		    convert(in, op, &insn->operands[insn->nr_operands]) < 0)
			insn->has_unknown = true;
		else
			insn->nr_operands++;
	}
}

int npg_insn_decode(const void *code, size_t size_bytes, bool is_64, struct npg_insn *insn)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[MAX_OPERANDS];

	if (!ZYAN_SUCCESS(ZydisDecoderInit(
		&decoder, is_64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
		is_64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size_bytes, &in, ops)))
		return -EBADMSG;
	memset(insn, 0, sizeof(*insn));
	insn->length = in.length;
	insn->is_address_32 = in.address_width == 32;
	if (is_no_access(&in))
		return 0;
	if (in.address_width == 16 || is_elsewhere(&in, ops)) {
		insn->has_unknown = true;
		return 0;
	}
	collect(&in, ops, false, insn);
	if (insn->nr_operands == 0 && !insn->has_unknown)
		collect(&in, ops, true, insn);
	return 0;
}

uint64_t npg_operand_address(const struct npg_insn *insn, const struct npg_operand *operand,
			     uint64_t ip, const uint64_t *regs)
{
	uint64_t address = (uint64_t)operand->displacement;

	if (operand->base == PERF_REG_X86_IP)
		address += ip + insn->length;
	else if (operand->base >= 0)
		address += regs[operand->base];
	if (operand->index >= 0)
		address += regs[operand->index] * operand->scale;
	return insn->is_address_32 ? (uint32_t)address : address;
}
