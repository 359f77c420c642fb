/* SPDX-License-Identifier: Apache-2.0 */
/* tree_remove.c - a tree of any depth goes with a bounded number of descriptors: what is deeper than LEVELS is moved up
 * to the top of the tree that goes, and found there later. Links are removed, never followed. */
#include "content/file_ops.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#define LEVELS 64

struct removal {
  int top;
  uint64_t moved; /* directories moved up */
  uint64_t gone;  /* entries removed in this pass */
  int64_t until_us;
};

static int empty(struct removal *m, int fd, int level);

/* What stays is found by the next pass. */
static int take(struct removal *m, int dir, const char *name, int level)
{
  if (!unlinkat(dir, name, 0)) {
    m->gone++;
    return 0;
  }
  if (errno != EISDIR && errno != EPERM)
    return errno == ENOENT ? 0 : -errno;
  if (level == LEVELS) {
    char up[64];
    snprintf(up, sizeof(up), ".cloche-removed-%llu-%llu", (unsigned long long)clock_mono_us(),
             (unsigned long long)m->moved++);
    if (renameat(dir, name, m->top, up))
      return errno == ENOENT ? 0 : -errno;
    m->gone++;
    return 0;
  }
  int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
  int r = empty(m, fd, level + 1);
  if (!r && !unlinkat(dir, name, AT_REMOVEDIR))
    m->gone++;
  return r;
}

/* Takes fd. */
static int empty(struct removal *m, int fd, int level)
{
  cleanup_dir DIR *d = fdopendir(fd);
  if (!d) {
    close(fd);
    return -ENOMEM;
  }
  int r = 0;
  for (struct dirent *e; !r && (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
      continue;
    r = take(m, dirfd(d), e->d_name, level);
    if (!r && clock_mono_us() > m->until_us)
      r = -EAGAIN;
  }
  return r;
}

int tree_remove(int parent, const char *name, int64_t until_us)
{
  cleanup_fd int top = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0)
    return -errno;
  struct removal m = {.top = top, .until_us = until_us};
  for (;;) {
    m.gone = 0;
    int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : empty(&m, fd, 0);
    if (r)
      return r;
    if (!unlinkat(parent, name, AT_REMOVEDIR) || errno == ENOENT)
      return 0;
    if ((errno != ENOTEMPTY && errno != EEXIST) || !m.gone)
      return errno == ENOTEMPTY || errno == EEXIST ? -EBUSY : -errno;
  }
}
