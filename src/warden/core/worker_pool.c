/* SPDX-License-Identifier: Apache-2.0 */
/* worker_pool.c - see worker_pool.h. The threads are libuv's. There are enough for all work here and all dumps and
 * restores (checkpoint_queue.c), so that neither queue holds up the other. */
#include "warden/core/worker_pool.h"

#include "warden/core/warden_state.h"
#include "wire/fair_queue.h"
#include <stdio.h>

#define OTHERS 4 /* for what libuv itself does on its threads */

struct worker_pool {
  struct fair_queue queue, volumes;
};

struct job {
  struct fair_queue_item item; /* first: fair_queue_next gives it */
  uv_work_t run;
  struct warden *warden;
  struct fair_queue *queue;
  uv_work_t *work; /* the owner's */
  uv_work_cb act;
  uv_after_work_cb done;
};

static void worker_pool_next(struct warden *w, struct fair_queue *queue);

static struct worker_pool *pool_of(struct warden *w)
{
  if (!w->workers) {
    w->workers = xcalloc(1, sizeof(*w->workers));
    w->workers->queue = (struct fair_queue){.places = WORKERS, .share = WORKERS_TEAM};
    w->workers->volumes = (struct fair_queue){.places = VOLUME_WORKERS, .share = VOLUME_WORKERS_TEAM};
  }
  return w->workers;
}

static void job_act(uv_work_t *run)
{
  struct job *j = run->data;
  j->act(j->work);
}

static void job_done(uv_work_t *run, int status)
{
  struct job *j = run->data;
  struct warden *w = j->warden;
  fair_queue_done(j->queue, &j->item);
  worker_pool_next(w, j->queue);
  j->done(j->work, status);
  free(j);
}

static void worker_pool_next(struct warden *w, struct fair_queue *queue)
{
  for (struct job *j; (j = (struct job *)fair_queue_next(queue));)
    uv_queue_work(w->loop, &j->run, job_act, job_done);
}

static void put(struct warden *w, struct fair_queue *queue, const char *team, struct job job)
{
  struct job *j = xcalloc(1, sizeof(*j));
  *j = job;
  j->warden = w;
  j->queue = queue;
  j->run.data = j;
  fair_queue_push(queue, str_of(team), &j->item);
  worker_pool_next(w, queue);
}

void worker_pool_queue(struct warden *w, const char *team, uv_work_t *work, uv_work_cb act, uv_after_work_cb done)
{
  put(w, &pool_of(w)->queue, team, (struct job){.work = work, .act = act, .done = done});
}

void worker_pool_queue_volume(struct warden *w, const char *team, uv_work_t *work, uv_work_cb act,
                              uv_after_work_cb done)
{
  put(w, &pool_of(w)->volumes, team, (struct job){.work = work, .act = act, .done = done});
}

void worker_pool_open(const struct warden *w)
{
  char number[16];
  snprintf(number, sizeof(number), "%u", WORKERS + VOLUME_WORKERS + 2 * w->config->checkpoint_jobs + OTHERS);
  setenv("UV_THREADPOOL_SIZE", number, 1);
}
