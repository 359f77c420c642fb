/* SPDX-License-Identifier: Apache-2.0 */
/* disk.c - the writable part of a box: an image file of its own, or a plain directory; see disk.h. */
#include "jail/fs/disk.h"
#include "jail/fs/disk_image.h"
#include "jail/fs/disk_pool.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int path_in(char out[PATH_MAX], const char *dir, const char *name, struct err *err)
{
  if ((size_t)snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX)
    return 0;
  return err_set(err, -ENAMETOOLONG, "path too long: %s/%s", dir, name);
}

static int open_limited(const char *dir, const struct jail_limits *limits, struct err *err)
{
  char image[PATH_MAX], boxes[PATH_MAX];
  int r = path_in(image, dir, DISK_IMAGE_NAME, err);
  if (!r && str_copyz(path_dir(str_of(dir)), boxes, sizeof(boxes)))
    r = err_set(err, -ENAMETOOLONG, "path too long: %s", dir);
  if (r)
    return r;
  if (access(image, F_OK) == 0) {
    disk_pool_forget(dir);
    return disk_image_open(image, err);
  }
  int tree = limits->disk_once ? -ENOENT : disk_pool_take(boxes, limits, dir);
  if (tree >= 0)
    return tree;
  tree = disk_make(boxes, image, limits, err);
  if (tree >= 0 && !limits->disk_once)
    disk_pool_lend(limits, dir, tree);
  return tree;
}

int disk_open(const char *dir, const struct jail_limits *limits, struct err *err)
{
  if (mkdir(dir, 0700) && errno != EEXIST)
    return err_errno(err, "making %s", dir);
  if (limits->disk)
    return open_limited(dir, limits, err);
  cleanup_fd int tree = open_tree(AT_FDCWD, dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  int r = tree < 0 ? err_errno(err, "opening %s", dir) : disk_make_dirs(tree, err);
  return r ? r : steal_fd(&tree);
}

int disk_upper(const char *dir, struct err *err)
{
  char image[PATH_MAX];
  struct err why = ERR_NONE;
  int r = path_in(image, dir, DISK_IMAGE_NAME, err);
  if (r)
    return r;
  disk_pool_forget(dir);
  bool limited = access(image, F_OK) == 0;
  cleanup_fd int tree = limited ? disk_image_look(image, &why) : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tree < 0 && limited)
    return err_set(err, tree, "%s", why.msg);
  int fd = tree < 0 ? -1 : openat(tree, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening the upper directory of %s", dir) : fd;
}

int disk_settle(const char *dir, struct err *err)
{
  char image[PATH_MAX];
  cleanup_fd int upper = disk_upper(dir, err);
  int r = upper < 0 ? upper : path_in(image, dir, DISK_IMAGE_NAME, err);
  if (r)
    return r;
  cleanup_fd int fd = open(image, O_RDWR | O_CLOEXEC);
  return syncfs(upper) || (fd >= 0 && fsync(fd)) ? err_errno(err, "writing out the disk of %s", dir) : 0;
}

int disk_sync(const char *dir, struct err *err)
{
  char image[PATH_MAX];
  int r = path_in(image, dir, DISK_IMAGE_NAME, err);
  if (r)
    return r;
  disk_pool_forget(dir);
  if (access(image, F_OK) == 0) {
    if ((r = disk_image_wait_free(image, err)))
      return r;
    cleanup_fd int fd = open(image, O_RDWR | O_CLOEXEC);
    return fd < 0 || fsync(fd) ? err_errno(err, "writing out %s", image) : 0;
  }
  cleanup_fd int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return top < 0 || syncfs(top) ? err_errno(err, "writing out %s", dir) : 0;
}
