/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - the directory with a box's first program, as a mount that a box can only read.
 *
 * The box's ids are left out: nobody in there owns it. A plain clone of the host's mount would show the box a path of
 * the host, so it is an overlay of that directory and an empty one; both are detached and have no path. One is made for
 * each directory, and boxes get clones of it. Kernels before 6.15 can't do that, and show the path. */
#include "jail/jail.h"
#include "jail/jail_internal.h"
#include "jail/fs/overlay.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mount.h>

#define PROGRAMS   8 /* versions in use at a time; more are made for each box */
#define ATTRIBUTES (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  char path[PATH_MAX];
  int fd;
} made[PROGRAMS];
static size_t count;

static int make_empty(void)
{
  cleanup_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "755", 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "size", "4096", 0) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return -errno;
  int fd = fsmount(fs, FSMOUNT_CLOEXEC, ATTRIBUTES);
  return fd < 0 ? -errno : fd;
}

static int clone_of(const char *path)
{
  struct mount_attr attr = {.attr_set = ATTRIBUTES, .propagation = MS_PRIVATE};
  cleanup_fd int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ? -errno : steal_fd(&tree);
}

static int add_layer(int fs, int tree)
{
  cleanup_fd int fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? -1 : fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, fd);
}

static int make_overlay(const char *path)
{
  cleanup_fd int tree = clone_of(path), empty = tree < 0 ? -1 : make_empty();
  if (tree < 0 || empty < 0)
    return MIN(tree, empty);
  cleanup_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", JAIL_RUNTIME_SOURCE, 0) || add_layer(fs, tree) ||
      add_layer(fs, empty) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return -errno;
  int fd = fsmount(fs, FSMOUNT_CLOEXEC, ATTRIBUTES);
  return fd < 0 ? -errno : fd;
}

/* Called under the lock; the descriptor stays ours. */
static int find(const char *path)
{
  for (size_t i = 0; i < count; i++)
    if (!strcmp(made[i].path, path))
      return made[i].fd;
  return -1;
}

static int clone_made(const char *path)
{
  int fd = find(path);
  if (fd < 0 && count < PROGRAMS && strlen(path) < sizeof(made[0].path)) {
    fd = make_overlay(path);
    if (fd < 0)
      return fd;
    snprintf(made[count].path, sizeof(made[count].path), "%s", path);
    made[count++].fd = fd;
  }
  if (fd < 0)
    return make_overlay(path);
  int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return tree < 0 ? -errno : tree;
}

int jail_runtime(const struct jail_spec *spec, struct err *err)
{
  int fd;
  if (overlay_views_allowed()) {
    pthread_mutex_lock(&lock);
    fd = clone_made(spec->runtime);
    pthread_mutex_unlock(&lock);
  } else {
    fd = clone_of(spec->runtime);
  }
  return fd < 0 ? err_set(err, fd, "mounting the runtime files %s: %s", spec->runtime, strerrordesc_np(-fd)) : fd;
}
