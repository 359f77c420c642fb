/* SPDX-License-Identifier: Apache-2.0 */
/* disk_pool.c - the thread that makes disks ahead and wipes those that come back, the warm pool it puts them on, and
 * the list of those that are lent to boxes. One lock for the lists; nothing that can wait is done under it. */
#include "jail/fs/disk_pool.h"
#include "jail/fs/disk_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define HOLD_US     6000u    /* the kernel lets go of a dead box's mounts a tick after its last process */
#define HOLD_MAX_US 200000u  /* between later looks */
#define HOLD_TRIES  50       /* then it is held for another reason */
#define SURPLUS_US  60000000 /* disks beyond those made ahead stay so long after the last question for one */
/* An image may have so many times the bytes of a wipe on the host's disk: freed blocks stay in it */
#define IMAGE_TIMES 2

struct ready {
  int tree;
  uint64_t serial; /* names its image */
  struct disk_usage fresh;
};

/* What a kind is known by. */
struct want {
  char boxes[PATH_MAX - 64];
  struct jail_limits limits;
};

struct kind {
  struct want want;
  struct ready disks[DISK_POOL_READY_MAX];
  size_t n;
  uint64_t used; /* when it was last asked for, in asks */
  int64_t used_us;
  bool broken; /* making one failed: not tried again until asked */
};

struct lent {
  struct ready disk;
  uint64_t bytes, inodes; /* its limits */
};

struct returned { /* waits to be wiped */
  struct returned *next;
  struct ready disk;
  struct want want;
  int64_t due_us;
  unsigned tries;
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wanted;
  pthread_t thread;
  bool running, stopping;
  struct disk_pool_rules rules;
  struct kind *kinds[DISK_POOL_KINDS];
  size_t n;
  uint64_t asks, serial, reused;
  struct map lent; /* a box's directory -> struct lent */
  struct returned *returned;
  size_t nreturned;
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .wanted = PTHREAD_COND_INITIALIZER,
    .rules = {.ready = 8, .kept = 32, .wipe = {.files = 2000, .bytes = (uint64_t)64 << 20}},
};

void disk_pool_set(const struct disk_pool_rules *rules)
{
  pthread_mutex_lock(&pool.lock);
  pool.rules = *rules;
  pool.rules.ready = MIN(rules->ready, (unsigned)DISK_POOL_READY_MAX);
  pool.rules.kept = MIN(rules->kept, (unsigned)DISK_POOL_READY_MAX);
  pthread_mutex_unlock(&pool.lock);
}

static void image_name(const char *boxes, uint64_t serial, char image[PATH_MAX])
{
  snprintf(image, PATH_MAX, "%s/.ready/%d-%" PRIu64 ".img", boxes, getpid(), serial);
}

static int make_place(const char *boxes)
{
  char dir[PATH_MAX];
  snprintf(dir, sizeof(dir), "%s/.ready", boxes);
  return mkdir(dir, 0700) && errno != EEXIST ? -errno : 0;
}

static void give_back(const struct want *want, const struct ready *r)
{
  char image[PATH_MAX];
  image_name(want->boxes, r->serial, image);
  close(r->tree);
  unlink(image);
}

static void kind_free(struct kind *k)
{
  for (size_t i = 0; i < k->n; i++)
    give_back(&k->want, &k->disks[i]);
  free(k);
}

static bool is_kind(const struct kind *k, const char *boxes, const struct jail_limits *l)
{
  return strcmp(k->want.boxes, boxes) == 0 && k->want.limits.disk == l->disk && k->want.limits.inodes == l->inodes;
}

static struct kind *kind_of(const struct want *want)
{
  for (size_t i = 0; i < pool.n; i++)
    if (is_kind(pool.kinds[i], want->boxes, &want->limits))
      return pool.kinds[i];
  return NULL;
}

static int want_make(struct want *w, const char *boxes, const struct jail_limits *l)
{
  w->limits = (struct jail_limits){.disk = l->disk, .inodes = l->inodes};
  return str_copyz(str_of(boxes), w->boxes, sizeof(w->boxes));
}

/* --- the thread: new ones ------------------------------------------------------------------------------------- */

static struct kind *wants_more(void)
{
  struct kind *worst = NULL;
  for (size_t i = 0; i < pool.n; i++) {
    struct kind *k = pool.kinds[i];
    if (!k->broken && k->n + pool.nreturned < pool.rules.ready && (!worst || k->used > worst->used))
      worst = k;
  }
  return worst;
}

static int make_one(const struct want *want, uint64_t serial, struct ready *out)
{
  struct err err = ERR_NONE;
  char image[PATH_MAX];
  int r = make_place(want->boxes);
  if (r)
    return r;
  out->serial = serial;
  image_name(want->boxes, serial, image);
  out->tree = disk_make(want->boxes, image, &want->limits, &err);
  if (out->tree < 0) {
    log_warn("pre-creating a disk failed: %s", err.msg);
    return out->tree;
  }
  if ((r = disk_usage_read(out->tree, &out->fresh)))
    give_back(want, out);
  return r;
}

/* The list may change while a disk is being made; a kind that is gone by then, or has enough, gets its disk thrown
 * away. */
static void put(const struct want *made_for, int failed, const struct ready *r, unsigned most)
{
  struct kind *k = kind_of(made_for);
  if (k)
    k->broken = failed != 0;
  if (!failed && k && k->n < most && k->n < DISK_POOL_READY_MAX)
    k->disks[k->n++] = *r;
  else if (!failed)
    give_back(made_for, r);
}

static void make_for(struct kind *k)
{
  struct want want = k->want;
  struct ready r;
  uint64_t serial = pool.serial++;
  pthread_mutex_unlock(&pool.lock);
  int failed = make_one(&want, serial, &r);
  pthread_mutex_lock(&pool.lock);
  put(&want, failed, &r, DISK_POOL_READY_MAX);
}

/* --- the thread: those that come back ------------------------------------------------------------------------- */

static struct returned *due(int64_t now)
{
  for (struct returned **at = &pool.returned; *at; at = &(*at)->next)
    if ((*at)->due_us <= now) {
      struct returned *l = *at;
      *at = l->next;
      return l;
    }
  return NULL;
}

static void wipe(struct returned *l)
{
  struct disk_wipe_limits limits = pool.rules.wipe;
  pthread_mutex_unlock(&pool.lock);
  int r = disk_wipe_disk(l->disk.tree, &l->disk.fresh, &limits);
  pthread_mutex_lock(&pool.lock);
  if (r == -EAGAIN && ++l->tries < HOLD_TRIES && !pool.stopping) {
    l->due_us = clock_mono_us() + MIN(HOLD_US * l->tries, HOLD_MAX_US);
    l->next = pool.returned;
    pool.returned = l;
    return;
  }
  pool.nreturned--;
  if (r) {
    log_debug("disk not reused: %s", strerrordesc_np(-r));
    give_back(&l->want, &l->disk);
  } else {
    pool.reused++;
    put(&l->want, 0, &l->disk, pool.rules.kept);
  }
  free(l);
}

/* When the thread has something to do without being asked; 0 = never. */
static int64_t next_us(int64_t now)
{
  int64_t at = 0;
  for (struct returned *l = pool.returned; l; l = l->next)
    at = !at || l->due_us < at ? l->due_us : at;
  for (size_t i = 0; i < pool.n && !at; i++)
    if (pool.kinds[i]->n > pool.rules.ready)
      at = MAX(pool.kinds[i]->used_us + SURPLUS_US, now + 1000000);
  return at;
}

static void drop_surplus(int64_t now)
{
  for (size_t i = 0; i < pool.n; i++) {
    struct kind *k = pool.kinds[i];
    while (k->n > pool.rules.ready && now - k->used_us > SURPLUS_US)
      give_back(&k->want, &k->disks[--k->n]);
  }
}

static void sleep_until(int64_t at)
{
  struct timespec t = {.tv_sec = at / 1000000, .tv_nsec = at % 1000000 * 1000};
  if (at)
    pthread_cond_clockwait(&pool.wanted, &pool.lock, CLOCK_MONOTONIC, &t);
  else
    pthread_cond_wait(&pool.wanted, &pool.lock);
}

static void *work(void *unused)
{
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  prctl(PR_SET_NAME, "disks");
  setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 5); /* a waiting box goes first */
  pthread_mutex_lock(&pool.lock);
  while (!pool.stopping) {
    int64_t now = clock_mono_us();
    struct returned *back = due(now);
    struct kind *k = back ? NULL : wants_more();
    if (back)
      wipe(back);
    else if (k)
      make_for(k);
    else {
      drop_surplus(now);
      sleep_until(next_us(now));
    }
  }
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

/* --- asking --------------------------------------------------------------------------------------------------- */

/* Images with another process's number are of one that is gone: a data directory has one owner at a time. */
static void clear_stale(const char *boxes)
{
  char path[PATH_MAX], mine[24];
  snprintf(path, sizeof(path), "%s/.ready", boxes);
  int n = snprintf(mine, sizeof(mine), "%d-", getpid());
  cleanup_dir DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));)
    if (e->d_name[0] != '.' && strncmp(e->d_name, mine, (size_t)n) != 0)
      unlinkat(dirfd(d), e->d_name, 0);
}

static struct kind *add_kind(const struct want *want)
{
  struct kind *k = xcalloc(1, sizeof(*k));
  k->want = *want;
  clear_stale(want->boxes);
  size_t at = pool.n;
  if (pool.n == DISK_POOL_KINDS) {
    at = 0;
    for (size_t i = 1; i < pool.n; i++)
      if (pool.kinds[i]->used < pool.kinds[at]->used)
        at = i;
    kind_free(pool.kinds[at]);
  } else {
    pool.n++;
  }
  return pool.kinds[at] = k;
}

static bool take(const struct want *want, struct ready *out)
{
  bool got = false;
  pthread_mutex_lock(&pool.lock);
  struct kind *k = kind_of(want);
  k = k ? k : add_kind(want);
  k->used = ++pool.asks;
  k->used_us = clock_mono_us();
  k->broken = false;
  if ((got = k->n > 0))
    *out = k->disks[--k->n];
  if (!pool.running)
    pool.running = pthread_create(&pool.thread, NULL, work, NULL) == 0;
  if (k->n < pool.rules.ready)
    pthread_cond_signal(&pool.wanted);
  pthread_mutex_unlock(&pool.lock);
  return got;
}

/* --- lending -------------------------------------------------------------------------------------------------- */

static void lent_free(struct lent *l)
{
  if (!l)
    return;
  close(l->disk.tree);
  free(l);
}

static struct lent *lent_del(const char *dir)
{
  pthread_mutex_lock(&pool.lock);
  struct lent *l = map_del(&pool.lent, str_of(dir));
  pthread_mutex_unlock(&pool.lock);
  return l;
}

static void lend(const struct jail_limits *limits, const char *dir, int tree, const struct disk_usage *fresh)
{
  struct lent *l = xcalloc(1, sizeof(*l));
  *l = (struct lent){.disk = {.tree = fcntl(tree, F_DUPFD_CLOEXEC, 3), .fresh = *fresh},
                     .bytes = limits->disk,
                     .inodes = limits->inodes};
  if (l->disk.tree < 0) {
    free(l);
    return;
  }
  pthread_mutex_lock(&pool.lock);
  struct lent *old = map_put(&pool.lent, str_of(dir), l);
  pthread_mutex_unlock(&pool.lock);
  lent_free(old);
}

static int disk_name(const char *dir, char image[PATH_MAX])
{
  return (size_t)snprintf(image, PATH_MAX, "%s/" DISK_IMAGE_NAME, dir) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int disk_pool_take(const char *boxes, const struct jail_limits *limits, const char *dir)
{
  struct want want;
  struct ready r;
  char image[PATH_MAX], ready[PATH_MAX];
  if (want_make(&want, boxes, limits) || disk_name(dir, image) || !take(&want, &r))
    return -ENOENT;
  image_name(boxes, r.serial, ready);
  if (rename(ready, image)) {
    int code = -errno;
    give_back(&want, &r);
    return code;
  }
  lend(limits, dir, r.tree, &r.fresh);
  return r.tree;
}

void disk_pool_lend(const struct jail_limits *limits, const char *dir, int tree)
{
  struct disk_usage fresh;
  if (!disk_usage_read(tree, &fresh))
    lend(limits, dir, tree, &fresh);
}

void disk_pool_forget(const char *dir)
{
  lent_free(lent_del(dir));
}

/* Is there a use for another disk of the kind? */
static bool accept_returned(const struct want *want, struct disk_wipe_limits *limits, uint64_t *serial)
{
  pthread_mutex_lock(&pool.lock);
  struct kind *k = kind_of(want);
  bool room = k && pool.running && !pool.stopping && k->n + pool.nreturned < pool.rules.kept;
  pool.nreturned += room;
  *limits = pool.rules.wipe;
  *serial = pool.serial++;
  pthread_mutex_unlock(&pool.lock);
  return room;
}

/* Its image leaves the box's directory; with much on it, it stays. */
static int disk_wipe_returned(const struct lent *l, const struct want *want, const char *dir,
                              const struct disk_wipe_limits *limits)
{
  char image[PATH_MAX], ready[PATH_MAX];
  struct stat st;
  if (disk_name(dir, image) || stat(image, &st))
    return -ENOENT;
  if ((uint64_t)st.st_blocks * 512 > limits->bytes * IMAGE_TIMES ||
      !disk_wipe_worth(l->disk.tree, &l->disk.fresh, limits))
    return -E2BIG;
  image_name(want->boxes, l->disk.serial, ready);
  int r = make_place(want->boxes);
  return r ? r : rename(image, ready) ? -errno : 0;
}

static void queue(struct returned *r)
{
  r->due_us = clock_mono_us() + HOLD_US;
  pthread_mutex_lock(&pool.lock);
  r->next = pool.returned;
  pool.returned = r;
  pthread_cond_signal(&pool.wanted);
  pthread_mutex_unlock(&pool.lock);
}

void disk_pool_return(const char *dir)
{
  struct lent *l = lent_del(dir);
  struct disk_wipe_limits limits;
  struct returned *r = xcalloc(1, sizeof(*r));
  bool known = l && !str_copyz(path_dir(str_of(dir)), r->want.boxes, sizeof(r->want.boxes));
  if (known)
    r->want.limits = (struct jail_limits){.disk = l->bytes, .inodes = l->inodes};
  bool room = known && accept_returned(&r->want, &limits, &l->disk.serial);
  if (room && !disk_wipe_returned(l, &r->want, dir, &limits)) {
    r->disk = l->disk;
    free(l);
    queue(r);
    return;
  }
  pthread_mutex_lock(&pool.lock);
  pool.nreturned -= room;
  pthread_mutex_unlock(&pool.lock);
  lent_free(l);
  free(r);
}

/* -------------------------------------------------------------------------------------------------------------- */

struct disk_pool_count disk_pool_count(void)
{
  struct disk_pool_count c = {0};
  pthread_mutex_lock(&pool.lock);
  for (size_t i = 0; i < pool.n; i++)
    c.ready += pool.kinds[i]->n;
  c.lent = pool.lent.n;
  c.reused = pool.reused;
  pthread_mutex_unlock(&pool.lock);
  return c;
}

static void forget_all(void)
{
  void *value;
  for (size_t i = 0; map_next(&pool.lent, &i, NULL, &value);)
    lent_free(value);
  map_free(&pool.lent);
  pool.lent = (struct map){0};
  for (struct returned *r; (r = pool.returned);) {
    pool.returned = r->next;
    give_back(&r->want, &r->disk);
    free(r);
  }
  pool.nreturned = 0;
}

void disk_pool_close(void)
{
  pthread_mutex_lock(&pool.lock);
  bool running = pool.running;
  pool.stopping = true;
  pthread_cond_signal(&pool.wanted);
  pthread_mutex_unlock(&pool.lock);
  if (running)
    pthread_join(pool.thread, NULL);
  for (size_t i = 0; i < pool.n; i++)
    kind_free(pool.kinds[i]);
  pool.n = 0;
  forget_all();
  pool.running = pool.stopping = false;
}
