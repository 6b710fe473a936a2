/*
 * What an instruction does to the address registers and to the flow of control, by Zydis: enough
 * to follow or to undo address arithmetic inside a basic block. 64-bit mode only.
 */
#ifndef NPG_PROFILER_EFFECT_H
#define NPG_PROFILER_EFFECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "profiler/perf_decode.h"

/*
 * A value as constant + sum of factor[r] * register r (PERF_REG_X86_*, modulo 2^64), or unknown.
 * Which moment's registers are meant is the user's business.
 */
struct npg_form {
	bool is_known;
	int64_t constant;
	int64_t factor[NPG_PERF_NR_REGS];
};

enum npg_flow {
	NPG_FLOW_NEXT,        /* goes on behind it */
	NPG_FLOW_CONDITIONAL, /* to .target or behind it */
	NPG_FLOW_JUMP,        /* to .target */
	NPG_FLOW_INDIRECT,    /* jumps by a register or a table: targets are unknown */
	NPG_FLOW_STOP,        /* call, return, system call: registers change out of sight */
};

struct npg_effect {
	uint8_t length;
	enum npg_flow flow;
	int64_t target;        /* relative to the instruction's first byte */
	uint32_t written;      /* bit r: register r changes, wholly or in part */
	int result;            /* the one written register whose new value is .value; -1: none */
	struct npg_form value; /* in registers before the instruction; IP: its first byte */
};

/**
 * npg_effect_flow() - length and flow only, which is all that finding branch targets needs.
 * @code: @size_bytes bytes; NPG_INSN_MAX_BYTES are always enough.
 *
 * Return: 0, with .length, .flow and .target set; -EBADMSG (not an instruction, or cut short).
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_effect_flow(const void *code, size_t size_bytes, struct npg_effect *effect);

/**
 * npg_effect_decode() - everything.
 *
 * Return: as npg_effect_flow().
 * MT-Safe. AS-Safe.
 */
NPG_MUST_CHECK int npg_effect_decode(const void *code, size_t size_bytes,
				     struct npg_effect *effect);

#endif
