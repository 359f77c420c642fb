/* SPDX-License-Identifier: Apache-2.0 */
/* disk_work.c - see disk_work.h. The threads are libuv's. */
#include "gate/api/disk_work.h"

#include <stdio.h>

static struct fair_queue queues[DISKS]; /* of this process's one gate */

static void nothing(uv_work_t *work)
{
}

static void nothing_done(uv_work_t *work, int status)
{
  free(work);
}

void disk_threads_start(struct gate *g)
{
  char number[16];
  snprintf(number, sizeof(number), "%u", DISKS * MAX(g->config->upload_threads, 1u));
  setenv("UV_THREADPOOL_SIZE", number, 1);
  uv_queue_work(g->loop, xcalloc(1, sizeof(uv_work_t)), nothing, nothing_done);
}

static void next(enum disk disk);

static void act(uv_work_t *work)
{
  struct disk_work *w = work->data;
  w->act(w);
}

static void done(uv_work_t *work, int status)
{
  struct disk_work *w = work->data;
  fair_queue_done(&queues[w->disk], &w->place);
  next(w->disk);
  w->done(w);
}

static void next(enum disk disk)
{
  for (struct disk_work *w; (w = (struct disk_work *)fair_queue_next(&queues[disk]));) {
    w->started = true;
    uv_queue_work(w->gate->loop, &w->work, act, done);
  }
}

void disk_work_queue(struct gate *g, const char *team, struct disk_work *w)
{
  w->gate = g;
  w->work.data = w;
  w->started = false;
  struct fair_queue *queue = &queues[w->disk];
  queue->places = MAX(g->config->upload_threads, 1u);
  queue->share = (queue->places + 1) / 2;
  fair_queue_push(queue, str_of(team), &w->place);
  next(w->disk);
}

bool disk_work_cancel(struct disk_work *w)
{
  return !w->started && fair_queue_cancel(&queues[w->disk], &w->place);
}

struct disk_closing {
  struct disk_work work;
  int fd;
};

static void close_it(struct disk_work *w)
{
  close(((struct disk_closing *)w)->fd);
}

static void closed(struct disk_work *w)
{
  free(w);
}

void disk_close(struct gate *g, enum disk disk, const char *team, int fd)
{
  struct disk_closing *c = xcalloc(1, sizeof(*c));
  *c = (struct disk_closing){.work = {.act = close_it, .done = closed, .disk = disk}, .fd = fd};
  disk_work_queue(g, team, &c->work);
}
