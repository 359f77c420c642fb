/* SPDX-License-Identifier: Apache-2.0 */
/* log_capture.c - see log_capture.h. Nothing here can fail a caller: a line that can't be kept is not kept. */
#include "agent/log_capture.h"

#include "wire/logring.h"
#include <fcntl.h>
#include <stdio.h>

#define LINE_MAX_BYTES 4096 /* of a message; the rest of a longer line is cut */
#define BATCH_MAX      (64 << 10)
#define PARTIALS       32
#define SIZE_DEFAULT   ((uint64_t)1 << 20)

static struct {
  int fd;
  bool tried;
  struct logring_head head;
} book = {.fd = -1};

static uint64_t wanted_size(void)
{
  const char *text = getenv("CLOCHE_LOG_BYTES");
  uint64_t n;
  return text && !str_u64(str_of(text), &n) ? MIN(n, LOGRING_MAX) : SIZE_DEFAULT;
}

static bool book_open(void)
{
  if (book.tried)
    return book.fd >= 0;
  book.tried = true;
  memcpy(book.head.magic, LOGRING_MAGIC, sizeof(book.head.magic));
  book.head.size = wanted_size();
  if (book.head.size < BATCH_MAX)
    return false;
  unlink("/" LOGRING_PATH);
  book.fd = open("/" LOGRING_PATH, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  return book.fd >= 0;
}

/* All of it or nothing: the head moves last, so a full disk leaves no torn line behind. */
static void book_write(struct str s)
{
  struct logring_head next = book.head;
  while (s.n) {
    uint64_t at = next.written % next.size, n = MIN((uint64_t)s.n, next.size - at);
    if (pwrite(book.fd, s.p, (size_t)n, (off_t)(LOGRING_HEAD + at)) != (ssize_t)n)
      return;
    next.written += n;
    s = str_skip(s, (size_t)n);
  }
  if (pwrite(book.fd, &next, sizeof(next), 0) == (ssize_t)sizeof(next))
    book.head = next;
}

static void put_field(struct jw *w, const char *name, const char *value)
{
  if (!value)
    return;
  jw_key(w, name);
  jw_z(w, value);
}

/* `token`: the message is a JSON string already, without its quotes. */
static void put_line(struct buf *b, const char *level, const char *logger, const char *who, const char *stream,
                     struct str message, bool token)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  jw_key(&w, "t");
  jw_int(&w, clock_wall_us());
  put_field(&w, "l", level);
  put_field(&w, "g", logger);
  jw_key(&w, "m");
  if (token) {
    buf_addc(b, '"');
    jw_raw(&w, message);
    buf_addc(b, '"');
  } else {
    jw_str(&w, str_sub(message, 0, utf8_whole(str_sub(message, 0, LINE_MAX_BYTES))));
  }
  put_field(&w, "who", who);
  put_field(&w, "stream", stream);
  jw_close(&w, '}');
  buf_addc(b, '\n');
}

/* Programs write lines in pieces: what has no newline yet waits here for its end. */
static struct partial {
  char who[16];
  bool err;
  struct buf text;
} partials[PARTIALS];

static struct partial *partial_of(const char *who, bool err, bool make)
{
  static unsigned next;
  for (size_t i = 0; i < PARTIALS; i++)
    if (partials[i].text.n && partials[i].err == err && !strcmp(partials[i].who, who))
      return &partials[i];
  if (!make)
    return NULL;
  struct partial *p = &partials[next++ % PARTIALS]; /* the one that waited longest gives way, unfinished */
  buf_free(&p->text);
  buf_init(&p->text, LINE_MAX_BYTES);
  snprintf(p->who, sizeof(p->who), "%s", who);
  p->err = err;
  return p;
}

static void put_output(struct buf *b, const char *logger, const char *who, const char *stream, struct str line)
{
  if (line.n && line.p[line.n - 1] == '\r')
    line.n--;
  if (line.n)
    put_line(b, strcmp(stream, "stderr") ? "info" : "warn", logger, who, stream, line, false);
  if (b->n >= BATCH_MAX) {
    book_write(buf_str(b));
    buf_clear(b);
  }
}

/* The first line of a chunk goes on where the chunk before ended. */
static struct str finish_partial(struct buf *b, const char *logger, const char *who, const char *stream,
                                 struct str chunk)
{
  struct partial *p = partial_of(who, !strcmp(stream, "stderr"), false);
  struct str line, rest;
  if (!p)
    return chunk;
  bool whole = str_cut(chunk, '\n', &line, &rest);
  buf_adds(&p->text, str_sub(line, 0, LINE_MAX_BYTES - p->text.n));
  if (!whole && p->text.n < LINE_MAX_BYTES)
    return STR_NONE;
  put_output(b, logger, who, stream, buf_str(&p->text));
  buf_free(&p->text);
  return whole ? rest : STR_NONE;
}

void log_capture_output(const char *logger, const char *who, const char *stream, struct str chunk)
{
  if (!chunk.n || !book_open())
    return;
  cleanup_buf struct buf b = BUF_INIT(BATCH_MAX * 8);
  struct str line;
  chunk = finish_partial(&b, logger, who, stream, chunk);
  for (ptrdiff_t nl; (nl = str_find(chunk, '\n')) >= 0;) {
    line = str_sub(chunk, 0, (size_t)nl);
    chunk = str_skip(chunk, (size_t)nl + 1);
    put_output(&b, logger, who, stream, line);
  }
  if (chunk.n)
    buf_adds(&partial_of(who, !strcmp(stream, "stderr"), true)->text, str_sub(chunk, 0, LINE_MAX_BYTES));
  if (b.n && !buf_failed(&b))
    book_write(buf_str(&b));
}

void log_capture_end(const char *who)
{
  for (int err = 0; err < 2; err++) {
    struct partial *p = partial_of(who, err, false);
    if (!p)
      continue;
    cleanup_buf struct buf b = BUF_INIT(BATCH_MAX * 8);
    put_output(&b, "process", who, err ? "stderr" : "stdout", buf_str(&p->text));
    if (b.n && !buf_failed(&b))
      book_write(buf_str(&b));
    buf_free(&p->text);
  }
}

/* The first line of an escaped text: up to its \\n, cut between two characters when it is long. *used is how much of
 * it the line took. */
static struct str escaped_line(struct str body, size_t *used)
{
  size_t i = 0, keep = 0;
  while (i < body.n) {
    const char *slash = memchr(body.p + i, '\\', body.n - i);
    size_t from = i;
    i = slash ? (size_t)(slash - body.p) : body.n;
    if (from <= LINE_MAX_BYTES)
      keep = i <= LINE_MAX_BYTES ? i : utf8_whole(str_sub(body, 0, LINE_MAX_BYTES));
    if (!slash)
      break;
    size_t step = i + 1 < body.n && body.p[i + 1] == 'u' ? 6 : 2;
    if (step == 2 && i + 1 < body.n && body.p[i + 1] == 'n') {
      *used = i + 2;
      return str_sub(body, 0, keep);
    }
    i += step;
    keep = i <= LINE_MAX_BYTES && i <= body.n ? i : keep;
  }
  *used = body.n;
  return str_sub(body, 0, keep);
}

void log_capture_escaped(const char *logger, const char *who, const char *stream, struct str body)
{
  if (!body.n || !book_open())
    return;
  cleanup_buf struct buf b = BUF_INIT(BATCH_MAX * 8);
  const char *level = strcmp(stream, "stderr") ? "info" : "warn";
  while (body.n) {
    size_t used;
    struct str line = escaped_line(body, &used);
    body = str_skip(body, used);
    if (line.n)
      put_line(&b, level, logger, who, stream, line, true);
    if (b.n >= BATCH_MAX) {
      book_write(buf_str(&b));
      buf_clear(&b);
    }
  }
  if (b.n && !buf_failed(&b))
    book_write(buf_str(&b));
}
