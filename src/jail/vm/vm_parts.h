/* SPDX-License-Identifier: Apache-2.0 */
/* vm_parts.h - what boxes behind a second kernel are made of, and whether this machine runs them; start here.
 *
 * The parts are a directory that scripts/microvm makes: `root` is the read-only root that QEMU and warder run in, with
 * the guest's kernel and initramfs. Whether KVM works is found out by booting a guest of no use: opening the device
 * proves nothing, there are machines on which every guest hangs. */
#ifndef CLOCHE_JAIL_VM_PARTS_H
#define CLOCHE_JAIL_VM_PARTS_H

#include "base/base.h"

#define VM_PARTS_DEFAULT "/var/cache/cloche/microvm/current"
#define VM_PROBE_MS      2000  /* a guest under KVM needs a fifth of it */
#define VM_EMULATED_MS   60000 /* under emulation, on a busy machine */

enum vm_accel { VM_KVM, VM_EMULATION };

/* -ENOENT with the remedy in the message when something is missing. */
int vm_parts_check(const char *parts, struct err *err);
/* Boots a guest that says one line and ends: milliseconds, or why not. Forks; QEMU runs as a user without rights. */
int vm_probe(const char *parts, enum vm_accel accel, int limit_ms, struct err *err);
/* The kernel's parameters of every guest. `more` is added; may be "". */
void vm_kernel_parameters(struct buf *b, enum vm_accel accel, const char *more);

#endif
