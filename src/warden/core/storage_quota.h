/* SPDX-License-Identifier: Apache-2.0 */
/* storage_quota.h - what a team keeps on the disk, and how much of the disk boxes may take.
 *
 * Counted are archives uploaded for builds, layers and checkpoints of templates, layers of builds that nothing needs
 * any more until they are collected, snapshots (memory and files), files that forks share, and paused boxes (memory,
 * and their disks). What is being written - a pause, a snapshot, the copy for a fork - counts with all it can come to
 * from the moment it was admitted. Limits come from the team's row, and where that says nothing from the server's
 * settings. A team
 * over its limit loses layers that nothing needs first. Over a limit uploads, builds, snapshots, forks, pauses by
 * request and new boxes that would pause themselves are refused. A box whose time is up is paused all the same, and
 * counts: nothing is lost, and what a team has beyond its limit is at most what its running boxes had. All functions
 * run on the warden's loop. */
#ifndef CLOCHE_WARDEN_STORAGE_QUOTA_H
#define CLOCHE_WARDEN_STORAGE_QUOTA_H

#include "base/base.h"

struct warden;

enum storage_kind { STORAGE_PAUSE, STORAGE_SNAPSHOT, STORAGE_BYTES /* anything else */ };

struct storage_use {
  uint64_t bytes, reserved; /* of the bytes, for what is being written */
  size_t paused, snapshots;
};
void storage_use(struct warden *w, struct str team, struct storage_use *out);

/* May the team keep one more? -EAGAIN, with the number and what to do. */
int storage_admit(struct warden *w, struct str team, enum storage_kind kind, struct err *err);

/* Has the disk room for something new? The fuller it is the less: creates end first (below disk_creates_mb, a tenth of
 * a small disk), then builds, uploads and snapshots (disk_builds_mb, 3 of 40), then what is left beside the reserve
 * (disk_reserve_mb, a twentieth), pauses among it, and last resumes (disk_stop_mb, a fortieth). -ENOSPC. Any thread. */
enum storage_for { ROOM_FOR_RESUME, ROOM_FOR_PAUSE, ROOM_FOR_BUILD, ROOM_FOR_CREATE };
int storage_room(const struct warden *w, enum storage_for what, struct err *err);
/* Bytes that are free, and below which boxes that write are stopped (disk_guard.h). Negative: the disk can't be seen.
 */
int storage_left(const struct warden *w, uint64_t *free, uint64_t *stop);

/* An upload of `length` bytes, 0 = unknown, then `most`: *granted is how many it may have. Those are taken until
 * storage_release, `kept` bytes of which stay and take the place of `replaced` ones; -1: none. */
int storage_grant(struct warden *w, struct str team, struct str id, uint64_t length, uint64_t most, uint64_t *granted,
                  struct err *err);
void storage_release(struct warden *w, struct str team, struct str id, int64_t kept, int64_t replaced);
void storage_forget(struct warden *w); /* files went: they are counted anew */
void storage_layers_changed(struct warden *w);
void storage_free(struct warden *w);

#endif
