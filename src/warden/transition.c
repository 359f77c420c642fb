/* passage.c - see passage.h. A passage acts on a worker, is written down on the loop, and where walls must go it clears them on a
 * worker again. The worker sees only copies: the loop may end the box meanwhile. */
#include "warden/transition.h"

#include "warden/quota.h"
#include "warden/warm/nursery_request.h"
#include "warden/launch.h"
#include "warden/box_log.h"
#include "warden/rpc/reply.h"
#include "warden/checkpoint_store.h"
#include "warden/pause.h"
#include "warden/checkpoint_queue.h"
#include "warden/box_spec.h"
#include "warden/warm/zygote.h"
#include "jail/fs/layer_commit.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

#define PACK_NICE 10

enum step { STEP_ACT, STEP_KEEP, STEP_CLEAR };

struct passage {
  uv_work_t work;
  struct warden *warden;
  struct box *box;
  enum passage_kind kind;
  enum step step;
  char name[64], dir[512], runtime[80], image[64];
  uint64_t image_bytes;
  struct turn turn;
  struct arena arena;
  struct jail_spec spec; /* of a dump or a restore */
  struct jail_net net;
  struct copy *copy;
  const char *unsettled; /* a fork's layer that the box stands on, to be written out before it is relied on; NULL: none */
  struct jail jail;      /* what is dumped, was restored, or whose walls are cleared */
  bool orphan;           /* the box ended meanwhile */
  bool expired;          /* the clock asked, nobody else */
  atomic_bool stop;      /* of packing: somebody waits */
  struct wish wish;      /* who began it */
  int result;
  struct err err;
};

static const char *const tiers[] = {"frozen", "checkpoint", "files"};

static bool to_sleep(const struct passage *p)
{
  return p->kind == PASSAGE_FREEZE || p->kind == PASSAGE_DUMP || p->kind == PASSAGE_STOP;
}

static void answer(struct box *b, struct ask ask, int status, const struct err *err)
{
  if (ask.link)
    desk_answer_box(b->warden, ask, status, b, err);
}

/* ---- on a worker ---- */

static void keep_row(struct passage *p)
{
  int64_t began = clock_mono_us();
  if (store_harden(p->warden->store))
    log_warn("the database could not be written out");
  log_debug("box %s: row kept in %" PRId64 " us", p->name, clock_mono_us() - began);
}

static void clear_walls(struct passage *p)
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
  log_debug("box %s off its walls: gone in %" PRId64 " us, disk written in %" PRId64 " us", p->name, gone - began, clock_mono_us() - gone);
}

static int copy_out(struct passage *p, const char *image)
{
  bool files = !p->image[0];
  struct jail_criu how = p->warden->criu;
  how.fleeting = p->copy->fleeting;
  how.stop = &p->stop;
  int r = files ? jail_freeze(p->warden->instance, p->name, true, &p->err) : jail_dump(&how, &p->spec, &p->jail, image, &p->err);
  if (r)
    return r;
  int64_t began = clock_mono_us();
  r = (how.fleeting ? jail_commit_quick : jail_commit)(p->dir, p->spec.id_base, p->copy->layer, &p->err);
  log_debug("box %s: files copied in %" PRId64 " us", p->name, clock_mono_us() - began);
  struct err thaw = ERR_NONE;
  if (!files)
    jail_links_sweep(image, &p->jail, false);
  if (jail_freeze(p->warden->instance, p->name, false, &thaw))
    log_error("box %s: %s", p->name, thaw.msg);
  if (r && !files)
    jail_image_remove(image, NULL);
  return r;
}

static void turn_work(struct turn *t)
{
  struct passage *p = (struct passage *)((char *)t - offsetof(struct passage, turn));
  char image[1024];
  image_path(p->warden, p->image, image);
  struct jail_criu lasting = p->warden->criu;
  lasting.with_disk = true;
  lasting.held = p->kind == PASSAGE_RESTORE; /* what ran before its row says so could not be begun again */
  lasting.stop = &p->stop;
  if (p->unsettled && (p->result = jail_layer_settle(p->unsettled, &p->err)))
    return;
  if (p->kind == PASSAGE_RESTORE)
    p->result = jail_restore(&lasting, &p->spec, image, &p->jail, &p->err);
  else if (p->kind == PASSAGE_COPY)
    p->result = copy_out(p, image);
  else
    p->result = jail_dump(&lasting, &p->spec, &p->jail, image, &p->err);
  if (!p->result && p->kind != PASSAGE_RESTORE && p->image[0])
    p->image_bytes = jail_image_bytes(image);
}

/* Behind everything else that this machine does. */
static void pack_image(struct passage *p)
{
  char image[1024];
  image_path(p->warden, p->image, image);
  int64_t began = clock_mono_us();
  uint64_t before = jail_image_bytes(image);
  setpriority(PRIO_PROCESS, (id_t)gettid(), PACK_NICE);
  p->result = jail_image_pack(image, (int)p->warden->config->checkpoint_zstd, &p->stop, &p->err);
  setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
  p->image_bytes = jail_image_bytes(image);
  log_debug("box %s: image packed from %" PRIu64 " to %" PRIu64 " bytes in %" PRId64 " us", p->name, before, p->image_bytes, clock_mono_us() - began);
}

static void passage_work(uv_work_t *work)
{
  struct passage *p = work->data;
  if (p->step == STEP_KEEP)
    keep_row(p);
  else if (p->step == STEP_CLEAR)
    clear_walls(p);
  else if (p->kind == PASSAGE_PACK)
    pack_image(p);
  else if (p->unsettled && (p->result = jail_layer_settle(p->unsettled, &p->err)))
    return;
  else
    p->result = jail_freeze(p->warden->instance, p->name, p->kind != PASSAGE_THAW, &p->err);
}

static void passage_done(uv_work_t *work, int status);
static void turn_done(struct turn *t);

static bool heavy(const struct passage *p)
{
  return p->kind == PASSAGE_DUMP || p->kind == PASSAGE_RESTORE || p->kind == PASSAGE_COPY;
}

static void submit(struct passage *p, enum step step)
{
  p->step = step;
  p->turn.act = turn_work;
  p->turn.done = turn_done;
  if (step == STEP_ACT && heavy(p))
    turn_wait(p->warden, &p->turn);
  else
    uv_queue_work(p->warden->loop, &p->work, passage_work, passage_done);
}

/* ---- ends ---- */

static void grant(struct box *b, const struct wish *w)
{
  if (w->copy)
    passage_copy(b, w->copy);
  else if (w->pause && b->row.state == BOX_PAUSED)
    answer(b, w->ask, 0, NULL); /* asked while another pause was under way: they are one */
  else if (w->pause)
    box_pause(b, w);
  else
    box_connect(b, w);
}

static void passage_free(struct passage *p)
{
  p->box->passage = NULL;
  p->warden->passages--;
  arena_free(&p->arena);
  free(p);
}

static void finish(struct passage *p)
{
  struct box *b = p->box;
  p->wish.ask.resumed = !p->result && !to_sleep(p);
  answer(b, p->wish.ask, p->result, &p->err);
  passage_free(p);
  struct wish *wishes = steal(&b->wishes.p);
  size_t n = b->wishes.n;
  b->wishes.n = b->wishes.cap = 0;
  for (size_t i = 0; i < n; i++)
    grant(b, &wishes[i]);
  free(wishes);
}

/* What the image gave names to in the box: they are needed no more. */
static void sweep_links(const struct passage *p, bool again)
{
  char image[1024];
  image_path(p->warden, p->image, image);
  if (p->image[0])
    jail_links_sweep(image, &p->box->jail, again);
}

/* A criu that was killed leaves the box's connections in a state in which nothing moves any more. What it refuses in words
 * it has put back. */
static void mend_connections(const struct passage *p)
{
  if (p->step == STEP_ACT && (p->kind == PASSAGE_DUMP || p->kind == PASSAGE_COPY) && p->result && p->result != -ENOTSUP)
    box_run_over(p->box);
}

static void failed(struct passage *p)
{
  struct box *b = p->box;
  mend_connections(p);
  if (p->expired && p->kind == PASSAGE_DUMP) { /* nothing is lost that memory can hold */
    log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "not written to disk, stays in memory: %s", p->err.msg);
    p->kind = PASSAGE_FREEZE;
    submit(p, STEP_ACT);
    return;
  }
  if (p->expired) { /* it may live no longer, and it can't sleep */
    char cause[400];
    snprintf(cause, sizeof(cause), "timeout: it reached its end of life and could not be paused: %.300s", p->err.msg);
    passage_free(p);
    box_end(b, cause);
    return;
  }
  log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "%s: %s", to_sleep(p) ? "not paused" : "not resumed", p->err.msg);
  b->row.state = to_sleep(p) ? BOX_RUNNING : BOX_PAUSED;
  account_count(b, to_sleep(p));
  if (to_sleep(p))
    box_arm(b);
  finish(p);
}

/* What the passage made meanwhile goes with the box. */
static void end_orphan(struct passage *p)
{
  struct box *b = p->box;
  bool acted = p->step == STEP_ACT && !p->result;
  if (acted && p->kind == PASSAGE_RESTORE)
    b->jail = p->jail;
  if (acted && p->kind == PASSAGE_DUMP)
    memcpy(b->row.image, p->image, sizeof(b->row.image));
  if (acted && p->kind == PASSAGE_COPY) {
    image_drop(p->warden, p->image);
    layer_drop(p->warden, p->copy->layer);
  }
  if (p->copy)
    p->copy->done(p->copy, NULL, -ENOENT, NULL);
  passage_free(p);
  box_bury(b);
}

/* ---- to sleep ---- */

static int write_asleep(struct box *b, enum box_tier tier, const struct passage *p, struct err *err)
{
  struct row_box before = b->row;
  b->row.state = BOX_PAUSED;
  b->row.tier = tier;
  b->packed = false;
  b->row.image_bytes = tier == TIER_CHECKPOINT ? p->image_bytes : 0;
  snprintf(b->row.image, sizeof(b->row.image), "%s", tier == TIER_CHECKPOINT ? p->image : "");
  if (before.state != BOX_RESUMING)
    b->row.end_us = clock_wall_us();
  int r = store_box_put(b->warden->store, &b->row, err);
  if (r) {
    b->row = before;
    return r;
  }
  b->row.state = before.state; /* until its walls are gone */
  if (before.image[0] && tier != TIER_CHECKPOINT)
    image_drop(b->warden, before.image);
  return 0;
}

/* The box is nobody's but its row's from here on; that row must be on the disk before anything of the box goes. */
static void let_go(struct passage *p)
{
  struct box *b = p->box;
  box_unwatch(b);
  boxlog_keep(b);
  p->jail = b->jail;
  b->jail = JAIL_NONE;
  box_away(b, true);
  submit(p, STEP_KEEP);
}

/* Who asked is told; others' wishes wait for the passage's end. */
static void fell_asleep(struct passage *p)
{
  struct box *b = p->box;
  b->row.state = BOX_PAUSED;
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "tier", tiers[b->row.tier], NULL}, p->expired ? "paused at its timeout" : "paused");
  answer(b, p->wish.ask, 0, NULL);
  p->wish.ask.link = NULL;
}

/* An image is whole, its box's files are written out and the row is kept: nothing that is cleared now is missed. */
static void row_kept(struct passage *p)
{
  if (p->kind == PASSAGE_DUMP && !p->orphan)
    fell_asleep(p);
  submit(p, STEP_CLEAR);
}

static void walls_cleared(struct passage *p)
{
  if (p->kind != PASSAGE_DUMP)
    fell_asleep(p);
  finish(p);
}

static void sleep_acted(struct passage *p)
{
  static const enum box_tier depth[] = {[PASSAGE_FREEZE] = TIER_FROZEN, [PASSAGE_DUMP] = TIER_CHECKPOINT, [PASSAGE_STOP] = TIER_FILES};
  struct box *b = p->box;
  struct warden *w = p->warden;
  if ((p->result = write_asleep(b, depth[p->kind], p, &p->err))) {
    sweep_links(p, false);
    jail_freeze(w->instance, b->name, false, NULL);
    image_drop(w, p->kind == PASSAGE_DUMP ? p->image : "");
    failed(p);
    return;
  }
  account_count(b, false);
  w->pauses_total++;
  box_run_over(b);
  if (p->unsettled)
    b->build->settled = true;
  if (p->kind != PASSAGE_FREEZE) {
    let_go(p);
    return;
  }
  fell_asleep(p);
  finish(p);
}

/* ---- awake ---- */

/* The row as it is from now on; on disk already when this returns 0. */
static int write_awake(struct passage *p, struct row_box *next)
{
  if (p->wish.auto_pause >= 0)
    next->flags = (next->flags & ~(unsigned)BOX_AUTO_PAUSE) | (p->wish.auto_pause ? BOX_AUTO_PAUSE : 0);
  next->state = BOX_RUNNING;
  next->tier = TIER_FROZEN;
  next->image[0] = 0;
  next->image_bytes = 0;
  next->run++;
  next->started_us = clock_wall_us();
  next->end_us = next->started_us + (int64_t)p->wish.timeout_s * 1000000;
  return store_box_put(p->warden->store, next, &p->err);
}

static void woke_up(struct passage *p, const struct row_box *next)
{
  struct box *b = p->box;
  enum box_tier from = p->kind == PASSAGE_COLD ? TIER_FILES : p->kind == PASSAGE_RESTORE ? TIER_CHECKPOINT : TIER_FROZEN;
  b->row = *next;
  p->warden->resumes_total++;
  box_arm(b);
  bell_hang(b);
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "from", tiers[from], NULL}, "resumed");
  finish(p);
}

static void thawed(struct passage *p)
{
  struct row_box next = p->box->row;
  if (write_awake(p, &next))
    log_error("box %s: %s", next.id, p->err.msg);
  woke_up(p, &next);
}

/* It stands still until it is written down; then the image is history. */
static void restored(struct passage *p)
{
  struct box *b = p->box;
  struct warden *w = p->warden;
  struct row_box next = b->row;
  struct err err = ERR_NONE;
  next.init_proc = p->jail.init;
  if ((p->result = write_awake(p, &next))) {
    submit(p, STEP_CLEAR);
    return;
  }
  b->jail = p->jail;
  p->jail = JAIL_NONE;
  box_away(b, false);
  box_watch(b);
  sweep_links(p, true);
  if (jail_freeze(w->instance, b->name, false, &err))
    log_error("box %s: %s", b->row.id, err.msg);
  image_drop(w, p->image);
  woke_up(p, &next);
}

static void cold_born(struct birth *h)
{
  struct box *b = h->box;
  struct passage *p = b->passage;
  b->jail = h->jail;
  if (p->orphan) {
    end_orphan(p);
    return;
  }
  p->result = h->result;
  if (p->result) {
    p->err = h->err;
    jail_close(&b->jail);
    failed(p);
    return;
  }
  struct row_box next = b->row;
  memcpy(next.runtime, p->warden->runtime, sizeof(next.runtime));
  next.init_proc = b->jail.init;
  box_away(b, false);
  box_watch(b);
  if (write_awake(p, &next))
    log_error("box %s: %s", b->row.id, p->err.msg);
  woke_up(p, &next);
}

/* Memory is given up first, in the row too: the files change from now on, and no image fits them any more. */
static void cold_begin(struct passage *p)
{
  struct box *b = p->box;
  if ((p->result = write_asleep(b, TIER_FILES, p, &p->err)))
    failed(p);
  else if (b->jail.pidfd >= 0)
    let_go(p);
  else
    birth_again(b, cold_born);
}

/* ---- a copy for others ---- */

static void copied(struct passage *p)
{
  struct box *b = p->box;
  struct copy *copy = p->copy;
  int result = p->result;
  struct err err = p->err;
  mend_connections(p);
  b->row.state = BOX_RUNNING;
  if (p->unsettled && !result)
    b->build->settled = true;
  copy->bytes = p->image_bytes;
  p->result = 0;
  copy->done(copy, b, result, &err);
  finish(p); /* whoever waited for the source goes on */
}

/* ---- in its sleep ---- */

static void packed(struct passage *p)
{
  struct box *b = p->box;
  b->packed = p->result != -ECANCELED;
  if (p->result && b->packed)
    log_warn("box %s: its image stays as large as it is: %s", b->row.id, p->err.msg);
  if (!p->result) {
    b->row.image_bytes = p->image_bytes;
    store_box_put(p->warden->store, &b->row, NULL);
  }
  p->result = 0;
  finish(p);
}

/* ---- steps ---- */

static void step_done(struct passage *p)
{
  if (p->step == STEP_KEEP)
    row_kept(p);
  else if (p->orphan)
    end_orphan(p);
  else if (p->kind == PASSAGE_COPY)
    copied(p);
  else if (p->kind == PASSAGE_PACK)
    packed(p);
  else if (p->step == STEP_CLEAR && p->kind == PASSAGE_COLD)
    birth_again(p->box, cold_born);
  else if (p->step == STEP_CLEAR && to_sleep(p))
    walls_cleared(p);
  else if (p->result)
    failed(p);
  else if (to_sleep(p))
    sleep_acted(p);
  else if (p->kind == PASSAGE_RESTORE)
    restored(p);
  else
    thawed(p);
}

static void passage_done(uv_work_t *work, int status)
{
  step_done(work->data);
}

static void turn_done(struct turn *t)
{
  step_done((struct passage *)((char *)t - offsetof(struct passage, turn)));
}

/* ---- beginning ---- */

static struct passage *passage_new(struct box *b, enum passage_kind kind)
{
  struct passage *p = xcalloc(1, sizeof(*p));
  p->warden = b->warden;
  p->box = b;
  p->kind = kind;
  p->jail = b->jail; /* descriptors stay the box's */
  p->work.data = p;
  memcpy(p->name, b->name, sizeof(p->name));
  memcpy(p->dir, b->dir, sizeof(p->dir));
  memcpy(p->runtime, b->row.runtime, sizeof(p->runtime));
  struct walls walls = {.build = b->build,
                        .runtime = p->runtime,
                        .name = p->name,
                        .dir = p->dir,
                        .slot = b->row.slot,
                        .flags = b->row.flags,
                        .allow = str_of(b->row.allow),
                        .deny = str_of(b->row.deny)};
  if (heavy(p))
    walls_plan(b->warden, &walls, &p->arena, &p->spec, &p->net);
  if (kind == PASSAGE_RESTORE)
    p->spec.owner = zygote_owner(b->warden, b->build);
  p->spec.keep_dir = true;
  b->passage = p;
  p->warden->passages++;
  return p;
}

/* What is to outlive the daemon must not stand on a layer that may not. */
static void rely_on_layers(struct passage *p)
{
  const struct build *build = p->box->build;
  struct str layer, rest;
  if (build->row.kind != BUILD_FORK || build->settled)
    return;
  str_cut(str_of(build->row.layers), '\n', &layer, &rest);
  p->unsettled = arena_z(&p->arena, layer);
}

void passage_begin(struct box *b, enum passage_kind kind, const struct wish *wish)
{
  struct passage *p = passage_new(b, kind);
  p->wish = *wish;
  if (kind == PASSAGE_DUMP || kind == PASSAGE_STOP)
    rely_on_layers(p);
  p->expired = to_sleep(p) && !wish->ask.link;
  if (kind == PASSAGE_DUMP)
    snprintf(p->image, sizeof(p->image), "%.40s-%llu", b->row.id, (unsigned long long)b->row.run);
  else
    memcpy(p->image, b->row.image, sizeof(p->image));
  b->row.state = to_sleep(p) ? BOX_PAUSING : BOX_RESUMING;
  alarm_unset(&b->warden->alarms, &b->alarm);
  if (to_sleep(p))
    box_hold(b);
  if (kind == PASSAGE_COLD)
    cold_begin(p);
  else
    submit(p, STEP_ACT);
}

/* What came first is done first: a second copy waits like a pause does. */
void passage_copy(struct box *b, struct copy *copy)
{
  struct err err = ERR_NONE;
  if (b->row.state == BOX_COPYING || b->row.state == BOX_RESUMING || b->row.state == BOX_PAUSING) {
    vec_push(&b->wishes, ((struct wish){.copy = copy}));
    return;
  }
  if (b->row.state != BOX_RUNNING) {
    copy->done(copy, b, err_set(&err, -EHOSTDOWN, "the sandbox is paused"), &err);
    return;
  }
  struct passage *p = passage_new(b, PASSAGE_COPY);
  p->copy = copy;
  if (!copy->fleeting)
    rely_on_layers(p);
  memcpy(p->image, copy->image, sizeof(p->image));
  b->row.state = BOX_COPYING;
  submit(p, STEP_ACT);
}

void passage_pack(struct box *b)
{
  struct passage *p = passage_new(b, PASSAGE_PACK);
  memcpy(p->image, b->row.image, sizeof(p->image));
  submit(p, STEP_ACT);
}

void passage_hurry(struct box *b)
{
  if (b->passage)
    atomic_store(&b->passage->stop, true);
}

static void being_killed(struct box *b, struct ask ask, bool pause)
{
  struct err err = ERR_NONE;
  answer(b, ask, err_set(&err, pause ? -ENOENT : -EBUSY, "the sandbox is being killed"), &err);
}

bool box_leave_passage(struct box *b)
{
  for (size_t i = 0; i < b->wishes.n; i++)
    if (b->wishes.p[i].copy)
      b->wishes.p[i].copy->done(b->wishes.p[i].copy, NULL, -ENOENT, NULL);
    else
      being_killed(b, b->wishes.p[i].ask, b->wishes.p[i].pause);
  b->wishes.n = 0;
  if (!b->passage)
    return false;
  being_killed(b, b->passage->wish.ask, to_sleep(b->passage));
  b->passage->orphan = true;
  passage_hurry(b);
  return true;
}
