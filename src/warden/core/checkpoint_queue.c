/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_queue.c - see checkpoint_queue.h. */
#include "warden/core/checkpoint_queue.h"

#include "warden/core/warden_state.h"

struct checkpoint_queue {
  struct fair_queue queue;
};

static struct fair_queue *queue_of(struct warden *w)
{
  unsigned jobs = w->config->checkpoint_jobs;
  if (!w->checkpoint_queue) {
    w->checkpoint_queue = xcalloc(1, sizeof(*w->checkpoint_queue));
    w->checkpoint_queue->queue = (struct fair_queue){.places = 2 * jobs, .share = jobs};
  }
  return &w->checkpoint_queue->queue;
}

static void checkpoint_queue_next(struct warden *w);

static void checkpoint_queue_work(uv_work_t *work)
{
  struct checkpoint_job *t = work->data;
  t->act(t);
}

static void checkpoint_queue_done(uv_work_t *work, int status)
{
  struct checkpoint_job *t = work->data;
  struct warden *w = t->warden;
  fair_queue_done(queue_of(w), &t->item);
  checkpoint_queue_next(w);
  t->done(t);
}

static void checkpoint_queue_next(struct warden *w)
{
  for (struct checkpoint_job *t; (t = (struct checkpoint_job *)fair_queue_next(queue_of(w)));)
    uv_queue_work(w->loop, &t->work, checkpoint_queue_work, checkpoint_queue_done);
}

void checkpoint_queue_add(struct warden *w, const char *team, struct checkpoint_job *t)
{
  t->warden = w;
  t->work.data = t;
  fair_queue_push(queue_of(w), str_of(team), &t->item);
  checkpoint_queue_next(w);
}

bool checkpoint_queue_waits(struct warden *w)
{
  return queue_of(w)->waiting > 0;
}
