/* SPDX-License-Identifier: Apache-2.0 */
/* thread_pool.c - see thread_pool.h.
 *
 * The loop is woken by an eventfd of our own: libuv's uv_async makes it spin until the sender has come back from its
 * system call, and the sender, woken over by the loop on a busy machine, is not back for long. */
#include "agent/thread_pool.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

#define THREADS_MAX  4
#define IDLE_SECONDS 5
#define STACK_BYTES  ((size_t)4 << 20) /* room for walks as deep as paths can be; only what is used costs */

struct list {
  struct work *first, **end;
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  struct list waiting, finished;
  unsigned threads, idle;
  uv_poll_t wakeup;
  int wakeup_fd;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void list_add(struct list *l, struct work *w)
{
  w->next = NULL;
  *(l->first ? l->end : &l->first) = w;
  l->end = &w->next;
}

static struct work *list_take(struct list *l)
{
  struct work *w = l->first;
  if (w)
    l->first = w->next;
  return w;
}

/* The next job, or NULL when none came for a while. The lock is held. */
static struct work *job_next(void)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += IDLE_SECONDS;
  pool.idle++;
  int rc = 0;
  while (!pool.waiting.first && rc == 0)
    rc = pthread_cond_timedwait(&pool.wake, &pool.lock, &until);
  pool.idle--;
  return list_take(&pool.waiting);
}

static void finished(struct work *w)
{
  pthread_mutex_lock(&pool.lock);
  bool first = !pool.finished.first;
  list_add(&pool.finished, w);
  pthread_mutex_unlock(&pool.lock);
  if (first) /* not under the lock, which the loop asks for at once */
    eventfd_write(pool.wakeup_fd, 1);
}

static void *thread_main(void *arg UNUSED)
{
  pthread_mutex_lock(&pool.lock);
  for (struct work *w; (w = job_next());) {
    pthread_mutex_unlock(&pool.lock);
    w->run(w);
    finished(w);
    pthread_mutex_lock(&pool.lock);
  }
  bool last = --pool.threads == 0;
  pthread_mutex_unlock(&pool.lock);
  if (last)
    malloc_trim(0); /* large listings leave holes in the heap */
  return NULL;
}

static int thread_make(void)
{
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  int rc = pthread_create(&thread, &attr, thread_main, NULL);
  pthread_attr_destroy(&attr);
  if (rc == 0)
    pool.threads++;
  return -rc;
}

static void on_finished(uv_poll_t *poll UNUSED, int status UNUSED, int events UNUSED)
{
  eventfd_t times;
  eventfd_read(pool.wakeup_fd, &times);
  pthread_mutex_lock(&pool.lock);
  struct list all = pool.finished;
  pool.finished.first = NULL;
  pthread_mutex_unlock(&pool.lock);
  for (struct work *w; (w = list_take(&all));)
    w->done(w);
}

int work_start(uv_loop_t *loop)
{
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&pool.wake, &attr);
  pthread_condattr_destroy(&attr);
  pool.wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int rc = pool.wakeup_fd < 0 ? -errno : uv_poll_init(loop, &pool.wakeup, pool.wakeup_fd);
  return rc < 0 ? rc : uv_poll_start(&pool.wakeup, UV_READABLE, on_finished);
}

int work_queue(struct work *w)
{
  pthread_mutex_lock(&pool.lock);
  int rc = 0;
  if (pool.idle == 0 && pool.threads < THREADS_MAX)
    rc = thread_make();
  if (pool.threads) { /* one that is there will come round to it */
    rc = 0;
    list_add(&pool.waiting, w);
    pthread_cond_signal(&pool.wake);
  }
  pthread_mutex_unlock(&pool.lock);
  return rc;
}
