/* SPDX-License-Identifier: Apache-2.0 */
/* microvm.h - the tiers of isolation: which one a box gets, and what it then can't have (docs/microvm.md). A box never
 * gets another tier than was asked for. */
#ifndef CLOCHE_WARDEN_CORE_MICROVM_H
#define CLOCHE_WARDEN_CORE_MICROVM_H

#include "jail/jail.h"

struct arena;
struct box;
struct box_params;
struct build;
struct warden;

void microvm_open(struct warden *w); /* at start: finds out whether guests run here, where the parts are installed */

/* The flags of a create with the tier decided: asked for (BOX_MICROVM, BOX_PROCESS), else what the build says, else the
 * team, else the setting `isolation`. */
unsigned microvm_choose(const struct warden *w, const struct build *build, struct str team, unsigned flags);
/* 0 when a box of that build can be created as asked for, with flags of microvm_choose; else why not. */
int microvm_admit(const struct warden *w, const struct box_params *o, const struct build *build, unsigned flags,
                  struct err *err);
/* Makes the plan of a process box that of a guest with the same limits. */
void microvm_spec(const struct warden *w, unsigned slot, struct arena *a, struct jail_spec *spec);
unsigned microvm_patience_s(const struct warden *w); /* beside agent_seconds: the guest's own start */
/* Why the first process of a guest's jail ended, of a box whose end was seen. */
const char *microvm_cause(const struct box *b);
uint64_t microvm_disk_used(const char *dir); /* bytes of the box's image on the host's disk; 0 when it is gone */
/* A request that this tier can't serve yet: -EINVAL, with the operation named; 0 for boxes of the other tier. */
int microvm_refuse(const struct box *b, const char *operation, struct err *err);

#endif
