/* pool.c - the thread that makes disks ahead, and the shelf it puts them on. */
#include "jail/pool.h"

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

struct ready {
  int tree;
  char image[PATH_MAX];
};

struct kind {
  char boxes[PATH_MAX - 64];
  struct jail_limits limits;
  struct ready shelf[POOL_READY];
  size_t n;
  uint64_t used; /* when it was last asked for, in asks */
  bool broken;   /* making one failed: not tried again until asked */
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wanted;
  pthread_t thread;
  bool running, stopping;
  struct kind *kinds[POOL_KINDS];
  size_t n;
  uint64_t asks, serial;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER};

static void give_back(struct ready *r)
{
  close(r->tree);
  unlink(r->image);
}

static void kind_free(struct kind *k)
{
  for (size_t i = 0; i < k->n; i++)
    give_back(&k->shelf[i]);
  free(k);
}

static bool is_kind(const struct kind *k, const char *boxes, const struct jail_limits *l)
{
  return strcmp(k->boxes, boxes) == 0 && k->limits.disk == l->disk && k->limits.inodes == l->inodes;
}

/* --- the thread ----------------------------------------------------------------------------------------------- */

static struct kind *hungry(void)
{
  struct kind *worst = NULL;
  for (size_t i = 0; i < pool.n; i++) {
    struct kind *k = pool.kinds[i];
    if (!k->broken && k->n < POOL_READY && (!worst || k->used > worst->used))
      worst = k;
  }
  return worst;
}

static int make_one(const struct kind *k, uint64_t serial, struct ready *out)
{
  struct err err = ERR_NONE;
  char dir[PATH_MAX];
  snprintf(dir, sizeof(dir), "%s/.ready", k->boxes);
  snprintf(out->image, sizeof(out->image), "%s/.ready/%d-%" PRIu64 ".img", k->boxes, getpid(), serial);
  if (mkdir(dir, 0700) && errno != EEXIST)
    return -errno;
  out->tree = disk_make(k->boxes, out->image, &k->limits, &err);
  if (out->tree < 0)
    log_warn("no disk made ahead: %s", err.msg);
  return MIN(out->tree, 0);
}

/* The list may change while a disk is being made; a kind that is gone by then gets its disk thrown away. */
static void put(const struct kind *made_for, int failed, struct ready *r)
{
  for (size_t i = 0; i < pool.n; i++)
    if (is_kind(pool.kinds[i], made_for->boxes, &made_for->limits)) {
      struct kind *k = pool.kinds[i];
      k->broken = failed != 0;
      if (!failed)
        k->shelf[k->n++] = *r;
      return;
    }
  if (!failed)
    give_back(r);
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
    struct kind *k = hungry();
    if (!k) {
      pthread_cond_wait(&pool.wanted, &pool.lock);
      continue;
    }
    struct kind copy = {.limits = k->limits};
    memcpy(copy.boxes, k->boxes, sizeof(copy.boxes));
    uint64_t serial = pool.serial++;
    pthread_mutex_unlock(&pool.lock);
    struct ready r;
    int failed = make_one(&copy, serial, &r);
    pthread_mutex_lock(&pool.lock);
    put(&copy, failed, &r);
  }
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

/* --- asking --------------------------------------------------------------------------------------------------- */

static void closedir_p(DIR **d)
{
  if (*d)
    closedir(*d);
}

/* Images with another process's number are of one that is gone: a data directory has one owner at a time. */
static void clear_stale(const char *boxes)
{
  char path[PATH_MAX], mine[24];
  snprintf(path, sizeof(path), "%s/.ready", boxes);
  int n = snprintf(mine, sizeof(mine), "%d-", getpid());
  __attribute__((cleanup(closedir_p))) DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));)
    if (e->d_name[0] != '.' && strncmp(e->d_name, mine, (size_t)n) != 0)
      unlinkat(dirfd(d), e->d_name, 0);
}

static struct kind *add_kind(const char *boxes, const struct jail_limits *l)
{
  struct kind *k = xcalloc(1, sizeof(*k));
  if (str_copyz(str_of(boxes), k->boxes, sizeof(k->boxes))) {
    free(k);
    return NULL;
  }
  k->limits = (struct jail_limits){.disk = l->disk, .inodes = l->inodes};
  clear_stale(boxes);
  size_t at = pool.n;
  if (pool.n == POOL_KINDS) {
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

static struct kind *find_kind(const char *boxes, const struct jail_limits *l)
{
  for (size_t i = 0; i < pool.n; i++)
    if (is_kind(pool.kinds[i], boxes, l))
      return pool.kinds[i];
  return add_kind(boxes, l);
}

static bool take(const char *boxes, const struct jail_limits *l, struct ready *out)
{
  bool got = false;
  pthread_mutex_lock(&pool.lock);
  struct kind *k = find_kind(boxes, l);
  if (k) {
    k->used = ++pool.asks;
    k->broken = false;
    if ((got = k->n > 0))
      *out = k->shelf[--k->n];
    if (!pool.running)
      pool.running = pthread_create(&pool.thread, NULL, work, NULL) == 0;
    pthread_cond_signal(&pool.wanted);
  }
  pthread_mutex_unlock(&pool.lock);
  return got;
}

int pool_take(const char *boxes, const struct jail_limits *limits, const char *image)
{
  struct ready r;
  if (!take(boxes, limits, &r))
    return -ENOENT;
  if (rename(r.image, image)) {
    int code = -errno;
    give_back(&r);
    return code;
  }
  return r.tree;
}

void pool_close(void)
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
  pool.running = pool.stopping = false;
}
