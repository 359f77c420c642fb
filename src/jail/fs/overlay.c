/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.c - builds the overlay.
 *
 * Every layer, the writable one too, is reached through an idmapped clone of its mount, so one copy on disk serves any
 * number of boxes and an upper directory can become a layer of another box as it is. Nothing is attached to the host's
 * tree: the clones live as descriptors and the overlay keeps its own references. The overlay keeps its marks in
 * trusted.* attributes, which nothing inside a box can write; user.* stay the box's own.
 *
 * Kernels before 6.15 take layers only from mounts of the caller's own namespace. There the clones are attached below
 * dir/stage, the overlay is mounted there the old way, and only a clone of it, without a place, is kept. */
#include "jail/fs/overlay.h"

#include "jail/fs/id_shift.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define STAGE_NAME 16 /* number of a mount below dir/stage */
#define BUSY_TRIES 400
#define LEAVE_US   30000000 /* for a former mount of the same directory to go */

/* Gives a detached mount the ids of the box. A clone is a peer of the mount it was made of, which on a host with
 * systemd is a shared one: what is mounted below it would appear on the host. */
static int map_ids(int tree, int userns, unsigned attributes)
{
  struct mount_attr attr = {
      .attr_set = MOUNT_ATTR_IDMAP | attributes, .propagation = MS_PRIVATE, .userns_fd = (uint64_t)userns};
  return mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ? -errno : 0;
}

/* The box's own directory has just been written to, and a process cloned meanwhile by another thread may still hold a
 * copy of that descriptor: the kernel then calls the mount busy. A clone has no writers; a kernel that can't clone a
 * detached mount gets a little patience. */
static int map_home(int home, int userns, uint32_t root)
{
  cleanup_fd int clone = open_tree(home, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  int fd = clone >= 0 ? clone : home, r;
  for (int i = 0; (r = map_ids(fd, userns, 0)) == -EBUSY && i < BUSY_TRIES; i++)
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  if (r == -EINVAL)
    r = id_shift_home(home, root);
  if (r)
    return r;
  if (clone >= 0)
    return steal_fd(&clone);
  fd = fcntl(home, F_DUPFD_CLOEXEC, 3);
  return fd < 0 ? -errno : fd;
}

/* EINVAL is the kernel's word for a filesystem that can't; the other reasons are failures. */
static int clone_mapped(const struct overlay_layers *l, const char *path, struct err *err)
{
  cleanup_fd int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0)
    return err_errno(err, "opening the layer %s", path);
  int r = map_ids(tree, l->userns, MOUNT_ATTR_RDONLY);
  if (r == -EINVAL && l->shifted)
    return id_shift_open(l->shifted, path, l->root, err);
  return r ? err_set(err, r, "mapping the ids of the layer %s: %s", path, strerrordesc_np(-r)) : steal_fd(&tree);
}

static int set_flag(int fs, const char *key, const char *value)
{
  return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) ? -errno : 0;
}

/* volatile: without it the end of a box would write out everything that is dirty on the filesystem below, the host's
 * own perhaps, and every fsync in a box would wait for the host's disk. What a box wrote is safe from the death of any
 * process; it is safe from a crash of the host once jail_sync was called. index and nfs_export give files handles that
 * outlive a checkpoint; redirect_dir lets a directory of the template be renamed; metacopy stays off so that an upper
 * directory holds whole files. */
static int set_options(int fs, bool handles)
{
  int r = set_flag(fs, "source", "overlay");
  if (!r)
    r = set_flag(fs, "redirect_dir", "on");
  if (!r)
    r = set_flag(fs, "metacopy", "off");
  if (!r)
    r = set_flag(fs, "xino", "auto");
  if (!r && fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0))
    r = -errno;
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

struct clones {
  int home;
  int fds[OVERLAY_LAYERS_MAX];
  size_t n;
};

static int add_by_fd(int fs, const struct clones *c)
{
  int r = 0;
  for (size_t i = 0; i < c->n && !r; i++)
    r = set_dir(fs, "lowerdir+", c->fds[i], ".");
  if (!r)
    r = set_dir(fs, "upperdir", c->home, "upper");
  if (!r)
    r = set_dir(fs, "workdir", c->home, "work");
  return r;
}

/* --- by name, for older kernels ------------------------------------------------------------------------------- */

struct stage {
  int dir, before; /* the stage and the thread's directory before */
  size_t attached;
};

static void stage_name(char name[STAGE_NAME], size_t i)
{
  snprintf(name, STAGE_NAME, "%zu", i);
}

static void stage_clear(struct stage *s)
{
  char name[STAGE_NAME];
  while (s->attached > 0) {
    stage_name(name, --s->attached);
    umount2(name, MNT_DETACH);
    rmdir(name);
  }
  if (s->before >= 0) {
    if (fchdir(s->before))
      log_warn("restoring the working directory of a worker failed: %s", strerror(errno));
    close(s->before);
  }
  if (s->dir >= 0)
    close(s->dir);
}

/* Short names keep the list of layers within the page that mount takes, so the thread works inside the stage; from then
 * on it has a current directory of its own. */
static int stage_open(struct stage *s, const char *dir)
{
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/stage", dir);
  if (mkdir(path, 0700) && errno != EEXIST)
    return -errno;
  s->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (s->dir < 0 || unshare(CLONE_FS))
    return -errno;
  s->before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return s->before < 0 || fchdir(s->dir) ? -errno : 0;
}

static int stage_place(struct stage *s, char name[STAGE_NAME])
{
  stage_name(name, s->attached);
  if (mkdir(name, 0700) && errno != EEXIST)
    return -errno;
  s->attached++;
  return 0;
}

static int stage_add(struct stage *s, int tree, char name[STAGE_NAME])
{
  int r = stage_place(s, name);
  return !r && move_mount(tree, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) ? -errno : r;
}

static int list_layers(struct stage *s, const struct clones *c, struct buf *list)
{
  char name[STAGE_NAME] = "";
  int r = 0;
  buf_adds(list, STR("redirect_dir=on,metacopy=off,xino=auto,volatile,index=on,nfs_export=on,lowerdir="));
  for (size_t i = 0; i < c->n && !r; i++) {
    r = stage_add(s, c->fds[i], name);
    buf_addf(list, "%s%s", i > 0 ? ":" : "", name);
  }
  if (!r)
    r = stage_add(s, c->home, name);
  buf_addf(list, ",upperdir=%s/upper,workdir=%s/work", name, name);
  buf_add(list, "", 1);
  return r ? r : buf_failed(list) ? -E2BIG : 0;
}

/* A clone of what is mounted there, without a place. Below a shared mount the original is shared, too; a process could
 * not make such a clone its root. */
static int stage_take(const char *name)
{
  struct mount_attr attr = {.propagation = MS_PRIVATE};
  cleanup_fd int fd = open_tree(AT_FDCWD, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ? -errno : steal_fd(&fd);
}

static int mount_by_name(const struct overlay_layers *l, const struct clones *c)
{
  char name[STAGE_NAME];
  __attribute__((cleanup(stage_clear))) struct stage stage = {.dir = -1, .before = -1};
  cleanup_buf struct buf list = BUF_INIT((size_t)sysconf(_SC_PAGESIZE));
  int r = stage_open(&stage, l->dir);
  if (!r)
    r = list_layers(&stage, c, &list);
  if (!r)
    r = stage_place(&stage, name);
  if (!r && mount("overlay", name, "overlay", MS_NODEV, list.p))
    r = -errno;
  return r ? r : stage_take(name);
}

/* -------------------------------------------------------------------------------------------------------------- */

/* What this kernel takes, learnt from the first box: 0 = not known yet. */
enum { WAY_FD = 1, WAY_HANDLES = 2, WAY_NAME = 4 };
static atomic_int known_way;

static int mount_overlay(const struct overlay_layers *l, int way, const struct clones *c)
{
  if (way & WAY_NAME)
    return mount_by_name(l, c);
  cleanup_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  if (fs < 0)
    return -errno;
  int r = set_options(fs, way & WAY_HANDLES);
  if (!r)
    r = add_by_fd(fs, c);
  if (!r && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    r = -errno;
  if (r)
    return r;
  int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
  return fd < 0 ? -errno : fd;
}

/* The overlay works on its upper layer as whoever mounted it, and the host's root has no id in there. So the calling
 * thread takes the box's root as its filesystem identity for the mount, capabilities kept. All but SYS_RESOURCE, with
 * which a box's writes would pass any quota. Raw calls: the C library's would do it to every thread. */
static int set_capabilities(bool resource)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &head, data))
    return -errno;
  for (size_t i = 0; i < ARRAY_LEN(data); i++)
    data[i].effective = data[i].permitted;
  if (!resource)
    data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
  return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static int try_way(const struct overlay_layers *l, int way, const struct clones *c)
{
  syscall(SYS_setfsgid, l->root);
  syscall(SYS_setfsuid, l->root);
  int r = set_capabilities(false);
  if (!r)
    r = mount_overlay(l, way, c);
  syscall(SYS_setfsuid, geteuid());
  syscall(SYS_setfsgid, getegid());
  set_capabilities(true);
  return r;
}

/* A box that has just ended may still be there as a mount: the kernel takes it down in a worker of its own, after the
 * last process was waited for, and one after the other. Filesystems that are written out before it may take seconds. */
static int try_patiently(const struct overlay_layers *l, int way, struct clones *c)
{
  int r;
  int64_t deadline = clock_mono_us() + LEAVE_US;
  while ((r = try_way(l, way, c)) == -EBUSY && clock_mono_us() < deadline)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return r;
}

static void clones_close(struct clones *c)
{
  for (size_t i = 0; i < c->n; i++)
    close(c->fds[i]);
  if (c->home >= 0)
    close(c->home);
}

static int clones_open(struct clones *c, const struct overlay_layers *l, struct err *err)
{
  for (const char *const *lowers = l->lowers; *lowers; lowers++) {
    if (c->n == OVERLAY_LAYERS_MAX)
      return err_set(err, -E2BIG, "a root of more than %d layers", OVERLAY_LAYERS_MAX);
    int fd = clone_mapped(l, *lowers, err);
    if (fd < 0)
      return fd;
    c->fds[c->n++] = fd;
  }
  return c->n > 0 ? 0 : err_set(err, -EINVAL, "a root without layers");
}

void overlay_spent_close(struct overlay_spent *spent)
{
  while (spent->n > 0)
    close(spent->fds[--spent->n]);
}

static void clones_spend(struct clones *c, struct overlay_spent *spent)
{
  for (size_t i = 0; i < c->n; i++)
    spent->fds[spent->n++] = c->fds[i];
  spent->fds[spent->n++] = c->home;
  *c = (struct clones){.home = -1};
}

/* A way is tried only while none is known; later failures are real ones and are told. */
int overlay_mount(const struct overlay_layers *l, struct err *err)
{
  static const int ways[] = {WAY_FD | WAY_HANDLES, WAY_FD, WAY_NAME};
  __attribute__((cleanup(clones_close))) struct clones c = {.home = -1};
  int r = clones_open(&c, l, err);
  if (r)
    return r;
  c.home = map_home(l->home, l->userns, l->root);
  if (c.home < 0)
    return err_set(err, c.home, "mapping the ids of %s: %s", l->dir, strerrordesc_np(-c.home));
  int known = atomic_load(&known_way);
  if (known)
    r = try_patiently(l, known, &c);
  for (size_t i = 0; !known && i < ARRAY_LEN(ways); i++)
    if ((r = try_patiently(l, ways[i], &c)) >= 0) {
      atomic_store(&known_way, ways[i]);
      break;
    }
  if (l->spent)
    clones_spend(&c, l->spent);
  return r < 0 ? err_set(err, r, "mounting the root of %s: %s", l->dir, strerrordesc_np(-r)) : r;
}

bool overlay_views_allowed(void)
{
  return atomic_load(&known_way) & WAY_FD;
}

static int view_by_name(const char *dir, const struct clones *c)
{
  char name[STAGE_NAME] = "";
  __attribute__((cleanup(stage_clear))) struct stage stage = {.dir = -1, .before = -1};
  cleanup_buf struct buf list = BUF_INIT((size_t)sysconf(_SC_PAGESIZE));
  int r = stage_open(&stage, dir);
  buf_addz(&list, "lowerdir=");
  for (size_t i = 0; i < c->n && !r; i++) {
    r = stage_add(&stage, c->fds[i], name);
    buf_addf(&list, "%s%s", i > 0 ? ":" : "", name);
  }
  if (!r)
    r = stage_place(&stage, name);
  if (!r && mount("overlay", name, "overlay", MS_NODEV | MS_RDONLY, buf_z(&list)))
    r = -errno;
  return r ? r : stage_take(name);
}

static int view_by_fd(const struct clones *c)
{
  cleanup_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  int r = fs < 0 ? -errno : set_flag(fs, "source", "overlay");
  for (size_t i = 0; i < c->n && !r; i++)
    r = set_dir(fs, "lowerdir+", c->fds[i], ".");
  if (!r && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    r = -errno;
  int fd = r ? -1 : fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY);
  return r ? r : fd < 0 ? -errno : fd;
}

/* The kernel makes no overlay of one layer, and needs none. */
int overlay_view(const struct overlay_layers *l, struct err *err)
{
  __attribute__((cleanup(clones_close))) struct clones c = {.home = -1};
  int r = clones_open(&c, l, err);
  if (r)
    return r;
  if (c.n == 1)
    return c.fds[--c.n];
  r = atomic_load(&known_way) & WAY_NAME ? view_by_name(l->dir, &c) : view_by_fd(&c);
  return r < 0 ? err_set(err, r, "creating an id-mapped mount of %s: %s", l->lowers[0], strerrordesc_np(-r)) : r;
}
