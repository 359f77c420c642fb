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
