/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - what a team has at the moment: running boxes, and how fast it may make new ones. Limits come from the
 * team's row, and where that says nothing from the server's settings. Nothing here survives a restart, and nothing
 * must: running boxes are counted again as they are found. */
#ifndef CLOCHE_WARDEN_QUOTA_H
#define CLOCHE_WARDEN_QUOTA_H

#include "wire/wire.h"

struct box;
struct warden;

/* May the team start one more, of so much memory? -EAGAIN: its running boxes are at a limit; -EDQUOT: too fast,
 * *retry_s says when. */
int quota_admit(struct warden *w, struct str team, unsigned memory_mb, bool create, unsigned *retry_s, struct err *err);
/* One more create as far as the rate goes: -EDQUOT, *retry_s. quota_admit with `create` does the same at its end. */
int quota_pace(struct warden *w, struct str team, unsigned *retry_s, struct err *err);
/* What a team had since the meters were taken last: most running at once, started. */
struct quota_meter {
  size_t peak;
  uint64_t starts;
};
struct quota_meter quota_meter(struct warden *w, struct str team);
/* Of every team that had something, or has nothing for the first time; they begin anew. */
void quota_meters_take(struct warden *w, void (*fn)(struct str team, const struct quota_meter *m, void *arg),
                       void *arg);
void quota_started(struct box *b); /* one more that was created */
/* What the box counts for from now on; idempotent. A frozen box is not among those that run, but its memory is. */
enum quota_use { QUOTA_NONE, QUOTA_MEMORY, QUOTA_RUNNING };
void quota_count(struct box *b, enum quota_use use);
enum quota_use quota_paused(enum box_tier tier);
unsigned quota_missing(const struct box *b); /* MiB that count in addition once it runs */
/* Whether a moved end time is recorded as an event; past the rate the end moves all the same. */
bool quota_tells_end(struct warden *w, struct str team);
int quota_change(struct warden *w, struct str team, struct err *err); /* of network lists: -EDQUOT, too fast */
size_t quota_running(struct warden *w, struct str team);
unsigned quota_boxes_max(struct warden *w, struct str team);   /* running at once; 0 = no limit */
unsigned quota_timeout_max(struct warden *w, struct str team); /* seconds of one run */
/* The size of a box, whoever chose it and when, against the largest that the server and the team may have: -EINVAL. 0:
 * not known yet. */
struct box_size {
  unsigned cpus, memory_mb, disk_mb;
};
unsigned quota_disk_max(struct warden *w, struct str team); /* MB of one box; UINT_MAX = no limit */
int quota_fits(struct warden *w, struct str team, struct box_size size, struct err *err);
void quotas_free(struct warden *w);

#endif
