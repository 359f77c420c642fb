/* SPDX-License-Identifier: Apache-2.0 */
/* box_log.h - what a box printed: read through a descriptor of its own log ring while it lives, and the last of it kept
 * in the store when it ends. The warden never reads the lines, it only cuts them off and hands them on. */
#ifndef CLOCHE_WARDEN_BOX_LOG_H
#define CLOCHE_WARDEN_BOX_LOG_H

#include "jail/jail.h"

struct box;
struct warden;

#define BOXLOG_KEEP ((size_t)64 << 10) /* bytes kept of an ended box */

/* A descriptor for reading, the caller's; -ENOENT when the box has printed nothing (or is not there any more). */
int boxlog_open(const struct jail *j);
/* Before the box is killed. Looks for the ring as long as the first process lives. */
void boxlog_look(struct box *b);
void boxlog_keep(struct box *b); /* its last lines go to the store */
/* The kept lines of an ended box as a ring of their own; -ENOENT. */
int boxlog_kept(struct warden *w, struct str id, struct str team);

#endif
