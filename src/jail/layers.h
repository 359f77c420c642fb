/* layers.h - the root filesystem of a box: an overlay of idmapped layers, made by the host's root and handed over as a
 * descriptor. Files on disk carry the ids the box sees (its root is 0), whatever range the box runs under. */
#ifndef CLOCHE_LAYERS_H
#define CLOCHE_LAYERS_H

#include "jail/jail.h"

/* Makes dir (0700) with upper/ and work/, unless they are there. */
int layers_prepare(const char *dir, struct err *err);
/* A detached mount of lowers (top first) under dir's upper, mapped as the user namespace says, whose root is the
 * host's `root`. fd or negative. */
int layers_mount(const char *dir, const char *const *lowers, int userns, uint32_t root, struct err *err);

#endif
