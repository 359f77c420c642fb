/* SPDX-License-Identifier: Apache-2.0 */
/* layer_image.c - see layer_image.h. A layer never changes, so an image is made once and shared by all guests through
 * the page cache. What reads the layer is confined (image_maker.h). */
#include "jail/fs/layer_image.h"
#include "jail/fs/image_maker.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Made under another name and renamed: whoever finds the image finds a whole one. The caller holds the layer's lock, so
 * what has that name is what a crash left. */
static int make_image(const char *parts, const char *layer, const char *image, struct err *err)
{
  char temp[PATH_MAX], root[PATH_MAX];
  if ((size_t)snprintf(temp, sizeof(temp), "%s.new", image) >= sizeof(temp) ||
      (size_t)snprintf(root, sizeof(root), "%s/" IMAGE_MAKER, parts) >= sizeof(root))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", image);
  unlink(temp);
  cleanup_fd int fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return err_errno(err, "making %s", temp);
  int r = image_maker_run(root, layer, fd, err);
  if (!r && (fchown(fd, 0, 0) || fchmod(fd, 0400) || fsync(fd) || rename(temp, image)))
    r = err_errno(err, "keeping %s", image);
  if (r)
    unlink(temp);
  return r;
}

int layer_image_open(const char *parts, const char *layer, struct err *err)
{
  char image[PATH_MAX];
  if ((size_t)snprintf(image, sizeof(image), "%s.erofs", layer) >= sizeof(image))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", layer);
  int fd = open(image, O_RDONLY | O_CLOEXEC);
  if (fd >= 0)
    return fd;
  cleanup_fd int lock = open(layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0 || flock(lock, LOCK_EX))
    return err_errno(err, "opening %s", layer);
  fd = open(image, O_RDONLY | O_CLOEXEC); /* another may have made it meanwhile */
  int r = fd >= 0 ? 0 : make_image(parts, layer, image, err);
  fd = fd >= 0 || r ? fd : open(image, O_RDONLY | O_CLOEXEC);
  return r ? r : fd < 0 ? err_errno(err, "opening %s", image) : fd;
}
