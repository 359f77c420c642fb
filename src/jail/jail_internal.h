/* jail_inside.h - what the birth of a box (spawn.c), its life (jail.c) and its return from disk (checkpoint_restore.c) share. */
#ifndef CLOCHE_JAIL_INSIDE_H
#define CLOCHE_JAIL_INSIDE_H

#include "jail/cgroup.h"
#include "jail/jail.h"

const struct cgroup_ops *jail_groups(struct err *err);               /* NULL with a message: the host has none */
int jail_check_walls(const struct jail_spec *spec, struct err *err); /* what a blank needs of it */
int jail_check_spec(const struct jail_spec *spec, struct err *err);
/* A user namespace that is only a mapping of the box's ids. */
int jail_map_ns(uint32_t base, struct err *err);
int jail_open_ns(pid_t pid, const char *which, struct err *err);

#endif
