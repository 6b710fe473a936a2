/*
 * The counting plugin: every user-mode load and store between the marks of guest/lab.h.
 *
 * Arguments (NAME=VALUE): out=FILE; cpus=0/0/1/1 the node of each vCPU; memory=START-END/... each
 * node's RAM in the emulator's numbering (hexadecimal); caches=on; l1= l2= llc= dtlb= stlb=
 * ENTRIES/WAYS; pages=on; trace=FILE with period=N and latency=ROW/ROW/... (ns, values separated by
 * colons). The formats of both files are in tests/lab/README.md.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lab/plugin/core.h"
#include "tests/lab/plugin/qemu_plugin.h"

#define EXPORT    __attribute__((visibility("default")))
#define USER_BITS 47

enum mark { MARK_BEGIN = 1, MARK_END, MARK_REGION_BEGIN, MARK_REGION_END, MARK_DIGIT };

EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_install(qemu_plugin_id_t, const qemu_info_t *, int argc, char **argv);

int qemu_plugin_version = 1;

static atomic_bool is_counting, has_regions;
static _Atomic unsigned epoch;

static void take_digit(struct core *core, uint64_t address)
{
	core->expects_digit = false;
	core->number |= (address & 15) << (4 * core->nr_digits);
	if (++core->nr_digits < 16)
		return;
	core_set_clock(core->number);
	core->nr_digits = 0;
	core->number = 0;
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *ip)
{
	struct core *core = core_of(vcpu, atomic_load_explicit(&epoch, memory_order_relaxed));
	struct qemu_plugin_hwaddr *place;

	if (core->expects_digit)
		take_digit(core, address);
	if (!atomic_load_explicit(&is_counting, memory_order_relaxed) || address >> USER_BITS)
		return;
	place = qemu_plugin_get_hwaddr(info, address);
	if (place == NULL || qemu_plugin_hwaddr_is_io(place))
		core->nr_elsewhere++;
	else
		core_access(core, address, qemu_plugin_hwaddr_phys_addr(place), (uintptr_t)ip,
			    qemu_plugin_mem_is_store(info));
}

static void on_block(unsigned int vcpu, void *nr_instructions)
{
	if (atomic_load_explicit(&is_counting, memory_order_relaxed))
		core_of(vcpu, atomic_load_explicit(&epoch, memory_order_relaxed))
		    ->nr_instructions += (uintptr_t)nr_instructions;
}

static void on_mark(unsigned int vcpu, void *number)
{
	switch ((enum mark)(uintptr_t)number) {
	case MARK_BEGIN:
	case MARK_END:
		if (!atomic_load(&has_regions))
			atomic_store(&is_counting, (uintptr_t)number == MARK_BEGIN);
		break;
	case MARK_REGION_BEGIN:
		if (!atomic_exchange(&has_regions, true))
			atomic_fetch_add(&epoch, 1);
		atomic_store(&is_counting, true);
		break;
	case MARK_REGION_END:
		atomic_store(&is_counting, false);
		break;
	case MARK_DIGIT:
		core_of(vcpu, atomic_load(&epoch))->expects_digit = true;
		break;
	}
}

/* Return: the number of the mark that this instruction is, 0 if it is none. */
static uintptr_t mark_of(const struct qemu_plugin_insn *insn)
{
	const unsigned char *code = qemu_plugin_insn_data(insn);

	if (qemu_plugin_insn_size(insn) != 7 || memcmp(code, "\x0f\x1f\x80", 3) != 0 ||
	    memcmp(code + 4, "amu", 3) != 0 || code[3] < MARK_BEGIN || code[3] > MARK_DIGIT)
		return 0;
	return code[3];
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	size_t nr = qemu_plugin_tb_n_insns(block);

	(void)id;
	if (nr == 0 || qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0)) >> USER_BITS)
		return;
	qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)nr);
	for (size_t i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		uintptr_t mark = mark_of(insn);

		if (mark != 0)
			qemu_plugin_register_vcpu_insn_exec_cb(
			    insn, on_mark, QEMU_PLUGIN_CB_NO_REGS, (void *)mark);
		else
			qemu_plugin_register_vcpu_mem_cb(
			    insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
			    (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
	}
}

static void on_end(qemu_plugin_id_t id, void *unused)
{
	(void)id;
	(void)unused;
	core_write();
}

static bool parse_shape(const char *text, struct shape *shape)
{
	char *end;

	shape->nr_entries = strtoull(text, &end, 10);
	if (*end != '/')
		return false;
	shape->nr_ways = strtoull(end + 1, &end, 10);
	return *end == '\0';
}

static bool parse_cpus(const char *text)
{
	for (;; text++) {
		char *end;
		long node = strtol(text, &end, 10);

		if (end == text || node < 0 || node >= LAB_MAX_NODES ||
		    model.nr_cpus == LAB_MAX_CPUS)
			return false;
		model.node_of_cpu[model.nr_cpus++] = (int)node;
		text = end;
		if (*text != '/')
			return *text == '\0';
	}
}

static bool parse_memory(const char *text)
{
	for (;; text++) {
		char *end;

		if (model.nr_nodes == LAB_MAX_NODES)
			return false;
		model.memory_start[model.nr_nodes] = strtoull(text, &end, 16);
		if (*end != '-')
			return false;
		model.memory_end[model.nr_nodes++] = strtoull(end + 1, &end, 16);
		text = end;
		if (*text != '/')
			return *text == '\0';
	}
}

static bool parse_latency(const char *text)
{
	int row = 0, column = 0;

	for (;; text++) {
		char *end;

		if (row == LAB_MAX_NODES || column == LAB_MAX_NODES)
			return false;
		model.latency_ns[row][column] = strtod(text, &end);
		text = end;
		if (*text == ':') {
			column++;
		} else if (*text == '/') {
			row++;
			column = 0;
		} else {
			return *text == '\0';
		}
	}
}

static bool parse_argument(const char *text)
{
	static struct {
		const char *name;
		struct shape *shape;
	} const shapes[] = { { "l1=", &model.l1 },
			     { "l2=", &model.l2 },
			     { "llc=", &model.llc },
			     { "dtlb=", &model.dtlb },
			     { "stlb=", &model.stlb } };
	const char *value = strchr(text, '=');

	if (value++ == NULL)
		return false;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		if (strncmp(text, shapes[i].name, strlen(shapes[i].name)) == 0)
			return parse_shape(value, shapes[i].shape);
	}
	if (strncmp(text, "out=", 4) == 0)
		return (model.out = strdup(value)) != NULL;
	if (strncmp(text, "trace=", 6) == 0)
		return (model.trace = fopen(value, "w")) != NULL;
	if (strncmp(text, "period=", 7) == 0)
		return (model.period = strtoull(value, NULL, 10)) > 0;
	if (strncmp(text, "cpus=", 5) == 0)
		return parse_cpus(value);
	if (strncmp(text, "memory=", 7) == 0)
		return parse_memory(value);
	if (strncmp(text, "latency=", 8) == 0)
		return parse_latency(value);
	if (strncmp(text, "caches=", 7) == 0)
		return (model.has_caches = strcmp(value, "on") == 0);
	if (strncmp(text, "pages=", 6) == 0)
		return (model.has_pages = strcmp(value, "on") == 0);
	return false;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *error;

	(void)info;
	model.l1 = (struct shape){ 512, 8 };
	model.l2 = (struct shape){ 2048, 8 };
	model.llc = (struct shape){ 16384, 16 };
	model.dtlb = (struct shape){ 64, 4 };
	model.stlb = (struct shape){ 512, 8 };
	for (int i = 0; i < argc; i++) {
		if (!parse_argument(argv[i])) {
			fprintf(stderr, "numalab plugin: bad argument %s\n", argv[i]);
			return -1;
		}
	}
	error = model.out == NULL ? "no out=FILE" : core_init_all();
	if (error != NULL) {
		fprintf(stderr, "numalab plugin: %s\n", error);
		return -1;
	}
	if (model.trace == NULL)
		model.period = 0;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	return 0;
}
