/* SPDX-License-Identifier: Apache-2.0 */
/* transition.c - see transition.h. A transition acts on a worker, is written down on the loop, and where walls must go
 * it clears them on a worker again. The worker sees only copies: the loop may end the box meanwhile. */
#include "warden/transition.h"

#include "warden/quota.h"
#include "warden/warm/nursery_request.h"
#include "warden/launch.h"
#include "warden/box_log.h"
#include "warden/box_reply.h"
#include "warden/checkpoint_store.h"
#include "warden/pause.h"
#include "warden/checkpoint_queue.h"
#include "warden/box_spec.h"
#include "warden/warm/zygote.h"
#include "warden/worker_pool.h"
#include "jail/fs/layer_commit.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

#define PACK_NICE 10

enum step { STEP_ACT, STEP_SWEEP, STEP_KEEP, STEP_CLEAR };

struct transition {
  uv_work_t work;
  struct warden *warden;
  struct box *box;
  enum transition_kind kind;
  enum step step;
  char name[64], dir[512], runtime[80], checkpoint[64], team[40];
  uint64_t checkpoint_size;
  struct checkpoint_job checkpoint_job;
  struct arena arena;
  struct jail_spec spec; /* of a dump or a restore */
  struct jail_net net;
  struct copy *copy;
  const char
      *unsettled;      /* a fork's layer that the box stands on, to be written out before it is relied on; NULL: none */
  struct jail jail;    /* what is dumped, was restored, or whose walls are cleared */
  struct row_box next; /* of a restored box, once it is written; its texts are the box's own */
  bool orphan;         /* the box ended meanwhile */
  bool expired;        /* the clock asked, nobody else */
  atomic_bool stop;    /* of packing: somebody waits */
  struct pending_op pending_op; /* who began it */
  int result;
  struct err err;
};

static const char *const tiers[] = {"frozen", "checkpoint", "files"};

static bool is_pausing(const struct transition *p)
{
  return p->kind == TRANSITION_FREEZE || p->kind == TRANSITION_DUMP || p->kind == TRANSITION_STOP;
}

static void answer(struct box *b, struct origin origin, int status, const struct err *err)
{
  if (origin.ipc)
    reply_box(b->warden, origin, status, b, err);
}

/* ---- on a worker ---- */

static void commit_row(struct transition *p)
{
  int64_t began = clock_mono_us();
  if (store_harden(p->warden->store))
    log_warn("the database could not be written out");
  log_debug("box %s: row committed in %" PRId64 " us", p->name, clock_mono_us() - began);
}

static void remove_jail(struct transition *p)
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
  if (!r && !how.transient)
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

static void queued_work(struct checkpoint_job *t)
{
  struct transition *p = (struct transition *)((char *)t - offsetof(struct transition, checkpoint_job));
  char path[1024];
  checkpoint_path(p->warden, p->checkpoint, path);
  struct jail_criu lasting = p->warden->criu;
  lasting.with_disk = true;
  lasting.held = p->kind == TRANSITION_RESTORE; /* what ran before its row says so could not be begun again */
  lasting.stop = &p->stop;
  if (p->unsettled && (p->result = jail_layer_settle(p->unsettled, &p->err)))
    return;
  if (p->kind == TRANSITION_RESTORE)
    p->result = jail_restore(&lasting, &p->spec, path, &p->jail, &p->err);
  else if (p->kind == TRANSITION_COPY)
    p->result = copy_upper(p, path);
  else
    p->result = checkpoint_dump(&lasting, &p->spec, &p->jail, path, &p->err);
  if (!p->result && p->kind != TRANSITION_RESTORE && p->checkpoint[0])
    p->checkpoint_size = jail_checkpoint_bytes(path);
}

/* What the checkpoint gave names to in the box: they are needed no more. */
static void remove_link_remaps(const struct transition *p, bool again)
{
  char path[1024];
  checkpoint_path(p->warden, p->checkpoint, path);
  if (p->checkpoint[0])
    jail_link_remaps_remove(path, &p->jail, again);
}

/* Behind everything else that this machine does. */
static void compress_checkpoint(struct transition *p)
{
  char path[1024];
  checkpoint_path(p->warden, p->checkpoint, path);
  int64_t began = clock_mono_us();
  uint64_t before = jail_checkpoint_bytes(path);
  setpriority(PRIO_PROCESS, (id_t)gettid(), PACK_NICE);
  p->result = jail_checkpoint_compress(path, (int)p->warden->config->checkpoint_zstd, &p->stop, &p->err);
  setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
  p->checkpoint_size = jail_checkpoint_bytes(path);
  log_debug("box %s: checkpoint compressed from %" PRIu64 " to %" PRIu64 " bytes in %" PRId64 " us", p->name, before,
            p->checkpoint_size, clock_mono_us() - began);
}

static void transition_work(uv_work_t *work)
{
  struct transition *p = work->data;
  if (p->step == STEP_KEEP)
    commit_row(p);
  else if (p->step == STEP_SWEEP)
    remove_link_remaps(p, true);
  else if (p->step == STEP_CLEAR)
    remove_jail(p);
  else if (p->kind == TRANSITION_COMPRESS)
    compress_checkpoint(p);
  else if (p->unsettled && (p->result = jail_layer_settle(p->unsettled, &p->err)))
    return;
  else
    p->result = jail_freeze(p->warden->instance, p->name, p->kind != TRANSITION_THAW, &p->err);
}

static void transition_done(uv_work_t *work, int status);
static void queued_done(struct checkpoint_job *t);

static bool needs_queue(const struct transition *p)
{
  return p->kind == TRANSITION_DUMP || p->kind == TRANSITION_RESTORE || p->kind == TRANSITION_COPY;
}

static void submit(struct transition *p, enum step step)
{
  p->step = step;
  p->checkpoint_job.act = queued_work;
  p->checkpoint_job.done = queued_done;
  if (step == STEP_ACT && needs_queue(p))
    checkpoint_queue_add(p->warden, p->team, &p->checkpoint_job);
  else
    worker_pool_queue(p->warden, p->team, &p->work, transition_work, transition_done);
}

/* ---- ends ---- */

static void start_next(struct box *b, const struct pending_op *w)
{
  if (w->copy)
    transition_copy(b, w->copy);
  else if (w->pause && b->row.state == BOX_PAUSED)
    answer(b, w->origin, 0, NULL); /* asked while another pause was under way: they are one */
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
  p->pending_op.origin.resumed = !p->result && !is_pausing(p);
  answer(b, p->pending_op.origin, p->result, &p->err);
  transition_free(p);
  struct pending_op *pending_ops = steal(&b->pending_ops.p);
  size_t n = b->pending_ops.n;
  b->pending_ops.n = b->pending_ops.cap = 0;
  for (size_t i = 0; i < n; i++)
    start_next(b, &pending_ops[i]);
  free(pending_ops);
}

/* A criu that was killed leaves the box's connections in a state in which nothing moves any more. What it refuses in
 * words it has put back. */
static void cut_streams(const struct transition *p)
{
  if (p->step == STEP_ACT && (p->kind == TRANSITION_DUMP || p->kind == TRANSITION_COPY) && p->result &&
      p->result != -ENOTSUP)
    box_broadcast_ended(p->box);
}

static void failed(struct transition *p)
{
  struct box *b = p->box;
  cut_streams(p);
  if (p->expired && p->kind == TRANSITION_DUMP) { /* nothing is lost that memory can hold */
    log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "not written to disk, stays in memory: %s",
             p->err.msg);
    p->kind = TRANSITION_FREEZE;
    submit(p, STEP_ACT);
    return;
  }
  if (p->expired) { /* it may live no longer, and it can't sleep */
    char cause[400];
    snprintf(cause, sizeof(cause), "timeout: it reached its end of life and could not be paused: %.300s", p->err.msg);
    transition_free(p);
    box_end(b, cause);
    return;
  }
  log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "%s: %s", is_pausing(p) ? "not paused" : "not resumed",
           p->err.msg);
  b->row.state = is_pausing(p) ? BOX_RUNNING : BOX_PAUSED;
  quota_count(b, is_pausing(p));
  if (is_pausing(p))
    box_set_timer(b);
  finish(p);
}

/* What the passage made meanwhile goes with the box. */
static void end_orphan(struct transition *p)
{
  struct box *b = p->box;
  bool acted = p->step == STEP_ACT && !p->result;
  if (acted && p->kind == TRANSITION_RESTORE)
    b->jail = p->jail;
  if (acted && p->kind == TRANSITION_DUMP)
    memcpy(b->row.checkpoint, p->checkpoint, sizeof(b->row.checkpoint));
  if (acted && p->kind == TRANSITION_COPY) {
    checkpoint_drop(p->warden, p->checkpoint);
    layer_drop(p->warden, p->copy->layer);
  }
  if (p->copy)
    p->copy->done(p->copy, NULL, -ENOENT, NULL);
  transition_free(p);
  box_destroy(b);
}

/* ---- to sleep ---- */

static int commit_paused(struct box *b, enum box_tier tier, const struct transition *p, struct err *err)
{
  struct row_box before = b->row;
  b->row.state = BOX_PAUSED;
  b->row.tier = tier;
  b->packed = false;
  b->disk_bytes = 0;
  b->row.checkpoint_size = tier == TIER_CHECKPOINT ? p->checkpoint_size : 0;
  snprintf(b->row.checkpoint, sizeof(b->row.checkpoint), "%s", tier == TIER_CHECKPOINT ? p->checkpoint : "");
  if (before.state != BOX_RESUMING)
    b->row.end_us = clock_wall_us();
  int r = store_box_put(b->warden->store, &b->row, err);
  if (r) {
    b->row = before;
    return r;
  }
  b->row.state = before.state; /* until its walls are gone */
  if (before.checkpoint[0] && tier != TIER_CHECKPOINT)
    checkpoint_drop(b->warden, before.checkpoint);
  return 0;
}

/* The box is nobody's but its row's from here on; that row must be on the disk before anything of the box goes. */
static void release_box(struct transition *p)
{
  struct box *b = p->box;
  box_unwatch(b);
  boxlog_keep(b);
  p->jail = b->jail;
  b->jail = JAIL_NONE;
  box_set_on_disk(b, true);
  submit(p, STEP_KEEP);
}

/* Who asked is told; others' wishes wait for the passage's end. */
static void pause_done(struct transition *p)
{
  struct box *b = p->box;
  b->row.state = BOX_PAUSED;
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "tier", tiers[b->row.tier], NULL},
           p->expired ? "paused at its timeout" : "paused");
  answer(b, p->pending_op.origin, 0, NULL);
  p->pending_op.origin.ipc = NULL;
}

/* A checkpoint is whole, its box's files are written out and the row is kept: nothing that is cleared now is missed. */
static void row_committed(struct transition *p)
{
  if (p->kind == TRANSITION_DUMP && !p->orphan)
    pause_done(p);
  submit(p, STEP_CLEAR);
}

static void jail_removed(struct transition *p)
{
  if (p->kind != TRANSITION_DUMP)
    pause_done(p);
  finish(p);
}

static void pause_acted(struct transition *p)
{
  static const enum box_tier depth[] = {
      [TRANSITION_FREEZE] = TIER_FROZEN, [TRANSITION_DUMP] = TIER_CHECKPOINT, [TRANSITION_STOP] = TIER_FILES};
  struct box *b = p->box;
  struct warden *w = p->warden;
  if ((p->result = commit_paused(b, depth[p->kind], p, &p->err))) {
    remove_link_remaps(p, false);
    jail_freeze(w->instance, b->name, false, NULL);
    checkpoint_drop(w, p->kind == TRANSITION_DUMP ? p->checkpoint : "");
    failed(p);
    return;
  }
  quota_count(b, false);
  w->pauses_total++;
  box_broadcast_ended(b);
  if (p->unsettled)
    b->build->settled = true;
  if (p->kind != TRANSITION_FREEZE) {
    release_box(p);
    return;
  }
  pause_done(p);
  finish(p);
}

/* ---- awake ---- */

/* The row as it is from now on; on disk already when this returns 0. */
static int commit_running(struct transition *p, struct row_box *next)
{
  if (p->pending_op.auto_pause >= 0)
    next->flags = (next->flags & ~(unsigned)BOX_AUTO_PAUSE) | (p->pending_op.auto_pause ? BOX_AUTO_PAUSE : 0);
  next->state = BOX_RUNNING;
  next->tier = TIER_FROZEN;
  next->checkpoint[0] = 0;
  next->checkpoint_size = 0;
  next->run++;
  next->started_us = clock_wall_us();
  next->end_us = next->started_us + (int64_t)p->pending_op.timeout_s * 1000000;
  return store_box_put(p->warden->store, next, &p->err);
}

static void resume_done(struct transition *p, const struct row_box *next)
{
  struct box *b = p->box;
  enum box_tier from = p->kind == TRANSITION_COLD      ? TIER_FILES
                       : p->kind == TRANSITION_RESTORE ? TIER_CHECKPOINT
                                                       : TIER_FROZEN;
  b->row = *next;
  p->warden->resumes_total++;
  box_set_timer(b);
  nursery_listen(b);
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "from", tiers[from], NULL}, "resumed");
  finish(p);
}

static void thawed(struct transition *p)
{
  struct row_box next = p->box->row;
  if (commit_running(p, &next))
    log_error("box %s: %s", next.id, p->err.msg);
  resume_done(p, &next);
}

/* It stands still until it is written down; then the checkpoint is history. How many links it has is the box's choice:
 * a worker's task. */
static void restored(struct transition *p)
{
  struct box *b = p->box;
  p->next = b->row;
  p->next.init_proc = p->jail.init;
  if ((p->result = commit_running(p, &p->next))) {
    submit(p, STEP_CLEAR);
    return;
  }
  b->jail = p->jail;
  p->jail = JAIL_NONE;
  p->jail.init = b->jail.init;
  box_set_on_disk(b, false);
  box_watch(b);
  submit(p, STEP_SWEEP);
}

static void swept(struct transition *p)
{
  struct box *b = p->box;
  struct warden *w = p->warden;
  struct err err = ERR_NONE;
  if (jail_freeze(w->instance, b->name, false, &err))
    log_error("box %s: %s", b->row.id, err.msg);
  checkpoint_drop(w, p->checkpoint);
  resume_done(p, &p->next);
}

static void cold_launched(struct launch *h)
{
  struct box *b = h->box;
  struct transition *p = b->transition;
  b->jail = h->jail;
  if (p->orphan) {
    end_orphan(p);
    return;
  }
  p->result = h->result;
  if (p->result) {
    p->err = h->err;
    p->jail = b->jail;
    b->jail = JAIL_NONE;
    if (p->jail.pidfd >= 0)
      submit(p, STEP_CLEAR); /* it lives: an agent that did not answer in time */
    else
      failed(p);
    return;
  }
  struct row_box next = b->row;
  memcpy(next.runtime, p->warden->runtime, sizeof(next.runtime));
  next.init_proc = b->jail.init;
  box_set_on_disk(b, false);
  box_watch(b);
  if (commit_running(p, &next))
    log_error("box %s: %s", b->row.id, p->err.msg);
  resume_done(p, &next);
}

/* Memory is given up first, in the row too: the files change from now on, and no checkpoint fits them any more. */
static void cold_begin(struct transition *p)
{
  struct box *b = p->box;
  if ((p->result = commit_paused(b, TIER_FILES, p, &p->err)))
    failed(p);
  else if (b->jail.pidfd >= 0)
    release_box(p);
  else
    launch_cold(b, cold_launched);
}

/* ---- a copy for others ---- */

static void copied(struct transition *p)
{
  struct box *b = p->box;
  struct copy *copy = p->copy;
  int result = p->result;
  struct err err = p->err;
  cut_streams(p);
  b->row.state = BOX_RUNNING;
  if (p->unsettled && !result)
    b->build->settled = true;
  copy->bytes = p->checkpoint_size;
  p->result = 0;
  copy->done(copy, b, result, &err);
  finish(p); /* whoever waited for the source goes on */
}

/* ---- in its sleep ---- */

static void packed(struct transition *p)
{
  struct box *b = p->box;
  b->packed = p->result != -ECANCELED;
  if (p->result && b->packed)
    log_warn("box %s: checkpoint not compressed: %s", b->row.id, p->err.msg);
  if (!p->result) {
    b->row.checkpoint_size = p->checkpoint_size;
    store_box_put(p->warden->store, &b->row, NULL);
  }
  p->result = 0;
  finish(p);
}

/* ---- steps ---- */

static void step_done(struct transition *p)
{
  if (p->step == STEP_KEEP)
    row_committed(p);
  else if (p->orphan)
    end_orphan(p);
  else if (p->step == STEP_SWEEP)
    swept(p);
  else if (p->kind == TRANSITION_COPY)
    copied(p);
  else if (p->kind == TRANSITION_COMPRESS)
    packed(p);
  else if (p->step == STEP_CLEAR && p->kind == TRANSITION_COLD && !p->result)
    launch_cold(p->box, cold_launched);
  else if (p->step == STEP_CLEAR && is_pausing(p))
    jail_removed(p);
  else if (p->result)
    failed(p);
  else if (is_pausing(p))
    pause_acted(p);
  else if (p->kind == TRANSITION_RESTORE)
    restored(p);
  else
    thawed(p);
}

static void transition_done(uv_work_t *work, int status)
{
  step_done(work->data);
}

static void queued_done(struct checkpoint_job *t)
{
  step_done((struct transition *)((char *)t - offsetof(struct transition, checkpoint_job)));
}

/* ---- beginning ---- */

static struct transition *transition_new(struct box *b, enum transition_kind kind)
{
  struct transition *p = xcalloc(1, sizeof(*p));
  p->warden = b->warden;
  p->box = b;
  p->kind = kind;
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
                              .deny = str_of(b->row.deny)};
  if (needs_queue(p))
    box_jail_spec(b->warden, &box_spec, &p->arena, &p->spec, &p->net);
  if (kind == TRANSITION_RESTORE)
    p->spec.owner = zygote_owner(b->warden, b->build);
  p->spec.keep_dir = true;
  b->transition = p;
  p->warden->transitions++;
  return p;
}

/* What is to outlive the daemon must not stand on a layer that may not. */
static void sync_layers(struct transition *p)
{
  const struct build *build = p->box->build;
  struct str layer, rest;
  if (build->row.kind != BUILD_FORK || build->settled)
    return;
  str_cut(str_of(build->row.layers), '\n', &layer, &rest);
  p->unsettled = arena_z(&p->arena, layer);
}

void transition_begin(struct box *b, enum transition_kind kind, const struct pending_op *pending_op)
{
  struct transition *p = transition_new(b, kind);
  p->pending_op = *pending_op;
  if (kind == TRANSITION_DUMP || kind == TRANSITION_STOP)
    sync_layers(p);
  p->expired = is_pausing(p) && !pending_op->origin.ipc;
  if (kind == TRANSITION_DUMP)
    checkpoint_name(b, p->checkpoint);
  else
    memcpy(p->checkpoint, b->row.checkpoint, sizeof(p->checkpoint));
  b->row.state = is_pausing(p) ? BOX_PAUSING : BOX_RESUMING;
  box_stop_timer(b);
  if (is_pausing(p))
    box_broadcast_hold(b);
  if (kind == TRANSITION_COLD)
    cold_begin(p);
  else
    submit(p, STEP_ACT);
}

/* What came first is done first: a second copy waits like a pause does. */
void transition_copy(struct box *b, struct copy *copy)
{
  struct err err = ERR_NONE;
  if (b->row.state == BOX_COPYING || b->row.state == BOX_RESUMING || b->row.state == BOX_PAUSING) {
    vec_push(&b->pending_ops, ((struct pending_op){.copy = copy}));
    return;
  }
  if (b->row.state != BOX_RUNNING) {
    copy->done(copy, b, err_set(&err, -EHOSTDOWN, "the sandbox is paused"), &err);
    return;
  }
  struct transition *p = transition_new(b, TRANSITION_COPY);
  p->copy = copy;
  if (!copy->transient)
    sync_layers(p);
  memcpy(p->checkpoint, copy->checkpoint, sizeof(p->checkpoint));
  b->row.state = BOX_COPYING;
  submit(p, STEP_ACT);
}

void transition_compress(struct box *b)
{
  struct transition *p = transition_new(b, TRANSITION_COMPRESS);
  memcpy(p->checkpoint, b->row.checkpoint, sizeof(p->checkpoint));
  submit(p, STEP_ACT);
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
  being_killed(b, b->transition->pending_op.origin, is_pausing(b->transition));
  b->transition->orphan = true;
  transition_cancel_compress(b);
  return true;
}
