/* SPDX-License-Identifier: Apache-2.0 */
/* vm_files.h - what the keeper of a guest is given: its root, descriptors, command line and variables. */
#ifndef CLOCHE_JAIL_VM_FILES_H
#define CLOCHE_JAIL_VM_FILES_H

#include "jail/jail.h"
#include "jail/jail_child.h"

struct vm_files {
  int root, devices;    /* detached mounts; devices -1: none */
  int fds[CHILD_GIVEN]; /* standard input and output, then what vm/vm_argv.h numbers */
  size_t n;
  uint64_t file_bytes; /* what no file of QEMU may grow past */
  const char *const *argv, *const *env;
  struct arena arena;
};
#define VM_FILES_NONE ((struct vm_files){.root = -1, .devices = -1, .arena = ARENA_INIT(1 << 18)})

/* For the process `pid` of a created jail. Makes the scratch image in spec->dir unless it is there, and images of
 * layers that have none yet, which may take seconds. */
int vm_files_open(const struct jail_spec *spec, pid_t pid, struct vm_files *out, struct err *err);
void vm_files_close(struct vm_files *f);
#define cleanup_vm __attribute__((cleanup(vm_files_close)))

#endif
