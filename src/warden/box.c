/* SPDX-License-Identifier: Apache-2.0 */
/* box.c - see box.h.
 *
 * The order of things makes a crash harmless: a box is written to the store only when it is alive, so a warden that
 * dies during a launch leaves host objects that belong to no known box, and the next start's sweep removes them. An end
 * is written before anything is killed, so a warden that dies then finds the remains unowned as well. */
#include "warden/box.h"

#include "jail/fs/id_shift.h"
#include "warden/quota.h"
#include "warden/warm/nursery_request.h"
#include "warden/launch.h"
#include "warden/warm/ns_pool.h"
#include "warden/box_log.h"
#include "warden/box_reply.h"
#include "warden/fork.h"
#include "warden/checkpoint_store.h"
#include "warden/egress.h"
#include "warden/transition.h"
#include "warden/pause.h"
#include "warden/warm/warm_pool.h"
#include "warden/reclaim.h"
#include "warden/token_index.h"
#include "warden/id_slots.h"
#include "warden/storage_quota.h"
#include "warden/warm/zygote.h"
#include "warden/worker_pool.h"
#include <dirent.h>
#include <stdio.h>

/* ---- finding and describing ---- */

struct box *box_find(struct warden *w, struct str id, struct str team)
{
  struct box *b = map_get(&w->boxes, id);
  return b && (!team.n || str_is(team, b->row.team)) ? b : NULL;
}

/* A box takes back from the count only what it has put in, whatever the order of its end and its transitions. */
static void count_live(struct box *b)
{
  bool live = b->known && !b->on_disk;
  if (live != b->live)
    b->warden->live += live ? 1 : -(size_t)1;
  b->live = live;
}

static void register_box(struct box *b)
{
  map_put(&b->warden->boxes, str_of(b->row.id), b);
  b->known = true;
  token_index_add(b);
  count_live(b);
}

static void unregister_box(struct box *b)
{
  map_del(&b->warden->boxes, str_of(b->row.id));
  b->known = false;
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
  quota_count(b, false);
  b->known = false;
  token_index_remove(b);
  count_live(b);
  row_box_free(&b->row);
  usage_free(&b->usage);
  vec_free(&b->waiting);
  vec_free(&b->pending_ops);
  free(b->ending);
  free(b);
}

/* ---- birth ---- */

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
  } else
    box_end(b, "crashed: its first process ended unexpectedly");
}

void box_watch(struct box *b)
{
  b->watch = xcalloc(1, sizeof(*b->watch));
  uv_poll_init(b->warden->loop, b->watch, b->jail.pidfd);
  b->watch->data = b;
  uv_poll_start(b->watch, UV_READABLE, watch_event);
}

void box_unwatch(struct box *b)
{
  nursery_unlisten(b);
  if (b->watch) {
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

static void expired(uv_timer_t *t)
{
  box_expire(t->data);
}

void box_set_timer(struct box *b)
{
  int64_t left = b->row.end_us - clock_wall_us();
  if (!b->expiry) {
    b->expiry = xcalloc(1, sizeof(*b->expiry));
    uv_timer_init(b->warden->loop, b->expiry);
    b->expiry->data = b;
  }
  uv_update_time(b->warden->loop);
  uv_timer_start(b->expiry, expired, left > 0 ? (uint64_t)(left + 999) / 1000 : 0, 0);
}

void box_stop_timer(struct box *b)
{
  if (b->expiry)
    uv_timer_stop(b->expiry);
}

static void answer_waiting(struct box *b, int status, const struct err *err)
{
  for (size_t i = 0; i < b->waiting.n; i++)
    reply_created(b->warden, b->waiting.p[i], status, b, err);
  b->waiting.n = 0;
}

static void box_reclaim(struct box *b)
{
  reclaim_jail(b->warden, b->row.team, b->jail, b->name, b->dir, b->row.slot);
}

int box_launched(struct launch *launch)
{
  struct box *b = launch->box;
  struct warden *w = b->warden;
  w->launches--;
  if (b->missed)
    warm_pool_miss_served(w, b->build);
  b->missed = false;
  b->jail = launch->jail;
  struct err err = launch->err;
  int r = launch->result;
  if (!r && b->ending)
    r = err_set(&err, -ENOENT, "the sandbox was ended while it started: %s", b->ending);
  if (!r) {
    b->row.state = BOX_RUNNING;
    b->row.started_us = clock_wall_us();
    b->row.end_us += b->row.started_us; /* held the length until now */
    b->row.init_proc = b->jail.init;
    r = store_box_put(w->store, &b->row, &err);
    b->trace.boot_us = launch->boot_us;
    b->trace.ready_us = launch->ready_us;
    b->trace.kept_us = clock_mono_us();
  }
  if (r) {
    w->launches_failed++;
    answer_waiting(b, r, &err);
    log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "launch failed: %s", err.msg);
    unregister_box(b);
    launch->err = err;
    box_reclaim(b);
    struct build *build = b->build;
    box_free(b);
    fork_release(w, build);
    return r;
  }
  w->launches_total++;
  box_watch(b);
  box_set_timer(b);
  catalog_spawned(w->catalog, b->template, b->row.started_us);
  answer_waiting(b, 0, NULL);
  nursery_listen(b);
  return 0;
}

static void on_launched(struct launch *launch)
{
  box_launched(launch);
}

/* Tokens are the warden's: what the gate wrote for the agent gets the box's own put in front, unread. */
static char *init_of(const struct warden *w, const struct box_params *o)
{
  char token[TOKEN_TEXT];
  struct str rest = str_skip(o->init, 1);
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX * 2);
  token_make(str_of(w->secret), TOKEN_ACCESS, o->id, token);
  if (!(o->flags & BOX_SECURE) || !str_starts(o->init, STR("{")) || str_search(o->init, str_of(token)) >= 0)
    return xstrndup(o->init.n ? o->init.p : "", o->init.n);
  buf_addf(&b, "{\"accessToken\":\"%s\"%s", token, str_starts(rest, STR("}")) ? "" : ",");
  buf_adds(&b, rest);
  return xstrndup(b.p, b.n);
}

static int fill_row(struct box *b, const struct box_params *o, const unsigned *slot)
{
  struct warden *w = b->warden;
  struct row_box *r = &b->row;
  uint8_t secret[SHA256_LEN];
  random_bytes(secret, sizeof(secret));
  hex_encode(secret, sizeof(secret), r->secret);
  r->config = xstrndup(o->config.n ? o->config.p : "", o->config.n);
  r->init = init_of(w, o);
  r->allow = xstrndup(o->allow.n ? o->allow.p : "", o->allow.n);
  r->deny = xstrndup(o->deny.n ? o->deny.p : "", o->deny.n);
  memcpy(r->host_name, b->name, sizeof(r->host_name));
  r->flags = (o->flags & ~(unsigned)BOX_LINKED) | (egress_wanted(w, o->flags, o->allow) ? BOX_LINKED : 0);
  r->cpus = b->build->row.cpus;
  r->memory_mb = b->build->row.memory_mb;
  r->disk_mb = b->build->row.disk_mb;
  r->state = BOX_STARTING;
  r->run = 1;
  r->started_us = clock_wall_us();
  r->timeout_s = o->timeout_s;
  r->end_us = (int64_t)o->timeout_s * 1000000;
  memcpy(r->runtime, b->build->row.checkpoint[0] && w->checkpoints_on ? b->build->row.runtime : w->runtime,
         sizeof(r->runtime));
  memcpy(r->build, b->build->row.id, sizeof(r->build));
  memcpy(r->template_id, b->template->row.id, sizeof(r->template_id));
  snprintf(r->alias, sizeof(r->alias), "%s", template_name(b->template));
  if (str_copyz(o->id, r->id, sizeof(r->id)) || str_copyz(o->team, r->team, sizeof(r->team)))
    return -EINVAL;
  if (!slot)
    return slot_take(w, &r->slot);
  r->slot = *slot;
  return 0;
}

void box_register(struct box *b)
{
  register_box(b);
  quota_count(b, true);
  b->warden->launches++;
}

int box_create(struct warden *w, const struct box_params *o, struct origin origin, unsigned *retry_s, struct err *err)
{
  int64_t came_us = clock_mono_us();
  struct box *have = box_find(w, o->id, o->team);
  if (have && have->row.state != BOX_STARTING) {
    reply_box(w, origin, 0, have, NULL);
    return 0;
  }
  if (have) {
    vec_push(&have->waiting, origin);
    return 0;
  }
  struct template *t;
  struct build *build;
  int r = catalog_find(w->catalog, o->team, o->ref, &t, &build, err);
  r = r ? r : quota_fits(w, o->team, (struct box_size){build->row.cpus, build->row.memory_mb, build->row.disk_mb}, err);
  r = r ? r : storage_room(w, err);
  if (!r && (o->flags & BOX_AUTO_PAUSE)) /* at its timeout it would be kept, whatever is there by then */
    r = storage_admit(w, o->team, STORAGE_PAUSE, err);
  r = r ? r : quota_admit(w, o->team, build->row.memory_mb, true, retry_s, err);
  if (r)
    return r;
  if ((r = box_check_limit(w, err)))
    return r;
  if (o->id.n >= sizeof(((struct row_box *)0)->id))
    return err_set(err, -EINVAL, "bad sandbox id");
  bool warm = build->row.checkpoint[0] &&
              (w->checkpoints_on || build->row.kind != BUILD_PLAIN); /* a plain one can start its command anew */
  bool plain = w->net_on ? egress_plain(o->flags, o->allow, o->deny) : true;
  if (warm && !w->checkpoints_on)
    return err_set(err, -ENOTSUP, "template '" STR_FMT "' holds memory, which this host can't restore: %s",
                   STR_ARG(o->ref), w->checkpoints_why);
  struct warm_box *p = plain ? warm_pool_take(w, build) : NULL;
  struct pooled_ns *pooled_ns = plain && !warm && !p ? ns_pool_take(w, build) : NULL;
  struct box *b = box_new(w, p ? p->name : pooled_ns ? pooled_ns->name : NULL);
  b->template = t;
  b->build = build;
  if ((r = fill_row(b, o, p ? &p->slot : pooled_ns ? &pooled_ns->slot : NULL))) {
    box_free(b);
    if (plain && !p)
      warm_pool_miss_served(w, build);
    warm_box_drop(p);
    ns_pool_drop(w, pooled_ns);
    return err_set(err, r, "no free id range for another sandbox (%zu in use)", w->nslots);
  }
  b->missed = plain && !p;
  b->trace.came_us = came_us;
  vec_push(&b->waiting, origin);
  box_register(b);
  if (warm && p)
    launch_thaw(b, p, on_launched);
  else if (warm)
    launch_restore(b, build->row.checkpoint, build->row.secret, on_launched, NULL);
  else
    launch_start(b, p, pooled_ns ? pooled_ns->created : NULL, o, on_launched);
  free(p); /* the launch has what it needs of them */
  free(pooled_ns);
  return 0;
}

/* ---- end ---- */

void box_end(struct box *b, const char *cause)
{
  struct warden *w = b->warden;
  if (b->row.state == BOX_STARTING) { /* its launch is on another thread: let it finish, then end it */
    free(b->ending);
    b->ending = xstrdup(cause);
    return;
  }
  struct err err = ERR_NONE;
  if (store_box_ended(w->store, b->row.id, b->row.team, clock_wall_us(), cause, &err))
    log_error("box %s: %s", b->row.id, err.msg);
  boxlog_keep(b);
  if (b->transition)
    jail_kill(w->instance, b->name, &b->jail, &err);
  else if (!b->on_disk)
    jail_kill_init(&b->jail); /* the rest is a worker's, see reclaim.c */
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "cause", cause, NULL}, "ended");
  w->ends_total++;
  box_broadcast_ended(b);
  box_unwatch(b);
  unregister_box(b);
  box_stop_timer(b);
  quota_count(b, false);
  if (!box_abandon_transition(b))
    box_destroy(b);
}

void box_destroy(struct box *b)
{
  checkpoint_drop(b->warden, b->row.checkpoint);
  box_reclaim(b);
  struct warden *w = b->warden;
  struct build *build = b->build;
  box_free(b);
  fork_release(w, build);
}

static void broadcast(struct box *b, enum wire_type what)
{
  cleanup_buf struct buf p = BUF_INIT(1024);
  wire_begin(&p, what, 0, 0);
  wire_putz(&p, W_ID, b->row.id);
  wire_put_u64(&p, W_RUN, b->row.run);
  reply_broadcast(b->warden, buf_str(&p));
}

void box_broadcast_ended(struct box *b)
{
  broadcast(b, WIRE_BOX_ENDED);
}

void box_broadcast_hold(struct box *b)
{
  broadcast(b, WIRE_BOX_HOLD);
}

int box_configure(struct box *b, struct str config, unsigned flags, struct str allow, struct str deny, struct err *err)
{
  int changed = egress_update(b, flags, allow, deny, err);
  if (changed)
    return changed;
  struct row_box old = b->row;
  b->row.config = xstrndup(config.n ? config.p : "", config.n);
  b->row.allow = xstrndup(allow.n ? allow.p : "", allow.n);
  b->row.deny = xstrndup(deny.n ? deny.p : "", deny.n);
  b->row.flags = (flags & ~(unsigned)BOX_LINKED) | (old.flags & BOX_LINKED);
  int r = store_box_put(b->warden->store, &b->row, err);
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
  int r = store_box_end_time(b->warden->store, b->row.id, end_wall_us, err);
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

/* ---- recovery ---- */

struct recovery {
  struct warden *warden;
  VEC(char *) lost; /* id, team by turns */
};

/* The control group of its first process says which walls a box lives in. */
static void host_name_of(struct warden *w, const struct row_box *row, char name[64])
{
  char path[64], mark[64];
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  snprintf(path, sizeof(path), "/proc/%d/cgroup", row->init_proc.pid);
  snprintf(mark, sizeof(mark), "/cloche-%s/", w->instance);
  snprintf(name, 64, "%s", row->host_name[0] ? row->host_name : row->id); /* boxes of older versions have none */
  if (file_read(path, &b))
    return;
  ptrdiff_t at = str_search(buf_str(&b), str_of(mark));
  if (at < 0)
    return;
  struct str rest = str_skip(buf_str(&b), (size_t)at + strlen(mark)), line, part;
  str_cut(rest, '\n', &line, &rest);
  str_cut(line, '/', &part, &line);
  if (part.n)
    str_copyz(part, name, 64);
}

static int recover_one(const struct row_box *row, void *arg)
{
  struct recovery *rec = arg;
  struct warden *w = rec->warden;
  char name[64];
  struct err err = ERR_NONE;
  bool on_disk = row->state == BOX_PAUSED && row->tier != TIER_FROZEN;
  if (on_disk)
    snprintf(name, sizeof(name), "%s", row->host_name[0] ? row->host_name : row->id);
  else
    host_name_of(w, row, name);
  struct box *b = box_new(w, name);
  b->build = catalog_build(w->catalog, str_of(row->build));
  b->template = b->build ? b->build->of : NULL;
  if (!b->build || (!on_disk && jail_adopt(w->instance, name, row->init_proc, &b->jail, &err))) {
    vec_push(&rec->lost, xstrdup(row->id));
    vec_push(&rec->lost, xstrdup(row->team));
    free(b);
    return 0;
  }
  b->row = *row;
  b->row.config = xstrdup(row->config);
  b->row.init = xstrdup(row->init);
  b->row.allow = xstrdup(row->allow);
  b->row.deny = xstrdup(row->deny);
  slot_mark(w, row->slot, true);
  if (!on_disk && jail_owner(&b->jail) != w->config->id_base + row->slot * JAIL_IDS)
    zygote_reclaim(w, b->build, jail_owner(&b->jail));
  register_box(b);
  memcpy(b->row.host_name, b->name, sizeof(b->row.host_name));
  box_set_on_disk(b, on_disk);
  if (!on_disk) {
    box_watch(b);
    nursery_listen(b);
  }
  box_sync_freezer(b);
  if (b->row.state == BOX_RUNNING)
    box_set_timer(b);
  return 0;
}

static bool known(const char *name, void *arg)
{
  struct warden *w = arg;
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (!strcmp(((struct box *)value)->name, name))
      return true;
  return false;
}

/* Of a box that is paused on disk no process may be left: one that a crash left there was about to go, or had not
 * begun. */
static bool has_jail(const char *name, void *arg)
{
  struct warden *w = arg;
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (!strcmp(((struct box *)value)->name, name))
      return !((struct box *)value)->on_disk;
  return false;
}

static void clear_unowned(struct warden *w)
{
  char path[4096];
  snprintf(path, sizeof(path), "%s/boxes", w->config->data);
  DIR *d = opendir(path);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));) {
    if (e->d_name[0] == '.' || known(e->d_name, w))
      continue;
    char dir[5000];
    struct err err = ERR_NONE;
    snprintf(dir, sizeof(dir), "%s/%s", path, e->d_name);
    if (jail_remove(w->instance, e->d_name, dir, &err))
      log_warn("left over %s not cleared: %s", dir, err.msg);
  }
  closedir(d);
}

int box_recover(struct warden *w, struct err *err)
{
  struct recovery rec = {.warden = w};
  store_boxes(w->store, recover_one, &rec);
  for (size_t i = 0; i < rec.lost.n; i += 2) {
    store_box_ended(w->store, rec.lost.p[i], rec.lost.p[i + 1], clock_wall_us(),
                    "lost: not running when the daemon restarted (host restart or crash)", NULL);
    free(rec.lost.p[i]);
    free(rec.lost.p[i + 1]);
  }
  if (w->boxes.n || rec.lost.n)
    log_info("%zu boxes recovered, %zu lost", w->boxes.n, rec.lost.n / 2);
  vec_free(&rec.lost);
  int r = jail_sweep(w->instance, has_jail, w, err);
  char shifted[PATH_MAX];
  snprintf(shifted, sizeof(shifted), "%s/shifted", w->config->data);
  id_shift_sweep(shifted);
  clear_unowned(w);
  return r;
}

/* ---- measuring ---- */

struct sampling {
  uv_work_t work;
  struct warden *warden;
  size_t n;
  struct sample_of {
    char id[64], name[64], dir[512];
    int result;
    struct jail_stats stats;
  } of[];
};

static void sampling_work(uv_work_t *work)
{
  struct sampling *s = work->data;
  for (size_t i = 0; i < s->n; i++)
    s->of[i].result = jail_stat(s->warden->instance, s->of[i].name, s->of[i].dir, &s->of[i].stats, NULL);
}

static void sampling_done(uv_work_t *work, int status)
{
  struct sampling *s = work->data;
  int64_t wall = clock_wall_us(), mono = clock_mono_us();
  for (size_t i = 0; i < s->n; i++) {
    struct box *b = map_get(&s->warden->boxes, str_of(s->of[i].id));
    const struct jail_stats *st = &s->of[i].stats;
    if (!b || s->of[i].result)
      continue;
    boxlog_look(b);
    usage_add(&b->usage, mono, st->cpu_usec,
              &(struct wire_sample){.wall_us = wall,
                                    .cpus = b->row.cpus,
                                    .mem_used = st->memory_used,
                                    .mem_cache = st->memory_cache,
                                    .mem_total = (uint64_t)b->row.memory_mb << 20,
                                    .disk_used = st->disk_used,
                                    .disk_total = (uint64_t)b->row.disk_mb << 20});
  }
  s->warden->sampling = false;
  free(s);
}

void box_sample_all(struct warden *w)
{
  if (w->sampling || !w->boxes.n)
    return;
  struct sampling *s = xcalloc(1, sizeof(*s) + w->boxes.n * sizeof(s->of[0]));
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (b->row.state != BOX_RUNNING)
      continue;
    struct sample_of *of = &s->of[s->n++];
    memcpy(of->id, b->row.id, sizeof(of->id));
    memcpy(of->name, b->name, sizeof(of->name));
    memcpy(of->dir, b->dir, sizeof(of->dir));
  }
  s->warden = w;
  s->work.data = s;
  w->sampling = true;
  worker_pool_queue(w, "", &s->work, sampling_work, sampling_done);
}
