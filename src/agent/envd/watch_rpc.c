/* SPDX-License-Identifier: Apache-2.0 */
/* watch_rpc.c - WatchDir (a stream) and CreateWatcher, GetWatcherEvents, RemoveWatcher (polled).
 *
 * A polled watcher is read as events come, so that the kernel's queue does not overflow and entries are looked up
 * while they are fresh, and once more inside GetWatcherEvents, so that everything done before the request is in its
 * answer. What nobody fetches is kept up to a limit, after which the watcher is in error. */
#include "agent/envd/entry.h"
#include "agent/envd/messages.h"
#include "agent/envd/service.h"
#include "agent/envd/watch.h"
#include <limits.h>
#include <stdio.h>

#define WATCHER_ID 22 /* 'w', 20 characters, NUL */
#define KEPT_BYTES ((size_t)32 << 20)

static const struct msg_empty empty;
static struct msg_empty nothing;
static const struct msg_watch_event keepalive = {.which = WATCH_KEEPALIVE, .keepalive = &nothing};

/* ---- both kinds ---- */

/* NULL: the call has been answered. */
static struct watch *watch_begin(struct rpc_call *c, const struct msg_watch *req)
{
  struct user user;
  struct watch *w = NULL;
  cleanup_buf struct buf path = BUF_INIT(64 << 10);
  if (service_user(c, &user) < 0 || service_path(c, req->path, &user, &path) < 0)
    return NULL;
  const char *dir = buf_z(&path);
  int rc = watch_open(dir, req->recursive, req->allow_network_mounts, &w);
  if (rc == 0)
    return w;
  if (rc == -ENOENT)
    rpc_fail(c, RPC_NOT_FOUND, "path %s not found", dir);
  else if (rc == -ENOTDIR)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "path %s is not a directory", dir);
  else if (rc == -EXDEV)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "cannot watch path on network filesystem: %s", dir);
  else if (rc == -EMFILE || rc == -ENOSPC)
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "no more watches to be had for %s: %s", dir, strerror(-rc));
  else
    rpc_fail(c, RPC_INTERNAL, "error watching path %s: %s", dir, strerror(-rc));
  return NULL;
}

/* The entry of a change, in the arena; NULL when it has none. Removed and renamed names never have one. */
static struct msg_entry *change_entry(const struct watch *w, uint32_t type, struct str name, struct arena *a)
{
  cleanup_userdb struct userdb db = {0};
  char path[PATH_MAX];
  if (type == CHANGE_REMOVE || type == CHANGE_RENAME)
    return NULL;
  struct str dir = str_of(watch_path(w));
  while (dir.n > 1 && dir.p[dir.n - 1] == '/')
    dir.n--;
  if (str_is(name, "."))
    snprintf(path, sizeof(path), STR_FMT, STR_ARG(dir));
  else
    snprintf(path, sizeof(path), STR_FMT "/" STR_FMT, dir.n == 1 && dir.p[0] == '/' ? 0 : (int)dir.n, dir.p,
             STR_ARG(name));
  struct msg_entry *entry = arena_alloc(a, sizeof(*entry));
  if (!entry)
    return NULL;
  userdb_load(&db);
  return entry_fill(path, &db, a, entry) == 0 ? entry : NULL;
}

/* ---- WatchDir ---- */

struct stream {
  struct rpc_call *call; /* held */
  struct watch *watch;
  uv_poll_t poll;
  bool entries, closing;
};

static void stream_closed(uv_handle_t *h)
{
  struct stream *s = h->data;
  watch_close(s->watch);
  rpc_release(s->call);
  free(s);
}

static void stream_close(struct stream *s)
{
  if (s->closing)
    return;
  s->closing = true;
  uv_poll_stop(&s->poll);
  uv_close((uv_handle_t *)&s->poll, stream_closed);
}

static void stream_change(uint32_t type, struct str name, void *arg)
{
  struct stream *s = arg;
  cleanup_arena struct arena a = ARENA_INIT((size_t)1 << 20);
  struct msg_change change = {.name = name, .type = type};
  struct msg_watch_event msg = {.which = WATCH_CHANGE, .change = &change};
  if (s->entries)
    change.entry = change_entry(s->watch, type, name, &a);
  rpc_send(s->call, &msg);
}

static void stream_ready(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
  struct stream *s = poll->data;
  if (rpc_congested(s->call)) {
    uv_poll_stop(poll);
    return;
  }
  if (watch_read(s->watch, stream_change, s) < 0) {
    rpc_fail(s->call, RPC_INTERNAL, "watcher error: event queue overflow");
    stream_close(s);
  }
}

static void stream_drain(struct rpc_call *c)
{
  struct stream *s = rpc_data(c);
  if (!s->closing)
    uv_poll_start(&s->poll, UV_READABLE, stream_ready);
}

static void stream_gone(struct rpc_call *c)
{
  stream_close(rpc_data(c));
}

static const struct rpc_ops stream_ops = {.drain = stream_drain, .gone = stream_gone};

static void watch_dir(struct rpc_call *c, const void *request)
{
  const struct msg_watch *req = request;
  const struct msg_watch_event begun = {.which = WATCH_START, .start = &nothing};
  struct watch *w = watch_begin(c, req);
  if (!w)
    return;
  struct stream *s = xcalloc(1, sizeof(*s));
  s->call = c;
  s->watch = w;
  s->entries = req->include_entry;
  rpc_hold(c);
  uv_poll_init(rpc_loop(c), &s->poll, watch_fd(w));
  s->poll.data = s;
  uv_poll_start(&s->poll, UV_READABLE, stream_ready);
  rpc_watch(c, &stream_ops, s);
  rpc_send(c, &begun);
  rpc_keepalive(c, &keepalive);
}

/* ---- polled watchers ---- */

struct watcher {
  char id[WATCHER_ID];
  struct watch *watch;
  uv_poll_t poll;
  bool entries, overflow;
  struct arena arena;
  struct msg_changes kept;
};

static VEC(struct watcher *) watchers;

static struct watcher *watcher_find(struct str id, size_t *at)
{
  for (size_t i = 0; i < watchers.n; i++)
    if (str_is(id, watchers.p[i]->id)) {
      *at = i;
      return watchers.p[i];
    }
  return NULL;
}

static void watcher_change(uint32_t type, struct str name, void *arg)
{
  struct watcher *w = arg;
  struct msg_change *change = w->overflow ? NULL : arena_alloc(&w->arena, sizeof(*change));
  if (!change) {
    w->overflow = true;
    return;
  }
  change->name = arena_str(&w->arena, name);
  change->type = type;
  if (w->entries)
    change->entry = change_entry(w->watch, type, name, &w->arena);
  w->overflow = !change->name.p || rpc_list_add(&w->arena, &w->kept.events, sizeof(change), &change) < 0;
}

static void watcher_read(struct watcher *w)
{
  if (w->overflow || watch_read(w->watch, watcher_change, w) < 0 || w->overflow) {
    w->overflow = true;
    uv_poll_stop(&w->poll);
  }
}

static void watcher_ready(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
  watcher_read(poll->data);
}

static void create_watcher(struct rpc_call *c, const void *request)
{
  const struct msg_watch *req = request;
  struct watch *watch = watch_begin(c, req);
  if (!watch)
    return;
  struct watcher *w = xcalloc(1, sizeof(*w));
  w->id[0] = 'w';
  random_id(w->id + 1, WATCHER_ID - 2);
  w->watch = watch;
  w->entries = req->include_entry;
  w->arena = ARENA_INIT(KEPT_BYTES);
  uv_poll_init(rpc_loop(c), &w->poll, watch_fd(watch));
  w->poll.data = w;
  uv_poll_start(&w->poll, UV_READABLE, watcher_ready);
  vec_push(&watchers, w);
  struct msg_watcher msg = {str_of(w->id)};
  rpc_reply(c, &msg);
}

/* The watcher a request names; answers that there is none itself. */
static struct watcher *watcher_asked(struct rpc_call *c, const struct msg_watcher *req, size_t *at)
{
  struct watcher *w = watcher_find(req->id, at);
  if (!w)
    rpc_fail(c, RPC_NOT_FOUND, "watcher with id " STR_FMT " not found", STR_ARG(req->id));
  return w;
}

static void get_events(struct rpc_call *c, const void *request)
{
  size_t at;
  struct watcher *w = watcher_asked(c, request, &at);
  if (!w)
    return;
  watcher_read(w);
  if (w->overflow) {
    rpc_fail(c, RPC_INTERNAL, "watcher error: event queue overflow");
    return;
  }
  rpc_reply(c, &w->kept);
  w->kept = (struct msg_changes){0};
  arena_free(&w->arena);
}

static void watcher_closed(uv_handle_t *h)
{
  struct watcher *w = h->data;
  watch_close(w->watch);
  arena_free(&w->arena);
  free(w);
}

static void remove_watcher(struct rpc_call *c, const void *request)
{
  size_t at;
  struct watcher *w = watcher_asked(c, request, &at);
  if (!w)
    return;
  vec_remove(&watchers, at);
  uv_poll_stop(&w->poll);
  uv_close((uv_handle_t *)&w->poll, watcher_closed);
  rpc_reply(c, &empty);
}

const struct rpc_method watch_methods[] = {
    {"/filesystem.Filesystem/WatchDir", RPC_SERVER_STREAM, &schema_watch, &schema_watch_event, watch_dir, NULL},
    {"/filesystem.Filesystem/CreateWatcher", RPC_UNARY, &schema_watch, &schema_watcher, create_watcher, NULL},
    {"/filesystem.Filesystem/GetWatcherEvents", RPC_UNARY, &schema_watcher, &schema_changes, get_events, NULL},
    {"/filesystem.Filesystem/RemoveWatcher", RPC_UNARY, &schema_watcher, &schema_empty, remove_watcher, NULL},
    {0},
};
