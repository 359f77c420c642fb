/* SPDX-License-Identifier: Apache-2.0 */
/* volume_content.c - see volume_content.h. */
#include "warden/volume/volume_content.h"

#include "warden/core/context.h"
#include "jail/fs/volume_backing.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/worker_pool.h"
#include "wire/ipc.h"

#define IDLE_US  5000000 /* a root that was not used for so long is closed */
#define SWEEP_MS 1000
#define SLOW_US  1000000 /* a call that takes longer: does the content role work at all? */
#define HUNG_US  4000000 /* so long it may take to say so */

struct content_call {
  uint64_t id;
  struct origin origin;
  char volume[UUID_SIZE], team[UUID_SIZE];
  struct buf packet; /* as it goes out */
  bool sent;         /* to some content role */
  int64_t begun_us;
  struct volume_root *waits; /* for it, in its list; NULL: for none */
  struct content_call *next; /* that waits for the same root */
};

struct volume_root {
  char id[UUID_SIZE], team[UUID_SIZE];
  int fd;      /* -1: being opened */
  bool doomed; /* closed as soon as it is open */
  int64_t used_us;
  struct content_call *waiting;
};

struct volume_content {
  struct warden *warden;
  struct ipc *link;
  void (*hung)(struct warden *w);
  int64_t ping_us;  /* when the content role was asked whether it works; 0: it said so */
  struct map teams; /* id -> how many calls it has (unsigned *) */
  struct map calls; /* number, 8 bytes -> struct content_call */
  struct map roots; /* id -> struct volume_root */
  uint64_t numbers;
  uv_timer_t timer;
};

static struct str key_of(const uint64_t *id)
{
  return str_make(id, sizeof(*id));
}

/* ---- closing, which a slow filesystem may make wait ---- */

struct closing {
  uv_work_t work;
  int fd;
};

static void close_it(uv_work_t *work)
{
  struct closing *c = work->data;
  close(c->fd);
}

static void closed(uv_work_t *work, int status)
{
  free(work->data);
}

static void close_later(struct warden *w, const char *team, int fd)
{
  struct closing *c = xcalloc(1, sizeof(*c));
  c->fd = fd;
  c->work.data = c;
  worker_pool_queue_volume(w, team, &c->work, close_it, closed);
}

/* ---- answers ---- */

/* False: it has as many as it may. */
static bool team_enter(struct volume_content *v, const char *team)
{
  unsigned *n = map_get(&v->teams, str_of(team));
  if (!n) {
    n = xcalloc(1, sizeof(*n));
    map_put(&v->teams, str_of(team), n);
  }
  if (*n >= warden_config(v->warden)->volume_team_requests)
    return false;
  ++*n;
  return true;
}

static void team_leave(struct volume_content *v, const char *team)
{
  unsigned *n = map_get(&v->teams, str_of(team));
  if (n && --*n == 0)
    free(map_del(&v->teams, str_of(team)));
}

static void call_free(struct volume_content *v, struct content_call *c)
{
  team_leave(v, c->team);
  map_del(&v->calls, key_of(&c->id));
  buf_free(&c->packet);
  free(c);
}

static void call_fail(struct volume_content *v, struct content_call *c, const struct err *err)
{
  reply_end(v->warden, c->origin, err->code, err);
  call_free(v, c);
}

static void call_answer(struct volume_content *v, struct content_call *c, struct str packet, int fd)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  static const enum wire_tag passed[] = {W_MESSAGE, W_BODY, W_COUNT};
  int status = MIN(MAX(wire_head(packet)->status, -4095), 0);
  if (status == -EACCES) /* of the filesystem: to a gate it would mean a wrong token */
    status = -EPERM;
  wire_begin(&b, WIRE_REPLY, c->origin.id, status);
  wire_putz(&b, W_TEAM, c->team);
  for (size_t i = 0; i < ARRAY_LEN(passed); i++)
    if (wire_get(packet, passed[i]).p)
      wire_put(&b, passed[i], wire_get(packet, passed[i]));
  if (reply_possible(v->warden, c->origin))
    reply_send_on(c->origin.ipc, &b, fd);
  call_free(v, c);
}

/* ---- the content role ---- */

static void call_send(struct volume_content *v, struct content_call *c, const struct volume_root *root)
{
  if (!v->link || root->fd < 0)
    return; /* it goes when there is one */
  struct wire_head *h = (struct wire_head *)c->packet.p;
  h->status = c->sent || c->origin.again ? WIRE_AGAIN : 0;
  c->sent = true;
  ipc_send(v->link, buf_str(&c->packet), root->fd);
}

static void on_reply(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct volume_content *v = arg;
  char team[UUID_SIZE] = "";
  if (wire_check(packet) || (wire_head(packet)->type != WIRE_REPLY && wire_head(packet)->type != WIRE_CONTENT_PING)) {
    log_error("malformed packet of %zu bytes from the content role", packet.n);
  } else if (wire_head(packet)->type == WIRE_CONTENT_PING) {
    v->ping_us = 0;
  } else {
    uint64_t id = wire_head(packet)->id;
    struct content_call *c = map_get(&v->calls, key_of(&id));
    if (c && c->sent) {
      memcpy(team, c->team, sizeof(team));
      call_answer(v, c, packet, fd);
    }
  }
  if (fd >= 0)
    close_later(v->warden, team, fd);
}

static void on_closed(struct ipc *l, void *arg)
{
  struct volume_content *v = arg;
  if (v->link == l) {
    v->link = NULL;
    v->ping_us = 0;
  }
  ipc_free(l);
}

static const struct ipc_ops content_ops = {on_reply, on_closed};

/* ---- roots ---- */

struct opening {
  uv_work_t work;
  struct volume_content *content;
  struct volume_root *root;
  struct volume_place place;
  int fd;
  struct err err;
};

static void open_root(uv_work_t *work)
{
  struct opening *o = work->data;
  o->fd = volume_backing_open(&o->place, o->root->id, &o->err);
}

static void root_free(struct volume_content *v, struct volume_root *r)
{
  if (r->fd >= 0)
    close_later(v->warden, r->team, steal_fd(&r->fd));
  if (map_get(&v->roots, str_of(r->id)) == r)
    map_del(&v->roots, str_of(r->id));
  free(r);
}

static void root_opened(uv_work_t *work, int status)
{
  struct opening *o = work->data;
  struct volume_content *v = o->content;
  struct volume_root *r = o->root;
  if (o->fd >= 0 && r->doomed) {
    close_later(v->warden, r->team, steal_fd(&o->fd));
    err_set(&o->err, -ENOENT, "volume %s was deleted", r->id);
  }
  r->fd = o->fd < 0 ? -1 : o->fd;
  r->used_us = clock_mono_us();
  for (struct content_call *c = steal(&r->waiting), *next; c; c = next) {
    next = c->next;
    c->next = NULL;
    c->waits = NULL;
    if (o->fd < 0)
      call_fail(v, c, &o->err);
    else
      call_send(v, c, r);
  }
  if (o->fd < 0 || r->doomed)
    root_free(v, r);
  free(o);
}

static struct volume_root *root_of(struct volume_content *v, const struct content_call *c)
{
  struct volume_root *r = map_get(&v->roots, str_of(c->volume));
  if (r)
    return r;
  r = xcalloc(1, sizeof(*r));
  r->fd = -1;
  memcpy(r->id, c->volume, sizeof(r->id));
  memcpy(r->team, c->team, sizeof(r->team));
  map_put(&v->roots, str_of(r->id), r);
  struct opening *o = xcalloc(1, sizeof(*o));
  *o = (struct opening){.content = v, .root = r, .fd = -1};
  o->work.data = o;
  o->place = volume_mounts_place(v->warden);
  worker_pool_queue_volume(v->warden, r->team, &o->work, open_root, root_opened);
  return r;
}

static void call_start(struct volume_content *v, struct content_call *c)
{
  struct volume_root *r = root_of(v, c);
  r->used_us = clock_mono_us();
  if (r->fd >= 0) {
    call_send(v, c, r);
    return;
  }
  c->next = r->waiting;
  c->waits = r;
  r->waiting = c;
}

/* ---- deadlines ---- */

static void stop_waiting(struct content_call *c)
{
  struct content_call **at = c->waits ? &c->waits->waiting : NULL;
  while (at && *at != c)
    at = &(*at)->next;
  if (at)
    *at = c->next;
  c->waits = NULL;
}

static void call_expire(struct volume_content *v, struct content_call *c)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(64);
  err_set(&err, -ESHUTDOWN,
          "the files of volume %s can't be reached: their filesystem did not answer within %u s (setting "
          "volume_timeout_seconds); try again later",
          c->volume, warden_config(v->warden)->volume_timeout_s);
  stop_waiting(c);
  wire_begin(&b, WIRE_CONTENT_CANCEL, c->id, 0);
  if (c->sent && v->link)
    ipc_send(v->link, buf_str(&b), -1);
  call_fail(v, c, &err);
}

/* Calls whose time is over, and whether one waits for so long that the content role is to say that it works. */
static bool expire(struct volume_content *v, int64_t now)
{
  VEC(struct content_call *) over = {0};
  int64_t most = (int64_t)warden_config(v->warden)->volume_timeout_s * 1000000;
  bool slow = false;
  void *value;
  for (size_t i = 0; map_next(&v->calls, &i, NULL, &value);) {
    struct content_call *c = value;
    slow |= c->sent && now - c->begun_us > SLOW_US;
    if (now - c->begun_us > most)
      vec_push(&over, c);
  }
  for (size_t i = 0; i < over.n; i++)
    call_expire(v, over.p[i]);
  vec_free(&over);
  return slow;
}

static void ping(struct volume_content *v, int64_t now)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  wire_begin(&b, WIRE_CONTENT_PING, 0, 0);
  v->ping_us = now;
  ipc_send(v->link, buf_str(&b), -1);
}

static void look_after(uv_timer_t *t)
{
  struct volume_content *v = t->data;
  int64_t now = clock_mono_us();
  bool slow = expire(v, now);
  if (v->link && v->ping_us && now - v->ping_us > HUNG_US) {
    v->ping_us = now; /* once more, should it still be there then */
    v->hung(v->warden);
  } else if (v->link && slow && !v->ping_us) {
    ping(v, now);
  }
}

static void sweep(uv_timer_t *t)
{
  struct volume_content *v = t->data;
  void *value;
  look_after(t);
  for (size_t i = 0; map_next(&v->roots, &i, NULL, &value);) {
    struct volume_root *r = value;
    if (r->fd < 0 || clock_mono_us() - r->used_us < IDLE_US)
      continue;
    root_free(v, r);
  }
}

void volume_content_forget(struct warden *w, const char *volume)
{
  struct volume_content *v = warden_volume_content(w);
  struct volume_root *r = v ? map_get(&v->roots, str_of(volume)) : NULL;
  if (r && r->fd >= 0) {
    root_free(v, r);
  } else if (r) {
    r->doomed = true;
    map_del(&v->roots, str_of(volume));
  }
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_CONTENT_FORGET, 0, 0);
  wire_putz(&b, W_ID, volume);
  if (v && v->link)
    ipc_send(v->link, buf_str(&b), -1);
}

/* ---- calls ---- */

static void put_fields(struct buf *b, struct str packet)
{
  static const enum wire_tag passed[] = {W_OP,    W_PATH,   W_DEPTH, W_UID,    W_GID,    W_PERMISSIONS,
                                         W_FORCE, W_UPLOAD, W_COUNT, W_TARGET, W_UPDATED};
  for (size_t i = 0; i < ARRAY_LEN(passed); i++)
    if (wire_get(packet, passed[i]).p)
      wire_put(b, passed[i], wire_get(packet, passed[i]));
}

void volume_content_call(struct warden *w, struct origin origin, const struct row_volume *row, struct str packet)
{
  struct volume_content *v = warden_volume_content(w);
  struct err err = ERR_NONE;
  if (!team_enter(v, row->team)) {
    err_set(&err, -ENOBUFS,
            "this team has %u requests about files of volumes under way (setting volume_team_requests): try again when "
            "some have ended",
            warden_config(w)->volume_team_requests);
    reply_end(w, origin, err.code, &err);
    return;
  }
  struct content_call *c = xcalloc(1, sizeof(*c));
  *c = (struct content_call){
      .id = ++v->numbers, .origin = origin, .begun_us = clock_mono_us(), .packet = BUF_INIT(WIRE_MAX)};
  memcpy(c->volume, row->id, sizeof(c->volume));
  memcpy(c->team, row->team, sizeof(c->team));
  wire_begin(&c->packet, WIRE_CONTENT, c->id, 0);
  wire_putz(&c->packet, W_ID, row->id);
  wire_putz(&c->packet, W_TEAM, row->team);
  put_fields(&c->packet, packet);
  map_put(&v->calls, key_of(&c->id), c);
  call_start(v, c);
}

/* Its volume was deleted after it was sent: its root is not opened again. */
static bool fail_deleted(struct volume_content *v, struct content_call *c)
{
  struct row_volume row;
  struct err err = ERR_NONE;
  if (!store_volume_get(warden_store(v->warden), str_of(c->volume), &row) && row.state == VOLUME_READY)
    return false;
  err_set(&err, -ENOENT, "volume %s was deleted", c->volume);
  call_fail(v, c, &err);
  return true;
}

void volume_content_link(struct warden *w, int fd)
{
  struct volume_content *v = warden_volume_content(w);
  VEC(struct content_call *) open = {0};
  void *value;
  v->link = ipc_new(warden_loop(w), fd, &content_ops, v);
  for (size_t i = 0; map_next(&v->calls, &i, NULL, &value);)
    vec_push(&open, (struct content_call *)value);
  for (size_t i = 0; i < open.n; i++)
    if (!open.p[i]->waits && !fail_deleted(v, open.p[i]))
      call_start(v, open.p[i]);
  vec_free(&open);
}

/* ---- life ---- */

void volume_content_open(struct warden *w, void (*hung)(struct warden *w))
{
  struct volume_content *v = xcalloc(1, sizeof(*v));
  v->warden = w;
  v->hung = hung;
  warden_set_volume_content(w, v);
  uv_timer_init(warden_loop(w), &v->timer);
  v->timer.data = v;
  uv_timer_start(&v->timer, sweep, SWEEP_MS, SWEEP_MS);
  uv_unref((uv_handle_t *)&v->timer);
}

void volume_content_close(struct warden *w)
{
  struct volume_content *v = warden_volume_content(w);
  void *value;
  if (!v)
    return;
  for (size_t i = 0; map_next(&v->calls, &i, NULL, &value);) {
    buf_free(&((struct content_call *)value)->packet);
    free(value);
  }
  for (size_t i = 0; map_next(&v->roots, &i, NULL, &value);)
    free(value);
  for (size_t i = 0; map_next(&v->teams, &i, NULL, &value);)
    free(value);
  map_free(&v->teams);
  map_free(&v->calls);
  map_free(&v->roots);
  free(v);
  warden_set_volume_content(w, NULL);
}
