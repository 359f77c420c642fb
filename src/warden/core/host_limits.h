/* SPDX-License-Identifier: Apache-2.0 */
/* host_limits.h - numbers of the host's kernel that all boxes have together, raised so far that no box comes to them
 * before it comes to a limit of its own. */
#ifndef CLOCHE_WARDEN_HOST_LIMITS_H
#define CLOCHE_WARDEN_HOST_LIMITS_H

struct warden;

/* Raised to the settings where they are lower. Inotify instances are counted by user, and boxes of one zygote are one
 * user outside: the old value is kept in the store and put back by host_limits_restore. Processes, open files and AIO
 * requests are counted for the whole host; their limits stay raised until the machine restarts, since other servers and
 * boxes may rely on them by then, and memory bounds all three anyway. */
void host_limits_raise(struct warden *w);
void host_limits_restore(struct warden *w);

#endif
