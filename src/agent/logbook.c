/* logbook.c - see logbook.h. Nothing here can fail a caller: a line that can't be kept is not kept. */
#include "agent/logbook.h"

#include "warden/logring.h"
#include <fcntl.h>
#include <stdio.h>

#define LINE_MAX_BYTES 4096 /* of a message; the rest of a longer line is cut */
#define BATCH_MAX (64 << 10)
#define SIZE_DEFAULT ((uint64_t)1 << 20)

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

static void book_write(struct str s)
{
  while (s.n) {
    uint64_t at = book.head.written % book.head.size, n = MIN((uint64_t)s.n, book.head.size - at);
    if (pwrite(book.fd, s.p, (size_t)n, (off_t)(LOGRING_HEAD + at)) != (ssize_t)n)
      return;
    book.head.written += n;
    s = str_skip(s, (size_t)n);
  }
  if (pwrite(book.fd, &book.head, sizeof(book.head), 0) < 0)
    return;
}

static void put_field(struct jw *w, const char *name, const char *value)
{
  if (!value)
    return;
  jw_key(w, name);
  jw_z(w, value);
}

/* `token`: the message is a JSON string already, without its quotes. */
static void put_line(struct buf *b, const char *level, const char *logger, const char *who, const char *stream, struct str message, bool token)
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

void logbook_output(const char *logger, const char *who, const char *stream, struct str chunk)
{
  if (!chunk.n || !book_open())
    return;
  cleanup_buf struct buf b = BUF_INIT(BATCH_MAX * 8);
  const char *level = strcmp(stream, "stderr") ? "info" : "warn";
  struct str line;
  while (chunk.n) {
    str_cut(chunk, '\n', &line, &chunk);
    if (line.n && line.p[line.n - 1] == '\r')
      line.n--;
    if (line.n)
      put_line(&b, level, logger, who, stream, line, false);
    if (b.n >= BATCH_MAX) {
      book_write(buf_str(&b));
      buf_clear(&b);
    }
  }
  if (b.n && !buf_failed(&b))
    book_write(buf_str(&b));
}

/* The first line of an escaped text: up to its \\n, cut between two characters when it is long. *used tells how much of it
 * the line took. */
static struct str escaped_line(struct str body, size_t *used)
{
  size_t i = 0, keep = 0;
  while (i < body.n) {
    size_t step = body.p[i] != '\\' ? 1 : i + 1 < body.n && body.p[i + 1] == 'u' ? 6 : 2;
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

void logbook_escaped(const char *logger, const char *who, const char *stream, struct str body)
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

void logbook_note(const char *logger, const char *who, const char *fmt, ...)
{
  char text[1024];
  va_list ap;
  if (!book_open())
    return;
  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  cleanup_buf struct buf b = BUF_INIT(BATCH_MAX);
  n = MIN(n, (int)sizeof(text) - 1);
  put_line(&b, "debug", logger, who, NULL, (struct str){text, n > 0 ? (size_t)n : 0}, false);
  if (!buf_failed(&b))
    book_write(buf_str(&b));
}

void logbook_close(void)
{
  if (book.fd >= 0)
    close(book.fd);
  book.fd = -1;
}
