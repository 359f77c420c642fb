/* SPDX-License-Identifier: Apache-2.0 */
/* worker_pool.h - work off the loop, on threads that teams share fairly (fair_queue.h).
 *
 * Like uv_queue_work, with the team it is done for; "" is the server itself. One team has at most WORKERS_TEAM threads
 * at once, so what a box makes slow - its processes, its mounts, its files - keeps only its own team
 * waiting. Nothing queued here may wait for a message from a box: such waits are the loop's. */
#ifndef CLOCHE_WARDEN_WORKER_POOL_H
#define CLOCHE_WARDEN_WORKER_POOL_H

#include "base/base.h"
#include <uv.h>

struct warden;

#define WORKERS_TEAM        8
#define WORKERS             (2 * WORKERS_TEAM)

/* What waits for the filesystem of volumes, which may be a network's and stand still, has threads of its own: it keeps
 * no other work waiting. */
#define VOLUME_WORKERS      16
#define VOLUME_WORKERS_TEAM 4

/* In place of a team: removing directory trees, which may be as large as a team liked. */
#define WORKERS_CLEARING    "clearing"

void worker_pool_open(const struct warden *w); /* before the loop's first work: sets the number of threads */
void worker_pool_queue(struct warden *w, const char *team, uv_work_t *work, uv_work_cb act, uv_after_work_cb done);
void worker_pool_queue_volume(struct warden *w, const char *team, uv_work_t *work, uv_work_cb act,
                              uv_after_work_cb done);

#endif
