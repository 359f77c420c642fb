/* SPDX-License-Identifier: Apache-2.0 */
/* jail_internal.h - what the launch of a box (jail_spawn.c), its life (jail.c) and its return from disk
 * (checkpoint_restore.c) share. */
#ifndef CLOCHE_JAIL_JAIL_INTERNAL_H
#define CLOCHE_JAIL_JAIL_INTERNAL_H

#include "jail/cgroup.h"

struct jail_spec;

const struct cgroup_ops *jail_groups(struct err *err);                    /* NULL with a message: the host has none */
int jail_check_namespaces(const struct jail_spec *spec, struct err *err); /* what jail_create needs of it */
int jail_check_spec(const struct jail_spec *spec, struct err *err);
/* A user namespace that is only a mapping of the box's ids. */
int jail_map_ns(uint32_t base, struct err *err);
/* The same for files whose ids on the disk begin at `inside`. */
int jail_map_ns_from(uint32_t inside, uint32_t base, struct err *err);
/* spec->runtime as a detached mount for the box, after its root was made. */
#define JAIL_RUNTIME_SOURCE "cloche-runtime" /* what the box sees as the source of the mount */
int jail_runtime(const struct jail_spec *spec, struct err *err);
int jail_open_ns(pid_t pid, const char *which, struct err *err);

#endif
