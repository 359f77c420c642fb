/* SPDX-License-Identifier: Apache-2.0 */
/* upload_write.c - see upload_write.h. */
#include "gate/api/upload_write.h"

#include "gate/api/disk_work.h"
#include "net/body_carry.h"
#include <fcntl.h>

#define CHUNK_MAX ((size_t)1 << 20)  /* what may come in one call when a piece is almost full */
#define LENT_MIN  ((int64_t)4 << 20) /* bodies from here on are taken from the socket by the thread */

struct upload_write {
  struct disk_work work; /* first: its callbacks get it */
  struct gate *gate;
  struct http_x *x; /* NULL: nobody waits */
  char team[UUID_SIZE];
  int fd;
  int result; /* of a thread */
  int code;   /* of the first that failed */
  bool busy;  /* `going` is being written, or waits for a thread */
  bool paused, ended;
  bool large;                            /* its body may be taken from the socket */
  int sock;                              /* that one, lent to a thread; -1: it is not */
  uint64_t most, took;                   /* bytes of the body that are to come; that the thread took */
  struct buf pieces[2], *going, *coming; /* the one that is written, and the next */
  upload_written_fn written;
  void *arg;
};

static void upload_write_free(struct upload_write *w)
{
  disk_close(w->gate, w->work.disk, w->team, w->fd);
  if (w->sock >= 0)
    close(w->sock);
  buf_free(&w->pieces[0]);
  buf_free(&w->pieces[1]);
  free(w);
}

/* ---- on a thread ---- */

/* For files that take no pipe. */
static int copy_pipe(int pipe, int fd, size_t n)
{
  char bytes[16384];
  while (n) {
    ssize_t k = read(pipe, bytes, MIN(n, sizeof(bytes)));
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return k ? -errno : -EIO;
    int r = fd_write_all(fd, bytes, (size_t)k);
    if (r)
      return r;
    n -= (size_t)k;
  }
  return 0;
}

static int write_pipe(int pipe, int fd, size_t n)
{
  while (n) {
    ssize_t k = splice(pipe, NULL, fd, NULL, n, SPLICE_F_MOVE);
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0 && errno == EINVAL)
      return copy_pipe(pipe, fd, n);
    if (k <= 0)
      return k ? -errno : -EIO;
    n -= (size_t)k;
  }
  return 0;
}

static int take(void *arg, int pipe, size_t n)
{
  struct upload_write *w = arg;
  return write_pipe(pipe, w->fd, n);
}

/* The pipe is the thread's. */
static int carry(struct upload_write *w)
{
  static _Thread_local struct body_carry b;
  b = (struct body_carry){.pipe = {b.pipe[0], b.pipe[1]}, .sock = w->sock, .most = w->most, .take = take, .arg = w};
  int r = body_carry(&b);
  w->took = b.took;
  return r;
}

static void act(struct disk_work *work)
{
  struct upload_write *w = (struct upload_write *)work;
  w->result = fd_write_all(w->fd, w->going->p, w->going->n);
  if (!w->result && w->sock >= 0)
    w->result = carry(w);
}

/* ---- on the loop ---- */

static void write_next(struct upload_write *w)
{
  struct buf *empty = w->going;
  w->going = w->coming;
  w->coming = empty;
  w->busy = true;
  disk_work_queue(w->gate, w->team, &w->work);
}

static void done(struct disk_work *work)
{
  struct upload_write *w = (struct upload_write *)work;
  w->busy = false;
  w->code = w->code ? w->code : w->result;
  if (!w->x) {
    upload_write_free(w);
    return;
  }
  http_x_hold(w->x, -(int64_t)w->going->n);
  buf_clear(w->going);
  if (w->sock >= 0) {
    close(steal_fd(&w->sock));
    http_x_lent(w->x, w->took);
  }
  if (!w->code && w->coming->n)
    write_next(w);
  if (w->paused)
    http_x_resume(w->x);
  w->paused = false;
  if (w->code || (w->ended && !w->busy))
    w->written(w->arg, w->code);
}

struct upload_write *upload_write_new(struct gate *g, struct http_x *x, enum disk disk, const char *team, int fd,
                                      upload_written_fn written, void *arg)
{
  struct upload_write *w = xcalloc(1, sizeof(*w));
  *w = (struct upload_write){.work = {.act = act, .done = done, .disk = disk},
                             .gate = g,
                             .x = x,
                             .fd = fd,
                             .sock = -1,
                             .written = written,
                             .arg = arg};
  for (size_t i = 0; i < 2; i++)
    w->pieces[i] = BUF_INIT(UPLOAD_PIECE + CHUNK_MAX);
  w->going = &w->pieces[0];
  w->coming = &w->pieces[1];
  w->large = http_x_body_length(x) >= LENT_MIN;
  str_copyz(str_of(team), w->team, sizeof(w->team));
  return w;
}

static void hold_back(struct upload_write *w)
{
  w->paused = true;
  http_x_pause(w->x);
}

void upload_write_add(struct upload_write *w, struct str data)
{
  if (w->code)
    return;
  if (buf_adds(w->coming, data)) {
    w->code = -ENOMEM;
    http_abort(w->x);
    return;
  }
  http_x_hold(w->x, (int64_t)data.n);
  if (!w->busy)
    write_next(w);
  else if (w->coming->n >= UPLOAD_PIECE)
    hold_back(w);
}

enum http_lend upload_write_lend(struct upload_write *w, int fd, uint64_t most)
{
  if (!w->large || w->code)
    return HTTP_LEND_NOT;
  hold_back(w); /* until the thread is done, with the former piece or with this one */
  if (w->busy)
    return HTTP_LEND_WAIT;
  w->sock = fd;
  w->most = most;
  w->took = 0;
  write_next(w);
  return HTTP_LEND_TAKEN;
}

bool upload_write_end(struct upload_write *w)
{
  w->ended = true;
  return !w->busy && !w->code;
}

void upload_write_leave(struct upload_write *w)
{
  http_x_hold(w->x, -(int64_t)(w->going->n + w->coming->n));
  w->x = NULL;
  if (!w->busy || disk_work_cancel(&w->work))
    upload_write_free(w);
}
