/* jail_inside.h - what the birth of a box (jail.c) and its return from disk (checkpoint_restore.c) share. */
#ifndef CLOCHE_JAIL_INSIDE_H
#define CLOCHE_JAIL_INSIDE_H

#include "jail/jail.h"

int jail_check_spec(const struct jail_spec *spec, struct err *err);
/* A user namespace that is only a mapping of the box's ids. */
int jail_map_ns(uint32_t base, struct err *err);
int jail_open_ns(pid_t pid, const char *which, struct err *err);

#endif
