/* SPDX-License-Identifier: Apache-2.0 */
/* inotify_limit.h - the host's limit of inotify instances, raised while boxes live. */
#ifndef CLOCHE_WARDEN_INOTIFY_LIMIT_H
#define CLOCHE_WARDEN_INOTIFY_LIMIT_H

struct warden;

/* Boxes of one zygote are one user outside, and the host lets a user have 128 instances, as many as a single box may
 * have. Raised to the setting where it is lower; the old value is kept in the store and put back by
 * inotify_limit_restore. */
void inotify_limit_raise(struct warden *w);
void inotify_limit_restore(struct warden *w);

#endif
