/* SPDX-License-Identifier: Apache-2.0 */
/* volume_backing.c - see volume_backing.h.
 *
 * No mount of a volume has a name on the host: descriptors and boxes hold them, and the kernel lets an image's device
 * go with the last. What must not happen is a second device on an image that is in use; disk_image.c looks for the
 * first, and one lock per volume keeps two threads of this process from looking at the same time. */
#include "jail/fs/volume_backing.h"
#include "jail/fs/disk_image.h"
#include "jail/fs/volume_quota.h"
#include "jail/jail_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define IMAGE            "volume.img"
#define FULL             "full"
#define REMOVED          ".removed-"
#define MADE             ".made-"
#define MADE_OLD_SECONDS 3600
#define DEPTH_MAX        256   /* of directories that a scan goes into, a descriptor each */
#define INODE_BYTES      16384 /* one inode per so many bytes where the limit is not told */

/* --- names ---------------------------------------------------------------------------------------------------- */

/* A uuid in small letters: nothing else becomes part of a path. */
static int check_id(const char *id, struct err *err)
{
  if (id && strlen(id) == 36 && strspn(id, "0123456789abcdef-") == 36)
    return 0;
  return err_set(err, -EINVAL, "invalid volume ID");
}

static int path_of(char out[PATH_MAX], const struct volume_place *p, const char *prefix, const char *id,
                   const char *rest, const char *more, struct err *err)
{
  if ((size_t)snprintf(out, PATH_MAX, "%s/%s%s%s%s", p->dir, prefix, id, rest, more) < PATH_MAX)
    return 0;
  return err_set(err, -ENAMETOOLONG, "path too long: %s/%s", p->dir, id);
}

static int dir_path(char out[PATH_MAX], const struct volume_place *p, const char *id, struct err *err)
{
  int r = check_id(id, err);
  return r ? r : path_of(out, p, "", id, "", "", err);
}

static int image_path(char out[PATH_MAX], const struct volume_place *p, const char *id, struct err *err)
{
  int r = check_id(id, err);
  return r ? r : path_of(out, p, "", id, "/" IMAGE, "", err);
}

static int tree_path(char out[PATH_MAX], const struct volume_place *p, const char *id, struct err *err)
{
  int r = check_id(id, err);
  return r ? r : path_of(out, p, "", id, "/" VOLUME_PREFIX, id, err);
}

/* There is one for each volume that a thread works with at this moment: no volume waits for another's. */
struct volume_lock {
  struct volume_lock *next;
  char id[40];
  unsigned users; /* who has it, and who waits */
  pthread_mutex_t mutex;
};

static pthread_mutex_t locks_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct volume_lock *locks;

/* NULL: another thread has it, and the caller would not wait. */
static struct volume_lock *lock_volume(const char *id, bool wait)
{
  pthread_mutex_lock(&locks_mutex);
  struct volume_lock *l = locks;
  while (l && strcmp(l->id, id) != 0)
    l = l->next;
  if (l && !wait) {
    pthread_mutex_unlock(&locks_mutex);
    return NULL;
  }
  if (!l) {
    l = xcalloc(1, sizeof(*l));
    snprintf(l->id, sizeof(l->id), "%s", id);
    pthread_mutex_init(&l->mutex, NULL);
    l->next = locks;
    locks = l;
  }
  l->users++;
  pthread_mutex_unlock(&locks_mutex);
  pthread_mutex_lock(&l->mutex);
  return l;
}

static void unlock_volume(struct volume_lock *l)
{
  pthread_mutex_unlock(&l->mutex);
  pthread_mutex_lock(&locks_mutex);
  if (--l->users == 0) {
    struct volume_lock **at = &locks;
    while (*at != l)
      at = &(*at)->next;
    *at = l->next;
    pthread_mutex_destroy(&l->mutex);
    free(l);
  }
  pthread_mutex_unlock(&locks_mutex);
}

static int no_such(const char *id, struct err *err)
{
  return err_set(err, -ENOENT, "volume %s has no files on this machine", id);
}

/* --- creation --------------------------------------------------------------------------------------------------- */

static int make_image(const char *dir, const struct volume_limits *l, struct err *err)
{
  char image[PATH_MAX + 16];
  snprintf(image, sizeof(image), "%s/" IMAGE, dir);
  if (!l->bytes)
    return err_set(err, -EINVAL, "a volume that is an image needs a size");
  uint64_t inodes = l->inodes ? l->inodes : MAX(l->bytes / INODE_BYTES, (uint64_t)1024);
  return disk_image_make_durable(image, l->bytes, inodes, VOLUME_ID_BASE, err);
}

static int make_tree(const char *dir, const char *id, const struct volume_limits *l, struct err *err)
{
  char path[PATH_MAX + 64];
  snprintf(path, sizeof(path), "%s/" VOLUME_PREFIX "%s", dir, id);
  if (mkdir(path, 0755))
    return err_errno(err, "making %s", path);
  cleanup_fd int tree = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (tree < 0 || fchmod(tree, 0777))
    return err_errno(err, "making %s", path);
  if (fchown(tree, VOLUME_ID_BASE, VOLUME_ID_BASE))
    return err_set(err, -errno,
                   "%s can't belong to user %u: %s; the filesystem of volumes_dir must keep owners (or set "
                   "volumes_backing = image)",
                   path, VOLUME_ID_BASE, strerrordesc_np(errno));
  if (volume_quota_taken(tree, id))
    return err_set(err, -ESHUTDOWN, "the quota of volume %s would be another volume's as well; try again", id);
  if ((l->bytes || l->inodes) && !volume_quota_start(tree, id))
    volume_quota_set(tree, id, l); /* without quotas it is measured */
  return fsync(tree) && errno != EINVAL && errno != EOPNOTSUPP ? err_errno(err, "writing out %s", path) : 0;
}

static int settle_dir(const char *path, struct err *err)
{
  cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 || (fsync(fd) && errno != EINVAL && errno != EOPNOTSUPP) ? err_errno(err, "writing out %s", path) : 0;
}

/* What a process that died had begun is of no use: its limits may have been others. */
static int fresh_dir(const char *path, struct err *err)
{
  if (mkdir(path, 0700) && (errno != EEXIST || path_remove_tree(AT_FDCWD, path) || mkdir(path, 0700)))
    return err_errno(err, "making %s", path);
  return 0;
}

/* Under another name first: whoever finds a volume finds a whole one. */
static int create_locked(const struct volume_place *p, const char *id, const struct volume_limits *limits,
                         struct err *err)
{
  char path[PATH_MAX], temp[PATH_MAX];
  int r = dir_path(path, p, id, err);
  r = r ? r : path_of(temp, p, MADE, id, "", "", err);
  if (r)
    return r;
  if (access(path, F_OK) == 0)
    return err_set(err, -EEXIST, "volume %s exists", id);
  if ((r = path_mkdirs(p->dir, 0700)))
    return err_set(err, r, "making %s: %s", p->dir, strerrordesc_np(-r));
  if ((r = fresh_dir(temp, err)))
    return r;
  r = p->directory ? make_tree(temp, id, limits, err) : make_image(temp, limits, err);
  r = r ? r : settle_dir(temp, err);
  if (!r && syscall(SYS_renameat2, AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) &&
      (errno != EINVAL || rename(temp, path))) /* a network filesystem may not know the flag */
    r = err_errno(err, "naming %s", path);
  if (r)
    path_remove_tree(AT_FDCWD, temp);
  return r ? r : settle_dir(p->dir, err);
}

int volume_backing_create(const struct volume_place *p, const char *id, const struct volume_limits *limits,
                          struct err *err)
{
  int r = check_id(id, err);
  if (r)
    return r;
  struct volume_lock *lock = lock_volume(id, true);
  r = create_locked(p, id, limits, err);
  unlock_volume(lock);
  return r;
}

/* --- removal ---------------------------------------------------------------------------------------------------- */

static int in_use(const char *id, struct err *err)
{
  return err_set(err, -EBUSY, "volume %s is still in use", id);
}

/* Never waits: who asks tries again. */
int volume_backing_remove(const struct volume_place *p, const char *id, struct err *err)
{
  char path[PATH_MAX], gone[PATH_MAX], image[PATH_MAX];
  int r = dir_path(path, p, id, err);
  r = r ? r : path_of(gone, p, REMOVED, id, "", "", err);
  r = r ? r : image_path(image, p, id, err);
  if (r)
    return r;
  if (access(path, F_OK))
    return errno == ENOENT ? (access(gone, F_OK) ? no_such(id, err) : 0) : err_errno(err, "finding %s", path);
  struct volume_lock *lock = lock_volume(id, false);
  if (!lock || (!access(image, F_OK) && disk_image_in_use(image)))
    r = in_use(id, err);
  if (!r && rename(path, gone))
    r = errno == ENOTEMPTY || errno == EEXIST ? in_use(id, err) : err_errno(err, "removing %s", path);
  if (lock)
    unlock_volume(lock);
  return r ? r : settle_dir(p->dir, err);
}

int volume_backing_clear(const struct volume_place *p, const char *id, int64_t until_us, struct err *err)
{
  char gone[PATH_MAX];
  int r = check_id(id, err);
  r = r ? r : path_of(gone, p, REMOVED, id, "", "", err);
  if (!r && (r = path_remove_tree_until(AT_FDCWD, gone, until_us)))
    err_set(err, r, "removing %s: %s", gone, strerrordesc_np(-r));
  return r;
}

/* Another server that shares the directory may be making one at this moment. */
static bool left_over(int dir, const char *name)
{
  struct stat st;
  return str_starts(str_of(name), STR(REMOVED)) ||
         (str_starts(str_of(name), STR(MADE)) && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) &&
          clock_wall_us() / 1000000 - (int64_t)st.st_mtim.tv_sec > MADE_OLD_SECONDS);
}

int volume_backing_sweep(const struct volume_place *p, int64_t until_us)
{
  DIR *d = opendir(p->dir);
  int r = 0;
  for (struct dirent *e; d && r != -EAGAIN && (e = readdir(d));)
    if (left_over(dirfd(d), e->d_name))
      r = path_remove_tree_until(dirfd(d), e->d_name, until_us);
  if (d)
    closedir(d);
  return r == -EAGAIN ? r : 0;
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

#define ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* A detached mount with the ids of the disk. */
static int detached(const struct volume_place *p, const char *id, struct err *err)
{
  char path[PATH_MAX];
  struct mount_attr attr = {.attr_set = ATTRIBUTES, .propagation = MS_PRIVATE};
  int r = p->directory ? tree_path(path, p, id, err) : image_path(path, p, id, err);
  if (r)
    return r;
  if (access(path, F_OK))
    return errno == ENOENT ? no_such(id, err) : err_errno(err, "opening %s", path);
  struct volume_lock *lock = lock_volume(id, true);
  cleanup_fd int tree = p->directory
                            ? open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW)
                            : disk_image_mount_durable(path, err);
  unlock_volume(lock);
  if (tree < 0)
    return p->directory ? err_errno(err, "opening %s", path) : tree;
  if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "mounting %s", path);
  return steal_fd(&tree);
}

int volume_backing_open(const struct volume_place *p, const char *id, struct err *err)
{
  cleanup_fd int tree = detached(p, id, err);
  if (tree < 0)
    return tree;
  int fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening volume %s", id) : fd;
}

static const char *type_name(int fd)
{
  struct statfs fs;
  static const struct {
    unsigned long magic;
    const char *name;
  } types[] = {{0x6969, "NFS"},     {0x65735546, "FUSE"}, {0xff534d42, "CIFS"},
               {0xfe534d42, "SMB"}, {0x01021997, "9p"},   {0x794c7630, "overlay"}};
  for (size_t i = 0; !fstatfs(fd, &fs) && i < ARRAY_LEN(types); i++)
    if ((unsigned long)fs.f_type == types[i].magic)
      return types[i].name;
  return "this";
}

int volume_backing_mount(const struct volume_place *p, const char *id, uint32_t id_base, struct err *err)
{
  cleanup_fd int tree = detached(p, id, err);
  cleanup_fd int userns = tree < 0 ? tree : jail_map_ns_from(VOLUME_ID_BASE, id_base, err);
  if (userns < 0)
    return userns;
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | ATTRIBUTES, .userns_fd = (uint64_t)userns};
  if (volume_backing_full(p, id))
    attr.attr_set |= MOUNT_ATTR_RDONLY;
  if (!mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return steal_fd(&tree);
  if (errno != EINVAL && errno != EOPNOTSUPP)
    return err_errno(err, "mounting volume %s", id);
  attr = (struct mount_attr){.attr_set = attr.attr_set & ~(uint64_t)MOUNT_ATTR_IDMAP};
  if (p->unmapped)
    return mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ? err_errno(err, "mounting volume %s", id)
                                                                       : steal_fd(&tree);
  return err_set(err, -EOPNOTSUPP,
                 "volume %s can't be mounted: the kernel can't map user ids on its filesystem (%s); put volumes_dir on "
                 "ext4, xfs, btrfs, or a network filesystem with idmapped mounts, set volumes_backing = image, or "
                 "volumes_unmapped = 1 (all files then belong to nobody in sandboxes)",
                 id, type_name(tree));
}

/* --- measuring -------------------------------------------------------------------------------------------------- */

int volume_backing_limit(const struct volume_place *p, const char *id, const struct volume_limits *limits,
                         struct err *err)
{
  struct volume_usage now;
  cleanup_fd int tree = p->directory ? volume_backing_open(p, id, err) : -1;
  if (!p->directory)
    return 0;
  if (tree < 0)
    return tree;
  int r = volume_quota_read(tree, id, &now) ? volume_quota_set(tree, id, limits) : 0;
  return r ? err_set(err, r, "setting the quota of volume %s: %s", id, strerrordesc_np(-r)) : 0;
}

struct scan {
  uint64_t left;
  struct volume_usage *out;
};

/* A file with several names is counted once in all: no name of it is outside the tree. */
static void count_entry(struct scan *s, const struct stat *st)
{
  uint64_t names = S_ISDIR(st->st_mode) || !st->st_nlink ? 1 : st->st_nlink;
  s->out->bytes += (uint64_t)st->st_blocks * 512 / names;
  s->out->inodes += names == 1;
}

static void scan_dir(struct scan *s, int dir, unsigned depth)
{
  DIR *d = fdopendir(dir);
  if (!d) {
    close(dir);
    s->out->whole = false;
    return;
  }
  for (struct dirent *e; (e = readdir(d));) {
    struct stat st;
    if (str_is(str_of(e->d_name), ".") || str_is(str_of(e->d_name), ".."))
      continue;
    if (!s->left) {
      s->out->whole = false;
      break;
    }
    s->left--;
    if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
      continue;
    count_entry(s, &st);
    int below = !S_ISDIR(st.st_mode) ? -1
                : depth < DEPTH_MAX
                    ? openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME)
                    : -1;
    if (below >= 0)
      scan_dir(s, below, depth + 1);
    else if (S_ISDIR(st.st_mode))
      s->out->whole = false;
  }
  closedir(d);
}

static int measure_image(int tree, struct volume_usage *out)
{
  struct statfs fs;
  if (fstatfs(tree, &fs))
    return -errno;
  out->bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
  out->bytes_max = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
  out->inodes = (uint64_t)(fs.f_files - fs.f_ffree) - disk_image_own_inodes();
  out->inodes_max = (uint64_t)fs.f_files - disk_image_own_inodes();
  return 0;
}

int volume_backing_usage(const struct volume_place *p, const char *id, uint64_t entries, struct volume_usage *out,
                         struct err *err)
{
  *out = (struct volume_usage){.whole = true};
  cleanup_fd int tree = volume_backing_open(p, id, err);
  if (tree < 0)
    return tree;
  int r = 0;
  if (!p->directory) {
    r = measure_image(tree, out);
  } else if (!volume_quota_read(tree, id, out)) {
    scan_dir(&(struct scan){.left = entries, .out = out}, steal_fd(&tree), 0);
  }
  return r ? err_set(err, r, "measuring volume %s: %s", id, strerrordesc_np(-r)) : 0;
}

/* Beside the tree, where no box comes to. */
static int full_path(char out[PATH_MAX], const struct volume_place *p, const char *id, struct err *err)
{
  int r = check_id(id, err);
  return r ? r : path_of(out, p, "", id, "/" FULL, "", err);
}

int volume_backing_set_full(const struct volume_place *p, const char *id, bool full, struct err *err)
{
  char path[PATH_MAX];
  int r = full_path(path, p, id, err);
  if (r)
    return r;
  cleanup_fd int fd = full ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
  if (full ? fd < 0 : unlink(path) && errno != ENOENT)
    return err_errno(err, "marking volume %s", id);
  return 0;
}

bool volume_backing_full(const struct volume_place *p, const char *id)
{
  char path[PATH_MAX];
  return p->directory && !full_path(path, p, id, NULL) && access(path, F_OK) == 0;
}

/* --- being told apart -------------------------------------------------------------------------------------------- */

bool volume_backing_is(const struct volume_place *p, const char *id, struct str device, struct str root)
{
  char text[PATH_MAX];
  unsigned major, minor;
  if (!p->directory) {
    if (image_path(text, p, id, NULL) || disk_image_device(text, &major, &minor))
      return false;
    snprintf(text, sizeof(text), "%u:%u", major, minor);
    return str_is(device, text);
  }
  size_t n = (size_t)snprintf(text, sizeof(text), "/" VOLUME_PREFIX "%s", id);
  return root.n >= n && str_is(str_skip(root, root.n - n), text);
}
