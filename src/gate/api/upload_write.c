/* SPDX-License-Identifier: Apache-2.0 */
/* upload_write.c - see upload_write.h. The threads are libuv's. */
#include "gate/api/upload_write.h"

#include "wire/fair_queue.h"
#include <stdio.h>

struct upload_write {
  struct fair_queue_item place; /* first: fair_queue_next gives it */
  uv_work_t work;
  struct gate *gate;
  int fd;       /* the uploader's */
  int left_fd;  /* its own, once nobody waits; -1 before */
  int code;     /* of the write */
  bool started; /* a thread has it or will */
  upload_written_fn written;
  void *arg;
  size_t n;
  char data[];
};

static struct fair_queue queue; /* of this process's one gate */

static void nothing(uv_work_t *work)
{
}

static void nothing_done(uv_work_t *work, int status)
{
  free(work);
}

void upload_threads_start(struct gate *g)
{
  char number[16];
  snprintf(number, sizeof(number), "%u", MAX(g->config->upload_threads, 1u));
  setenv("UV_THREADPOOL_SIZE", number, 1);
  uv_queue_work(g->loop, xcalloc(1, sizeof(uv_work_t)), nothing, nothing_done);
}

static void next(void);

static void act(uv_work_t *work)
{
  struct upload_write *w = work->data;
  w->code = fd_write_all(w->fd, w->data, w->n);
}

static void done(uv_work_t *work, int status)
{
  struct upload_write *w = work->data;
  fair_queue_done(&queue, &w->place);
  next();
  if (w->left_fd >= 0)
    close(w->left_fd);
  else
    w->written(w->arg, w->code);
  free(w);
}

static void next(void)
{
  for (struct upload_write *w; (w = (struct upload_write *)fair_queue_next(&queue));) {
    w->started = true;
    uv_queue_work(w->gate->loop, &w->work, act, done);
  }
}

struct upload_write *upload_write(struct gate *g, const char *team, int fd, struct str data, upload_written_fn written,
                                  void *arg)
{
  struct upload_write *w = xcalloc(1, sizeof(*w) + data.n);
  *w = (struct upload_write){.gate = g, .fd = fd, .left_fd = -1, .written = written, .arg = arg, .n = data.n};
  memcpy(w->data, data.p, data.n);
  w->work.data = w;
  queue.places = MAX(g->config->upload_threads, 1u);
  queue.share = (queue.places + 1) / 2;
  fair_queue_push(&queue, str_of(team), &w->place);
  next();
  return w;
}

void upload_write_leave(struct upload_write *w, int fd)
{
  if (w->started) {
    w->left_fd = fd;
    return;
  }
  fair_queue_cancel(&queue, &w->place);
  close(fd);
  free(w);
}
