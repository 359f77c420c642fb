/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c - see sparse.h. */
#include "cli/sparse.h"

#include <unistd.h>

/* A filesystem that knows no holes answers with the place that it was asked about. */
void sparse_next(int fd, uint64_t at, uint64_t end, uint64_t *data, uint64_t *hole)
{
  off_t from = lseek(fd, (off_t)at, SEEK_DATA);
  *data = from >= 0 ? (uint64_t)from : errno == ENXIO ? end : at;
  off_t to = *data < end ? lseek(fd, (off_t)*data, SEEK_HOLE) : -1;
  *hole = to > (off_t)*data ? (uint64_t)to : end;
  *data = MIN(*data, end);
  *hole = MIN(*hole, end);
}

bool sparse_zeros(struct str piece)
{
  return piece.n && !piece.p[0] && !memcmp(piece.p, piece.p + 1, piece.n - 1);
}

static int write_at(int fd, const char *p, size_t n, uint64_t at)
{
  for (ssize_t k; n; p += k, n -= (size_t)k, at += (uint64_t)k)
    if ((k = pwrite(fd, p, n, (off_t)at)) <= 0)
      return k < 0 ? -errno : -EIO;
  return 0;
}

static int copy_range(int from, int to, uint64_t at, uint64_t end, char *piece, size_t n)
{
  while (at < end) {
    ssize_t k = pread(from, piece, MIN((uint64_t)n, end - at), (off_t)at);
    if (k <= 0)
      return k < 0 ? -errno : 0; /* it has become shorter */
    int r = write_at(to, piece, (size_t)k, at);
    if (r)
      return r;
    at += (uint64_t)k;
  }
  return 0;
}

int sparse_copy(int from, int to, char *piece, size_t n)
{
  off_t end = lseek(from, 0, SEEK_END);
  int r = end < 0 ? -errno : 0;
  for (uint64_t at = 0, data, hole; !r && at < (uint64_t)end; at = hole) {
    sparse_next(from, at, (uint64_t)end, &data, &hole);
    r = copy_range(from, to, data, hole, piece, n);
  }
  return r ? r : ftruncate(to, end) ? -errno : 0;
}
