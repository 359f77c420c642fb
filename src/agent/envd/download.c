/* SPDX-License-Identifier: Apache-2.0 */
/* download.c - GET /files: regular files by sendfile, whole or a range; what has no size (/proc) or is asked for
 * gzipped is read piece by piece on a worker thread, one piece in flight. */
#include "agent/envd/http_reply.h"
#include "agent/envd/files.h"
#include "agent/envd/http_fields.h"
#include "agent/envd/resolve.h"
#include "agent/thread_pool.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#define PIECE     ((size_t)128 << 10)
#define GZIP_WRAP (16 + MAX_WBITS)

struct reply_head {
  struct http_header headers[8];
  size_t n;
  char modified[HTTP_DATE_TEXT], range[96];
  struct buf disposition;
};

static void head_add(struct reply_head *h, struct str name, struct str value)
{
  h->headers[h->n++] = (struct http_header){name, value};
}

static void head_start(struct reply_head *h, const char *path, const struct stat *st)
{
  struct str name = path_base(str_of(path));
  h->disposition = BUF_INIT(64 << 10);
  http_disposition(name, &h->disposition);
  http_date_text(st->st_mtime, h->modified);
  head_add(h, STR("Content-Disposition"), buf_str(&h->disposition));
  head_add(h, STR("Content-Type"), str_of(http_mime_type(name)));
  head_add(h, STR("Last-Modified"), str_of(h->modified));
  head_add(h, STR("Vary"), STR("Accept-Encoding"));
}

static void head_free(struct reply_head *h)
{
  buf_free(&h->disposition);
}

/* ---- piece by piece ---- */

struct feed {
  struct http_x *x; /* NULL once the peer is gone */
  struct work work;
  int fd, code;
  bool gzip, busy, last, waiting, begun;
  z_stream z;
  struct buf out;
  char in[PIECE];
};

static void feed_free(struct feed *f)
{
  if (f->gzip)
    deflateEnd(&f->z);
  close(f->fd);
  buf_free(&f->out);
  free(f);
}

static int squeeze(struct feed *f, size_t n, int flush)
{
  f->z.next_in = (Bytef *)f->in;
  f->z.avail_in = (uInt)n;
  do {
    if (buf_reserve(&f->out, PIECE) < 0)
      return -ENOMEM;
    f->z.next_out = (Bytef *)f->out.p + f->out.n;
    f->z.avail_out = PIECE;
    deflate(&f->z, flush);
    f->out.n += PIECE - f->z.avail_out;
  } while (f->z.avail_out == 0);
  return 0;
}

static void feed_work(struct work *w)
{
  struct feed *f = w->data;
  ssize_t n = read(f->fd, f->in, sizeof(f->in));
  if (n < 0 && errno == EINTR)
    n = read(f->fd, f->in, sizeof(f->in));
  if (n < 0 && errno != EAGAIN) {
    f->code = -errno;
    return;
  }
  f->last = n <= 0;
  size_t got = n > 0 ? (size_t)n : 0;
  f->code = f->gzip ? squeeze(f, got, f->last ? Z_FINISH : Z_NO_FLUSH) : buf_add(&f->out, f->in, got);
}

static void feed_next(struct feed *f);

static void feed_done(struct work *w)
{
  struct feed *f = w->data;
  f->busy = false;
  if (!f->x) {
    feed_free(f);
    return;
  }
  if (f->code < 0) {
    http_abort(f->x);
    return;
  }
  if (f->out.n)
    http_send(f->x, buf_str(&f->out));
  buf_clear(&f->out);
  if (f->last)
    http_end(f->x);
  else
    feed_next(f);
}

static void feed_next(struct feed *f)
{
  f->waiting = http_congested(f->x);
  if (f->waiting || f->busy)
    return;
  f->busy = work_queue(&f->work) == 0;
  if (!f->busy)
    http_abort(f->x);
}

static void on_drain(struct http_x *x)
{
  struct feed *f = http_x_data(x);
  if (f->waiting && !f->busy)
    feed_next(f);
}

static void on_gone(struct http_x *x, enum http_end how UNUSED)
{
  struct feed *f = http_x_data(x);
  f->x = NULL;
  if (!f->busy)
    feed_free(f);
}

static const struct http_x_ops feed_ops = {.drain = on_drain, .gone = on_gone};

static void feed_start(struct http_x *x, int fd, bool gzip, struct reply_head *h)
{
  struct feed *f = xcalloc(1, sizeof(*f));
  f->x = x;
  f->fd = fd;
  f->work = (struct work){.run = feed_work, .done = feed_done, .data = f};
  f->out = BUF_INIT((size_t)1 << 20);
  f->gzip = gzip && deflateInit2(&f->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WRAP, 8, Z_DEFAULT_STRATEGY) == Z_OK;
  if (f->gzip)
    head_add(h, STR("Content-Encoding"), STR("gzip"));
  http_x_handle(x, &feed_ops, f);
  answer_head(x, 200, h->headers, h->n, HTTP_CHUNKED);
  feed_next(f);
}

/* ---- regular files ---- */

static bool not_modified(const struct http_head *head, const struct stat *st)
{
  time_t since;
  struct str text = http_header(head, "If-Modified-Since");
  return text.p && http_date_parse(text, &since) == 0 && st->st_mtime <= since;
}

static bool range_wanted(const struct http_head *head, const struct stat *st)
{
  time_t seen;
  struct str condition = http_header(head, "If-Range");
  if (!http_header(head, "Range").p)
    return false;
  return !condition.p || (http_date_parse(condition, &seen) == 0 && seen == st->st_mtime);
}

static void send_regular(struct http_x *x, int fd, const struct stat *st, struct reply_head *h)
{
  const struct http_head *head = http_x_head(x);
  uint64_t size = (uint64_t)st->st_size, from = 0, n = size;
  int ranged = range_wanted(head, st) ? http_range_parse(http_header(head, "Range"), size, &from, &n) : 0;
  head_add(h, STR("Accept-Ranges"), STR("bytes"));
  if (ranged < 0) {
    snprintf(h->range, sizeof(h->range), "bytes */%llu", (unsigned long long)size);
    head_add(h, STR("Content-Range"), str_of(h->range));
    answer(x, 416, h->headers, h->n, STR(""));
    close(fd);
    return;
  }
  if (ranged > 0) {
    snprintf(h->range, sizeof(h->range), "bytes %llu-%llu/%llu", (unsigned long long)from,
             (unsigned long long)(from + n - 1), (unsigned long long)size);
    head_add(h, STR("Content-Range"), str_of(h->range));
  }
  answer_head(x, ranged > 0 ? 206 : 200, h->headers, h->n, (int64_t)n);
  if (n)
    http_send_file(x, fd, from, n);
  else
    close(fd);
  http_end(x);
}

/* Files of /proc say that they are empty and are not. */
static bool really_empty(int fd)
{
  char byte;
  return pread(fd, &byte, 1, 0) == 0;
}

static void send_file(struct http_x *x, const char *path, int fd, const struct stat *st)
{
  const struct http_head *head = http_x_head(x);
  struct reply_head h = {.n = 0};
  enum http_coding coding =
      http_coding_choose(http_header(head, "Accept-Encoding"), http_header(head, "Range").p != NULL);
  if (coding == CODING_NONE) {
    close(fd);
    answer_fail(x, 406, "no acceptable encoding found, supported: [identity, gzip]");
    return;
  }
  head_start(&h, path, st);
  bool sized = S_ISREG(st->st_mode) && (st->st_size > 0 || really_empty(fd));
  if (sized && not_modified(head, st)) {
    close(fd);
    answer(x, 304, h.headers, h.n, STR(""));
  } else if (sized && coding == CODING_IDENTITY) {
    send_regular(x, fd, st, &h);
  } else {
    feed_start(x, fd, coding == CODING_GZIP, &h);
  }
  head_free(&h);
}

static void open_failed(struct http_x *x, const char *path, int code)
{
  if (code == ENOENT || code == ENOTDIR)
    answer_fail(x, 404, "path '%s' does not exist", path);
  else
    answer_fail(x, 500, "error opening file '%s': %s", path, strerror(code));
}

void files_download(struct http_x *x, struct agent *a)
{
  cleanup_files_query struct files_query q = {0};
  cleanup_buf struct buf resolved = BUF_INIT(64 << 10);
  struct user user;
  struct stat st;
  struct err err = ERR_NONE;
  if (files_enter(x, a, "read", &q, &user) < 0)
    return;
  if (resolve_path(buf_str(&q.path), &user, a->default_workdir, &resolved, &err) < 0) {
    answer_fail(x, 400, "error expanding and resolving path: %s", err.msg);
    return;
  }
  const char *path = buf_z(&resolved);
  cleanup_fd int fd = -1;
  if (stat(path, &st) < 0)
    open_failed(x, path, errno);
  else if (S_ISDIR(st.st_mode))
    answer_fail(x, 400, "path '%s' is a directory", path);
  else if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0)
    open_failed(x, path, errno);
  else if (fstat(fd, &st) < 0)
    open_failed(x, path, errno);
  else
    send_file(x, path, steal_fd(&fd), &st);
}
