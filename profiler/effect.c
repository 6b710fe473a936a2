/* Effects of instructions on address registers, see the header. */
#include <asm/perf_regs.h>
#include <errno.h>

#include <Zydis/Zydis.h>

#include "profiler/effect.h"

static int register_of(ZydisRegister reg)
{
	static const int8_t perf_of_zydis[16] = {
		PERF_REG_X86_AX,  PERF_REG_X86_CX,  PERF_REG_X86_DX,  PERF_REG_X86_BX,
		PERF_REG_X86_SP,  PERF_REG_X86_BP,  PERF_REG_X86_SI,  PERF_REG_X86_DI,
		PERF_REG_X86_R8,  PERF_REG_X86_R9,  PERF_REG_X86_R10, PERF_REG_X86_R11,
		PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15,
	};
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return perf_of_zydis[whole - ZYDIS_REGISTER_RAX];
}

static int begin_decode(ZydisDecoder *decoder)
{
	return ZYAN_SUCCESS(
		   ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64))
		   ? 0
		   : -EBADMSG;
}

/* Registers change out of sight, or it does not go on behind it. */
static bool is_stop(const ZydisDecodedInstruction *in)
{
	static const ZydisInstructionCategory categories[] = {
		ZYDIS_CATEGORY_CALL,   ZYDIS_CATEGORY_RET,    ZYDIS_CATEGORY_SYSCALL,
		ZYDIS_CATEGORY_SYSRET, ZYDIS_CATEGORY_SYSTEM, ZYDIS_CATEGORY_INTERRUPT,
	};

	for (size_t i = 0; i < NPG_ARRAY_SIZE(categories); i++)
		if (in->meta.category == categories[i])
			return true;
	return in->mnemonic == ZYDIS_MNEMONIC_UD2 || in->mnemonic == ZYDIS_MNEMONIC_HLT ||
	       in->mnemonic == ZYDIS_MNEMONIC_XBEGIN;
}

static void find_flow(const ZydisDecodedInstruction *in, struct npg_effect *effect)
{
	bool is_relative = in->raw.imm[0].is_relative != 0;

	effect->length = in->length;
	effect->flow = NPG_FLOW_NEXT;
	effect->target = is_relative ? in->length + in->raw.imm[0].value.s : 0;
	if (is_stop(in))
		effect->flow = NPG_FLOW_STOP;
	else if (in->meta.category == ZYDIS_CATEGORY_COND_BR)
		effect->flow = is_relative ? NPG_FLOW_CONDITIONAL : NPG_FLOW_STOP;
	else if (in->meta.category == ZYDIS_CATEGORY_UNCOND_BR && is_relative)
		effect->flow = NPG_FLOW_JUMP;
	else if (in->meta.category == ZYDIS_CATEGORY_UNCOND_BR)
		/* through a fixed slot it calls another function, as a PLT does */
		effect->flow = in->raw.modrm.mod == 0 && in->raw.modrm.rm == 5 ? NPG_FLOW_STOP
									       : NPG_FLOW_INDIRECT;
}

int npg_effect_flow(const void *code, size_t size_bytes, struct npg_effect *effect)
{
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;

	if (begin_decode(&decoder) < 0 ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, size_bytes, &in)))
		return -EBADMSG;
	find_flow(&in, effect);
	return 0;
}

static void add_term(struct npg_form *form, ZydisRegister reg, int64_t factor)
{
	int r = register_of(reg);

	if (r < 0)
		form->is_known = false;
	else
		form->factor[r] += factor;
}

static void set_lea(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op,
		    struct npg_form *form)
{
	form->constant = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	if (op->mem.base == ZYDIS_REGISTER_RIP) {
		form->constant += in->length;
		form->factor[PERF_REG_X86_IP] = 1;
	} else if (op->mem.base != ZYDIS_REGISTER_NONE) {
		add_term(form, op->mem.base, 1);
	}
	if (op->mem.index != ZYDIS_REGISTER_NONE)
		add_term(form, op->mem.index, op->mem.scale);
}

/* dst := dst + sign * src */
static void set_sum(const ZydisDecodedOperand *ops, int64_t sign, struct npg_form *form)
{
	add_term(form, ops[0].reg.value, 1);
	if (ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		form->constant = sign * ops[1].imm.value.s;
	else if (ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
		add_term(form, ops[1].reg.value, sign);
	else
		form->is_known = false;
}

static bool is_zeroing(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	return (in->mnemonic == ZYDIS_MNEMONIC_XOR || in->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].reg.value == ops[1].reg.value &&
	       ops[0].size >= 32;
}

static void set_mov(const ZydisDecodedOperand *ops, struct npg_form *form)
{
	if (ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		form->constant =
		    ops[0].size == 64 ? ops[1].imm.value.s : (int64_t)(uint32_t)ops[1].imm.value.u;
	else if (ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].size == 64)
		add_term(form, ops[1].reg.value, 1);
	else
		form->is_known = false;
}

/* The new value of the destination register, where it is address arithmetic. */
static void find_value(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
		       struct npg_form *form)
{
	*form = (struct npg_form){ .is_known = true };
	if (is_zeroing(in, ops))
		return;
	if (in->mnemonic == ZYDIS_MNEMONIC_MOV && ops[0].size >= 32) {
		set_mov(ops, form);
		return;
	}
	if (ops[0].size != 64 || in->address_width != 64) {
		form->is_known = false;
		return;
	}
	if (in->mnemonic == ZYDIS_MNEMONIC_LEA)
		set_lea(in, &ops[1], form);
	else if (in->mnemonic == ZYDIS_MNEMONIC_ADD)
		set_sum(ops, 1, form);
	else if (in->mnemonic == ZYDIS_MNEMONIC_SUB)
		set_sum(ops, -1, form);
	else if (in->mnemonic == ZYDIS_MNEMONIC_INC || in->mnemonic == ZYDIS_MNEMONIC_DEC) {
		add_term(form, ops[0].reg.value, 1);
		form->constant = in->mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
	} else if (in->mnemonic == ZYDIS_MNEMONIC_SHL && in->operand_count > 1 &&
		   ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		add_term(form, ops[0].reg.value,
			 (int64_t)(UINT64_C(1) << (ops[1].imm.value.u & 63)));
	else
		form->is_known = false;
}

/* push and pop move the stack pointer by what they transfer; pop's register becomes unknown. */
static bool find_stack_move(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
			    struct npg_effect *effect)
{
	bool is_pop = in->mnemonic == ZYDIS_MNEMONIC_POP;

	if ((!is_pop && in->mnemonic != ZYDIS_MNEMONIC_PUSH) || in->operand_width != 64)
		return false;
	if (is_pop && ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    ops[0].reg.value == ZYDIS_REGISTER_RSP)
		return false;
	effect->result = PERF_REG_X86_SP;
	effect->value = (struct npg_form){ .is_known = true, .constant = is_pop ? 8 : -8 };
	effect->value.factor[PERF_REG_X86_SP] = 1;
	return true;
}

int npg_effect_decode(const void *code, size_t size_bytes, struct npg_effect *effect)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;

	if (begin_decode(&decoder) < 0 ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size_bytes, &in, ops)))
		return -EBADMSG;
	find_flow(&in, effect);
	effect->written = 0;
	effect->result = -1;
	for (int i = 0; i < in.operand_count; i++) {
		int r =
		    ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER ? register_of(ops[i].reg.value) : -1;

		if (r >= 0 && (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			effect->written |= UINT32_C(1) << r;
	}
	if (find_stack_move(&in, ops, effect) || in.operand_count == 0 ||
	    ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !(ops[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return 0;
	find_value(&in, ops, &effect->value);
	if (effect->value.is_known)
		effect->result = register_of(ops[0].reg.value);
	return 0;
}
