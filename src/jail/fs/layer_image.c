/* SPDX-License-Identifier: Apache-2.0 */
/* layer_image.c - see layer_image.h. A layer never changes, so an image is made once and shared by all guests through
 * the page cache. mkfs.erofs reads what tenants have put into layers: it runs without a network, in pid and IPC
 * namespaces of its own, as nobody, and may read everything (marks of overlays need CAP_SYS_ADMIN to be read) and write
 * its one file. */
#include "jail/fs/layer_image.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOBODY_TEXT "65534"
#define NOBODY      65534
#define RIGHTS      "-all,+dac_read_search,+sys_admin"

static int run_mkfs(const char *layer, const char *image, struct err *err)
{
  const char *argv[] = {"unshare",
                        "--net",
                        "--ipc",
                        "--pid",
                        "--fork",
                        "--kill-child",
                        "--",
                        "setpriv",
                        "--reuid",
                        NOBODY_TEXT,
                        "--regid",
                        NOBODY_TEXT,
                        "--clear-groups",
                        "--inh-caps=" RIGHTS,
                        "--ambient-caps=" RIGHTS,
                        "--bounding-set=" RIGHTS,
                        "--no-new-privs",
                        "--",
                        "mkfs.erofs",
                        "-zlz4",
                        "--quiet",
                        image,
                        layer,
                        NULL};
  const char *env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
  posix_spawn_file_actions_t fa;
  pid_t pid;
  int status = 0;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
  int r = posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)argv, (char *const *)env);
  posix_spawn_file_actions_destroy(&fa);
  if (r)
    return err_set(err, -r, "running %s: %s", argv[0], strerrordesc_np(r));
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(status) || WEXITSTATUS(status))
    return err_set(err, -EIO, "mkfs.erofs of %s failed (scripts/deps microvm installs it)", layer);
  return 0;
}

/* Made under another name and renamed: whoever finds the image finds a whole one. */
static int make_image(const char *layer, const char *image, struct err *err)
{
  char temp[PATH_MAX];
  if ((size_t)snprintf(temp, sizeof(temp), "%s.XXXXXX", image) >= sizeof(temp))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", image);
  cleanup_fd int fd = mkostemp(temp, O_CLOEXEC);
  if (fd < 0 || fchown(fd, NOBODY, NOBODY))
    return err_errno(err, "making %s", temp);
  int r = run_mkfs(layer, temp, err);
  if (!r && (fchown(fd, 0, 0) || fchmod(fd, 0400) || fsync(fd) || rename(temp, image)))
    r = err_errno(err, "keeping %s", image);
  if (r)
    unlink(temp);
  return r;
}

int layer_image_open(const char *layer, struct err *err)
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
  int r = fd >= 0 ? 0 : make_image(layer, image, err);
  fd = fd >= 0 || r ? fd : open(image, O_RDONLY | O_CLOEXEC);
  return r ? r : fd < 0 ? err_errno(err, "opening %s", image) : fd;
}
