/* SPDX-License-Identifier: Apache-2.0 */
/* vm_argv.h - the command line of warder and QEMU for one guest. Pure. */
#ifndef CLOCHE_JAIL_VM_ARGV_H
#define CLOCHE_JAIL_VM_ARGV_H

#include "jail/vm/vm_parts.h"

/* Descriptors that warder gets, from 4 on: the tap, the scratch disk, then one per layer, top first. */
#define VM_TAP_FD     4
#define VM_SCRATCH_FD 5
#define VM_LAYER_FD   6

struct vm_machine {
  enum vm_accel accel;
  unsigned cpus, layers;
  uint64_t memory_mb;
};

/* NULL-terminated, in the arena. */
const char *const *vm_argv(struct arena *a, const struct vm_machine *m);
/* `env` and what guest-init has to know. nameserver may be NULL. */
const char *const *vm_env(struct arena *a, const char *const *env, const struct vm_machine *m, const char *hostname,
                          uint32_t address, const char *nameserver);

#endif
