/* SPDX-License-Identifier: Apache-2.0 */
/* upload_write.c - see upload_write.h. */
#include "gate/api/upload_write.h"

#include "gate/api/disk_work.h"
#include <fcntl.h>

#define CHUNK_MAX  ((size_t)1 << 20) /* what may come in one call when a piece is almost full */
#define PIPE_BYTES (512 << 10)
#define PIPED_MIN  ((int64_t)4 << 20) /* bodies from here on go through pipes */
#define PIPED_MAX                                                                                                      \
  2 /* uploads of a gate at once: the kernel counts the pipes of all gates together, and boxes' bodies need            \
       some, too */

static unsigned piped_uploads; /* of this process's one gate */

/* In this order. */
struct piece {
  struct buf before;
  int pipe[2]; /* 0: none */
  size_t piped;
  struct buf after;
};

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
  bool counted;                            /* in piped_uploads */
  bool pipes;                              /* the body may go through them */
  bool full;                               /* the pipe of `coming` takes no more */
  struct piece pieces[2], *going, *coming; /* the one that is written, and the next */
  upload_written_fn written;
  void *arg;
};

static size_t piece_size(const struct piece *p)
{
  return p->before.n + p->piped + p->after.n;
}

static void piece_free(struct piece *p)
{
  buf_free(&p->before);
  buf_free(&p->after);
  if (p->pipe[1] > 0) {
    close(p->pipe[0]);
    close(p->pipe[1]);
  }
}

static void upload_write_free(struct upload_write *w)
{
  disk_close(w->gate, w->team, w->fd);
  piece_free(&w->pieces[0]);
  piece_free(&w->pieces[1]);
  piped_uploads -= w->counted;
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

static void act(struct disk_work *work)
{
  struct upload_write *w = (struct upload_write *)work;
  const struct piece *p = w->going;
  int r = fd_write_all(w->fd, p->before.p, p->before.n);
  r = r ? r : write_pipe(p->pipe[0], w->fd, p->piped);
  w->result = r ? r : fd_write_all(w->fd, p->after.p, p->after.n);
}

/* ---- on the loop ---- */

static void write_next(struct upload_write *w)
{
  struct piece *empty = w->going;
  w->going = w->coming;
  w->coming = empty;
  w->full = false;
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
  http_x_hold(w->x, -(int64_t)piece_size(w->going));
  buf_clear(&w->going->before);
  buf_clear(&w->going->after);
  w->going->piped = 0;
  if (!w->code && piece_size(w->coming))
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
  *w = (struct upload_write){
      .work = {.act = act, .done = done}, .gate = g, .x = x, .fd = fd, .written = written, .arg = arg};
  for (size_t i = 0; i < 2; i++) {
    w->pieces[i].before = BUF_INIT(UPLOAD_PIECE + CHUNK_MAX);
    w->pieces[i].after = BUF_INIT(UPLOAD_PIECE + CHUNK_MAX);
  }
  w->going = &w->pieces[0];
  w->coming = &w->pieces[1];
  w->pipes = w->counted = http_x_body_length(x) >= PIPED_MIN && piped_uploads < PIPED_MAX;
  piped_uploads += w->counted;
  str_copyz(str_of(team), w->team, sizeof(w->team));
  return w;
}

/* Something came. */
static void filled(struct upload_write *w)
{
  if (!w->busy && piece_size(w->coming)) {
    write_next(w);
  } else if (w->full || piece_size(w->coming) >= UPLOAD_PIECE) {
    w->paused = true;
    http_x_pause(w->x);
  }
}

void upload_write_add(struct upload_write *w, struct str data)
{
  if (w->code)
    return;
  if (buf_adds(w->coming->piped ? &w->coming->after : &w->coming->before, data)) {
    w->code = -ENOMEM;
    http_abort(w->x);
    return;
  }
  http_x_hold(w->x, (int64_t)data.n);
  filled(w);
}

static int open_pipe(struct upload_write *w, int pipe[2])
{
  if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK)) {
    pipe[0] = pipe[1] = 0;
    w->pipes = false;
    return -1;
  }
  if (fcntl(pipe[1], F_SETPIPE_SZ, PIPE_BYTES) < PIPE_BYTES) { /* the kernel's limit of this user is reached */
    close(pipe[0]);
    close(pipe[1]);
    pipe[0] = pipe[1] = 0;
    w->pipes = false;
    return -1;
  }
  return pipe[1];
}

int upload_write_pipe(struct upload_write *w)
{
  struct piece *p = w->coming;
  if (!w->pipes || w->code || w->full || p->after.n)
    return -1;
  return p->pipe[1] > 0 ? p->pipe[1] : open_pipe(w, p->pipe);
}

void upload_write_passed(struct upload_write *w, size_t n)
{
  w->coming->piped += n;
  w->full = n == 0 && w->coming->piped; /* an empty one is not: the bytes came this very moment */
  http_x_hold(w->x, (int64_t)n);
  filled(w);
}

bool upload_write_end(struct upload_write *w)
{
  w->ended = true;
  return !w->busy && !w->code;
}

void upload_write_leave(struct upload_write *w)
{
  http_x_hold(w->x, -(int64_t)(piece_size(w->going) + piece_size(w->coming)));
  w->x = NULL;
  if (!w->busy || disk_work_cancel(&w->work))
    upload_write_free(w);
}
