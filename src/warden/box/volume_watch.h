/* SPDX-License-Identifier: Apache-2.0 */
/* volume_watch.h - limits of volumes that are directories without project quotas.
 *
 * Every volume_scan_seconds all of them are measured, one after the other on one worker thread, each up to
 * volume_scan_entries files. One that is over becomes read-only in all boxes until it is under again; what a box has
 * open for writing by then it may write on, and is asked again next time. Weaker than a quota by as much as can be
 * written in that time; images and quotas need none of it. */
#ifndef CLOCHE_WARDEN_BOX_VOLUME_WATCH_H
#define CLOCHE_WARDEN_BOX_VOLUME_WATCH_H

struct warden;

void volume_watch_tick(struct warden *w); /* every few seconds */

#endif
