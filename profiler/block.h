/*
 * Data addresses along the basic block, for samples whose instruction has no memory operand.
 *
 * An interrupt arrives a few instructions behind the access that the processor waited for. Inside
 * a basic block the way there is known, and so is what became of the address registers meanwhile:
 * sums, copies and loads of addresses can be undone. So the last access before the sampled
 * instruction is found by going backward to the first instruction whose address follows from the
 * sampled registers; where that is not possible, the next access is found by going forward.
 *
 * An address is given only if it is certain: backward steps never cross a place that a branch can
 * lead to, and functions with jump tables are followed forward only.
 */
#ifndef NPG_PROFILER_BLOCK_H
#define NPG_PROFILER_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "profiler/operand.h"

/* One function's code and what is known of its blocks. */
struct npg_function {
	const unsigned char *code; /* borrowed */
	size_t size_bytes;
	uint64_t *starts;  /* bit per byte: an instruction begins here */
	uint64_t *targets; /* bit per byte: a branch leads here */
	bool has_unknown_targets;
};

#define NPG_RECOVERED_MAX_TERMS 4

struct npg_recovered { /* address = constant + sum of factor * sampled register */
	int64_t constant;
	int64_t factor[NPG_RECOVERED_MAX_TERMS];
	int8_t reg[NPG_RECOVERED_MAX_TERMS]; /* PERF_REG_X86_*, -1: unused */
	uint8_t access;                      /* enum npg_access */
};

enum npg_recovery_way { /* as sample.resolved in the database */
			NPG_RECOVERY_NONE = 0,
			NPG_RECOVERY_BACKWARD = 2,
			NPG_RECOVERY_FORWARD = 3,
};

struct npg_recovery {
	uint8_t way; /* enum npg_recovery_way */
	uint8_t nr_accesses;
	struct npg_recovered accesses[NPG_INSN_MAX_OPERANDS];
};

/**
 * npg_function_init() - find instructions and branch targets of a function.
 * @code: @size_bytes bytes from its first instruction; borrowed until npg_function_release().
 *
 * Return: 0; -ENOMEM.
 * MT-Safe. Not AS-Safe.
 */
NPG_MUST_CHECK int npg_function_init(const void *code, size_t size_bytes,
				     struct npg_function *function);

/**
 * npg_function_next_exit() - branches that leave the function, one after the other: a part of it
 * that the compiler moved away may branch back into its middle.
 * @at: offset to go on from; begin with 0.
 * @target: of the branch, relative to the function's first byte.
 * @is_conditional: of the branch.
 *
 * Return: the offset to go on from next time; 0 when there is none left.
 */
size_t npg_function_next_exit(const struct npg_function *function, size_t at, int64_t *target,
			      bool *is_conditional);

/**
 * npg_function_add_targets() - mark the branches of other code that lead into the function.
 * @other: analysed function.
 * @distance: first byte of @other minus first byte of @function.
 */
void npg_function_add_targets(struct npg_function *function, const struct npg_function *other,
			      int64_t distance);

/**
 * npg_function_recover() - the access next to the instruction at @offset.
 * @recovery: .way is NPG_RECOVERY_NONE if there is none that is certain.
 */
void npg_function_recover(const struct npg_function *function, size_t offset,
			  struct npg_recovery *recovery);

/**
 * npg_recovered_address() - evaluate.
 * @regs: NPG_PERF_NR_REGS values, index PERF_REG_X86_*, as sampled.
 */
uint64_t npg_recovered_address(const struct npg_recovered *recovered, const uint64_t *regs);

/** npg_function_release() - safe on a zeroed struct. */
void npg_function_release(struct npg_function *function);

#endif
