/* SPDX-License-Identifier: Apache-2.0 */
/* box.c - see box.h.
 *
 * The order of things makes a crash harmless: a box is written to the store only when it is alive, so a warden that
 * dies during a launch leaves host objects that belong to no known box, and the next start's sweep removes them. An end
 * is written before anything is killed, so a warden that dies then finds what is left of it unowned as well. */
#include "warden/box/box.h"

#include "warden/core/box_event.h"
#include "warden/core/box_log.h"
#include "warden/core/microvm.h"
#include "warden/core/net_log.h"
#include "warden/core/checkpoint_store.h"
#include "warden/core/egress.h"
#include "warden/core/quota.h"
#include "warden/core/reclaim.h"
#include "warden/core/token_index.h"
#include "warden/core/warden_state.h"
#include "warden/egress/keep.h"
#include "warden/egress/policies.h"
#include "warden/warm/nursery_request.h"
#include <stdio.h>

/* ---- finding and describing ---- */

struct box *box_find(struct warden *w, struct str id, struct str team)
{
  struct box *b = map_get(&w->boxes, id);
  return b && (!team.n || str_is(team, b->row.team)) ? b : NULL;
}

struct box *box_next(struct warden *w, size_t *i)
{
  void *value;
  return map_next(&w->boxes, i, NULL, &value) ? value : NULL;
}

size_t box_count(const struct warden *w)
{
  return w->boxes.n;
}

/* A box takes back from the count only what it has put in, whatever the order of its end and its transitions. */
static void count_live(struct box *b)
{
  bool live = b->known && !b->on_disk;
  if (live != b->live)
    b->warden->live += live ? 1 : -(size_t)1;
  b->live = live;
}

/* The gates ask only for ids that may exist once a client has asked for too many that do not. */
static void set_known(struct box *b, bool known)
{
  struct id_filter *ids = b->warden->ids;
  if (ids && known && !b->known)
    id_filter_add(ids, str_of(b->row.id));
  if (ids && !known && b->known)
    id_filter_remove(ids, str_of(b->row.id));
  b->known = known;
}

void box_add(struct box *b)
{
  map_put(&b->warden->boxes, str_of(b->row.id), b);
  set_known(b, true);
  token_index_add(b);
  count_live(b);
}

void box_unregister(struct box *b)
{
  map_del(&b->warden->boxes, str_of(b->row.id));
  set_known(b, false);
  token_index_remove(b);
  count_live(b);
}

static void watch_closed(uv_handle_t *h)
{
  free(h);
}

void box_free(struct box *b)
{
  if (b->expiry)
    uv_close((uv_handle_t *)steal(&b->expiry), watch_closed);
  quota_count(b, QUOTA_NONE);
  set_known(b, false);
  token_index_remove(b);
  count_live(b);
  row_box_free(&b->row);
  usage_free(&b->usage);
  box_meter_drop(&b->warden->meters, &b->meter);
  vec_free(&b->waiting);
  vec_free(&b->pending_ops);
  box_egress_free(b->egress);
  free(b->idempotency_key);
  free(b->ending);
  free(b);
}

/* ---- a new one ---- */

struct box *box_new(struct warden *w, const char *name)
{
  struct box *b = xcalloc(1, sizeof(*b));
  char fresh[24] = "box-";
  random_id(fresh + 4, 16);
  b->warden = w;
  b->jail.pidfd = b->jail.netns = -1;
  snprintf(b->name, sizeof(b->name), "%s", name ? name : fresh);
  snprintf(b->dir, sizeof(b->dir), "%s/boxes/%s", w->config->data, b->name);
  return b;
}

static void watch_event(uv_poll_t *poll, int status, int events)
{
  struct box *b = poll->data;
  struct jail_stats st = {0};
  struct err err = ERR_NONE;
  if (!jail_stat(b->warden->instance, b->name, b->dir, &st, &err) && st.oom_kills) {
    char victim[64] = "", cause[200];
    jail_oom_victim(b->warden->instance, b->name, victim, sizeof(victim));
    snprintf(cause, sizeof(cause), "out of memory: the box used all of its %u MB and the kernel ended %s",
             b->row.memory_mb, victim[0] ? victim : "it");
    box_end(b, cause);
  } else if (b->row.flags & BOX_MICROVM)
    box_end(b, microvm_cause(b));
  else
    box_end(b, "crashed: its first process ended unexpectedly");
}

void box_watch(struct box *b)
{
  b->watch = xcalloc(1, sizeof(*b->watch));
  uv_poll_init(b->warden->loop, b->watch, b->jail.pidfd);
  b->watch->data = b;
  uv_poll_start(b->watch, UV_READABLE, watch_event);
  net_log_bind(b);
}

void box_unwatch(struct box *b)
{
  nursery_unlisten(b);
  if (b->watch) {
    net_log_unbind(b);
    uv_poll_stop(b->watch);
    uv_close((uv_handle_t *)steal(&b->watch), watch_closed);
  }
}

void box_set_on_disk(struct box *b, bool on_disk)
{
  b->on_disk = on_disk;
  b->owner = 0;
  count_live(b);
}

int box_check_limit(const struct warden *w, struct err *err)
{
  if (w->live < w->config->boxes_max)
    return 0;
  return err_set(err, -EAGAIN, "you have reached the maximum number of concurrent sandboxes (%u) of this server",
                 w->config->boxes_max);
}

static void expired(uv_timer_t *t);

static void start_timer(struct box *b)
{
  int64_t left = b->ends_us - clock_mono_us();
  uv_update_time(b->warden->loop);
  uv_timer_start(b->expiry, expired, left > 0 ? (uint64_t)(left + 999) / 1000 : 0, 0);
}

/* By the clock that nobody sets: a time of day that jumps neither ends a box nor keeps it. */
static void expired(uv_timer_t *t)
{
  struct box *b = t->data;
  /* The loop counts whole milliseconds and may be early by one; what asks for the time again would find some left. */
  if (b->ends_us > clock_mono_us())
    start_timer(b);
  else
    b->warden->hooks->box_expired(b);
}

void box_set_timer(struct box *b)
{
  b->ends_us = clock_mono_us() + b->row.end_us - clock_wall_us();
  if (!b->expiry) {
    b->expiry = xcalloc(1, sizeof(*b->expiry));
    uv_timer_init(b->warden->loop, b->expiry);
    b->expiry->data = b;
  }
  start_timer(b);
}

void box_stop_timer(struct box *b)
{
  if (b->expiry)
    uv_timer_stop(b->expiry);
}

static void box_reclaim(struct box *b)
{
  reclaim_jail(b->warden, b->row.team, b->jail, b->name, b->dir, b->row.slot);
}

void box_register(struct box *b)
{
  box_add(b);
  quota_count(b, QUOTA_RUNNING);
  b->warden->launches++;
}

/* ---- end ---- */

const char *box_cause_for_anyone(const char *cause)
{
  return str_starts(str_of(cause), STR(CAUSE_BY_KEY)) ? "killed: by request" : cause;
}

/* cause: why it ended; NULL = it did not */
static void broadcast(struct box *b, enum wire_type what, const char *cause)
{
  cleanup_buf struct buf p = BUF_INIT(2048);
  wire_begin(&p, what, 0, 0);
  wire_putz(&p, W_ID, b->row.id);
  wire_put_u64(&p, W_RUN, b->row.run);
  if (cause) {
    wire_putz(&p, W_CAUSE, box_cause_for_anyone(cause));
    wire_put_u64(&p, W_END, (uint64_t)clock_wall_us());
  }
  reply_broadcast(b->warden, buf_str(&p));
}

void box_end(struct box *b, const char *cause)
{
  struct warden *w = b->warden;
  if (b->row.state == BOX_STARTING) { /* its launch is on another thread: let it finish, then end it */
    free(b->ending);
    b->ending = xstrdup(cause);
    return;
  }
  struct err err = ERR_NONE;
  if (box_put_ended(w, &b->row, cause, &err))
    log_error("box %s: %s", b->row.id, err.msg);
  boxlog_keep(b);
  broadcast(b, WIRE_BOX_ENDED, cause); /* before its processes die: gates say why a connection breaks */
  if (b->transition)
    jail_kill(w->instance, b->name, &b->jail, &err);
  else if (!b->on_disk)
    jail_kill_init(&b->jail); /* the rest is a worker's, see reclaim.c */
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "cause", cause, NULL}, "ended");
  w->ends_total++;
  policy_remove(b);
  box_unwatch(b);
  net_log_keep(b);
  box_unregister(b);
  box_stop_timer(b);
  quota_count(b, QUOTA_NONE);
  if (!w->hooks->box_abandoned(b))
    box_destroy(b);
}

void box_destroy(struct box *b)
{
  checkpoint_drop(b->warden, b->row.checkpoint);
  box_reclaim(b);
  struct warden *w = b->warden;
  struct build *build = b->build;
  box_free(b);
  w->hooks->build_released(w, build);
}

void box_broadcast_ended(struct box *b)
{
  broadcast(b, WIRE_BOX_ENDED, NULL);
}

void box_broadcast_hold(struct box *b)
{
  broadcast(b, WIRE_BOX_HOLD, NULL);
}

int box_configure(struct box *b, struct str config, unsigned flags, struct str allow, struct str deny, struct err *err)
{
  struct row_box old = b->row;
  b->row.config = xstrndup(config.n ? config.p : "", config.n);
  b->row.allow = xstrndup(allow.n ? allow.p : "", allow.n);
  b->row.deny = xstrndup(deny.n ? deny.p : "", deny.n);
  b->row.flags = flags;
  int r = store_begin(b->warden->store, err);
  if (!r) {
    r = box_put_network(b->warden, &b->row, err);
    r = r ? r : egress_keep(b, err);
    r = store_end(b->warden->store, r, err);
  }
  struct row_box drop = r ? b->row : old;
  if (r)
    b->row = old;
  free(drop.config);
  free(drop.allow);
  free(drop.deny);
  return r;
}

int box_set_end(struct box *b, int64_t end_wall_us, struct err *err)
{
  int r = end_wall_us == b->row.end_us ? 0 : box_put_end_time(b->warden, &b->row, end_wall_us, err);
  if (r)
    return r;
  b->row.end_us = end_wall_us;
  box_set_timer(b);
  return 0;
}

int box_dial(struct box *b, unsigned port, struct err *err)
{
  if (b->row.state != BOX_RUNNING && b->row.state != BOX_COPYING)
    return err_set(err, -EHOSTDOWN, "the sandbox is not running");
  return jail_connect(&b->jail, port, false, err);
}
