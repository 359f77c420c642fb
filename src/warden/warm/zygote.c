/* SPDX-License-Identifier: Apache-2.0 */
/* zygote.c - see zygote.h. The process is a jail of the zygote kind: namespaces without a user namespace, no rights. It
 * runs no user code; the protocol is in docs/kernel-protocol.md. One that dies is started again after a while. One that
 * answers nothing for SILENCE_US while it was asked is killed and started again at once: boxes meanwhile start Python
 * by themselves.
 *
 * Who enters a user namespace that belongs to it has every capability in there until it gives them away, and only the
 * program itself can do that. So the program must be the operator's: files and variables both (`operators`). A team's
 * template has a part in it only by having nothing of its own that such a Python would load. */
#include "warden/warm/zygote.h"

#include "jail/checkpoint/zygote_heap.h"
#include "wire/box_socket.h"
#include "warden/warm/zygote_key.h"
#include "warden/warm/zygote_reply.h"
#include "warden/warm/zygote_retry.h"
#include "warden/db/layer_list.h"
#include "warden/core/box_state.h"
#include "warden/core/checkpoint_store.h"
#include "warden/core/warden_state.h"
#include "warden/core/reclaim.h"
#include "warden/core/id_slots.h"
#include "warden/core/worker_pool.h"
#include "wire/sizes.h"
#include <limits.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#define SILENCE_US 15000000 /* it answers within 5 s whatever becomes of the box */
#define WATCH_MS   5000
#define IN_HAND_US 10000000            /* so long after its last use it is not let go: a build may have asked for it */
#define MEMORY     ((uint64_t)2 << 30) /* of one, with the file its memory is laid into */
#define DISK       ((uint64_t)256 << 20)
#define CPUS       2
/* Nobody in a box may look into its agent; its own children lose it too */
#define NO_TRACING (1ull << CAP_SYS_PTRACE)

enum zygote_state { ZYGOTE_NONE, ZYGOTE_STARTING, ZYGOTE_LOADING, ZYGOTE_READY, ZYGOTE_DEAD };

struct zygote {
  struct warden *warden;
  struct zygote_key zygote_key;
  char of[TEMPLATE_REF_SIZE]; /* the template that needed it first, for the log */
  char team[UUID_SIZE];       /* whose that is */
  int64_t used_us;
  int64_t looked_us; /* when it was last looked up */
  bool spare;        /* no template in use has it; see zygotes_rest_spare */
  bool python;       /* there is one in its layers */
  bool operators;    /* a ready-made template has this very key: layers and variables are the operator's */
  char name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE];
  unsigned slot;      /* kept through its deaths, while boxes belong to it: see zygote_slot_ensure */
  VEC(unsigned) seen; /* of owners of its boxes that were found again */
  enum zygote_state state;
  int64_t again_us, started_us;
  unsigned deaths; /* one after the other; see zygote_retry.h */
  struct jail jail;
  struct zygote_heap_file heap; /* open while it loads */
  int fd;
  pthread_mutex_t lock; /* of sending: launches run on several threads */
  uint64_t last_id;     /* these three under the lock, too */
  unsigned unanswered;
  int64_t heard_us; /* its last answer, or the first request after it */
  uv_poll_t *poll;
  uv_timer_t *watch;
};

struct zygotes {
  struct map by_key; /* zygote_key_hash -> struct zygote */
};

struct zygote_exec {
  uv_work_t work;
  struct zygote *z;
  struct arena arena;
  struct jail_spec spec;
  struct jail jail;
  struct zygote_heap_file heap;
  char owner[UUID_SIZE]; /* of what it loads; "" = the operator */
  int fd, result;
  struct err err;
};

static struct map *zygotes_of(struct warden *w)
{
  w->zygotes = w->zygotes ? w->zygotes : xcalloc(1, sizeof(*w->zygotes));
  return &w->zygotes->by_key;
}

/* ---- what it needs ---- */

static struct json *kernel_file(struct warden *w, struct arena *a)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/runtime/%s/usr/lib/cloche/kernels/python/kernel.json", w->config->data, w->runtime);
  return file_read(path, &b) ? NULL : json_read(a, buf_str(&b), 0, NULL);
}

static bool in_layers(struct str layers, struct str path)
{
  struct str rest = layers, layer;
  while (rest.n) {
    char full[PATH_MAX];
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

static const char *const *arguments(struct zygote_exec *l)
{
  struct json *argv = json_get(kernel_file(l->z->warden, &l->arena), "argv");
  const char **list = arena_alloc(&l->arena, ((argv ? argv->count : 0) + 2) * sizeof(*list));
  size_t n = 0;
  for (struct json *k = argv ? argv->kids : NULL; k; k = k->next)
    list[n++] = arena_z(&l->arena, json_text(k, STR("")));
  list[n] = "--zygote";
  return list;
}

/* What the agent would start a kernel with, and what libraries read when they are loaded of the template's own
 * variables. */
static const char *const *environment(struct zygote_exec *l)
{
  static const char *const fixed[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                      "HOME=/root",
                                      "USER=root",
                                      "LOGNAME=root",
                                      "LANG=C.UTF-8",
                                      "CLOCHE_KERNEL=python"};
  struct str rest = buf_str(&l->z->zygote_key.env), one;
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

static void handle_closed(uv_handle_t *h)
{
  free(h);
}

/* `again_us`: the moment from which another may be started. */
static void zygote_destroy(struct zygote *z, int64_t again_us)
{
  if (z->poll) {
    uv_poll_stop(z->poll);
    uv_close((uv_handle_t *)steal(&z->poll), handle_closed);
    uv_close((uv_handle_t *)steal(&z->watch), handle_closed);
  }
  pthread_mutex_lock(&z->lock);
  z->unanswered = 0;
  if (z->fd >= 0)
    box_socket_close(steal_fd(&z->fd));
  pthread_mutex_unlock(&z->lock);
  zygote_heap_close(&z->heap);
  z->state = ZYGOTE_DEAD;
  z->again_us = again_us;
  reclaim_jail(z->warden, "", z->jail, z->name, z->dir, SLOT_NONE);
  z->jail = JAIL_NONE;
  z->warden->hooks->zygote_changed(z->warden, false);
}

/* It ended by itself, or had to be. A first silence may be a box's doing: nobody waits for the next one then. */
static void zygote_failed(struct zygote *z, bool silent)
{
  int64_t now = clock_mono_us();
  if (z->started_us && now - z->started_us > ZYGOTE_RETRY_MAX_US)
    z->deaths = 0;
  int64_t wait_us = silent && !z->deaths ? 0 : zygote_retry_us(z->deaths);
  z->deaths++;
  log_warn("zygote of %s ended; another is started in %lld s", z->of, (long long)wait_us / 1000000);
  zygote_destroy(z, now + wait_us);
}

/* False: no request was open. */
static bool zygote_answered(struct zygote *z)
{
  pthread_mutex_lock(&z->lock);
  bool asked = z->unanswered > 0;
  z->heard_us = clock_mono_us();
  if (asked)
    z->unanswered--;
  pthread_mutex_unlock(&z->lock);
  return asked;
}

static void zygote_watch(uv_timer_t *timer)
{
  struct zygote *z = timer->data;
  pthread_mutex_lock(&z->lock);
  bool silent = z->unanswered > 0 && clock_mono_us() - z->heard_us > SILENCE_US;
  pthread_mutex_unlock(&z->lock);
  if (!silent)
    return;
  log_error("zygote of %s has not answered for %d s and is replaced", z->of, SILENCE_US / 1000000);
  zygote_failed(z, true);
}

/* Forks enter boxes only after the memory that boxes share is read-only for everybody. */
static void zygote_loaded(struct zygote *z)
{
  struct err err = ERR_NONE;
  if (zygote_heap_seal(checkpoint_heaps(z->warden), &z->heap, &err)) {
    log_error("zygote of %s is not used: %s", z->of, err.msg);
    zygote_failed(z, false);
    return;
  }
  zygote_heap_close(&z->heap);
  z->state = ZYGOTE_READY;
  log_info("zygote of %s is loaded", z->of);
  z->warden->hooks->zygote_changed(z->warden, true);
}

/* The program is the template's: one that says what it was not asked would keep the loop and the log busy as long as it
 * likes. */
static void on_zygote_message(struct zygote *z, struct str packet)
{
  enum zygote_reply said = zygote_reply_read(packet);
  if (said == ZYGOTE_SAYS_READY && z->state == ZYGOTE_LOADING) {
    zygote_loaded(z);
  } else if ((said == ZYGOTE_SAYS_ENTERED || said == ZYGOTE_SAYS_FAILED) && zygote_answered(z)) {
    if (said == ZYGOTE_SAYS_FAILED)
      log_warn("a fork of the zygote of %s did not enter its box", z->of);
  } else {
    log_warn("zygote of %s sent an unexpected message and is stopped", z->of);
    zygote_failed(z, false);
  }
}

static void on_zygote_readable(uv_poll_t *poll, int status, int events)
{
  struct zygote *z = poll->data;
  char packet[ZYGOTE_PACKET];
  ssize_t n = box_socket_recv(z->fd, packet, sizeof(packet));
  if (n == -EAGAIN)
    return;
  if (n <= 0) {
    zygote_failed(z, false);
    return;
  }
  on_zygote_message(z, str_make(packet, (size_t)n));
}

/* Its first message: the file it lays its memory into. */
static int send_heap(int sock, struct zygote_heap_file *h, struct err *err)
{
  static const char line[] = "{\"op\":\"heap\",\"fds\":2}\n";
  ssize_t sent = fd_send(sock, line, sizeof(line) - 1, (int[]){h->to, h->from}, 2, 0);
  close(steal_fd(&h->to)); /* now: children between fork and exec hold copies for a moment */
  return sent < 0 ? err_set(err, (int)sent, "the zygote can't be given a file: %s", strerrordesc_np((int)-sent)) : 0;
}

static int zygote_exec(struct zygote_exec *l)
{
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
                 pair)) /* a message is read with its own descriptors, and no other */
    return err_errno(&l->err, "socketpair");
  cleanup_boxsock int ours = pair[0];
  cleanup_fd int theirs = pair[1];
  box_socket_guard(ours);
  l->spec.boot_fd = theirs;
  int r = zygote_heap_make(&l->heap, l->owner, &l->err);
  r = r ? r : send_heap(ours, &l->heap, &l->err);
  r = r ? r : jail_spawn(&l->spec, &l->jail, &l->err);
  if (!r)
    l->fd = steal_fd(&ours);
  return r;
}

static void zygote_exec_work(uv_work_t *work)
{
  struct zygote_exec *l = work->data;
  l->result = zygote_exec(l);
}

static void zygote_exec_done(uv_work_t *work, int status)
{
  struct zygote_exec *l = work->data;
  struct zygote *z = l->z;
  z->warden->launches--;
  z->jail = l->jail;
  z->heap = l->heap;
  z->fd = l->fd;
  if (l->result || z->warden->stopping) {
    if (l->result)
      log_warn("no zygote for %s: %s", z->of, l->err.msg);
    zygote_destroy(z, clock_mono_us() + ZYGOTE_RETRY_US);
  } else {
    z->state = ZYGOTE_LOADING;
    z->poll = xcalloc(1, sizeof(*z->poll));
    uv_poll_init(z->warden->loop, z->poll, z->fd);
    z->poll->data = z;
    uv_poll_start(z->poll, UV_READABLE | UV_DISCONNECT, on_zygote_readable);
    z->watch = xcalloc(1, sizeof(*z->watch));
    uv_timer_init(z->warden->loop, z->watch);
    z->watch->data = z;
    uv_timer_start(z->watch, zygote_watch, WATCH_MS, WATCH_MS);
    uv_unref((uv_handle_t *)z->watch);
  }
  arena_free(&l->arena);
  free(l);
}

/* Its user is the owner of the boxes that its forks may enter. So it is the same one as long as there are such boxes:
 * when it is started again, and where another warden had it. */
static int zygote_slot_ensure(struct zygote *z)
{
  return z->slot != SLOT_NONE ? 0 : slot_take(z->warden, &z->slot);
}

/* One on its way, new or restored, was promised an owner and has no user namespace yet that could be looked at. */
static bool owns(const struct zygote *z, struct box *b)
{
  bool coming = b->row.state == BOX_STARTING || b->row.state == BOX_RESUMING;
  if (coming && b->build->zygote == z)
    return true;
  if (!b->owner && !b->on_disk && b->jail.pidfd >= 0)
    b->owner = jail_owner(&b->jail);
  return b->owner == zygote_user(z);
}

/* A user that is another zygote's while boxes belong to it would open those boxes to that one, which may be another
 * team's. */
static bool owns_boxes(const struct zygote *z)
{
  void *value;
  for (size_t i = 0; map_next(&z->warden->boxes, &i, NULL, &value);)
    if (owns(z, value))
      return true;
  return z->warden->hooks->zygote_in_use(z->warden, z);
}

static void zygote_start(struct zygote *z)
{
  char tail[9];
  if (zygote_slot_ensure(z))
    return;
  random_id(tail, 8);
  snprintf(z->name, sizeof(z->name), "zygote-%s", tail);
  snprintf(z->dir, sizeof(z->dir), "%s/boxes/%s", z->warden->config->data, z->name);
  z->started_us = clock_mono_us();
  z->state = ZYGOTE_STARTING;
  struct zygote_exec *l = xcalloc(1, sizeof(*l));
  l->z = z;
  l->fd = -1;
  l->jail = JAIL_NONE;
  l->heap = HEAP_FILE_NONE;
  snprintf(l->owner, sizeof(l->owner), "%s", z->operators ? "" : z->team);
  l->spec = (struct jail_spec){
      .instance = z->warden->instance,
      .id = z->name,
      .dir = z->dir,
      .lowers = layer_stack(&l->arena, buf_str(&z->zygote_key.layers), z->warden->config->data, z->warden->runtime),
      .id_base = zygote_user(z),
      .runtime = arena_fmt(&l->arena, "%s/runtime/%s" JAIL_RUNTIME, z->warden->config->data, z->warden->runtime),
      .shifted = arena_fmt(&l->arena, "%s/shifted", z->warden->config->data),
      .hostname = "e2b.local",
      .argv = arguments(l),
      .env = environment(l),
      .zygote = true,
      .console = "/var/log/zygote.log", /* in its own writable layer: <dir>/upper/var/log */
      .limits = {.cpus = CPUS, .memory = MEMORY, .disk = DISK, .pids = 64}, /* what it loads is the template's */
  };
  l->work.data = l;
  z->warden->launches++;
  worker_pool_queue(z->warden, "", &l->work, zygote_exec_work, zygote_exec_done);
}

/* ---- asking ---- */

uint32_t zygote_user(const struct zygote *z)
{
  return z->warden->config->id_base + z->slot * JAIL_IDS;
}

static struct zygote *zygote_new(struct warden *w, struct zygote_key *f, const char *name, const char *team)
{
  struct zygote *z = xcalloc(1, sizeof(*z));
  z->warden = w;
  z->zygote_key = *f;
  z->fd = -1;
  z->jail = JAIL_NONE;
  z->heap = HEAP_FILE_NONE;
  z->slot = SLOT_NONE;
  z->python = wanted(w, buf_str(&f->layers));
  z->state = z->python && w->config->private_zygotes ? ZYGOTE_DEAD : ZYGOTE_NONE;
  snprintf(z->of, sizeof(z->of), "%s", name);
  snprintf(z->team, sizeof(z->team), "%s", team);
  pthread_mutex_init(&z->lock, NULL);
  return z;
}

/* ---- forgetting ---- */

static void forget_in(struct build *const *list, size_t n, const struct zygote *z)
{
  for (size_t i = 0; i < n; i++)
    if (list[i]->zygote == z)
      list[i]->zygote = NULL; /* found again when it is needed */
}

static void forget(struct warden *w, struct zygote *z)
{
  char key[2 * SHA256_LEN + 1];
  struct build *const *list;
  size_t n = catalog_builds(w->catalog, &list);
  forget_in(list, n, z);
  n = catalog_retired(w->catalog, &list);
  forget_in(list, n, z);
  zygote_key_hash(&z->zygote_key, key);
  map_del(zygotes_of(w), str_of(key));
  pthread_mutex_destroy(&z->lock);
  vec_free(&z->seen);
  zygote_key_free(&z->zygote_key);
  free(z);
}

/* No process, no user that boxes belong to, and no thread that may hold it. */
static bool is_idle(struct warden *w, const struct zygote *z)
{
  if (z->operators || z->slot != SLOT_NONE || z->seen.n || z->poll)
    return false;
  return z->state == ZYGOTE_NONE || (z->state == ZYGOTE_DEAD && !w->launches && !w->hooks->zygote_in_use(w, z));
}

static int longest_unused_first(const void *a, const void *b)
{
  const struct zygote *x = *(struct zygote *const *)a, *y = *(struct zygote *const *)b;
  return (x->looked_us > y->looked_us) - (x->looked_us < y->looked_us);
}

/* Teams make as many keys as they like; of those that nothing stands on the latest used stay. A quarter goes at once,
 * so that this is rarely done. */
static void forget_some(struct warden *w, const struct zygote *newest)
{
  size_t most = w->config->zygote_keys_max, keep = most - most / 4;
  VEC(struct zygote *) idle = {0};
  void *value;
  if (!most || zygotes_of(w)->n <= most)
    return;
  for (size_t i = 0; map_next(zygotes_of(w), &i, NULL, &value);)
    if (value != newest && is_idle(w, value))
      vec_push(&idle, value);
  if (idle.n)
    qsort(idle.p, idle.n, sizeof(*idle.p), longest_unused_first);
  for (size_t i = 0; i < idle.n && zygotes_of(w)->n > keep; i++)
    forget(w, idle.p[i]);
  vec_free(&idle);
}

size_t zygotes_known(struct warden *w)
{
  return zygotes_of(w)->n;
}

static struct zygote *find_key(struct warden *w, struct str layers, struct str config, const char *name,
                               const char *team)
{
  char key[2 * SHA256_LEN + 1];
  struct zygote_key f;
  zygote_key_find(&f, layers, config);
  zygote_key_hash(&f, key);
  struct zygote *z = map_get(zygotes_of(w), str_of(key));
  if (z) {
    z->looked_us = clock_mono_us();
    zygote_key_free(&f);
    return z;
  }
  z = zygote_new(w, &f, name, team);
  z->looked_us = clock_mono_us();
  map_put(zygotes_of(w), str_of(key), z);
  forget_some(w, z);
  return z;
}

static void trust(struct zygote *z)
{
  z->operators = true;
  if (z->state == ZYGOTE_NONE && z->python)
    z->state = ZYGOTE_DEAD;
}

/* Keys of the ready-made templates; each is looked at once. */
static void find_operators(struct warden *w)
{
  struct build *const *list;
  size_t n = catalog_builds(w->catalog, &list);
  for (size_t i = 0; i < n; i++) {
    struct build *b = list[i];
    if (b->zygote || b->row.kind != BUILD_PLAIN || !catalog_ready_made(b->of))
      continue;
    b->zygote = find_key(w, str_of(b->row.layers), str_of(b->row.config), b->of->row.name, b->of->row.team);
    trust(b->zygote);
  }
}

static struct zygote *find(struct warden *w, struct str layers, struct str config, const char *name, const char *team)
{
  find_operators(w);
  return find_key(w, layers, config, name, team);
}

static struct zygote *start_if_needed(struct zygote *z)
{
  if (!zygote_useful(z))
    return NULL;
  if (z->state == ZYGOTE_DEAD && clock_mono_us() >= z->again_us && !z->warden->stopping)
    zygote_start(z);
  return z;
}

struct zygote *zygote_for(struct warden *w, struct str layers, struct str config, const char *name, const char *team)
{
  struct zygote *z = find(w, layers, config, name, team);
  z->used_us = clock_mono_us();
  return start_if_needed(z);
}

struct zygote *zygote_of(struct warden *w, struct build *b)
{
  if (!b->zygote)
    b->zygote = find(w, str_of(b->row.layers), str_of(b->row.config), b->of->row.name, b->of->row.team);
  return start_if_needed(b->zygote);
}

/* Copies of boxes have none of their own, but where their Python would load the same they share one that is there. */
static struct zygote *lookup(struct warden *w, struct build *b)
{
  char key[2 * SHA256_LEN + 1];
  struct zygote_key f;
  if (b->row.kind == BUILD_PLAIN)
    return find(w, str_of(b->row.layers), str_of(b->row.config), b->of->row.name, b->of->row.team);
  find_operators(w);
  zygote_key_find(&f, str_of(b->row.layers), str_of(b->row.config));
  zygote_key_hash(&f, key);
  zygote_key_free(&f);
  return map_get(zygotes_of(w), str_of(key));
}

uint32_t zygote_owner(struct warden *w, struct build *b)
{
  if (!b->zygote && w->config->zygotes)
    b->zygote = lookup(w, b);
  struct zygote *z = b->zygote;
  return !zygote_useful(z) || zygote_slot_ensure(z) ? 0 : zygote_user(z);
}

static bool has_seen(const struct zygote *z, unsigned slot)
{
  for (size_t i = 0; i < z->seen.n; i++)
    if (z->seen.p[i] == slot)
      return true;
  return false;
}

/* Boxes that one zygote entered may be two zygotes' for another version of this program (zygote_key.h): then the user
 * is neither's. */
static bool seen_by_others(struct warden *w, const struct zygote *z, unsigned slot)
{
  void *value;
  bool found = false;
  for (size_t i = 0; map_next(zygotes_of(w), &i, NULL, &value);) {
    struct zygote *other = value;
    if (other == z || !has_seen(other, slot))
      continue;
    found = true;
    other->slot = other->slot == slot ? SLOT_NONE : other->slot;
  }
  return found;
}

void zygote_reclaim(struct warden *w, struct build *b, uint32_t owner)
{
  if (owner < w->config->id_base)
    return;
  unsigned slot = (owner - w->config->id_base) / JAIL_IDS;
  if (w->config->zygotes && !b->zygote)
    b->zygote = lookup(w, b);
  if (b->zygote && !has_seen(b->zygote, slot))
    vec_push(&b->zygote->seen, slot);
  if (b->zygote && !seen_by_others(w, b->zygote, slot) && b->zygote->slot == SLOT_NONE)
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
  for (size_t i = 0; b->zygote && map_next(zygotes_of(w), &i, NULL, &value);) {
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
  for (size_t i = 0; map_next(zygotes_of(w), &i, NULL, &value);) {
    struct zygote *z = value;
    if (!z->spare || z->state == ZYGOTE_STARTING || clock_mono_us() - z->used_us < IN_HAND_US)
      continue;
    if (lives(z)) {
      zygote_destroy(z, 0);
    } else if (z->slot != SLOT_NONE && !owns_boxes(z)) {
      slot_mark(w, z->slot, false);
      z->slot = SLOT_NONE;
    }
  }
}

bool zygote_useful(const struct zygote *z)
{
  return z && z->warden->config->zygotes && z->state != ZYGOTE_NONE;
}

bool zygote_missing(struct warden *w, struct build *b)
{
  if (b->row.kind != BUILD_PLAIN) /* launched without one: see launch_begin */
    return true;
  if (!b->zygote)
    b->zygote = lookup(w, b);
  return b->zygote->python && !zygote_useful(b->zygote);
}

bool zygote_ready(const struct zygote *z)
{
  return z && z->state == ZYGOTE_READY;
}

bool zygote_hopeful(const struct zygote *z)
{
  return z && (z->state == ZYGOTE_READY || z->state == ZYGOTE_LOADING || z->state == ZYGOTE_STARTING);
}

int zygote_enter(struct zygote *z, const struct jail_spec *spec, const struct jail *j, bool nursery, int sock,
                 struct err *err)
{
  struct jail_enter_fds enter_fds;
  int fds[JAIL_ENTER_FDS_MAX + 1] = {sock}, r = jail_enter_fds(spec, j, &enter_fds, err);
  if (r)
    return r;
  memcpy(fds + 1, enter_fds.fds, enter_fds.n * sizeof(*fds));
  char line[200];
  pthread_mutex_lock(&z->lock);
  int n = snprintf(line, sizeof(line),
                   "{\"op\":\"enter\",\"id\":%llu,\"as\":\"%s\",\"fds\":%zu,\"caps\":%llu,\"files\":%u%s}\n",
                   (unsigned long long)++z->last_id, nursery ? "nursery" : "kernel", enter_fds.n + 1,
                   (unsigned long long)(jail_capabilities() & ~NO_TRACING),
                   spec->limits.open_files ? spec->limits.open_files : 65536,
                   spec->keep_dir ? ",\"look\":true" : ""); /* files that were there before it may be other libraries */
  ssize_t sent = z->fd < 0 ? -EPIPE
                           : fd_send(z->fd, line, (size_t)n, fds, enter_fds.n + 1,
                                     MSG_DONTWAIT); /* a full queue holds up nobody */
  if (sent >= 0 && z->unanswered++ == 0)
    z->heard_us = clock_mono_us();
  pthread_mutex_unlock(&z->lock);
  jail_enter_fds_close(&enter_fds);
  return sent < 0 ? err_set(err, (int)sent, "the zygote does not listen: %s", strerrordesc_np((int)-sent)) : 0;
}

void zygote_stop_all(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(zygotes_of(w), &i, NULL, &value);) {
    struct zygote *z = value;
    if (lives(z))
      zygote_destroy(z, INT64_MAX);
  }
}
