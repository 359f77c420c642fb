/* SPDX-License-Identifier: Apache-2.0 */
/* upload_write.c - see upload_write.h. */
#include "gate/api/upload_write.h"

#include "gate/api/disk_work.h"

#define CHUNK_MAX ((size_t)1 << 20) /* what may come in one call when a piece is almost full */

struct upload_write {
  struct disk_work work; /* first: its callbacks get it */
  struct gate *gate;
  struct http_x *x; /* NULL: nobody waits */
  char team[UUID_SIZE];
  int fd;
  int code;  /* of a write; stays */
  bool busy; /* `going` is being written, or waits for a thread */
  bool paused, ended;
  struct buf going, coming; /* the piece that is written, and the one that it makes room for */
  upload_written_fn written;
  void *arg;
};

static void upload_write_free(struct upload_write *w)
{
  disk_close(w->gate, w->team, w->fd);
  buf_free(&w->going);
  buf_free(&w->coming);
  free(w);
}

static void act(struct disk_work *work)
{
  struct upload_write *w = (struct upload_write *)work;
  w->code = fd_write_all(w->fd, w->going.p, w->going.n);
}

static void write_next(struct upload_write *w)
{
  struct buf empty = w->going;
  w->going = w->coming;
  w->coming = empty;
  w->busy = true;
  disk_work_queue(w->gate, w->team, &w->work);
}

static void done(struct disk_work *work)
{
  struct upload_write *w = (struct upload_write *)work;
  w->busy = false;
  if (!w->x) {
    upload_write_free(w);
    return;
  }
  http_x_hold(w->x, -(int64_t)w->going.n);
  buf_clear(&w->going);
  if (!w->code && w->coming.n)
    write_next(w);
  if (w->paused)
    http_x_resume(w->x);
  w->paused = false;
  if (w->code || (w->ended && !w->busy))
    w->written(w->arg, w->code);
}

struct upload_write *upload_write_new(struct gate *g, struct http_x *x, const char *team, int fd,
                                      upload_written_fn written, void *arg)
{
  struct upload_write *w = xcalloc(1, sizeof(*w));
  *w = (struct upload_write){.work = {.act = act, .done = done},
                             .gate = g,
                             .x = x,
                             .fd = fd,
                             .going = BUF_INIT(UPLOAD_PIECE + CHUNK_MAX),
                             .coming = BUF_INIT(UPLOAD_PIECE + CHUNK_MAX),
                             .written = written,
                             .arg = arg};
  str_copyz(str_of(team), w->team, sizeof(w->team));
  return w;
}

void upload_write_add(struct upload_write *w, struct str data)
{
  if (w->code)
    return;
  if (buf_adds(&w->coming, data)) {
    w->code = -ENOMEM;
    http_abort(w->x);
    return;
  }
  http_x_hold(w->x, (int64_t)data.n);
  if (!w->busy) {
    write_next(w);
  } else if (w->coming.n >= UPLOAD_PIECE) {
    w->paused = true;
    http_x_pause(w->x);
  }
}

bool upload_write_end(struct upload_write *w)
{
  w->ended = true;
  return !w->busy && !w->code;
}

void upload_write_leave(struct upload_write *w)
{
  http_x_hold(w->x, -(int64_t)(w->going.n + w->coming.n));
  w->x = NULL;
  if (!w->busy || disk_work_cancel(&w->work))
    upload_write_free(w);
}
