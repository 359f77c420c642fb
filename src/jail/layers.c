/* layers.c - builds the overlay.
 *
 * Every layer, the writable one too, is reached through an idmapped clone of its mount, so one copy on disk serves any
 * number of boxes and an upper directory can become a layer of another box as it is. Nothing is attached to the host's
 * tree: the clones live as descriptors and the overlay keeps its own references. The overlay keeps its marks in
 * trusted.* attributes, which nothing inside a box can write; user.* stay the box's own.
 *
 * Kernels before 6.15 take layers only from mounts of the caller's own namespace. There the clones are attached below
 * dir/stage for the moment of the mount and detached again. */
#include "jail/layers.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LAYERS_MAX 120

static int make_dir(const char *dir, const char *name, unsigned mode, struct err *err)
{
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof(path), "%s%s%s", dir, name ? "/" : "", name ? name : "") >= sizeof(path))
    return err_set(err, -ENAMETOOLONG, "the box directory's name is too long: %s", dir);
  if (mkdir(path, mode) && errno != EEXIST)
    return err_errno(err, "making %s", path);
  return 0;
}

int layers_prepare(const char *dir, struct err *err)
{
  int r = make_dir(dir, NULL, 0700, err);
  if (!r)
    r = make_dir(dir, "upper", 0755, err);
  if (!r)
    r = make_dir(dir, "work", 0700, err);
  return r;
}

/* A clone of the mount that holds path, with the ids of the box. */
static int clone_mapped(const char *path, int userns, unsigned attributes, struct err *err)
{
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | attributes, .userns_fd = (uint64_t)userns};
  cleanup_fd int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0)
    return err_errno(err, "opening the layer %s", path);
  if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "mapping the ids of the layer %s", path);
  return steal_fd(&tree);
}

static int set_flag(int fs, const char *key, const char *value)
{
  return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) ? -errno : 0;
}

/* index and nfs_export give files handles that outlive a checkpoint; redirect_dir lets a directory of the template be
 * renamed; metacopy stays off so that an upper directory holds whole files. */
static int set_options(int fs, bool handles)
{
  int r = set_flag(fs, "source", "overlay");
  if (!r)
    r = set_flag(fs, "redirect_dir", "on");
  if (!r)
    r = set_flag(fs, "metacopy", "off");
  if (!r)
    r = set_flag(fs, "xino", "auto");
  if (!r && handles)
    r = set_flag(fs, "index", "on");
  if (!r && handles)
    r = set_flag(fs, "nfs_export", "on");
  return r;
}

/* --- by descriptor -------------------------------------------------------------------------------------------- */

static int set_dir(int fs, const char *key, int tree, const char *name)
{
  cleanup_fd int fd = openat(tree, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  return fsconfig(fs, FSCONFIG_SET_FD, key, NULL, fd) ? -errno : 0;
}

static int add_by_fd(int fs, int upper, const int *lowers, size_t n)
{
  int r = 0;
  for (size_t i = 0; i < n && !r; i++)
    r = set_dir(fs, "lowerdir+", lowers[i], ".");
  if (!r)
    r = set_dir(fs, "upperdir", upper, "upper");
  if (!r)
    r = set_dir(fs, "workdir", upper, "work");
  return r;
}

/* --- by path, for older kernels ------------------------------------------------------------------------------- */

struct stage {
  char dir[200]; /* a string option holds 255 bytes */
  size_t attached;
};

static void stage_clear(struct stage *s)
{
  char path[240];
  while (s->attached > 0) {
    snprintf(path, sizeof(path), "%s/%zu", s->dir, --s->attached);
    umount2(path, MNT_DETACH);
    rmdir(path);
  }
  if (s->dir[0])
    rmdir(s->dir);
}

static int stage_add(struct stage *s, int tree, char path[240])
{
  snprintf(path, 240, "%s/%zu", s->dir, s->attached);
  if (mkdir(path, 0700) && errno != EEXIST)
    return -errno;
  s->attached++;
  return move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) ? -errno : 0;
}

static int add_by_path(int fs, struct stage *s, int upper, const int *lowers, size_t n)
{
  char path[240], sub[252];
  int r = 0;
  for (size_t i = 0; i < n && !r; i++) {
    r = stage_add(s, lowers[i], path);
    if (!r)
      r = set_flag(fs, "lowerdir+", path);
  }
  if (!r)
    r = stage_add(s, upper, path);
  if (!r) {
    snprintf(sub, sizeof(sub), "%s/upper", path);
    r = set_flag(fs, "upperdir", sub);
  }
  if (!r) {
    snprintf(sub, sizeof(sub), "%s/work", path);
    r = set_flag(fs, "workdir", sub);
  }
  return r;
}

/* -------------------------------------------------------------------------------------------------------------- */

/* What this kernel takes, learnt from the first box: 0 = not known yet. */
enum { WAY_FD = 1, WAY_PATH = 2, WAY_HANDLES = 4, WAY_PLAIN = 8 };
static atomic_int known_way;

static int mount_overlay(const char *dir, int way, int upper, const int *lowers, size_t n)
{
  __attribute__((cleanup(stage_clear))) struct stage stage = {0};
  cleanup_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  if (fs < 0)
    return -errno;
  int r = set_options(fs, way & WAY_HANDLES);
  if (!r && (way & WAY_FD))
    r = add_by_fd(fs, upper, lowers, n);
  if (!r && (way & WAY_PATH)) {
    if ((size_t)snprintf(stage.dir, sizeof(stage.dir), "%s/stage", dir) >= sizeof(stage.dir))
      return -ENAMETOOLONG;
    if (mkdir(stage.dir, 0700) && errno != EEXIST)
      return -errno;
    r = add_by_path(fs, &stage, upper, lowers, n);
  }
  if (!r && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    r = -errno;
  if (r)
    return r;
  int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
  return fd < 0 ? -errno : fd;
}

/* The overlay works on its upper layer as whoever mounted it, and the host's root has no id in there. So the calling
 * thread takes the box's root as its filesystem identity for the mount, capabilities kept. Raw calls: the C library's
 * would do it to every thread. */
static int raise_capabilities(void)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &head, data))
    return -errno;
  for (size_t i = 0; i < ARRAY_LEN(data); i++)
    data[i].effective = data[i].permitted;
  return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static int try_way(const char *dir, uint32_t root, int way, int upper, const int *lowers, size_t n)
{
  syscall(SYS_setfsgid, root);
  syscall(SYS_setfsuid, root);
  int r = raise_capabilities();
  if (!r)
    r = mount_overlay(dir, way, upper, lowers, n);
  syscall(SYS_setfsuid, geteuid());
  syscall(SYS_setfsgid, getegid());
  return r;
}

struct clones {
  int upper, lowers[LAYERS_MAX];
  size_t n;
};

static void clones_close(struct clones *c)
{
  for (size_t i = 0; i < c->n; i++)
    close(c->lowers[i]);
  if (c->upper >= 0)
    close(c->upper);
}

static int clones_open(struct clones *c, const char *dir, const char *const *lowers, int userns, struct err *err)
{
  c->upper = clone_mapped(dir, userns, 0, err);
  if (c->upper < 0)
    return c->upper;
  for (; *lowers; lowers++) {
    if (c->n == LAYERS_MAX)
      return err_set(err, -E2BIG, "a root of more than %d layers", LAYERS_MAX);
    int fd = clone_mapped(*lowers, userns, MOUNT_ATTR_RDONLY, err);
    if (fd < 0)
      return fd;
    c->lowers[c->n++] = fd;
  }
  return c->n > 0 ? 0 : err_set(err, -EINVAL, "a root without layers");
}

static int mount_way(const char *dir, const char *const *lowers, int userns, uint32_t root, int way, struct err *err)
{
  __attribute__((cleanup(clones_close))) struct clones c = {.upper = -1};
  int r = clones_open(&c, dir, lowers, userns, err);
  if (r)
    return r;
  r = try_way(dir, root, way, c.upper, c.lowers, c.n);
  return r < 0 ? err_set(err, r, "mounting the root of %s: %s", dir, strerrordesc_np(-r)) : r;
}

/* A way is tried only while none is known; later failures are real ones and are told. */
int layers_mount(const char *dir, const char *const *lowers, int userns, uint32_t root, struct err *err)
{
  static const int ways[] = {WAY_FD | WAY_HANDLES, WAY_FD | WAY_PLAIN, WAY_PATH | WAY_HANDLES, WAY_PATH | WAY_PLAIN};
  int way = atomic_load(&known_way), r = -EINVAL;
  if (way)
    return mount_way(dir, lowers, userns, root, way, err);
  for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
    r = mount_way(dir, lowers, userns, root, ways[i], err);
    if (r >= 0) {
      atomic_store(&known_way, ways[i]);
      return r;
    }
  }
  return r;
}
