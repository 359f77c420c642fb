/* SPDX-License-Identifier: Apache-2.0 */
/* jail_doctor.h - what this host can do for boxes, tried out rather than guessed. */
#ifndef CLOCHE_JAIL_DOCTOR_H
#define CLOCHE_JAIL_DOCTOR_H

#include "jail/jail.h"

enum jail_health {
  JAIL_FINE,
  JAIL_WORSE,  /* works without it; `detail` says what is lost */
  JAIL_BROKEN, /* no box can be made */
};

struct jail_check {
  const char *id, *name; /* the id never changes; the name is for people */
  enum jail_health health;
  char detail[320]; /* what is so */
  char remedy[320]; /* what to do about it; "" = nothing */
};

void jail_check_tell(struct jail_check *c, enum jail_health health, const char *fmt, ...) PRINTF_LIKE(3, 4);
void jail_check_advise(struct jail_check *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* the remedy */

#define JAIL_CHECKS_MAX 16
struct jail_place {
  const char *data;    /* the daemon's data directory, whose filesystem matters */
  const char *criu;    /* the program; NULL: its default */
  const char *microvm; /* the parts of that tier (vm/vm_parts.h); NULL: their default */
  bool microvm_wanted; /* its absence is worth a warning */
  const char *runtime; /* the layer with the agent, which a checkpoint is tried with; NULL: not tried */
};

/* For a program of one thread (it forks). The number of checks filled. Leaves nothing behind. */
size_t jail_doctor(const struct jail_place *place, struct jail_check out[JAIL_CHECKS_MAX]);

#endif
