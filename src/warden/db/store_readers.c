/* SPDX-License-Identifier: Apache-2.0 */
/* store_readers.c - see store_readers.h. */
#include "warden/db/store_readers.h"

#include <pthread.h>
#include <time.h>

struct store_readers {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  unsigned reading;
  bool stopped;
};

struct store_readers *readers_new(void)
{
  struct store_readers *r = xcalloc(1, sizeof(*r));
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->changed, &clock);
  pthread_condattr_destroy(&clock);
  return r;
}

void readers_free(struct store_readers *r)
{
  if (!r)
    return;
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

void readers_enter(struct store_readers *r)
{
  pthread_mutex_lock(&r->lock);
  while (r->stopped)
    pthread_cond_wait(&r->changed, &r->lock);
  r->reading++;
  pthread_mutex_unlock(&r->lock);
}

void readers_leave(struct store_readers *r)
{
  pthread_mutex_lock(&r->lock);
  r->reading--;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

bool readers_stop(struct store_readers *r, int64_t wait_us)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  int64_t nsec = until.tv_nsec + wait_us % 1000000 * 1000;
  until.tv_sec += wait_us / 1000000 + nsec / 1000000000;
  until.tv_nsec = nsec % 1000000000;
  pthread_mutex_lock(&r->lock);
  while (r->stopped) /* by another thread */
    pthread_cond_wait(&r->changed, &r->lock);
  r->stopped = true;
  int late = 0;
  while (r->reading && !late)
    late = pthread_cond_timedwait(&r->changed, &r->lock, &until);
  bool clear = !r->reading;
  if (!clear) {
    r->stopped = false;
    pthread_cond_broadcast(&r->changed);
  }
  pthread_mutex_unlock(&r->lock);
  return clear;
}

void readers_resume(struct store_readers *r)
{
  pthread_mutex_lock(&r->lock);
  r->stopped = false;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}
