/* SPDX-License-Identifier: Apache-2.0 */
/* view_server.h - keeps what boxes read of their memory, processor time and load (limit_view.h) up to date.
 *
 * One thread of the daemon is asked by the kernel (fanotify) before a read of such a file goes on, writes the numbers
 * of that box's control groups and lets the read go. It looks at nothing that a box wrote. A daemon that dies answers
 * by dying: the kernel lets waiting reads go and the files stay as they were, until the next daemon adopts the box. A
 * box that reads without pause is not listened to for the rest of the second and sees numbers that are up to a second
 * old; so do all boxes of a host whose kernel does not ask. */
#ifndef CLOCHE_JAIL_VIEW_SERVER_H
#define CLOCHE_JAIL_VIEW_SERVER_H

#include "jail/limit_view.h"

/* Takes the open files of `view`. pid: the box's first process. */
void view_watch(const char *instance, const char *id, pid_t pid, struct limit_view *view);
/* The same for a box of an earlier daemon; one that was started before boxes had such files is left alone. */
void view_adopt(const char *instance, const char *id, pid_t pid);
void view_forget(const char *instance, const char *id);

#endif
