/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - names: cleaned by text where the contract spells them, opened by openat2 where they must not escape. */
#include "base/path.h"
#include "base/clock.h"
#include "base/core.h"
#include "base/fdx.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Drops the last component of what was built so far; keeps leading ".." of relative paths. */
static bool path_up(struct buf *out, size_t floor)
{
  struct str s = {out->p + floor, out->n - floor};
  if (!s.n || str_is(s, "..") || str_ends(s, STR("/..")))
    return false;
  ptrdiff_t slash = str_rfind(s, '/');
  out->n = floor + (slash < 0 ? 0 : (size_t)slash);
  return true;
}

int path_clean(struct str path, struct buf *out)
{
  bool absolute = path.n && path.p[0] == '/';
  if (absolute)
    buf_addc(out, '/');
  size_t start = out->n;
  while (path.n) {
    struct str part;
    str_cut(path, '/', &part, &path);
    if (!part.n || str_is(part, "."))
      continue;
    if (str_is(part, "..") && (path_up(out, start) || absolute))
      continue;
    if (out->n > start)
      buf_addc(out, '/');
    buf_adds(out, part);
  }
  if (out->n == start && !absolute)
    buf_addc(out, '.');
  return buf_failed(out);
}

int path_join(struct str dir, struct str name, struct buf *out)
{
  cleanup_buf struct buf raw = BUF_INIT(1 << 20);
  buf_adds(&raw, dir);
  buf_addc(&raw, '/');
  buf_adds(&raw, name);
  return buf_failed(&raw) ? buf_failed(&raw) : path_clean(buf_str(&raw), out);
}

static struct str without_slashes(struct str p)
{
  while (p.n > 1 && p.p[p.n - 1] == '/')
    p.n--;
  return p;
}

struct str path_base(struct str path)
{
  path = without_slashes(path);
  ptrdiff_t slash = str_rfind(path, '/');
  return slash < 0 || path.n == 1 ? path : str_skip(path, (size_t)slash + 1);
}

struct str path_dir(struct str path)
{
  path = without_slashes(path);
  ptrdiff_t slash = str_rfind(path, '/');
  if (slash < 0)
    return STR(".");
  return slash == 0 ? STR("/") : without_slashes(str_sub(path, 0, (size_t)slash));
}

static int open2(int rootfd, const char *path, int flags, unsigned mode, uint64_t resolve)
{
  struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                         .mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
                         .resolve = resolve};
  long fd = syscall(SYS_openat2, rootfd, path, &how, sizeof(how));
  return fd < 0 ? -errno : (int)fd;
}

int path_open_in(int rootfd, const char *path, int flags, unsigned mode)
{
  return open2(rootfd, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int path_open_beneath(int rootfd, const char *path, int flags, unsigned mode)
{
  return open2(rootfd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

int path_mkdirs(const char *path, unsigned mode)
{
  char tmp[4096];
  int r = str_copyz(str_of(path), tmp, sizeof(tmp));
  if (r)
    return r;
  for (char *p = tmp + 1; *p; p++) {
    if (*p != '/')
      continue;
    *p = 0;
    if (mkdir(tmp, mode) && errno != EEXIST)
      return -errno;
    *p = '/';
  }
  return mkdir(tmp, mode) && errno != EEXIST ? -errno : 0;
}

/* A tree of any depth goes with a bounded number of descriptors: what is deeper than LEVELS is moved up to the top of
 * the tree that goes, and found there by the next pass. Where it can't be moved it is gone into, up to LEVELS_MAX. */
#define LEVELS     64
#define LEVELS_MAX 4000

struct removal {
  int top;
  dev_t dev;
  uint64_t moved;   /* directories moved up */
  int64_t until_us; /* when to stop */
};

static int remove_at(struct removal *m, int dir, const char *name, int level);

static int remove_inside(struct removal *m, int dir, const char *name, int level)
{
  int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT ? 0 : -errno; /* another has removed it */
  DIR *d = fdopendir(fd);
  if (!d) {
    close(fd);
    return -ENOMEM;
  }
  int worst = 0;
  for (struct dirent *e; worst != -EAGAIN && (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
      continue;
    int r = remove_at(m, fd, e->d_name, level);
    worst = clock_mono_us() > m->until_us ? -EAGAIN : r ? r : worst;
  }
  closedir(d);
  return worst;
}

static bool move_up(struct removal *m, int dir, const char *name)
{
  char up[64];
  snprintf(up, sizeof(up), ".removed-%llu-%llu", (unsigned long long)clock_mono_us(), (unsigned long long)m->moved);
  if (renameat(dir, name, m->top, up))
    return false;
  m->moved++;
  return true;
}

static int remove_at(struct removal *m, int dir, const char *name, int level)
{
  if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
    return 0;
  if (errno != EISDIR && errno != EPERM)
    return -errno;
  struct stat st;
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
    return errno == ENOENT ? 0 : -errno;
  if (!S_ISDIR(st.st_mode))
    return -EPERM;
  if (st.st_dev != m->dev)
    return -EXDEV;
  if (level >= LEVELS && move_up(m, dir, name))
    return 0;
  if (level > LEVELS_MAX)
    return -ELOOP;
  int r = remove_inside(m, dir, name, level + 1);
  return unlinkat(dir, name, AT_REMOVEDIR) && errno != ENOENT ? (r ? r : -errno) : 0;
}

int path_remove_tree(int dirfd, const char *name)
{
  return path_remove_tree_until(dirfd, name, INT64_MAX);
}

int path_remove_tree_until(int dirfd, const char *name, int64_t until_us)
{
  struct stat st;
  if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
    return 0;
  if (errno != EISDIR && errno != EPERM)
    return -errno;
  if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
    return errno == ENOENT ? 0 : -errno;
  if (!S_ISDIR(st.st_mode))
    return -EPERM;
  cleanup_fd int top = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int r = top < 0 ? -errno : 0;
  if (r)
    return unlinkat(dirfd, name, AT_REMOVEDIR) && errno != ENOENT ? r : 0;
  struct removal m = {.top = top, .dev = st.st_dev, .until_us = until_us};
  for (;;) {
    uint64_t before = m.moved;
    r = remove_inside(&m, top, ".", 1);
    if (!unlinkat(dirfd, name, AT_REMOVEDIR) || errno == ENOENT)
      return 0;
    if (m.moved == before || r == -EAGAIN)
      return r ? r : -errno;
  }
}
