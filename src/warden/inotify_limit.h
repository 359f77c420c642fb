/* watching.h - the host's limit of inotify instances, raised while boxes live. */
#ifndef CLOCHE_WATCHING_H
#define CLOCHE_WATCHING_H

#include "warden/warden.h"

/* Boxes of one zygote are one user outside, and the host lets a user have 128 instances, as many as a single box may have.
 * Raised to the setting where it is lower; the old value is kept in the store and put back by watching_close. */
void watching_open(struct warden *w);
void watching_close(struct warden *w);

#endif
