/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c - see pause.h. */
#include "warden/pause.h"

#include "warden/quota.h"
#include "warden/box_reply.h"
#include "warden/transition.h"
#include "warden/storage_quota.h"

static void answer(struct box *b, struct origin origin, int status, const struct err *err)
{
  if (origin.ipc)
    reply_box(b->warden, origin, status, b, err);
}

static void refuse(struct box *b, struct origin origin, int status, const char *why)
{
  struct err err = ERR_NONE;
  err_set(&err, status, "%s", why);
  answer(b, origin, status, &err);
}

/* ---- to sleep ---- */

static void pause_begin(struct box *b, const struct pending_op *pending_op)
{
  transition_begin(b,
                   pending_op->cold            ? TRANSITION_STOP
                   : b->warden->checkpoints_on ? TRANSITION_DUMP
                                               : TRANSITION_FREEZE,
                   pending_op);
}

/* Asked again by a gate that a dead warden owes an answer: the sleep is that one's work. */
void box_pause(struct box *b, const struct pending_op *pending_op)
{
  struct err err = ERR_NONE;
  int r = b->row.state == BOX_RUNNING && pending_op->origin.ipc
              ? storage_admit(b->warden, str_of(b->row.team), STORAGE_PAUSE, &err)
              : 0;
  if (r)
    answer(b, pending_op->origin, r, &err);
  else if (b->row.state == BOX_RUNNING)
    pause_begin(b, pending_op);
  else if (b->row.state == BOX_PAUSED && pending_op->origin.again)
    answer(b, pending_op->origin, 0, NULL);
  else if (b->row.state == BOX_PAUSED)
    refuse(b, pending_op->origin, -EALREADY, "the sandbox is already paused");
  else if (b->row.state == BOX_STARTING)
    refuse(b, pending_op->origin, -EBUSY, "the sandbox is still starting");
  else
    vec_push(&b->pending_ops, *pending_op);
}

void box_expire(struct box *b)
{
  struct pending_op pending_op = {.pause = true, .cold = (b->row.flags & BOX_AUTO_COLD) != 0};
  if ((b->row.flags & BOX_AUTO_PAUSE) && b->row.state == BOX_RUNNING)
    pause_begin(b, &pending_op);
  else if ((b->row.flags & BOX_AUTO_PAUSE) && b->row.state == BOX_COPYING)
    vec_push(&b->pending_ops, pending_op);
  else
    box_end(b, "timeout: it reached its end of life");
}

/* ---- awake ---- */

static void extend(struct box *b, struct origin origin, uint32_t timeout_s)
{
  struct err err = ERR_NONE;
  int64_t last = b->row.started_us + (int64_t)quota_timeout_max(b->warden, str_of(b->row.team)) * 1000000;
  int64_t end = MIN(clock_wall_us() + (int64_t)timeout_s * 1000000, last);
  int r = end > b->row.end_us ? box_set_end(b, end, &err) : 0;
  answer(b, origin, r, &err);
}

static void connect_running(struct box *b, struct origin origin, enum connect_mode mode, uint32_t timeout_s)
{
  origin.resumed = origin.again && mode == CONNECT_RESUME;
  if (mode == CONNECT_CONNECT)
    extend(b, origin, timeout_s);
  else if (mode == CONNECT_RESUME && !origin.again)
    refuse(b, origin, -EALREADY, "the sandbox is already running");
  else
    answer(b, origin, 0, NULL);
}

static bool may_wake(const struct box *b, enum connect_mode mode)
{
  if (mode == CONNECT_WAKE)
    return (b->row.flags & BOX_AUTO_RESUME) && b->row.tier != TIER_FILES;
  return mode != CONNECT_JOIN;
}

static void wake(struct box *b, struct pending_op pending_op)
{
  struct err err = ERR_NONE;
  unsigned retry;
  if (!may_wake(b, pending_op.mode)) {
    refuse(b, pending_op.origin, -EHOSTDOWN, "the sandbox is paused");
    return;
  }
  int r = quota_fits(b->warden, str_of(b->row.team), (struct box_size){b->row.cpus, b->row.memory_mb, b->row.disk_mb},
                     &err);
  r = r ? r : quota_admit(b->warden, str_of(b->row.team), b->row.memory_mb, false, &retry, &err);
  if (r) {
    answer(b, pending_op.origin, r, &err);
    return;
  }
  if (pending_op.mode == CONNECT_WAKE)
    pending_op.timeout_s = MIN(MAX(WAKE_LEAST_S, b->row.timeout_s), quota_timeout_max(b->warden, str_of(b->row.team)));
  quota_count(b, true);
  bool cold = pending_op.cold || b->row.tier == TIER_FILES;
  transition_begin(b,
                   cold                             ? TRANSITION_COLD
                   : b->row.tier == TIER_CHECKPOINT ? TRANSITION_RESTORE
                                                    : TRANSITION_THAW,
                   &pending_op);
}

void box_connect(struct box *b, const struct pending_op *pending_op)
{
  switch (b->row.state) {
  case BOX_RUNNING:
    connect_running(b, pending_op->origin, pending_op->mode, pending_op->timeout_s);
    break;
  case BOX_PAUSED:
    if (!b->transition) {
      wake(b, *pending_op);
      break;
    }
    transition_cancel_compress(b); /* its walls are still going, or its image is being packed */
    vec_push(&b->pending_ops, *pending_op);
    break;
  case BOX_PAUSING:
  case BOX_RESUMING:
  case BOX_COPYING:
    vec_push(&b->pending_ops, *pending_op);
    break;
  default:
    refuse(b, pending_op->origin, -EBUSY, "the sandbox is still starting");
  }
}

/* ---- after a restart ---- */

void box_sync_freezer(struct box *b)
{
  struct err err = ERR_NONE;
  bool asleep = b->row.state == BOX_PAUSED;
  if (b->jail.pidfd >= 0 && jail_freeze(b->warden->instance, b->name, asleep, &err))
    log_warn("box %s: %s", b->row.id, err.msg);
  quota_count(b, !asleep);
}
