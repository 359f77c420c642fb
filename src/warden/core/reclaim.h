/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.h - removes what is left of a box, a warm one or a zygote, on a worker thread. */
#ifndef CLOCHE_WARDEN_RECLAIM_H
#define CLOCHE_WARDEN_RECLAIM_H

#include "jail/jail.h"

struct warden;

/* Kills every process of the jail, waits for their end by a timer (no worker waits with it), removes cgroups and
 * directory, closes the jail's descriptors, and then gives the id range back. Where something can't be removed, the id
 * range stays taken and it is tried again, after 1 s and up to once a minute: another box with the same ids would meet
 * what is left of this one. Done for `team`; "" is the server. w->removals counts those under way, w->kept_back those
 * that wait for another try. */
void reclaim_jail(struct warden *w, const char *team, struct jail jail, const char *name, const char *dir,
                  unsigned slot);

#endif
