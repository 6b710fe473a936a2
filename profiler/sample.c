/* Samples: which address, which object, which row. */
#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>

#include "profiler/live_types.h"

static void add_counts(struct npg_count_row *count, const struct npg_sample_row *row)
{
	count->nr_reads += row->access == NPG_ACCESS_READ;
	count->nr_writes += row->access >= NPG_ACCESS_WRITE;
	count->nr_unknown += row->access == NPG_ACCESS_UNKNOWN;
	count->weight += row->weight;
}

void npg_live_flush_counts(struct npg_live_map *live)
{
	for (size_t i = 0; i < live->nr_count_rows; i++)
		npg_writer_count(live->writer, &live->count_rows[i]);
	live->nr_count_rows = 0;
	npg_table_release(&live->counted);
}

static struct npg_count_row *count_row(struct npg_live_map *live, const struct npg_sample_row *row)
{
	uint64_t page = (uint64_t)row->address / live->options.page_bytes;
	uint64_t key0 = (uint64_t)row->thread_id << 32 |
			(uint32_t)(row->object_id == NPG_NULL ? 0 : row->object_id);
	uint64_t key1 = page << 4 | (uint64_t)row->source_id;
	uint64_t at = npg_table_get(&live->counted, key0, key1);
	struct npg_count_row *grown;

	if (at != 0)
		return &live->count_rows[at - 1];
	if (live->nr_count_rows == live->count_rows_size) {
		size_t size = live->count_rows_size == 0 ? 1024 : live->count_rows_size * 2;

		grown = reallocarray(live->count_rows, size, sizeof(*grown));
		if (grown == NULL)
			return NULL;
		live->count_rows = grown;
		live->count_rows_size = size;
	}
	if (npg_table_put(&live->counted, key0, key1, live->nr_count_rows + 1) < 0)
		return NULL;
	grown = &live->count_rows[live->nr_count_rows++];
	*grown = (struct npg_count_row){ .epoch = live->epoch,
					 .thread_id = row->thread_id,
					 .source_id = row->source_id,
					 .object_id = row->object_id,
					 .page = (int64_t)page };
	return grown;
}

static void count(struct npg_live_map *live, const struct npg_sample_row *row)
{
	int64_t epoch = (row->time_ns - live->options.base_ns) / live->options.epoch_ns;
	struct npg_count_row *counts;

	if (epoch != live->epoch) {
		npg_live_flush_counts(live);
		live->epoch = epoch;
	}
	counts = count_row(live, row);
	if (counts != NULL)
		add_counts(counts, row);
	else
		live->is_out_of_memory = true;
}

static void write_sample(struct npg_thread *thread, struct npg_sample_row *row,
			 enum npg_source source)
{
	struct npg_live_map *live = thread->process->live;
	struct npg_object *object = npg_attribute(thread->process, (uint64_t)row->address);

	live->counts[source].nr_samples++;
	row->source_id = (int64_t)source + 1;
	row->thread_id = npg_thread_row(thread);
	row->object_id = NPG_NULL;
	if (object != NULL) {
		npg_object_row(object);
		row->object_id = object->row.id;
	} else {
		live->counts[source].nr_unmatched++;
	}
	if (live->options.keeps_counts)
		count(live, row);
	else
		npg_writer_sample(live->writer, row);
}

static struct npg_sample_row row_of(const struct npg_perf_record *record)
{
	return (struct npg_sample_row){
		.time_ns = (int64_t)record->time_ns,
		.cpu = record->cpu,
		.address = (int64_t)record->address,
		.ip = record->regs_abi != PERF_SAMPLE_REGS_ABI_NONE
			  ? (int64_t)record->regs[PERF_REG_X86_IP]
			  : NPG_NULL,
		.weight = (int64_t)record->period,
		.latency_cycles = NPG_NULL,
		.data_source = NPG_NULL,
		.memory_node = NPG_NULL,
	};
}

static const struct npg_insn *
insn_of(struct npg_process *process, const struct npg_perf_record *record, struct npg_insn *scratch)
{
	if (record->regs_abi == PERF_SAMPLE_REGS_ABI_NONE)
		return NULL;
	return npg_attribute_insn(process, record->regs[PERF_REG_X86_IP],
				  record->regs_abi == PERF_SAMPLE_REGS_ABI_64, scratch);
}

static void write_access(struct npg_thread *thread, const struct npg_perf_record *record,
			 uint64_t address, uint8_t access, int resolved)
{
	struct npg_sample_row row = row_of(record);

	row.address = (int64_t)address;
	row.access = access;
	row.resolved = resolved;
	write_sample(thread, &row, NPG_SOURCE_CLOCK);
}

/* The operand of the sampled instruction, or of the nearest one in its block. */
static void on_clock(struct npg_thread *thread, const struct npg_perf_record *record)
{
	struct npg_source_count *counts = &thread->process->live->counts[NPG_SOURCE_CLOCK];
	uint64_t ip = record->regs[PERF_REG_X86_IP];
	const struct npg_recovery *recovery;
	struct npg_insn scratch, insn;
	const struct npg_insn *found = insn_of(thread->process, record, &scratch);

	thread->cpu_ns += (int64_t)record->period;
	if (found == NULL) {
		counts->nr_undecoded++;
		return;
	}
	insn = *found;
	if (insn.nr_operands > 0 && !insn.has_unknown) {
		for (int i = 0; i < insn.nr_operands; i++)
			write_access(
			    thread, record,
			    npg_operand_address(&insn, &insn.operands[i], ip, record->regs),
			    insn.operands[i].access, 1);
		return;
	}
	recovery = record->regs_abi == PERF_SAMPLE_REGS_ABI_64
		       ? npg_attribute_recover(thread->process, ip)
		       : NULL;
	if (recovery != NULL)
		for (int i = 0; i < recovery->nr_accesses; i++)
			write_access(thread, record,
				     npg_recovered_address(&recovery->accesses[i], record->regs),
				     recovery->accesses[i].access, recovery->way);
	else if (insn.has_unknown)
		counts->nr_undecoded++;
	else
		counts->nr_no_operand++;
}

/* Whether the faulting instruction reads or writes there. */
static int64_t access_of_fault(struct npg_thread *thread, const struct npg_perf_record *record)
{
	struct npg_insn scratch;
	const struct npg_insn *insn =
	    record->is_user ? insn_of(thread->process, record, &scratch) : NULL;
	int64_t access = NPG_ACCESS_UNKNOWN;

	for (int i = 0; insn != NULL && i < insn->nr_operands; i++) {
		const struct npg_operand *operand = &insn->operands[i];
		uint64_t at =
		    npg_operand_address(insn, operand, record->regs[PERF_REG_X86_IP], record->regs);

		if (record->address - at < operand->size_bytes)
			access = operand->access;
	}
	return access;
}

/*
 * The first fault of a page is its first touch; a second one is still that if the first only read
 * (it then saw the zero page or the file's page, and this one gives the process its own).
 */
static enum npg_source source_of_fault(struct npg_process *process, uint64_t address,
				       int64_t access)
{
	struct npg_live_map *live = process->live;
	uint64_t page = address / live->options.page_bytes;
	uint64_t before;

	if (!live->options.has_hints)
		return NPG_SOURCE_FAULT;
	before = npg_table_get(&process->touched, page, 0);
	if (npg_table_put(&process->touched, page, 0, access == NPG_ACCESS_READ ? 1 : 2) < 0)
		live->is_out_of_memory = true;
	if (before == 0 || (before == 1 && access != NPG_ACCESS_READ))
		return NPG_SOURCE_FAULT;
	return NPG_SOURCE_HINT;
}

void npg_live_map_sample(struct npg_live_map *live, const struct npg_perf_record *record,
			 enum npg_source source)
{
	struct npg_thread *thread;
	struct npg_sample_row row;

	live->now_ns = (int64_t)record->time_ns;
	thread = npg_thread_need(live, (pid_t)record->pid, (pid_t)record->tid, live->now_ns);
	if (thread == NULL)
		return;
	if (record->regs_abi != PERF_SAMPLE_REGS_ABI_NONE)
		npg_attribute_stack(thread, record->regs[PERF_REG_X86_SP]);
	if (source == NPG_SOURCE_CLOCK) {
		live->counts[source].nr_records++;
		live->counts[source].nr_events += (int64_t)record->period;
		on_clock(thread, record);
		return;
	}
	row = row_of(record);
	row.access = access_of_fault(thread, record);
	source = source_of_fault(thread->process, record->address, row.access);
	live->counts[source].nr_records++;
	live->counts[source].nr_events += row.weight;
	write_sample(thread, &row, source);
}
