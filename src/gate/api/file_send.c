/* SPDX-License-Identifier: Apache-2.0 */
/* file_send.c - see file_send.h. One piece is read while the one before waits for the client. */
#include "gate/api/file_send.h"

#include "gate/api/disk_work.h"

#define PIECE ((size_t)1 << 20)

struct file_send {
  struct disk_work work; /* first: its callbacks get it */
  struct req *r;         /* NULL: the client is gone */
  struct gate *gate;
  char team[UUID_SIZE];
  int fd;
  uint64_t offset, size; /* of the piece; of the file */
  size_t n;
  int code;
  bool reading, ready; /* a thread has the piece; it is here and waits for the client */
  char *data;
  size_t held; /* bytes of it, which count as waiting */
  void (*sent)(const char *team);
};

static void sender_free(struct file_send *s)
{
  disk_close(s->gate, s->work.disk, s->team, s->fd);
  free(s->data);
  free(s);
}

static void act(struct disk_work *work)
{
  struct file_send *s = (struct file_send *)work;
  s->code = 0;
  for (size_t got = 0; got < s->n;) {
    ssize_t k = pread(s->fd, s->data + got, s->n - got, (off_t)(s->offset + got));
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0) {
      s->code = k ? -errno : -ENODATA;
      return;
    }
    got += (size_t)k;
  }
}

static void read_next(struct file_send *s)
{
  s->n = (size_t)MIN(s->size - s->offset, (uint64_t)PIECE);
  s->reading = true;
  disk_work_queue(s->gate, s->team, &s->work);
}

/* Sends the piece that is here, if the client takes it, and has the next one read. */
static void go_on(struct file_send *s)
{
  struct http_x *x = s->r->x;
  if (!s->ready || http_congested(x))
    return;
  s->ready = false;
  if (s->code) {
    log_warn("a file of a volume can't be read to its end: %s", strerrordesc_np(-s->code));
    http_abort(x);
    return;
  }
  http_send(x, str_make(s->data, s->n));
  s->offset += s->n;
  if (s->offset < s->size)
    read_next(s);
  else
    http_end(x);
}

static void done(struct disk_work *work)
{
  struct file_send *s = (struct file_send *)work;
  s->reading = false;
  s->ready = true;
  if (!s->r) {
    sender_free(s);
    return;
  }
  struct net *net = http_gather(s->gate->loop);
  go_on(s);
  http_let_go(net);
}

static void drained(struct req *r)
{
  go_on(r->state);
}

static void drop(struct req *r)
{
  struct file_send *s = r->state;
  s->r = NULL;
  http_x_hold(r->x, -(int64_t)s->held);
  if (s->sent)
    s->sent(s->team);
  if (!s->reading || disk_work_cancel(&s->work))
    sender_free(s);
}

void file_send(struct req *r, const char *team, int fd, uint64_t size, const char *content_type,
               void (*sent)(const char *team))
{
  struct file_send *s = xcalloc(1, sizeof(*s));
  *s = (struct file_send){
      .work = {.act = act, .done = done, .disk = DISK_VOLUMES}, .r = r, .gate = r->gate, .fd = fd, .size = size};
  str_copyz(str_of(team), s->team, sizeof(s->team));
  s->sent = sent;
  s->held = (size_t)MAX(MIN(size, (uint64_t)PIECE), (uint64_t)1);
  s->data = xmalloc(s->held);
  http_x_hold(r->x, (int64_t)s->held);
  r->state = s;
  r->drop = drop;
  r->drained = drained;
  api_answer_begin(r, 200, content_type, (int64_t)size);
  if (size)
    read_next(s);
  else
    http_end(r->x);
}
