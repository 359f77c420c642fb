/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_queue.c - see checkpoint_queue.h. */
#include "warden/checkpoint_queue.h"

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
  fair_queue_done(&w->checkpoints, &t->item);
  checkpoint_queue_next(w);
  t->done(t);
}

static void checkpoint_queue_next(struct warden *w)
{
  for (struct checkpoint_job *t; (t = (struct checkpoint_job *)fair_queue_next(&w->checkpoints));)
    uv_queue_work(w->loop, &t->work, checkpoint_queue_work, checkpoint_queue_done);
}

void checkpoint_queue_add(struct warden *w, const char *team, struct checkpoint_job *t)
{
  t->warden = w;
  t->work.data = t;
  fair_queue_push(&w->checkpoints, str_of(team), &t->item);
  checkpoint_queue_next(w);
}
