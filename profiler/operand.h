/*
 * The memory operands of an instruction, by Zydis, and their addresses from sampled registers.
 *
 * An instruction is decoded once into a small struct npg_insn that can be kept; addresses are then
 * arithmetic. What cannot be computed for certain (FS and GS bases, gathers, bit strings) is left
 * out and marked: a wrong address is worse than none.
 */
#ifndef NPG_PROFILER_OPERAND_H
#define NPG_PROFILER_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"

#define NPG_INSN_MAX_BYTES    15
#define NPG_INSN_MAX_OPERANDS 2 /* string moves have two */

enum npg_access { /* as sample.access in the database */
		  NPG_ACCESS_UNKNOWN,
		  NPG_ACCESS_READ,
		  NPG_ACCESS_WRITE,
		  NPG_ACCESS_READ_WRITE,
};

struct npg_operand {
	int64_t displacement;
	uint32_t size_bytes;
	int8_t base;  /* PERF_REG_X86_*, or -1; IP: the next instruction's address */
	int8_t index; /* PERF_REG_X86_*, or -1 */
	uint8_t scale;
	uint8_t access; /* enum npg_access */
};

struct npg_insn {
	uint8_t length;
	uint8_t nr_operands;
	bool has_unknown; /* it accesses memory at an address that cannot be computed */
	bool is_address_32;
	struct npg_operand operands[NPG_INSN_MAX_OPERANDS];
};

/**
 * npg_insn_decode() - decode the instruction at the beginning of @code.
 * @code: @size_bytes bytes; NPG_INSN_MAX_BYTES are always enough.
 * @is_64: long mode, else 32-bit protected mode.
 *
 * Implicit stack operands (push, call, ret, ...) are reported where there is no other operand.
 *
 * Return: 0; -EBADMSG (not an instruction, or cut short).
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_insn_decode(const void *code, size_t size_bytes, bool is_64,
				   struct npg_insn *insn);

/**
 * npg_operand_address() - where an operand of @insn is, if it is about to run at @ip.
 * @regs: NPG_PERF_NR_REGS values, index PERF_REG_X86_*.
 * MT-Safe. AS-Safe.
 */
uint64_t npg_operand_address(const struct npg_insn *insn, const struct npg_operand *operand,
			     uint64_t ip, const uint64_t *regs);

#endif
