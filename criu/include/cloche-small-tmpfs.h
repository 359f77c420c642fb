/* SPDX-License-Identifier: GPL-2.0-only */
/* cloche-small-tmpfs.h - what scripts/criu adds to criu: small tmpfs without tar.
 *
 * criu packs every tmpfs of a box with tar and gzip and unpacks it the same way: six programs for a /dev of links and
 * mount points and an empty /dev/shm, at each dump and each restore. A tmpfs of few and small files is written here
 * directly. What is larger or less plain (hard links, pipes, devices) is left to tar, as before; the image's first
 * bytes tell which it was. As with tar, modes, owners and times are kept and extended attributes are not.
 *
 * An image is MAGIC and records: the head below, the path below the mount, then a link's target or a file's bytes. A
 * directory has a second record behind what is in it, so that its time is set last. What is mounted over can't be seen
 * and needs only a place: an empty file or directory. */
#ifndef CLOCHE_CRIU_SMALL_H
#define CLOCHE_CRIU_SMALL_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_MAGIC "clochetm"
#define SMALL_BYTES 65536 /* of a whole image */
#define SMALL_DEPTH 8

struct small_head {
  uint32_t mode, uid, gid, nsec;
  int64_t sec;
  uint32_t path, data; /* lengths of what follows */
};

struct small {
  char bytes[SMALL_BYTES];
  size_t n;
  uint64_t mount;
};

static int small_put(struct small *s, const void *p, size_t n)
{
  if (n > sizeof(s->bytes) - s->n)
    return -1;
  memcpy(s->bytes + s->n, p, n);
  s->n += n;
  return 0;
}

static int small_record(struct small *s, const struct statx *st, const char *path, const char *data, size_t n)
{
  struct small_head h = {.mode = st->stx_mode,
                         .uid = userns_uid(st->stx_uid),
                         .gid = userns_gid(st->stx_gid),
                         .sec = st->stx_mtime.tv_sec,
                         .nsec = st->stx_mtime.tv_nsec,
                         .path = (uint32_t)strlen(path),
                         .data = (uint32_t)n};
  return small_put(s, &h, sizeof(h)) || small_put(s, path, h.path) || small_put(s, data, n) ? -1 : 0;
}

static int small_file(struct small *s, int dir, const char *name, const char *path, const struct statx *st)
{
  char data[4096 + 1];
  int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));
  if (fd >= 0)
    close(fd);
  return n < 0 || (uint64_t)n != st->stx_size || n > 4096 ? -1 : small_record(s, st, path, data, (size_t)n);
}

static int small_link(struct small *s, int dir, const char *name, const char *path, const struct statx *st)
{
  char data[4096];
  ssize_t n = readlinkat(dir, name, data, sizeof(data));
  return n <= 0 || (size_t)n == sizeof(data) ? -1 : small_record(s, st, path, data, (size_t)n);
}

static int small_dir(struct small *s, int fd, const char *path, int depth);

static int small_entry(struct small *s, int dir, const char *name, const char *path, int depth)
{
  struct statx st;
  struct small_head h = {.path = (uint32_t)strlen(path)};
  if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_MNT_ID, &st) || !(st.stx_mask & STATX_MNT_ID))
    return -1;
  if (st.stx_mnt_id != s->mount) {
    h.mode = S_ISDIR(st.stx_mode) ? S_IFDIR | 0755 : S_IFREG | 0644;
    return small_put(s, &h, sizeof(h)) || small_put(s, path, h.path) ? -1 : 0;
  }
  if (S_ISDIR(st.stx_mode))
    return small_dir(s, openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path, depth + 1);
  if (st.stx_nlink != 1)
    return -1;
  return S_ISLNK(st.stx_mode) ? small_link(s, dir, name, path, &st) : S_ISREG(st.stx_mode) ? small_file(s, dir, name, path, &st) : -1;
}

/* Takes fd. */
static int small_dir(struct small *s, int fd, const char *path, int depth)
{
  struct statx st;
  char below[PATH_MAX];
  DIR *d = fd < 0 || depth > SMALL_DEPTH ? NULL : fdopendir(fd);
  int r = !d || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) || small_record(s, &st, path, "", 0) ? -1 : 0;
  if (!d && fd >= 0)
    close(fd);
  for (struct dirent *e; !r && (e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
      r = (size_t)snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= sizeof(below) ? -1 : small_entry(s, fd, e->d_name, below, depth);
  if (!r)
    r = small_record(s, &st, path, "", 0);
  if (d)
    closedir(d);
  return r;
}

static int small_gather(struct small *s, int dir)
{
  struct statx st;
  s->n = 0;
  if (statx(dir, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) || !(st.stx_mask & STATX_MNT_ID))
    return -1;
  s->mount = st.stx_mnt_id;
  if (small_put(s, SMALL_MAGIC, 8))
    return -1;
  return small_dir(s, openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ".", 0);
}

/* 1: done; 0: not so plain, nothing was written; -1: failed. */
static inline int cloche_small_dump(struct mount_info *pm)
{
  static struct small s;
  struct cr_img *image;
  int dir = mnt_is_overmounted(pm) ? -1 : __open_mountpoint(pm), r;
  if (dir < 0)
    return 0;
  r = small_gather(&s, dir);
  close(dir);
  if (r)
    return 0;
  image = open_image(CR_FD_TMPFS_DEV, O_DUMP, pm->s_dev);
  if (!image)
    return -1;
  r = write(img_raw_fd(image), s.bytes, s.n) == (ssize_t)s.n ? 1 : -1;
  close_image(image);
  return r;
}

static int small_make(int dir, const struct small_head *h, const char *path, const char *data)
{
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = h->sec, .tv_nsec = h->nsec}};
  mode_t mode = h->mode & 07777;
  int fd = -1, r = 0;
  if (S_ISDIR(h->mode))
    r = mkdirat(dir, path, mode) && errno != EEXIST ? -1 : 0;
  else if (S_ISLNK(h->mode))
    r = symlinkat(data, dir, path);
  else
    r = (fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0 || write(fd, data, h->data) != (ssize_t)h->data ? -1 : 0;
  if (fd >= 0)
    close(fd);
  if (r || fchownat(dir, path, h->uid, h->gid, AT_SYMLINK_NOFOLLOW))
    return -1;
  if (!S_ISLNK(h->mode) && fchmodat(dir, path, mode, 0))
    return -1;
  return h->sec ? utimensat(dir, path, times, AT_SYMLINK_NOFOLLOW) : 0;
}

/* 1: done; 0: the image is not of this kind; -1: failed. */
static inline int cloche_small_restore(int image, const char *at)
{
  static char bytes[SMALL_BYTES];
  static char path[PATH_MAX], data[4096 + 1];
  ssize_t n = pread(image, bytes, sizeof(bytes), 0);
  int dir, r;
  if (n < 8 || memcmp(bytes, SMALL_MAGIC, 8))
    return 0;
  dir = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  r = dir < 0 ? -1 : 0;
  for (size_t i = 8; !r && i < (size_t)n;) {
    struct small_head h;
    if ((size_t)n - i < sizeof(h))
      r = -1;
    else
      memcpy(&h, bytes + i, sizeof(h));
    i += sizeof(h);
    if (r || h.path >= sizeof(path) || h.data >= sizeof(data) || (size_t)n - i < h.path || (size_t)n - i - h.path < h.data) {
      r = -1;
      break;
    }
    memcpy(path, bytes + i, h.path);
    memcpy(data, bytes + i + h.path, h.data);
    path[h.path] = data[h.data] = 0;
    i += (size_t)h.path + h.data;
    r = small_make(dir, &h, path, data);
  }
  if (dir >= 0)
    close(dir);
  return r ? -1 : 1;
}

#endif
