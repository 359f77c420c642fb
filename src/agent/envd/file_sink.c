/* SPDX-License-Identifier: Apache-2.0 */
/* file_sink.c - see file_sink.h. */
#include "agent/envd/file_sink.h"
#include "agent/envd/metadata.h"
#include "agent/envd/resolve.h"
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define DIRECT_WRITE ((size_t)64 << 10)
#define STUCK_MS     1000 /* a pipe or terminal that takes nothing for so long */

int sink_fail(struct sink *s, int status, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(s->message, sizeof(s->message), fmt, ap);
  va_end(ap);
  s->status = status;
  return -EIO;
}

/* O_NONBLOCK matters only to pipes and devices: opening one that nobody reads must not hang. */
static int file_open(struct sink *s, const char *path, bool existed)
{
  s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (s->fd < 0 && (errno == ENOSPC || errno == EDQUOT))
    return sink_fail(s, 507, "not enough inodes available on the disk");
  if (s->fd < 0)
    return sink_fail(s, 500, "error opening file: %s", strerror(errno));
  if (!existed && fchown(s->fd, s->user->uid, s->user->gid) < 0)
    return sink_fail(s, 500, "error changing file ownership: %s", strerror(errno));
  return 0;
}

int sink_open(struct sink *s, const char *path)
{
  struct stat st;
  s->fd = -1;
  s->pending = BUF_INIT(SINK_BUFFER);
  int rc = resolve_parents(path, s->user);
  if (rc == -ENOSPC || rc == -EDQUOT)
    return sink_fail(s, 507, "error ensuring directories: not enough inodes available");
  if (rc < 0)
    return sink_fail(s, 500, "error ensuring directories: %s", strerror(-rc));
  bool exists = stat(path, &st) == 0;
  if (!exists && errno != ENOENT)
    return sink_fail(s, 500, "error getting file info: %s", strerror(errno));
  if (exists && S_ISDIR(st.st_mode))
    return sink_fail(s, 400, "path is a directory: %s", path);
  if (exists && chown(path, s->user->uid, s->user->gid) < 0 && S_ISREG(st.st_mode) && errno != EPERM && errno != EROFS)
    return sink_fail(s, 500, "error changing file ownership: %s", strerror(errno));
  return file_open(s, path, exists);
}

static int write_failed(struct sink *s, int code)
{
  if (code != ENOSPC && code != EDQUOT)
    return sink_fail(s, 500, "error writing file: %s", strerror(code));
  if (s->announced >= 0)
    return sink_fail(s, 507, "attempted to write %lld bytes: not enough disk space available", (long long)s->announced);
  return sink_fail(s, 507, "not enough disk space available");
}

static int write_all(struct sink *s, struct str bytes)
{
  while (bytes.n) {
    ssize_t n = write(s->fd, bytes.p, bytes.n);
    if (n < 0 && errno == EAGAIN) {
      struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
      if (poll(&ready, 1, STUCK_MS) > 0)
        continue;
      errno = ETIMEDOUT;
    }
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return write_failed(s, errno);
    bytes = str_skip(bytes, (size_t)n);
  }
  return 0;
}

static int flush(struct sink *s)
{
  int rc = write_all(s, buf_str(&s->pending));
  buf_clear(&s->pending);
  return rc;
}

int sink_write(struct sink *s, struct str bytes)
{
  if (s->pending.n == 0 && bytes.n >= DIRECT_WRITE)
    return write_all(s, bytes);
  if (s->pending.n + bytes.n <= SINK_BUFFER && buf_adds(&s->pending, bytes) == 0)
    return 0;
  int rc = flush(s);
  return rc < 0 ? rc : write_all(s, bytes);
}

static int pipe_copy(struct sink *s, int pipe, size_t n)
{
  char bytes[32 << 10];
  while (n) {
    ssize_t k = read(pipe, bytes, MIN(n, sizeof(bytes)));
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return write_failed(s, k < 0 ? errno : EIO);
    int rc = write_all(s, str_make(bytes, (size_t)k));
    if (rc < 0)
      return rc;
    n -= (size_t)k;
  }
  return 0;
}

int sink_pipe(struct sink *s, int pipe, size_t n)
{
  int rc = flush(s);
  while (n && rc == 0) {
    ssize_t k = splice(pipe, NULL, s->fd, NULL, n, SPLICE_F_MOVE);
    if (k < 0 && (errno == EINVAL || errno == EAGAIN)) /* not that kind of file */
      return pipe_copy(s, pipe, n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return write_failed(s, k < 0 ? errno : EIO);
    n -= (size_t)k;
  }
  return rc;
}

void sink_abort(struct sink *s)
{
  buf_free(&s->pending);
  if (s->fd >= 0)
    close(s->fd);
  s->fd = -1;
}

int sink_close(struct sink *s)
{
  int rc = flush(s);
  if (rc == 0) {
    int code = metadata_write(s->fd, s->metadata);
    if (code == -ENOSPC || code == -EDQUOT)
      rc = sink_fail(s, 507, "error writing metadata: not enough disk space available");
    else if (code < 0)
      rc = sink_fail(s, 500, "error writing metadata: %s", strerror(-code));
  }
  sink_abort(s);
  return rc;
}
