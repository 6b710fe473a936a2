/* Backward and forward evaluation of addresses inside a basic block, see the header. */
#include <asm/perf_regs.h>
#include <errno.h>

#include "profiler/block.h"
#include "profiler/effect.h"

#define MAX_STEPS 24 /* instructions looked at in each direction */

/* Registers of some moment in terms of the sampled ones. */
struct state {
	struct npg_form regs[NPG_PERF_NR_REGS];
};

static bool has_bit(const uint64_t *bits, size_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *bits, size_t i)
{
	bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void mark_target(struct npg_function *function, int64_t target)
{
	if (target >= 0 && (uint64_t)target < function->size_bytes)
		set_bit(function->targets, (size_t)target);
}

int npg_function_init(const void *code, size_t size_bytes, struct npg_function *function)
{
	struct npg_function f = { .code = code, .size_bytes = size_bytes };
	struct npg_effect effect;
	size_t at = 0;

	f.starts = calloc(size_bytes / 64 + 1, sizeof(*f.starts));
	f.targets = calloc(size_bytes / 64 + 1, sizeof(*f.targets));
	if (f.starts == NULL || f.targets == NULL) {
		npg_function_release(&f);
		return -ENOMEM;
	}
	while (at < size_bytes && npg_effect_flow(f.code + at, size_bytes - at, &effect) == 0) {
		set_bit(f.starts, at);
		if (effect.flow == NPG_FLOW_CONDITIONAL || effect.flow == NPG_FLOW_JUMP)
			mark_target(&f, (int64_t)at + effect.target);
		if (effect.flow == NPG_FLOW_INDIRECT)
			f.has_unknown_targets = true;
		at += effect.length;
	}
	*function = f;
	return 0;
}

void npg_function_release(struct npg_function *function)
{
	free(function->starts);
	free(function->targets);
	*function = (struct npg_function){ 0 };
}

/* The next direct branch from @at on; gives the offset behind it, 0 if there is none. */
static size_t next_branch(const struct npg_function *function, size_t at, int64_t *target,
			  bool *is_conditional)
{
	struct npg_effect effect;

	while (at < function->size_bytes && has_bit(function->starts, at) &&
	       npg_effect_flow(function->code + at, function->size_bytes - at, &effect) == 0) {
		size_t from = at;

		at += effect.length;
		if (effect.flow == NPG_FLOW_CONDITIONAL || effect.flow == NPG_FLOW_JUMP) {
			*target = (int64_t)from + effect.target;
			*is_conditional = effect.flow == NPG_FLOW_CONDITIONAL;
			return at;
		}
	}
	return 0;
}

size_t npg_function_next_exit(const struct npg_function *function, size_t at, int64_t *target,
			      bool *is_conditional)
{
	while ((at = next_branch(function, at, target, is_conditional)) != 0)
		if (*target < 0 || (uint64_t)*target >= function->size_bytes)
			return at;
	return 0;
}

void npg_function_add_targets(struct npg_function *function, const struct npg_function *other,
			      int64_t distance)
{
	bool is_conditional;
	int64_t target;
	size_t at = 0;

	while ((at = next_branch(other, at, &target, &is_conditional)) != 0)
		mark_target(function, target + distance);
}

static void state_init(struct state *state)
{
	memset(state, 0, sizeof(*state));
	for (int r = 0; r < NPG_PERF_NR_REGS; r++) {
		state->regs[r].is_known = true;
		state->regs[r].factor[r] = 1;
	}
}

static void add_scaled(struct npg_form *sum, const struct npg_form *form, int64_t factor)
{
	sum->is_known = sum->is_known && form->is_known;
	sum->constant =
	    (int64_t)((uint64_t)sum->constant + (uint64_t)factor * (uint64_t)form->constant);
	for (int r = 0; r < NPG_PERF_NR_REGS; r++)
		sum->factor[r] = (int64_t)((uint64_t)sum->factor[r] +
					   (uint64_t)factor * (uint64_t)form->factor[r]);
}

/* @form in terms of the registers that @state describes; @ip is the instruction's own address. */
static struct npg_form substitute(const struct state *state, const struct npg_form *form,
				  const struct npg_form *ip, int skip)
{
	struct npg_form sum = { .is_known = form->is_known, .constant = form->constant };

	for (int r = 0; r < NPG_PERF_NR_REGS; r++)
		if (form->factor[r] != 0 && r != skip)
			add_scaled(&sum, r == PERF_REG_X86_IP ? ip : &state->regs[r],
				   form->factor[r]);
	return sum;
}

/* The register that a plain copy (with a constant added) takes its value from; -1: it is none. */
static int copied_register(const struct npg_form *form)
{
	int found = -1;

	for (int r = 0; r < NPG_PERF_NR_REGS; r++) {
		if (form->factor[r] == 0)
			continue;
		if (form->factor[r] != 1 || found >= 0 || r == PERF_REG_X86_IP)
			return -1;
		found = r;
	}
	return found;
}

/* From the state behind an instruction to the state in front of it. */
static void undo(struct state *state, const struct npg_effect *effect, const struct npg_form *ip)
{
	struct npg_form after, before = { .is_known = false };
	int result = effect->result, source;

	if (result >= 0) {
		after = state->regs[result];
		if (effect->value.factor[result] == 1) {
			struct npg_form rest = substitute(state, &effect->value, ip, result);

			before = after;
			add_scaled(&before, &rest, -1);
		}
		source = copied_register(&effect->value);
		if (source >= 0 && source != result && !state->regs[source].is_known) {
			state->regs[source] = after;
			state->regs[source].constant -= effect->value.constant;
		}
	}
	for (int r = 0; r < NPG_PERF_NR_REGS; r++)
		if (effect->written >> r & 1)
			state->regs[r].is_known = false;
	if (result >= 0)
		state->regs[result] = before;
}

/* From the state in front of an instruction to the state behind it. */
static void apply(struct state *state, const struct npg_effect *effect, const struct npg_form *ip)
{
	struct npg_form value = { .is_known = false };

	if (effect->result >= 0)
		value = substitute(state, &effect->value, ip, -1);
	for (int r = 0; r < NPG_PERF_NR_REGS; r++)
		if (effect->written >> r & 1)
			state->regs[r].is_known = false;
	if (effect->result >= 0)
		state->regs[effect->result] = value;
}

static struct npg_form form_of_operand(const struct npg_insn *insn,
				       const struct npg_operand *operand)
{
	struct npg_form form = { .is_known = !insn->is_address_32,
				 .constant = operand->displacement };

	if (operand->base >= 0)
		form.factor[operand->base] += 1;
	if (operand->base == PERF_REG_X86_IP)
		form.constant += insn->length;
	if (operand->index >= 0)
		form.factor[operand->index] += operand->scale;
	return form;
}

static bool compress(const struct npg_form *form, uint8_t access, struct npg_recovered *result)
{
	int nr = 0;

	if (!form->is_known)
		return false;
	*result = (struct npg_recovered){ .constant = form->constant, .access = access };
	memset(result->reg, -1, sizeof(result->reg));
	for (int r = 0; r < NPG_PERF_NR_REGS; r++) {
		if (form->factor[r] == 0)
			continue;
		if (nr == NPG_RECOVERED_MAX_TERMS)
			return false;
		result->reg[nr] = (int8_t)r;
		result->factor[nr++] = form->factor[r];
	}
	return true;
}

/* The instruction's accesses, if all of them are certain in the state in front of it. */
static bool take_accesses(const struct state *state, const unsigned char *code, size_t size,
			  const struct npg_form *ip, struct npg_recovery *recovery)
{
	struct npg_recovery found = { .way = recovery->way };
	struct npg_insn insn;

	if (npg_insn_decode(code, size, true, &insn) < 0 || insn.has_unknown)
		return false;
	for (int i = 0; i < insn.nr_operands; i++) {
		struct npg_form form = form_of_operand(&insn, &insn.operands[i]);

		form = substitute(state, &form, ip, -1);
		if (!compress(&form, insn.operands[i].access, &found.accesses[i]))
			return false;
		found.nr_accesses++;
	}
	if (found.nr_accesses > 0)
		*recovery = found;
	return found.nr_accesses > 0;
}

/* The address of the instruction at @offset, in terms of the sampled IP, which is at @sampled. */
static struct npg_form address_form(size_t offset, size_t sampled)
{
	struct npg_form form = { .is_known = true, .constant = (int64_t)offset - (int64_t)sampled };

	form.factor[PERF_REG_X86_IP] = 1;
	return form;
}

static bool go_backward(const struct npg_function *function, size_t offset,
			struct npg_recovery *recovery)
{
	struct npg_effect effect;
	struct state state;
	size_t at = offset;

	recovery->way = NPG_RECOVERY_BACKWARD;
	state_init(&state);
	for (int step = 0; step < MAX_STEPS && at > 0; step++) {
		size_t previous = at - 1;
		struct npg_form ip;

		if (has_bit(function->targets, at))
			return false; /* it may have come here another way */
		while (previous > 0 && !has_bit(function->starts, previous))
			previous--;
		if (npg_effect_decode(function->code + previous, at - previous, &effect) < 0 ||
		    (effect.flow != NPG_FLOW_NEXT && effect.flow != NPG_FLOW_CONDITIONAL))
			return false;
		ip = address_form(previous, offset);
		undo(&state, &effect, &ip);
		if (take_accesses(&state, function->code + previous, at - previous, &ip, recovery))
			return true;
		at = previous;
	}
	return false;
}

static bool go_forward(const struct npg_function *function, size_t offset,
		       struct npg_recovery *recovery)
{
	struct npg_effect effect;
	struct state state;
	size_t at = offset;

	recovery->way = NPG_RECOVERY_FORWARD;
	state_init(&state);
	for (int step = 0; step < MAX_STEPS && at < function->size_bytes; step++) {
		const unsigned char *code = function->code + at;
		struct npg_form ip = address_form(at, offset);

		if (npg_effect_decode(code, function->size_bytes - at, &effect) < 0)
			return false;
		if (take_accesses(&state, code, function->size_bytes - at, &ip, recovery))
			return true;
		if (effect.flow == NPG_FLOW_JUMP && (int64_t)at + effect.target >= 0) {
			at = (size_t)((int64_t)at + effect.target);
			continue;
		}
		if (effect.flow != NPG_FLOW_NEXT)
			return false;
		apply(&state, &effect, &ip);
		at += effect.length;
	}
	return false;
}

void npg_function_recover(const struct npg_function *function, size_t offset,
			  struct npg_recovery *recovery)
{
	*recovery = (struct npg_recovery){ .way = NPG_RECOVERY_NONE };
	if (offset >= function->size_bytes || !has_bit(function->starts, offset))
		return;
	if (!function->has_unknown_targets && go_backward(function, offset, recovery))
		return;
	if (go_forward(function, offset, recovery))
		return;
	*recovery = (struct npg_recovery){ .way = NPG_RECOVERY_NONE };
}

uint64_t npg_recovered_address(const struct npg_recovered *recovered, const uint64_t *regs)
{
	uint64_t address = (uint64_t)recovered->constant;

	for (int i = 0; i < NPG_RECOVERED_MAX_TERMS && recovered->reg[i] >= 0; i++)
		address += (uint64_t)recovered->factor[i] * regs[recovered->reg[i]];
	return address;
}
