/* SPDX-License-Identifier: Apache-2.0 */
/* layer_commit.c - see layer_commit.h.
 *
 * The tree was written by whoever lived in the box, so nothing in it is followed: every step is one name below an open
 * directory, links are copied as links, and only what lstat called a regular file is opened for its bytes. */
#include "jail/fs/layer_commit.h"

#include "jail/fs/disk.h"
#include "jail/jail_defs.h"

#include <dirent.h>
#include <fcntl.h>
#include <endian.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define DEPTH_MAX   256 /* directories below each other; three descriptors each, of 1024 that every process may have */
#define SYNC_SINGLY 48  /* so few files are written out one by one; more by one sync of the whole filesystem */
#define XATTR_NAMES 65536 /* bytes; the kernel's own limits */
#define XATTR_VALUE 65536
#define OPAQUE      "trusted.overlay.opaque"

struct commit {
  uint32_t id_base;
  bool outward; /* from the box's ids to the host's */
  bool quick;   /* not written out */
  int top;      /* of the new layer */
  dev_t dev;
  struct map links; /* inode with several names -> its first path below top */
  struct buf path;  /* of what is copied now, below top */
  size_t files;
  char *names, *value; /* room for attributes */
  struct err *err;
};

static int fail(struct commit *c, const char *what, const char *name)
{
  int code = -errno;
  return err_set(c->err, code, "%s %.200s/%.100s: %s", what, buf_z(&c->path), name, strerrordesc_np(-code));
}

static uint32_t shifted(const struct commit *c, uint32_t id)
{
  if (c->outward)
    return id < JAIL_IDS ? id + c->id_base : id;
  return id >= c->id_base && id - c->id_base < JAIL_IDS ? id - c->id_base : id;
}

/* --- attributes ----------------------------------------------------------------------------------------------- */

/* The other marks of an overlay (origin, impure, nlink, ...) speak of the mount that made them and would mislead the
 * next one. */
static bool kept(const char *name)
{
  static const char *const whole[] = {"security.capability", "system.posix_acl_access", "system.posix_acl_default",
                                      OPAQUE, "trusted.overlay.redirect"};
  for (size_t i = 0; i < ARRAY_LEN(whole); i++)
    if (!strcmp(name, whole[i]))
      return true;
  return str_starts(str_of(name), STR("user."));
}

/* A name of the directory as a path the attribute calls take: they know no directory descriptors, and the last part is
 * not followed. */
static void proc_path(char out[PATH_MAX], int dir, const char *name)
{
  snprintf(out, PATH_MAX, "/proc/self/fd/%d/%s", dir, name);
}

/* Capabilities of a file count in the user namespace whose root they name; without a name, in the host's alone. */
static size_t own_capability(struct commit *c, const char *name, size_t n)
{
  struct vfs_ns_cap_data cap;
  if (!c->outward || strcmp(name, "security.capability") != 0 || n != XATTR_CAPS_SZ_2)
    return n;
  memcpy(&cap, c->value, n);
  cap.magic_etc = htole32((le32toh(cap.magic_etc) & ~VFS_CAP_REVISION_MASK) | VFS_CAP_REVISION_3);
  cap.rootid = htole32(c->id_base);
  memcpy(c->value, &cap, sizeof(cap));
  return sizeof(cap);
}

static int copy_attributes(struct commit *c, int from, int to, const char *name)
{
  char source[PATH_MAX], target[PATH_MAX];
  proc_path(source, from, name);
  proc_path(target, to, name);
  ssize_t n = llistxattr(source, c->names, XATTR_NAMES);
  if (n < 0)
    return errno == ENOTSUP ? 0 : fail(c, "listing the attributes of", name);
  for (const char *at = c->names; at < c->names + n; at += strlen(at) + 1) {
    if (!kept(at))
      continue;
    ssize_t k = lgetxattr(source, at, c->value, XATTR_VALUE);
    if (k < 0 && errno == ENODATA)
      continue;
    if (k < 0 || lsetxattr(target, at, c->value, own_capability(c, at, (size_t)k), 0))
      return fail(c, "copying the attributes of", name);
  }
  return 0;
}

/* Owner before mode, because a change of owner drops the set-id bits; capabilities after both, for the same reason;
 * times last. */
static int copy_marks(struct commit *c, int from, int to, const char *name, const struct stat *st)
{
  if (fchownat(to, name, shifted(c, st->st_uid), shifted(c, st->st_gid), AT_SYMLINK_NOFOLLOW))
    return fail(c, "setting the owner of", name);
  if (!S_ISLNK(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0))
    return fail(c, "setting the mode of", name);
  int r = copy_attributes(c, from, to, name);
  if (r)
    return r;
  const struct timespec times[2] = {st->st_atim, st->st_mtim};
  return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) ? fail(c, "setting the times of", name) : 0;
}

/* --- contents ------------------------------------------------------------------------------------------------- */

/* A box's disk is another filesystem than the layers': copy_file_range would refuse. */
static int copy_extent(int from, int to, off_t at, off_t end)
{
  if (lseek(to, at, SEEK_SET) < 0)
    return -1;
  while (at < end) {
    ssize_t k = sendfile(to, from, &at, (size_t)MIN(end - at, (off_t)1 << 30));
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0) {
      errno = k ? errno : EIO;
      return -1;
    }
  }
  return 0;
}

static int copy_bytes(int from, int to, off_t size)
{
  if (ftruncate(to, size))
    return -1;
  for (off_t at = 0; at < size;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0)
      return errno == ENXIO ? 0 : -1;
    off_t hole = lseek(from, data, SEEK_HOLE);
    if (hole < 0 || copy_extent(from, to, data, hole))
      return -1;
    at = hole;
  }
  return 0;
}

static int copy_file(struct commit *c, int from, int to, const char *name, const struct stat *st)
{
  struct stat now;
  cleanup_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (in < 0 || fstat(in, &now))
    return fail(c, "reading", name);
  if (!S_ISREG(now.st_mode) || now.st_ino != st->st_ino)
    return err_set(c->err, -EAGAIN, "%.200s/%.100s changed while it was copied: the box is not frozen", buf_z(&c->path),
                   name);
  cleanup_fd int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (out < 0 || copy_bytes(in, out, now.st_size))
    return fail(c, "writing", name);
  if (++c->files <= SYNC_SINGLY && !c->quick && fsync(out))
    return fail(c, "writing out", name);
  return copy_marks(c, from, to, name, st);
}

static int copy_link(struct commit *c, int from, int to, const char *name, const struct stat *st)
{
  char target[PATH_MAX];
  ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
  if (n < 0)
    return fail(c, "reading", name);
  target[n] = 0;
  if (symlinkat(target, to, name))
    return fail(c, "writing", name);
  return copy_marks(c, from, to, name, st);
}

/* Pipes and sockets as they are; a character device 0:0 is how an overlay says that a file is gone. Others can't come
 * from a box and are left out. */
static int copy_node(struct commit *c, int from, int to, const char *name, const struct stat *st)
{
  bool gone = S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
  if (!gone && !S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode))
    return 0;
  if (mknodat(to, name, (st->st_mode & S_IFMT) | 0600, gone ? makedev(0, 0) : 0))
    return fail(c, "writing", name);
  return copy_marks(c, from, to, name, st);
}

/* --- the tree ------------------------------------------------------------------------------------------------- */

/* The first name of a file is copied, the others are linked to it: 1 when this was one of the others. */
static int link_again(struct commit *c, int to, const char *name, const struct stat *st)
{
  if (st->st_nlink < 2 || S_ISDIR(st->st_mode))
    return 0;
  struct str key = str_make(&st->st_ino, sizeof(st->st_ino));
  char *first = map_get(&c->links, key);
  if (first)
    return linkat(c->top, first, to, name, 0) ? fail(c, "linking", name) : 1;
  cleanup_buf struct buf b = BUF_INIT((size_t)DEPTH_MAX * (NAME_MAX + 2));
  buf_adds(&b, buf_str(&c->path));
  buf_addf(&b, "%s%s", b.n ? "/" : "", name);
  if (buf_failed(&b))
    return err_set(c->err, -ENAMETOOLONG, "path too long: %.200s/%.100s", buf_z(&c->path), name);
  if (b.n >= PATH_MAX) /* it can't be named in one call; a copy for each name could fill the host's disk */
    return err_set(c->err, -ENAMETOOLONG, "%.200s/...: a file with several names has one of more than %d bytes",
                   buf_z(&c->path), PATH_MAX);
  map_put(&c->links, key, xstrdup(buf_z(&b)));
  return 0;
}

static int copy_dir(struct commit *c, int from, int to, const char *name, const struct stat *st, int depth);

static int copy_entry(struct commit *c, int from, int to, const char *name, int depth)
{
  struct stat st;
  if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
    return fail(c, "reading", name);
  if (st.st_dev != c->dev)
    return 0;
  int r = link_again(c, to, name, &st);
  if (r)
    return r < 0 ? r : 0;
  switch (st.st_mode & S_IFMT) {
  case S_IFDIR:
    return copy_dir(c, from, to, name, &st, depth + 1);
  case S_IFREG:
    return copy_file(c, from, to, name, &st);
  case S_IFLNK:
    return copy_link(c, from, to, name, &st);
  default:
    return copy_node(c, from, to, name, &st);
  }
}

static void close_dir(DIR **d)
{
  if (*d)
    closedir(*d);
}

static int copy_inside(struct commit *c, int from, int to, int depth)
{
  cleanup_fd int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  __attribute__((cleanup(close_dir))) DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d)
    return fail(c, "listing", ".");
  steal_fd(&fd);
  int r = 0;
  for (struct dirent *e; !r && (errno = 0, e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
      r = copy_entry(c, from, to, e->d_name, depth);
  return r ? r : errno ? fail(c, "listing", ".") : 0;
}

static int copy_dir(struct commit *c, int from, int to, const char *name, const struct stat *st, int depth)
{
  if (depth > DEPTH_MAX)
    return err_set(c->err, -ELOOP, "%.300s: more than %d directories below each other", buf_z(&c->path), DEPTH_MAX);
  cleanup_fd int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (in < 0 || mkdirat(to, name, 0700))
    return fail(c, "making", name);
  cleanup_fd int out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (out < 0)
    return fail(c, "opening", name);
  size_t at = c->path.n;
  buf_addf(&c->path, "%s%s", at ? "/" : "", name);
  int r = copy_inside(c, in, out, depth);
  c->path.n = at;
  if (!r && !c->quick && c->files <= SYNC_SINGLY && fsync(out))
    r = fail(c, "writing out", name);
  return r ? r : copy_marks(c, from, to, name, st);
}

static int copy_tree(struct commit *c, int upper, int top)
{
  struct stat st;
  if (fstat(upper, &st))
    return fail(c, "reading", ".");
  c->dev = st.st_dev;
  c->top = top;
  int r = copy_inside(c, upper, top, 0);
  r = r ? r : copy_marks(c, upper, top, ".", &st);
  if (r || c->quick)
    return r;
  return (c->files > SYNC_SINGLY ? syncfs(top) : fsync(top)) ? fail(c, "writing out", ".") : 0;
}

enum manner { INWARD, QUICK, OUTWARD };

static int copy_all(int upper, uint32_t id_base, enum manner manner, const char *temp, struct err *err)
{
  struct commit c = {.id_base = id_base,
                     .outward = manner == OUTWARD,
                     .quick = manner == QUICK,
                     .err = err,
                     .names = xmalloc(XATTR_NAMES),
                     .value = xmalloc(XATTR_VALUE)};
  buf_init(&c.path, (size_t)DEPTH_MAX * (NAME_MAX + 2));
  cleanup_fd int top = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int r = top < 0 ? err_errno(err, "opening %s", temp) : copy_tree(&c, upper, top);
  void *first;
  for (size_t i = 0; map_next(&c.links, &i, NULL, &first);)
    free(first);
  map_free(&c.links);
  buf_free(&c.path);
  free(c.names);
  free(c.value);
  return r;
}

/* The name appears only when everything below it is on the disk, and is itself written out. */
static int publish(const char *temp, const char *layer, bool quick, struct err *err)
{
  char above[PATH_MAX];
  if (renameat2(AT_FDCWD, temp, AT_FDCWD, layer, RENAME_NOREPLACE))
    return err_errno(err, "naming the layer %s", layer);
  if (quick)
    return 0;
  if (str_copyz(path_dir(str_of(layer)), above, sizeof(above)))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", layer);
  cleanup_fd int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 || fsync(fd) ? err_errno(err, "writing out %s", above) : 0;
}

static int copy_to(int from, uint32_t id_base, enum manner manner, const char *layer, struct err *err)
{
  char temp[PATH_MAX];
  if ((size_t)snprintf(temp, sizeof(temp), "%s.new-XXXXXX", layer) >= sizeof(temp))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", layer);
  if (!mkdtemp(temp))
    return err_errno(err, "making %s", temp);
  int r = copy_all(from, id_base, manner, temp, err);
  r = r ? r : publish(temp, layer, manner == QUICK, err);
  if (r)
    path_remove_tree(AT_FDCWD, temp);
  return r;
}

int jail_commit(const char *dir, uint32_t id_base, const char *layer, struct err *err)
{
  cleanup_fd int upper = disk_upper(dir, err);
  return upper < 0 ? upper : copy_to(upper, id_base, INWARD, layer, err);
}

int jail_commit_dir(const char *dir, const char *name, uint32_t id_base, const char *layer, struct err *err)
{
  cleanup_fd int upper = disk_upper(dir, err);
  if (upper < 0)
    return upper;
  cleanup_fd int top = openat(upper, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int r = top < 0 ? err_errno(err, "opening %s of %s", name, dir) : copy_to(top, id_base, INWARD, layer, err);
  if (!r && lremovexattr(layer, OPAQUE) && errno != ENODATA && errno != ENOTSUP)
    r = err_errno(err, "removing an overlay attribute of %s",
                  layer); /* the overlay's own, about a place that is no more */
  return r;
}

int jail_commit_quick(const char *dir, uint32_t id_base, const char *layer, struct err *err)
{
  cleanup_fd int upper = disk_upper(dir, err);
  return upper < 0 ? upper : copy_to(upper, id_base, QUICK, layer, err);
}

int jail_layer_settle(const char *layer, struct err *err)
{
  cleanup_fd int fd = open(layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 || syncfs(fd) ? err_errno(err, "writing out the layer %s", layer) : 0;
}

int jail_shift(const char *layer, uint32_t id_base, const char *copy, struct err *err)
{
  cleanup_fd int from = open(layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return from < 0 ? err_errno(err, "opening the layer %s", layer) : copy_to(from, id_base, OUTWARD, copy, err);
}

/* --- its size ------------------------------------------------------------------------------------------------- */

static uint64_t tree_bytes(int dir, int depth)
{
  struct stat st;
  uint64_t bytes = 0;
  cleanup_fd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  __attribute__((cleanup(close_dir))) DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (d)
    steal_fd(&fd);
  for (struct dirent *e; d && depth <= DEPTH_MAX && (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
      continue;
    bytes += MAX((uint64_t)st.st_blocks * 512, (uint64_t)JAIL_ENTRY_BYTES) /
             MAX(S_ISDIR(st.st_mode) ? (nlink_t)1 : st.st_nlink, (nlink_t)1);
    cleanup_fd int below =
        S_ISDIR(st.st_mode) ? openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (below >= 0)
      bytes += tree_bytes(below, depth + 1);
  }
  return bytes;
}

uint64_t jail_layer_bytes(const char *layer)
{
  cleanup_fd int fd = open(layer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 ? 0 : tree_bytes(fd, 0);
}
