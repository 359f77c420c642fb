/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.h - removes what is left of a box, a warm one or a zygote, on a worker thread. */
#ifndef CLOCHE_WARDEN_RECLAIM_H
#define CLOCHE_WARDEN_RECLAIM_H

#include "jail/jail.h"

struct warden;

/* Kills every process of the jail, removes cgroups and directory, closes the jail's descriptors, and then gives the
 * id range back. Done for `team`; "" is the server. w->removals counts those under way. */
void reclaim_jail(struct warden *w, const char *team, struct jail jail, const char *name, const char *dir,
                  unsigned slot);

#endif
