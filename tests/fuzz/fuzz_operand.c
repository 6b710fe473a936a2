/* Any bytes as instructions: decoded, and addresses computed from any registers. */
#include "profiler/operand.h"
#include "profiler/perf_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t regs[NPG_PERF_NR_REGS] = { 0 }, sum = 0;
	struct npg_insn insn;

	if (size < sizeof(regs))
		return 0;
	memcpy(regs, data, sizeof(regs));
	data += sizeof(regs);
	size -= sizeof(regs);
	for (size_t i = 0; i < size; i++) {
		if (npg_insn_decode(data + i, size - i, data[i] & 1, &insn) < 0)
			continue;
		if (insn.length == 0 || insn.length > size - i ||
		    insn.nr_operands > NPG_INSN_MAX_OPERANDS)
			abort();
		for (int k = 0; k < insn.nr_operands; k++)
			sum += npg_operand_address(&insn, &insn.operands[k], i, regs);
	}
	return sum == 1 ? -1 : 0;
}
