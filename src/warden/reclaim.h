/* remains.h - what is left of a box, a parked one or a zygote: cleared on a worker thread. */
#ifndef CLOCHE_REMAINS_H
#define CLOCHE_REMAINS_H

#include "jail/jail.h"
#include "warden/warden.h"

/* Kills what lives behind these walls, removes cgroups and directory, closes the jail's descriptors, and then gives the id
 * range back. w->removals counts those under way. */
void remains_clear(struct warden *w, struct jail jail, const char *name, const char *dir, unsigned slot);

#endif
