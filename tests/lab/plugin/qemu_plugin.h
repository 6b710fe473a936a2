/*
 * The part of QEMU's plugin interface (version 1, QEMU 7.2) that the lab uses.
 *
 * Debian has no package with QEMU's own qemu-plugin.h (GPL-2.0-or-later, in QEMU's source under
 * include/qemu/). These declarations were written from the documented interface, not copied: names
 * and types of functions that QEMU exports to plugins. The plugin is loaded into QEMU, so the two
 * together are under QEMU's licence.
 */
#ifndef NPG_LAB_QEMU_PLUGIN_H
#define NPG_LAB_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;     /* a block of guest instructions while it is translated */
struct qemu_plugin_insn;   /* one instruction of it */
struct qemu_plugin_hwaddr; /* what is behind a virtual address; valid in the callback only */

typedef struct qemu_info_t {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	union {
		struct {
			int smp_vcpus;
			int max_vcpus;
		} system;
	};
} qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu, void *data);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned int vcpu, qemu_plugin_meminfo_t info,
					  uint64_t address, void *data);
typedef void (*qemu_plugin_udata_cb_t)(qemu_plugin_id_t, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_vcpu_tb_trans_cb_t);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, qemu_plugin_vcpu_udata_cb_t,
					  enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, qemu_plugin_vcpu_udata_cb_t,
					    enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, qemu_plugin_vcpu_mem_cb_t,
				      enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw,
				      void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb_t, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);
void qemu_plugin_outs(const char *);

#endif
