/* SPDX-License-Identifier: Apache-2.0 */
/* buildlog.c - see buildlog.h. */
#include "wire/buildlog.h"

#include <fcntl.h>
#include <sys/uio.h>

int buildlog_open(struct buildlog *l, const char *path, uint64_t most, struct err *err)
{
  *l = (struct buildlog){.most = most};
  l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  off_t size = l->fd < 0 ? -1 : lseek(l->fd, 0, SEEK_END); /* of a build that goes on after a restart */
  l->size = (uint64_t)MAX(size, (off_t)0);
  return l->fd < 0 ? err_errno(err, "the build's log %s", path) : 0;
}

static void append(struct buildlog *l, enum log_level level, const char *step, struct str message)
{
  struct buildlog_head h = {.wall_us = clock_wall_us(), .len = (uint32_t)message.n, .level = (uint8_t)level};
  str_copyz(str_of(step), h.step, sizeof(h.step));
  struct iovec parts[2] = {{&h, sizeof(h)}, {(void *)message.p, message.n}};
  if (writev(l->fd, parts, message.n ? 2 : 1) > 0)
    l->size += sizeof(h) + message.n;
}

void buildlog_add(struct buildlog *l, enum log_level level, const char *step, struct str message)
{
  if (l->fd < 0)
    return;
  bool full = l->size > l->most;
  message = str_sub(message, 0, utf8_whole(str_sub(message, 0, BUILDLOG_MESSAGE)));
  if (!full)
    append(l, level, step, message);
  else if (level >= LOG_ERROR)
    append(l, level, step, message);
  if (!full && l->size > l->most)
    append(l, LOG_WARN, step, STR("The log of this build is full; what follows is left out"));
}

void buildlog_close(struct buildlog *l)
{
  if (l->fd >= 0)
    close(steal_fd(&l->fd));
}

/* Whole records at the front of b; returns how many bytes they were, or 0 with *stop set. */
static size_t take(struct str have, int (*fn)(const struct buildlog_head *h, struct str message, void *arg), void *arg,
                   int *stop)
{
  size_t used = 0;
  struct buildlog_head h;
  while (!*stop && have.n - used >= sizeof(h)) {
    memcpy(&h, have.p + used, sizeof(h));
    if (h.len > BUILDLOG_MESSAGE) {
      *stop = -EINVAL;
      break;
    }
    if (have.n - used - sizeof(h) < h.len)
      break;
    h.step[sizeof(h.step) - 1] = 0;
    *stop = fn(&h, (struct str){have.p + used + sizeof(h), h.len}, arg);
    used += sizeof(h) + h.len;
  }
  return used;
}

int buildlog_step(int fd, uint64_t *at, int (*fn)(const struct buildlog_head *h, struct str message, void *arg),
                  void *arg)
{
  cleanup_buf struct buf b = BUF_INIT(2 * BUILDLOG_PIECE);
  int stop = 0;
  if (buf_reserve(&b, BUILDLOG_PIECE))
    return -ENOMEM;
  ssize_t n = pread(fd, b.p, BUILDLOG_PIECE, (off_t)*at);
  if (n < 0)
    return -errno;
  size_t used = take((struct str){b.p, (size_t)n}, fn, arg, &stop);
  *at += used;
  if (stop)
    return MIN(stop, 0);
  return used > 0;
}

int buildlog_each(int fd, int (*fn)(const struct buildlog_head *h, struct str message, void *arg), void *arg)
{
  uint64_t at = 0;
  int r;
  do
    r = buildlog_step(fd, &at, fn, arg);
  while (r > 0);
  return r;
}
