/* SPDX-License-Identifier: Apache-2.0 */
/* transition.c - see transition.h. Which step follows which is decided in transition_table.c; here is what each of them
 * does: `act` on a worker, the rest on the loop. The worker sees only copies: the loop may end the box meanwhile. */
#include "warden/box/transition.h"

#include "warden/core/quota.h"
#include "warden/egress/policies.h"
#include "warden/warm/nursery_request.h"
#include "warden/warm/launch.h"
#include "warden/core/box_log.h"
#include "warden/core/box_event.h"
#include "warden/core/box_reply.h"
#include "warden/core/checkpoint_store.h"
#include "warden/box/memory_guard.h"
#include "warden/box/pause.h"
#include "warden/box/pause_rules.h"
#include "warden/core/checkpoint_queue.h"
#include "warden/core/box_spec.h"
#include "warden/warm/zygote.h"
#include "warden/core/worker_pool.h"
#include "warden/core/warden_state.h"
#include "jail/fs/layer_commit.h"
#include "wire/sizes.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

#define COMPRESS_NICE 10

struct transition {
  uv_work_t work;
  struct warden *warden;
  struct box *box;
  enum transition_op op;
  enum transition_step step;
  char name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE], runtime[LAYER_ID_SIZE], checkpoint[CHECKPOINT_NAME_SIZE],
      team[UUID_SIZE];
  uint64_t checkpoint_size;
  struct checkpoint_job checkpoint_job;
  struct arena arena;
  struct jail_spec spec; /* of a dump or a restore */
  struct jail_net net;
  struct copy *copy;
  const char *unsettled; /* the layer of a fork below the box, to be written out before it is relied on; NULL: none */
  struct jail jail;      /* what is dumped, was restored, or is removed */
  struct row_box next;   /* of a restored box, once it is written; its texts are the box's own */
  bool orphan;           /* the box ended meanwhile */
  bool expired;          /* the box reached its timeout; no client asked */
  bool uncommitted;      /* result is that of writing the row */
  atomic_bool stop;      /* somebody waits for the end of a compression, or the box was killed */
  struct pending_op pending_op; /* who began it */
  struct wire_trace marks;      /* when */
  int result;
  struct err err;
};

static const char *const tiers[] = {"frozen", "checkpoint", "files"};

static void answer(struct box *b, struct origin origin, int status, const struct err *err)
{
  if (origin.ipc)
    reply_box(b->warden, origin, status, b, err);
}

/* Who began it, and when it came how far. */
static void answer_first(struct transition *p)
{
  p->marks.kept_us = clock_mono_us();
  if (p->pending_op.origin.ipc)
    reply_traced(p->warden, p->pending_op.origin, p->result, p->box, &p->err, &p->marks);
}

/* ---- on a worker ---- */

static void act_harden(struct transition *p)
{
  int64_t began = clock_mono_us();
  if (store_harden(p->warden->store))
    log_warn("box %s: database not flushed to disk", p->name);
  log_debug("box %s: row committed in %" PRId64 " us", p->name, clock_mono_us() - began);
}

static void act_remove(struct transition *p)
{
  struct warden *w = p->warden;
  struct err err = ERR_NONE;
  int64_t began = clock_mono_us();
  int r = jail_kill(w->instance, p->name, &p->jail, &err);
  r = jail_remove(w->instance, p->name, NULL, &err) ? -EIO : r;
  jail_close(&p->jail);
  int64_t gone = clock_mono_us();
  if (jail_sync(p->dir, &err) || r)
    log_warn("box %s: %s", p->name, err.msg);
  log_debug("box %s: jail removed in %" PRId64 " us, disk written in %" PRId64 " us", p->name, gone - began,
            clock_mono_us() - gone);
}

static int copy_upper(struct transition *p, const char *path)
{
  bool files = !p->checkpoint[0];
  struct jail_criu how = p->warden->criu;
  how.transient = p->copy->transient;
  how.stop = &p->stop;
  int r = files ? jail_freeze(p->warden->instance, p->name, true, &p->err)
                : checkpoint_dump(&how, &p->spec, &p->jail, path, &p->err);
  if (r)
    return r;
  int64_t began = clock_mono_us();
  r = (how.transient ? jail_commit_quick : jail_commit)(p->dir, p->spec.id_base, p->copy->layer, &p->err);
  if (!r)
    p->copy->layer_bytes = jail_layer_bytes(p->copy->layer);
  log_debug("box %s: files copied in %" PRId64 " us", p->name, clock_mono_us() - began);
  struct err thaw = ERR_NONE;
  if (!files)
    jail_link_remaps_remove(path, &p->jail, false);
  if (jail_freeze(p->warden->instance, p->name, false, &thaw))
    log_error("box %s: %s", p->name, thaw.msg);
  if (r && !files)
    jail_checkpoint_remove(path, NULL);
  return r;
}

static int settle_layer(struct transition *p)
{
  return p->unsettled ? jail_layer_settle(p->unsettled, &p->err) : 0;
}

static void act_freeze(struct transition *p)
{
  if (!(p->result = settle_layer(p)))
    p->result = jail_freeze(p->warden->instance, p->name, true, &p->err);
}

static void act_thaw(struct transition *p)
{
  p->result = jail_freeze(p->warden->instance, p->name, false, &p->err);
}

static struct jail_criu lasting_criu(struct transition *p)
{
  struct jail_criu criu = p->warden->criu;
  criu.with_disk = true;
  criu.stop = &p->stop;
  return criu;
}

static void act_dump(struct transition *p)
{
  char path[DATA_PATH_SIZE];
  struct jail_criu criu = lasting_criu(p);
  checkpoint_path(p->warden, p->checkpoint, path);
  if ((p->result = settle_layer(p)) || (p->result = checkpoint_dump(&criu, &p->spec, &p->jail, path, &p->err)))
    return;
  p->checkpoint_size = jail_checkpoint_bytes(path);
}

/* The box stays frozen until its row says that it runs: once it has run, the checkpoint can't be restored again. */
static void act_restore(struct transition *p)
{
  char path[DATA_PATH_SIZE];
  struct jail_criu criu = lasting_criu(p);
  criu.held = true;
  checkpoint_path(p->warden, p->checkpoint, path);
  p->result = jail_restore(&criu, &p->spec, path, &p->jail, &p->err);
}

static void act_copy(struct transition *p)
{
  char path[DATA_PATH_SIZE];
  checkpoint_path(p->warden, p->checkpoint, path);
  if ((p->result = settle_layer(p)) || (p->result = copy_upper(p, path)))
    return;
  if (p->checkpoint[0])
    p->checkpoint_size = jail_checkpoint_bytes(path);
}

/* Names that criu gave to deleted files of the box, so that they can be opened again. */
static void remove_link_remaps(const struct transition *p, bool again)
{
  char path[DATA_PATH_SIZE];
  checkpoint_path(p->warden, p->checkpoint, path);
  if (p->checkpoint[0])
    jail_link_remaps_remove(path, &p->jail, again);
}

static void act_unlink(struct transition *p)
{
  remove_link_remaps(p, true);
}

/* With a low priority: nobody waits for it. */
static void act_compress(struct transition *p)
{
  char path[DATA_PATH_SIZE];
  checkpoint_path(p->warden, p->checkpoint, path);
  int64_t began = clock_mono_us();
  uint64_t before = jail_checkpoint_bytes(path);
  setpriority(PRIO_PROCESS, (id_t)gettid(), COMPRESS_NICE);
  p->result = jail_checkpoint_compress(path, (int)p->warden->config->checkpoint_zstd, &p->stop, &p->err);
  setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
  p->checkpoint_size = jail_checkpoint_bytes(path);
  log_debug("box %s: checkpoint compressed from %" PRIu64 " to %" PRIu64 " bytes in %" PRId64 " us", p->name, before,
            p->checkpoint_size, clock_mono_us() - began);
}

/* ---- the end of a transition ---- */

static void start_next(struct box *b, const struct pending_op *w)
{
  if (w->copy)
    transition_copy(b, w->copy);
  else if (w->pause)
    box_pause(b, w);
  else
    box_connect(b, w);
}

static void transition_free(struct transition *p)
{
  p->box->transition = NULL;
  p->warden->transitions--;
  arena_free(&p->arena);
  free(p);
}

static void finish(struct transition *p)
{
  struct box *b = p->box;
  bool resumed = !p->result && transition_resumes(p->op);
  p->pending_op.origin.resumed = resumed;
  answer_first(p);
  transition_free(p);
  struct pending_op *pending_ops = steal(&b->pending_ops.p);
  size_t n = b->pending_ops.n;
  b->pending_ops.n = b->pending_ops.cap = 0;
  for (size_t i = 0; i < n; i++) {
    pending_ops[i].waited = true;
    pending_ops[i].joined = resumed;
    start_next(b, &pending_ops[i]);
  }
  free(pending_ops);
}

static void end_failed(struct transition *p)
{
  struct box *b = p->box;
  bool pausing = transition_pauses(p->op);
  log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "%s: %s", pausing ? "not paused" : "not resumed",
           p->err.msg);
  b->row.state = pausing ? BOX_RUNNING : BOX_PAUSED;
  quota_count(b, pausing ? QUOTA_RUNNING : quota_paused(b->row.tier));
  if (pausing)
    box_set_timer(b);
  else
    policy_remove(b);
  finish(p);
}

/* The box may run no longer, and it can't be paused. */
static void end_box(struct transition *p)
{
  struct box *b = p->box;
  char cause[400];
  snprintf(cause, sizeof(cause), "%s and could not be paused: %.250s",
           p->pending_op.relief ? "out of memory: the machine had too little left, this sandbox's team used the most"
           : p->pending_op.disk ? "out of disk: the machine's disk was almost full, this sandbox was to stop writing"
                                : "timeout: it reached its end of life",
           p->err.msg);
  transition_free(p);
  box_end(b, cause);
}

static void end_orphan(struct transition *p)
{
  struct box *b = p->box;
  if (p->copy)
    p->copy->done(p->copy, NULL, -ENOENT, NULL);
  transition_free(p);
  box_destroy(b);
}

/* ---- pause ---- */

static int commit_paused(struct box *b, enum box_tier tier, const struct transition *p, struct err *err)
{
  struct row_box before = b->row;
  b->row.state = BOX_PAUSED;
  b->row.tier = tier;
  b->row.flags &= ~(unsigned)BOX_AGENT_SILENT;
  b->row.flags |= p->pending_op.silent && tier != TIER_FILES ? BOX_AGENT_SILENT : 0;
  b->compressed = false;
  b->disk_bytes = 0;
  b->row.checkpoint_size = tier == TIER_CHECKPOINT ? p->checkpoint_size : 0;
  snprintf(b->row.checkpoint, sizeof(b->row.checkpoint), "%s", tier == TIER_CHECKPOINT ? p->checkpoint : "");
  bool ran = before.state != BOX_RESUMING;
  if (ran)
    b->row.end_us = clock_wall_us();
  int r = ran ? box_put_paused(b->warden, &b->row, err) : store_box_put(b->warden->store, &b->row, err);
  if (r) {
    b->row = before;
    return r;
  }
  b->row.state = before.state; /* until its jail is removed */
  if (before.checkpoint[0] && tier != TIER_CHECKPOINT)
    checkpoint_drop(b->warden, before.checkpoint);
  return 0;
}

/* The row is all that the box has from here on; it must be on the disk before the jail goes. */
static void release_jail(struct transition *p)
{
  struct box *b = p->box;
  box_unwatch(b);
  boxlog_keep(b);
  p->jail = b->jail;
  b->jail = JAIL_NONE;
  box_set_on_disk(b, true);
}

/* The client that asked is answered; other requests wait for the end of the transition. */
static void paused(struct transition *p)
{
  struct box *b = p->box;
  b->row.state = BOX_PAUSED;
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "tier", tiers[b->row.tier], NULL},
           p->pending_op.disk ? "paused, because it writes while the disk is almost full"
           : p->expired       ? "paused at its timeout"
                              : "paused");
  answer_first(p);
  p->pending_op.origin.ipc = NULL;
}

static bool commit_pause(struct transition *p, enum box_tier tier)
{
  struct box *b = p->box;
  struct warden *w = p->warden;
  if ((p->result = commit_paused(b, tier, p, &p->err))) {
    p->uncommitted = true;
    remove_link_remaps(p, false);
    jail_freeze(w->instance, b->name, false, NULL);
    checkpoint_drop(w, tier == TIER_CHECKPOINT ? p->checkpoint : "");
    return false;
  }
  quota_count(b, quota_paused(tier));
  policy_remove(b);
  w->pauses_total++;
  box_broadcast_ended(b);
  if (p->unsettled)
    b->build->settled = true;
  return true;
}

static void frozen(struct transition *p)
{
  if (commit_pause(p, TIER_FROZEN))
    paused(p);
}

static void dumped(struct transition *p)
{
  if (commit_pause(p, TIER_CHECKPOINT))
    release_jail(p);
}

static void stopped(struct transition *p)
{
  if (commit_pause(p, TIER_FILES))
    release_jail(p);
}

/* A killed criu leaves the box's connections in a state in which nothing moves. What it refuses (-ENOTSUP) it has put
 * back. */
static void cut_streams(struct transition *p)
{
  if (p->result != -ENOTSUP)
    box_broadcast_ended(p->box);
}

static void keep_dump(struct transition *p)
{
  memcpy(p->box->row.checkpoint, p->checkpoint, sizeof(p->box->row.checkpoint)); /* it is dropped with the box */
}

/* ---- resume ---- */

/* The row as it is from now on; on disk already when this returns 0. */
static int commit_running(struct transition *p, struct row_box *next)
{
  if (p->pending_op.auto_pause >= 0)
    next->flags = (next->flags & ~(unsigned)BOX_AUTO_PAUSE) | (p->pending_op.auto_pause ? BOX_AUTO_PAUSE : 0);
  next->flags &= ~(unsigned)BOX_AGENT_SILENT;
  next->state = BOX_RUNNING;
  next->tier = TIER_FROZEN;
  next->checkpoint[0] = 0;
  next->checkpoint_size = 0;
  next->run++;
  uuid4(next->execution);
  next->started_us = clock_wall_us();
  next->end_us = next->started_us + (int64_t)p->pending_op.timeout_s * 1000000;
  p->result = box_put_resumed(p->warden, next, &p->err);
  p->uncommitted = p->result != 0;
  return p->result;
}

static void resumed(struct transition *p, const struct row_box *next, enum box_tier from)
{
  struct box *b = p->box;
  b->row = *next;
  p->warden->resumes_total++;
  box_set_timer(b);
  nursery_listen(b);
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "from", tiers[from], NULL}, "resumed");
}

static void thawed(struct transition *p)
{
  struct row_box next = p->box->row;
  if (commit_running(p, &next))
    log_error("box %s: %s", next.id, p->err.msg);
  resumed(p, &next, TIER_FROZEN);
}

/* The box stays frozen until its row is written; the checkpoint is void from then on. How many names there are to
 * remove is the box's choice: that is for a worker. */
static void restored(struct transition *p)
{
  struct box *b = p->box;
  p->next = b->row;
  p->next.init_proc = p->jail.init;
  if (commit_running(p, &p->next))
    return;
  memcpy(b->row.execution, p->next.execution, sizeof(b->row.execution)); /* if it ends before it runs: this run */
  b->row.started_us = p->next.started_us;
  b->row.end_us = p->next.end_us;
  b->jail = p->jail;
  p->jail = JAIL_NONE;
  p->jail.init = b->jail.init;
  box_set_on_disk(b, false);
  box_watch(b);
}

static void keep_restored(struct transition *p)
{
  p->box->jail = p->jail; /* it is removed with the box */
}

static void unlinked(struct transition *p)
{
  struct box *b = p->box;
  struct warden *w = p->warden;
  struct err err = ERR_NONE;
  if (jail_freeze(w->instance, b->name, false, &err))
    log_error("box %s: %s", b->row.id, err.msg);
  checkpoint_drop(w, p->checkpoint);
  resumed(p, &p->next, TIER_CHECKPOINT);
}

/* ---- cold start ---- */

/* Memory is given up first, in the row too: the files change from now on, and no checkpoint fits them any more. */
static void memory_dropped(struct transition *p)
{
  struct box *b = p->box;
  if ((p->result = commit_paused(b, TIER_FILES, p, &p->err)))
    p->uncommitted = true;
  else if (b->jail.pidfd >= 0)
    release_jail(p);
}

static void step_done(struct transition *p);

static void cold_launched(struct launch *h)
{
  struct box *b = h->box;
  struct transition *p = b->transition;
  b->jail = h->jail;
  p->result = h->result;
  p->err = h->err;
  p->marks.ready_us = clock_mono_us();
  if (p->result && !p->orphan) { /* it may be alive: an agent that did not answer in time */
    p->jail = b->jail;
    b->jail = JAIL_NONE;
  }
  step_done(p);
}

static void begin_launch(struct transition *p)
{
  p->marks.boot_us = clock_mono_us();
  launch_cold(p->box, cold_launched);
}

static void launched(struct transition *p)
{
  struct box *b = p->box;
  struct row_box next = b->row;
  memcpy(next.runtime, p->warden->runtime, sizeof(next.runtime));
  next.init_proc = b->jail.init;
  box_set_on_disk(b, false);
  box_watch(b);
  if (commit_running(p, &next))
    log_error("box %s: %s", b->row.id, p->err.msg);
  resumed(p, &next, TIER_FILES);
}

/* ---- a copy for other boxes ---- */

static void copied(struct transition *p)
{
  struct box *b = p->box;
  b->row.state = BOX_RUNNING;
  if (p->unsettled && !p->result)
    b->build->settled = true;
  p->copy->bytes = p->checkpoint_size;
  p->copy->done(p->copy, b, p->result, &p->err);
}

static void copy_failed(struct transition *p)
{
  if (p->checkpoint[0]) /* a copy of files alone touches no connection */
    cut_streams(p);
  copied(p);
}

static void drop_copy(struct transition *p)
{
  checkpoint_drop(p->warden, p->checkpoint);
  layer_drop(p->warden, p->copy->layer);
}

/* ---- compression ---- */

static void compressed(struct transition *p)
{
  struct box *b = p->box;
  b->compressed = true;
  b->row.checkpoint_size = p->checkpoint_size;
  store_box_put(p->warden->store, &b->row, NULL);
}

static void not_compressed(struct transition *p)
{
  p->box->compressed = p->result != -ECANCELED; /* another time, when nobody waits for the box */
  if (p->box->compressed)
    log_warn("box %s: checkpoint not compressed: %s", p->box->row.id, p->err.msg);
}

/* ---- steps ---- */

struct handler {
  void (*act)(struct transition *p);      /* on a worker */
  void (*begin)(struct transition *p);    /* instead, on the loop: calls step_done later */
  void (*done)(struct transition *p);     /* on the loop, after success; sets result when the row can't be written */
  void (*failed)(struct transition *p);   /* after failure, that of `done` included */
  void (*orphaned)(struct transition *p); /* after success, when the box ended meanwhile */
};

/* A step without act or begin is `done` at once. What is not here does nothing. */
static const struct handler handlers[TRANSITION_OPS][TRANSITION_STEPS] = {
    [TRANSITION_FREEZE] = {[STEP_ACT] = {.act = act_freeze, .done = frozen}},
    [TRANSITION_DUMP] = {[STEP_ACT] = {.act = act_dump, .done = dumped, .failed = cut_streams, .orphaned = keep_dump},
                         [STEP_HARDEN] = {.act = act_harden, .done = paused},
                         [STEP_REMOVE] = {.act = act_remove}},
    [TRANSITION_STOP] = {[STEP_ACT] = {.act = act_freeze, .done = stopped},
                         [STEP_HARDEN] = {.act = act_harden},
                         [STEP_REMOVE] = {.act = act_remove, .done = paused}},
    [TRANSITION_THAW] = {[STEP_ACT] = {.act = act_thaw, .done = thawed}},
    [TRANSITION_RESTORE] = {[STEP_ACT] = {.act = act_restore, .done = restored, .orphaned = keep_restored},
                            [STEP_UNLINK] = {.act = act_unlink, .done = unlinked},
                            [STEP_REMOVE] = {.act = act_remove}},
    [TRANSITION_COLD] = {[STEP_ACT] = {.done = memory_dropped},
                         [STEP_HARDEN] = {.act = act_harden},
                         [STEP_REMOVE] = {.act = act_remove},
                         [STEP_LAUNCH] = {.begin = begin_launch, .done = launched}},
    [TRANSITION_COPY] = {[STEP_ACT] = {.act = act_copy, .done = copied, .failed = copy_failed, .orphaned = drop_copy}},
    [TRANSITION_COMPRESS] = {[STEP_ACT] = {.act = act_compress, .done = compressed, .failed = not_compressed}},
};

/* The first act is what the operation is about. */
static void act(struct transition *p)
{
  if (p->step == STEP_ACT)
    p->marks.boot_us = clock_mono_us();
  handlers[p->op][p->step].act(p);
  if (p->step == STEP_ACT)
    p->marks.ready_us = clock_mono_us();
}

static void step_work(uv_work_t *work)
{
  act(work->data);
}

static void step_work_done(uv_work_t *work, int status)
{
  step_done(work->data);
}

static struct transition *transition_of(struct checkpoint_job *t)
{
  return (struct transition *)((char *)t - offsetof(struct transition, checkpoint_job));
}

static void queued_work(struct checkpoint_job *t)
{
  act(transition_of(t));
}

static void queued_done(struct checkpoint_job *t)
{
  step_done(transition_of(t));
}

static void step_begin(struct transition *p, enum transition_step step)
{
  const struct handler *h = &handlers[p->op][step];
  p->step = step;
  p->checkpoint_job.act = queued_work;
  p->checkpoint_job.done = queued_done;
  if (h->begin)
    h->begin(p);
  else if (!h->act)
    step_done(p);
  else if (step == STEP_ACT && transition_queued(p->op))
    checkpoint_queue_add(p->warden, p->team, &p->checkpoint_job);
  else
    worker_pool_queue(p->warden, p->team, &p->work, step_work, step_work_done);
}

static void freeze_instead(struct transition *p)
{
  log_with(LOG_WARN, (const char *[]){"box", p->box->row.id, NULL}, "not written to disk, stays in memory: %s",
           p->err.msg);
  p->op = TRANSITION_FREEZE;
  p->result = 0;
  p->uncommitted = false;
  step_begin(p, STEP_ACT);
}

static void go_on(struct transition *p, enum transition_next next)
{
  switch (next) {
  case NEXT_UNLINK:
    step_begin(p, STEP_UNLINK);
    break;
  case NEXT_HARDEN:
    step_begin(p, STEP_HARDEN);
    break;
  case NEXT_REMOVE:
    step_begin(p, STEP_REMOVE);
    break;
  case NEXT_LAUNCH:
    step_begin(p, STEP_LAUNCH);
    break;
  case NEXT_FREEZE:
    freeze_instead(p);
    break;
  case END_DONE:
    p->result = 0;
    finish(p);
    break;
  case END_FAILED:
    end_failed(p);
    break;
  case END_BOX:
    end_box(p);
    break;
  case END_ORPHAN:
    end_orphan(p);
    break;
  case NEXT_NEVER:
    abort();
  }
}

static void step_done(struct transition *p)
{
  const struct handler *h = &handlers[p->op][p->step];
  if (p->orphan && !p->result && h->orphaned)
    h->orphaned(p);
  if (!p->orphan && !p->result && h->done)
    h->done(p);
  if (!p->orphan && p->result && h->failed)
    h->failed(p);
  enum transition_outcome outcome = p->orphan        ? OUTCOME_ORPHAN
                                    : !p->result     ? OUTCOME_OK
                                    : p->uncommitted ? OUTCOME_UNCOMMITTED
                                                     : OUTCOME_FAILED;
  struct transition_facts facts = {.expired = p->expired,
                                   .relief = p->pending_op.relief && memory_guard_short(p->warden),
                                   .jail = p->jail.pidfd >= 0};
  go_on(p, transition_next(p->op, p->step, outcome, facts));
}

/* ---- the beginning of a transition ---- */

static struct transition *transition_new(struct box *b, enum transition_op op)
{
  struct transition *p = xcalloc(1, sizeof(*p));
  p->warden = b->warden;
  p->box = b;
  p->op = op;
  p->jail = b->jail; /* descriptors stay the box's */
  p->work.data = p;
  memcpy(p->name, b->name, sizeof(p->name));
  memcpy(p->dir, b->dir, sizeof(p->dir));
  memcpy(p->runtime, b->row.runtime, sizeof(p->runtime));
  memcpy(p->team, b->row.team, sizeof(p->team));
  struct box_spec box_spec = {.build = b->build,
                              .runtime = p->runtime,
                              .name = p->name,
                              .dir = p->dir,
                              .slot = b->row.slot,
                              .flags = b->row.flags,
                              .allow = str_of(b->row.allow),
                              .deny = str_of(b->row.deny),
                              .mounts = b->row.mounts,
                              .egress = b->egress};
  if (transition_queued(op))
    box_jail_spec(b->warden, &box_spec, &p->arena, &p->spec, &p->net);
  if (op == TRANSITION_RESTORE)
    p->spec.owner = zygote_owner(b->warden, b->build);
  p->spec.keep_dir = true;
  b->transition = p;
  p->warden->transitions++;
  return p;
}

/* A box that is kept over a restart must not stand on a layer that is not written out. */
static void sync_layers(struct transition *p)
{
  const struct build *build = p->box->build;
  struct str layer, rest;
  if (build->row.kind != BUILD_FORK || build->settled)
    return;
  str_cut(str_of(build->row.layers), '\n', &layer, &rest);
  p->unsettled = arena_z(&p->arena, layer);
}

/* The egress gateway knows the box again: it may run. */
static void on_policy(void *arg, int result, const struct err *err)
{
  struct transition *p = arg;
  if (p->orphan) {
    end_orphan(p);
    return;
  }
  if (!result) {
    step_begin(p, STEP_ACT);
    return;
  }
  p->result = result;
  p->err = *err;
  end_failed(p);
}

void transition_begin(struct box *b, enum transition_op op, const struct pending_op *pending_op)
{
  struct transition *p = transition_new(b, op);
  p->pending_op = *pending_op;
  p->marks.came_us = clock_mono_us();
  if (op == TRANSITION_DUMP || op == TRANSITION_STOP)
    sync_layers(p);
  p->expired = transition_pauses(op) && !pending_op->origin.ipc;
  if (op == TRANSITION_DUMP)
    checkpoint_name(b, p->checkpoint);
  else
    memcpy(p->checkpoint, b->row.checkpoint, sizeof(p->checkpoint));
  b->row.state = transition_pauses(op) ? BOX_PAUSING : BOX_RESUMING;
  box_stop_timer(b);
  if (transition_pauses(op))
    box_broadcast_hold(b);
  if (b->egress && !transition_pauses(op))
    policy_apply(b, on_policy, p);
  else
    step_begin(p, STEP_ACT);
}

/* In the order of requests: a second copy waits as a pause does. */
void transition_copy(struct box *b, struct copy *copy)
{
  struct err err = ERR_NONE;
  enum verdict verdict = copy_verdict(b->row.state);
  if (verdict == VERDICT_WAIT) {
    vec_push(&b->pending_ops, ((struct pending_op){.copy = copy}));
    return;
  }
  if (verdict != VERDICT_BEGIN) {
    copy->done(copy, b, err_set(&err, -EHOSTDOWN, "the sandbox is paused"), &err);
    return;
  }
  struct transition *p = transition_new(b, TRANSITION_COPY);
  p->copy = copy;
  if (!copy->transient)
    sync_layers(p);
  memcpy(p->checkpoint, copy->checkpoint, sizeof(p->checkpoint));
  b->row.state = BOX_COPYING;
  step_begin(p, STEP_ACT);
}

void transition_compress(struct box *b)
{
  struct transition *p = transition_new(b, TRANSITION_COMPRESS);
  memcpy(p->checkpoint, b->row.checkpoint, sizeof(p->checkpoint));
  step_begin(p, STEP_ACT);
}

void transition_cancel_compress(struct box *b)
{
  if (b->transition)
    atomic_store(&b->transition->stop, true);
}

static void being_killed(struct box *b, struct origin origin, bool pause)
{
  struct err err = ERR_NONE;
  answer(b, origin, err_set(&err, pause ? -ENOENT : -EBUSY, "the sandbox is being killed"), &err);
}

bool box_abandon_transition(struct box *b)
{
  for (size_t i = 0; i < b->pending_ops.n; i++)
    if (b->pending_ops.p[i].copy)
      b->pending_ops.p[i].copy->done(b->pending_ops.p[i].copy, NULL, -ENOENT, NULL);
    else
      being_killed(b, b->pending_ops.p[i].origin, b->pending_ops.p[i].pause);
  b->pending_ops.n = 0;
  if (!b->transition)
    return false;
  being_killed(b, b->transition->pending_op.origin, transition_pauses(b->transition->op));
  b->transition->orphan = true;
  transition_cancel_compress(b);
  return true;
}
