/* turn.c - see turn.h. */
#include "warden/checkpoint_queue.h"

static void turn_next(struct warden *w);

static void turn_work(uv_work_t *work)
{
  struct turn *t = work->data;
  t->act(t);
}

static void turn_done(uv_work_t *work, int status)
{
  struct turn *t = work->data;
  struct warden *w = t->warden;
  w->turns--;
  turn_next(w);
  t->done(t);
}

static void turn_next(struct warden *w)
{
  while (w->turn_first && w->turns < w->config->checkpoint_jobs) {
    struct turn *t = w->turn_first;
    w->turn_first = t->next;
    if (!w->turn_first)
      w->turn_last = &w->turn_first;
    w->turns++;
    uv_queue_work(w->loop, &t->work, turn_work, turn_done);
  }
}

void turn_wait(struct warden *w, struct turn *t)
{
  t->warden = w;
  t->next = NULL;
  t->work.data = t;
  *w->turn_last = t;
  w->turn_last = &t->next;
  turn_next(w);
}
