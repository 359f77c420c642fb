/* SPDX-License-Identifier: Apache-2.0 */
/* logring.c - see logring.h. */
#include "wire/logring.h"

static int read_head(int fd, struct logring_head *h)
{
  if (pread(fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h) || memcmp(h->magic, LOGRING_MAGIC, sizeof(h->magic)))
    return -EINVAL;
  return h->size && h->size <= LOGRING_MAX ? 0 : -EINVAL;
}

/* Bytes [from, to) of everything ever written; a short file gives fewer. */
static void read_span(int fd, uint64_t size, uint64_t from, uint64_t to, struct buf *out)
{
  while (from < to) {
    uint64_t at = from % size, n = MIN(size - at, to - from);
    n = MIN(n, (uint64_t)65536);
    if (buf_reserve(out, (size_t)n))
      return;
    ssize_t k = pread(fd, out->p + out->n, (size_t)n, (off_t)(LOGRING_HEAD + at));
    if (k <= 0)
      return;
    out->n += (size_t)k;
    from += (uint64_t)k;
  }
}

int logring_read(int fd, size_t most, struct buf *out)
{
  struct logring_head before, after;
  if (read_head(fd, &before))
    return -EINVAL;
  uint64_t span = MIN(before.written, before.size);
  span = MIN(span, (uint64_t)most);
  uint64_t from = before.written - span;
  cleanup_buf struct buf raw = BUF_INIT((size_t)LOGRING_MAX + 1);
  read_span(fd, before.size, from, before.written, &raw);
  if (read_head(fd, &after) || after.written < before.written || after.size != before.size)
    return -EINVAL;
  struct str lines = buf_str(&raw);
  uint64_t gone = after.written > after.size ? after.written - after.size : 0;
  if (gone > from)
    lines = str_skip(lines, (size_t)MIN(gone - from, (uint64_t)lines.n));
  if (gone > from || from > 0) { /* the first line may be cut */
    ptrdiff_t nl = str_find(lines, '\n');
    lines = nl < 0 ? STR_NONE : str_skip(lines, (size_t)nl + 1);
  }
  ptrdiff_t last = str_rfind(lines, '\n');
  return buf_adds(out, str_sub(lines, 0, (size_t)(last + 1)));
}

/* Where a reader goes on that found no whole line in the `n` bytes it read. */
static uint64_t after_no_line(uint64_t from, uint64_t to, size_t n, bool cut, size_t most)
{
  if (!n)
    return to;                               /* a file that is shorter than it says */
  return cut || n >= most ? from + n : from; /* no line is so long; else its end is not there yet */
}

int logring_follow(int fd, uint64_t *at, size_t most, struct buf *out, uint64_t *lost)
{
  struct logring_head before, after;
  if (read_head(fd, &before))
    return -EINVAL;
  uint64_t oldest = before.written > before.size ? before.written - before.size : 0;
  bool other = *at > before.written; /* it is another ring now */
  bool cut = *at < oldest || (other && oldest);
  uint64_t from = cut || other ? oldest : *at, base = other ? from : *at;
  uint64_t to = from + MIN(before.written - from, (uint64_t)most);
  cleanup_buf struct buf raw = BUF_INIT((size_t)LOGRING_MAX + 1);
  read_span(fd, before.size, from, to, &raw);
  if (read_head(fd, &after) || after.written < before.written || after.size != before.size)
    return -EINVAL;
  struct str lines = buf_str(&raw);
  uint64_t gone = after.written > after.size ? after.written - after.size : 0;
  if (gone > from)
    lines = str_skip(lines, (size_t)MIN(gone - from, (uint64_t)lines.n));
  cut = cut || gone > from;
  ptrdiff_t first = cut ? str_find(lines, '\n') : -1;
  if (cut) /* the first line may be */
    lines = first < 0 ? STR_NONE : str_skip(lines, (size_t)first + 1);
  size_t kept = (size_t)(str_rfind(lines, '\n') + 1);
  *at = kept ? from + raw.n - (lines.n - kept) : after_no_line(from, to, raw.n, cut, most);
  *lost += *at - base - kept;
  return buf_adds(out, str_sub(lines, 0, kept));
}

int logring_make(int fd, uint64_t size)
{
  char bytes[LOGRING_HEAD] = {0};
  struct logring_head h = {.magic = LOGRING_MAGIC, .size = size};
  memcpy(bytes, &h, sizeof(h));
  return pwrite(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) ? 0 : -EIO;
}

int logring_open(int fd, struct logring_head *h)
{
  return read_head(fd, h);
}

int logring_append(int fd, struct logring_head *h, struct str lines)
{
  if (lines.n > h->size)
    return -EMSGSIZE;
  for (uint64_t at = h->written % h->size; lines.n;) {
    size_t n = MIN((size_t)(h->size - at), lines.n);
    ssize_t k = pwrite(fd, lines.p, n, (off_t)(LOGRING_HEAD + at));
    if (k <= 0)
      return k ? -errno : -EIO;
    lines = str_skip(lines, (size_t)k);
    h->written += (uint64_t)k;
    at = h->written % h->size;
  }
  return pwrite(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) ? 0 : -EIO;
}
