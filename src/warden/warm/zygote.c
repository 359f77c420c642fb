/* zygote.c - see zygote.h. The process is a jail of the zygote kind: walls without a user namespace, no rights. It runs
 * no user code; the protocol is in docs/kernel-protocol.md. One that dies is started again after a while. */
#include "warden/warm/zygote.h"

#include "warden/warm/nursery_request.h"
#include "warden/warm/zygote_key.h"
#include "warden/build/layer_list.h"
#include "warden/warm/warm_pool.h"
#include "warden/reclaim.h"
#include "warden/id_slots.h"
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#define AGAIN_US   30000000                 /* after a death */
#define IN_HAND_US 10000000                 /* so long after its last use it is not let go: a build may have asked for it */
#define NO_TRACING (1ull << CAP_SYS_PTRACE) /* nobody in a box may look into its agent; its own children lose it too */

enum zygote_state { ZYGOTE_NONE, ZYGOTE_STARTING, ZYGOTE_LOADING, ZYGOTE_READY, ZYGOTE_DEAD };

struct zygote {
  struct warden *warden;
  struct footing footing;
  char of[64]; /* the template that needed it first, for the log */
  int64_t used_us;
  bool spare; /* no template in use has it; see zygotes_rest_spare */
  char name[64], dir[512];
  unsigned slot; /* kept through its deaths, while boxes belong to it: see house */
  enum zygote_state state;
  int64_t again_us;
  struct jail jail;
  int fd;
  pthread_mutex_t lock; /* of sending: births run on several threads */
  uint64_t last_id;
  uv_poll_t *poll;
  char line[4096];
  size_t have;
};

struct launch {
  uv_work_t work;
  struct zygote *z;
  struct arena arena;
  struct jail_spec spec;
  struct jail jail;
  int fd, result;
  struct err err;
};

/* ---- what it needs ---- */

static struct json *kernel_file(struct warden *w, struct arena *a)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  char path[1024];
  snprintf(path, sizeof(path), "%s/runtime/%s/usr/lib/cloche/kernels/python/kernel.json", w->config->data, w->runtime);
  return file_read(path, &b) ? NULL : json_read(a, buf_str(&b), 0, NULL);
}

static bool in_layers(struct str layers, struct str path)
{
  struct str rest = layers, layer;
  while (rest.n) {
    char full[4096];
    str_cut(rest, '\n', &layer, &rest);
    snprintf(full, sizeof(full), STR_FMT STR_FMT, STR_ARG(layer), STR_ARG(path));
    if (access(full, F_OK) == 0)
      return true;
  }
  return false;
}

static bool wanted(struct warden *w, struct str layers)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct json *requires = json_get(kernel_file(w, &a), "requires");
  for (struct json *k = requires ? requires->kids : NULL; k; k = k->next)
    if (!in_layers(layers, json_text(k, STR("/nowhere"))))
      return false;
  return requires != NULL;
}

static const char *const *arguments(struct launch *l)
{
  struct json *argv = json_get(kernel_file(l->z->warden, &l->arena), "argv");
  const char **list = arena_alloc(&l->arena, ((argv ? argv->count : 0) + 2) * sizeof(*list));
  size_t n = 0;
  for (struct json *k = argv ? argv->kids : NULL; k; k = k->next)
    list[n++] = arena_z(&l->arena, json_text(k, STR("")));
  list[n] = "--zygote";
  return list;
}

/* What the agent would start a kernel with, and what libraries read when they are loaded of the template's own variables. */
static const char *const *environment(struct launch *l)
{
  static const char *const fixed[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                      "HOME=/root",
                                      "USER=root",
                                      "LOGNAME=root",
                                      "LANG=C.UTF-8",
                                      "CLOCHE_KERNEL=python"};
  struct str rest = buf_str(&l->z->footing.env), one;
  size_t n = 0, count = 0;
  for (size_t i = 0; i < rest.n; i++)
    count += !rest.p[i];
  const char **list = arena_alloc(&l->arena, (ARRAY_LEN(fixed) + count + 1) * sizeof(*list));
  for (; n < ARRAY_LEN(fixed); n++)
    list[n] = fixed[n];
  while (str_cut(rest, 0, &one, &rest))
    list[n++] = arena_z(&l->arena, one);
  return list;
}

/* ---- its life ---- */

static void poll_closed(uv_handle_t *h)
{
  free(h);
}

static void zygote_bury(struct zygote *z)
{
  if (z->poll) {
    uv_poll_stop(z->poll);
    uv_close((uv_handle_t *)steal(&z->poll), poll_closed);
  }
  pthread_mutex_lock(&z->lock);
  if (z->fd >= 0)
    close(steal_fd(&z->fd));
  pthread_mutex_unlock(&z->lock);
  z->state = ZYGOTE_DEAD;
  z->again_us = clock_mono_us() + AGAIN_US;
  remains_clear(z->warden, z->jail, z->name, z->dir, SLOT_NONE);
  z->jail = JAIL_NONE;
  bells_answer(z->warden);
}

static void zygote_said(struct zygote *z, struct str line)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct json *m = json_read(&a, line, 0, NULL);
  struct str ev = json_text(json_get(m, "ev"), STR(""));
  int64_t status = 0;
  if (str_is(ev, "ready")) {
    z->state = ZYGOTE_READY;
    log_info("zygote of %s is loaded", z->of);
    bells_answer(z->warden);
    shelf_tend(z->warden);
  } else if (str_is(ev, "entered") && !json_int(json_get(m, "status"), &status) && status) {
    log_warn("a fork of the zygote of %s did not enter its box", z->of);
  }
}

static void zygote_heard(uv_poll_t *poll, int status, int events)
{
  struct zygote *z = poll->data;
  ssize_t n = recv(z->fd, z->line + z->have, sizeof(z->line) - z->have, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0 || z->have + (size_t)n == sizeof(z->line)) {
    log_warn("zygote of %s ended; another is started in %d s", z->of, AGAIN_US / 1000000);
    zygote_bury(z);
    return;
  }
  z->have += (size_t)n;
  struct str rest = {z->line, z->have}, line;
  while (str_find(rest, '\n') >= 0) {
    str_cut(rest, '\n', &line, &rest);
    zygote_said(z, line);
  }
  memmove(z->line, rest.p, rest.n);
  z->have = rest.n;
}

static int launch(struct launch *l)
{
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
    return err_errno(&l->err, "socketpair");
  cleanup_fd int ours = pair[0], theirs = pair[1];
  l->spec.boot_fd = theirs;
  int r = jail_spawn(&l->spec, &l->jail, &l->err);
  if (!r)
    l->fd = steal_fd(&ours);
  return r;
}

static void launch_work(uv_work_t *work)
{
  struct launch *l = work->data;
  l->result = launch(l);
}

static void launch_done(uv_work_t *work, int status)
{
  struct launch *l = work->data;
  struct zygote *z = l->z;
  z->warden->births--;
  z->jail = l->jail;
  z->fd = l->fd;
  if (l->result || z->warden->stopping) {
    if (l->result)
      log_warn("no zygote for %s: %s", z->of, l->err.msg);
    zygote_bury(z);
  } else {
    z->state = ZYGOTE_LOADING;
    z->poll = xcalloc(1, sizeof(*z->poll));
    uv_poll_init(z->warden->loop, z->poll, z->fd);
    z->poll->data = z;
    uv_poll_start(z->poll, UV_READABLE | UV_DISCONNECT, zygote_heard);
  }
  arena_free(&l->arena);
  free(l);
}

/* Its user is the owner of the boxes that its forks may enter. So it is the same one as long as there are such boxes: when it is
 * started again, and where another warden had it. */
static int house(struct zygote *z)
{
  return z->slot != SLOT_NONE ? 0 : slot_take(z->warden, &z->slot);
}

static bool owns_boxes(const struct zygote *z)
{
  void *value;
  for (size_t i = 0; map_next(&z->warden->boxes, &i, NULL, &value);) {
    const struct box *b = value;
    if (b->build->zygote == z && !b->away && jail_owner(&b->jail) == zygote_user(z))
      return true;
  }
  return false;
}

static void zygote_start(struct zygote *z)
{
  char tail[9];
  if (house(z))
    return;
  random_id(tail, 8);
  snprintf(z->name, sizeof(z->name), "zygote-%s", tail);
  snprintf(z->dir, sizeof(z->dir), "%s/boxes/%s", z->warden->config->data, z->name);
  z->state = ZYGOTE_STARTING;
  z->have = 0;
  struct launch *l = xcalloc(1, sizeof(*l));
  l->z = z;
  l->fd = -1;
  l->jail = JAIL_NONE;
  l->spec = (struct jail_spec){
      .instance = z->warden->instance,
      .id = z->name,
      .dir = z->dir,
      .lowers = layer_stack(&l->arena, buf_str(&z->footing.layers), z->warden->config->data, z->warden->runtime),
      .id_base = zygote_user(z),
      .shifted = arena_fmt(&l->arena, "%s/shifted", z->warden->config->data),
      .hostname = "e2b.local",
      .argv = arguments(l),
      .env = environment(l),
      .zygote = true,
      .console = "/var/log/zygote.log", /* in its own writable layer: <dir>/upper/var/log */
      .limits = {.pids = 64},
  };
  l->work.data = l;
  z->warden->births++;
  uv_queue_work(z->warden->loop, &l->work, launch_work, launch_done);
}

/* ---- asking ---- */

uint32_t zygote_user(const struct zygote *z)
{
  return z->warden->config->id_base + z->slot * JAIL_IDS;
}

static struct zygote *zygote_new(struct warden *w, struct footing *f, const char *name)
{
  struct zygote *z = xcalloc(1, sizeof(*z));
  z->warden = w;
  z->footing = *f;
  z->fd = -1;
  z->jail = JAIL_NONE;
  z->slot = SLOT_NONE;
  z->state = wanted(w, buf_str(&f->layers)) ? ZYGOTE_DEAD : ZYGOTE_NONE;
  snprintf(z->of, sizeof(z->of), "%s", name);
  pthread_mutex_init(&z->lock, NULL);
  return z;
}

static struct zygote *find(struct warden *w, struct str layers, struct str config, const char *name)
{
  char key[2 * SHA256_LEN + 1];
  struct footing f;
  footing_find(&f, layers, config);
  footing_key(&f, key);
  struct zygote *z = map_get(&w->zygotes, str_of(key));
  if (z) {
    footing_free(&f);
    return z;
  }
  z = zygote_new(w, &f, name);
  map_put(&w->zygotes, str_of(key), z);
  return z;
}

static struct zygote *awake(struct zygote *z)
{
  if (z->state == ZYGOTE_DEAD && clock_mono_us() >= z->again_us && !z->warden->stopping)
    zygote_start(z);
  return z->state == ZYGOTE_NONE ? NULL : z;
}

struct zygote *zygote_for(struct warden *w, struct str layers, struct str config, const char *name)
{
  struct zygote *z = find(w, layers, config, name);
  z->used_us = clock_mono_us();
  return awake(z);
}

struct zygote *zygote_of(struct warden *w, struct build *b)
{
  if (!b->zygote)
    b->zygote = find(w, str_of(b->row.layers), str_of(b->row.config), b->of->row.name);
  return awake(b->zygote);
}

/* Copies of boxes have none of their own, but where their Python would load the same they share one that is there. */
static struct zygote *lookup(struct warden *w, struct build *b)
{
  char key[2 * SHA256_LEN + 1];
  struct footing f;
  if (b->row.kind == BUILD_PLAIN)
    return find(w, str_of(b->row.layers), str_of(b->row.config), b->of->row.name);
  footing_find(&f, str_of(b->row.layers), str_of(b->row.config));
  footing_key(&f, key);
  footing_free(&f);
  return map_get(&w->zygotes, str_of(key));
}

uint32_t zygote_owner(struct warden *w, struct build *b)
{
  if (!b->zygote && w->config->zygotes)
    b->zygote = lookup(w, b);
  struct zygote *z = b->zygote;
  return !z || z->state == ZYGOTE_NONE || house(z) ? 0 : zygote_user(z);
}

void zygote_reclaim(struct warden *w, struct build *b, uint32_t owner)
{
  if (owner < w->config->id_base)
    return;
  unsigned slot = (owner - w->config->id_base) / JAIL_IDS;
  if (w->config->zygotes && !b->zygote)
    b->zygote = lookup(w, b);
  if (b->zygote && b->zygote->slot == SLOT_NONE)
    b->zygote->slot = slot;
  slot_mark(w, slot, true); /* nobody else may be the owner of that box */
}

/* ---- rest ---- */

void zygote_used(struct build *b, int64_t when_us)
{
  if (b->zygote)
    b->zygote->used_us = MAX(b->zygote->used_us, when_us);
}

static bool lives(const struct zygote *z)
{
  return z->state == ZYGOTE_READY || z->state == ZYGOTE_LOADING;
}

size_t zygotes_newer(struct warden *w, const struct build *b)
{
  size_t n = 0;
  void *value;
  for (size_t i = 0; b->zygote && map_next(&w->zygotes, &i, NULL, &value);) {
    struct zygote *z = value;
    n += z != b->zygote && zygote_hopeful(z) && z->used_us > b->zygote->used_us;
  }
  return n;
}

void zygote_spare(struct build *b, bool spare)
{
  if (b->zygote)
    b->zygote->spare = spare;
}

void zygotes_rest_spare(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&w->zygotes, &i, NULL, &value);) {
    struct zygote *z = value;
    if (!z->spare || z->state == ZYGOTE_STARTING || clock_mono_us() - z->used_us < IN_HAND_US)
      continue;
    if (lives(z)) {
      zygote_bury(z);
      z->again_us = 0;
    } else if (z->slot != SLOT_NONE && !owns_boxes(z)) {
      slot_mark(w, z->slot, false);
      z->slot = SLOT_NONE;
    }
  }
}

bool zygote_ready(const struct zygote *z)
{
  return z && z->state == ZYGOTE_READY;
}

bool zygote_hopeful(const struct zygote *z)
{
  return z && (z->state == ZYGOTE_READY || z->state == ZYGOTE_LOADING || z->state == ZYGOTE_STARTING);
}

int zygote_enter(struct zygote *z, const struct jail_spec *spec, const struct jail *j, bool nursery, int sock, struct err *err)
{
  struct jail_kit kit;
  int fds[JAIL_KIT_MAX + 1] = {sock}, r = jail_kit(spec, j, &kit, err);
  if (r)
    return r;
  memcpy(fds + 1, kit.fds, kit.n * sizeof(*fds));
  char line[200];
  pthread_mutex_lock(&z->lock);
  int n = snprintf(line, sizeof(line), "{\"op\":\"enter\",\"id\":%llu,\"as\":\"%s\",\"fds\":%zu,\"caps\":%llu,\"files\":%u%s}\n",
                   (unsigned long long)++z->last_id, nursery ? "nursery" : "kernel", kit.n + 1,
                   (unsigned long long)(jail_capabilities() & ~NO_TRACING), spec->limits.open_files ? spec->limits.open_files : 65536,
                   spec->keep_dir ? ",\"look\":true" : ""); /* files that were there before it may be other libraries */
  ssize_t sent = z->fd < 0 ? -EPIPE : fd_send(z->fd, line, (size_t)n, fds, kit.n + 1, 0);
  pthread_mutex_unlock(&z->lock);
  jail_kit_close(&kit);
  return sent < 0 ? err_set(err, (int)sent, "the zygote does not listen: %s", strerrordesc_np((int)-sent)) : 0;
}

void zygote_stop_all(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&w->zygotes, &i, NULL, &value);) {
    struct zygote *z = value;
    if (lives(z))
      zygote_bury(z);
  }
}
