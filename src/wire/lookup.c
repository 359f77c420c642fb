/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c - see lookup.h. As many run as there are threads, so what the queue lets go finds one at once. libuv's own
 * threads would not do: half of them may look up names, whoever's they are. */
#include "wire/lookup.h"

#include <signal.h>

#define STACK ((size_t)256 << 10)

static void *look_up(void *arg)
{
  struct lookups *s = arg;
  pthread_mutex_lock(&s->lock);
  s->threads++;
  pthread_cond_signal(&s->begun);
  pthread_mutex_unlock(&s->lock);
  for (;;) {
    pthread_mutex_lock(&s->lock);
    while (!s->run)
      pthread_cond_wait(&s->more, &s->lock);
    struct lookup *l = s->run;
    s->run = l->next;
    if (!s->run)
      s->run_last = &s->run;
    pthread_mutex_unlock(&s->lock);
    const struct addrinfo hints = {
        .ai_family = l->family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}; /* 0 is AF_UNSPEC */
    l->status = getaddrinfo(l->name, l->port, &hints, &l->list);
    pthread_mutex_lock(&s->lock);
    l->next = s->over;
    s->over = l;
    pthread_mutex_unlock(&s->lock);
    uv_async_send(&s->async);
  }
  return NULL;
}

static void run_next(struct lookups *s)
{
  for (struct fair_queue_item *i; (i = fair_queue_next(&s->queue));) {
    struct lookup *l = (struct lookup *)i;
    l->next = NULL;
    pthread_mutex_lock(&s->lock);
    *s->run_last = l;
    s->run_last = &l->next;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
  }
}

static void on_over(uv_async_t *async)
{
  struct lookups *s = async->data;
  pthread_mutex_lock(&s->lock);
  struct lookup *l = s->over;
  s->over = NULL;
  pthread_mutex_unlock(&s->lock);
  for (struct lookup *next; l; l = next) {
    next = l->next;
    fair_queue_done(&s->queue, &l->item);
    l->done(l, l->status, l->status ? NULL : l->list);
  }
  run_next(s);
}

int lookups_open(struct lookups *s, uv_loop_t *loop, unsigned share, struct err *err)
{
  pthread_attr_t attr;
  sigset_t all, before;
  int r = 0;
  *s = (struct lookups){.queue = {.places = LOOKUP_THREADS, .share = share},
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .more = PTHREAD_COND_INITIALIZER,
                        .begun = PTHREAD_COND_INITIALIZER};
  s->run_last = &s->run;
  uv_async_init(loop, &s->async, on_over);
  s->async.data = s;
  pthread_attr_init(&attr);
#ifndef __SANITIZE_ADDRESS__
  pthread_attr_setstacksize(&attr, STACK);
#endif
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
  for (int i = 0; !r && i < LOOKUP_THREADS; i++) {
    pthread_t t;
    r = pthread_create(&t, &attr, look_up, s);
    if (!r)
      pthread_detach(t);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_mutex_lock(&s->lock);
  while (!r && s->threads < LOOKUP_THREADS)
    pthread_cond_wait(&s->begun, &s->lock);
  pthread_mutex_unlock(&s->lock);
  pthread_attr_destroy(&attr);
  return r ? err_set(err, -r, "%d threads for names: %s", LOOKUP_THREADS, strerrordesc_np(r)) : 0;
}

void lookup_start(struct lookups *s, struct str team, struct lookup *l)
{
  l->list = NULL;
  fair_queue_push(&s->queue, team, &l->item);
  run_next(s);
}

bool lookup_cancel(struct lookups *s, struct lookup *l)
{
  return fair_queue_cancel(&s->queue, &l->item);
}
