/* SPDX-License-Identifier: Apache-2.0 */
/* etc_files.c - written straight into the upper directory before the overlay is mounted, which costs no copy-up. */
#include "jail/fs/etc_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int put(int dir, const char *name, const char *text, struct err *err)
{
  cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0)
    return errno == EEXIST ? 0 : err_errno(err, "making /etc/%s", name);
  int r = fchmod(fd, 0644) ? -errno : fd_write_all(fd, text, strlen(text));
  return r ? err_set(err, r, "writing /etc/%s: %s", name, strerrordesc_np(-r)) : 0;
}

/* A box that lived before may have made /etc anything; only a real directory is written to. */
static int open_etc(int tree, struct err *err)
{
  if (mkdirat(tree, "upper/etc", 0755) && errno != EEXIST)
    return err_errno(err, "making /etc");
  int fd = openat(tree, "upper/etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening /etc") : fd;
}

int etc_write(int tree, const char *hostname, const char *nameserver, struct err *err)
{
  char text[512];
  cleanup_fd int dir = open_etc(tree, err);
  if (dir < 0)
    return dir;
  snprintf(text, sizeof(text), "%s\n", hostname);
  int r = put(dir, "hostname", text, err);
  snprintf(text, sizeof(text), "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n::1\tlocalhost ip6-localhost\n", hostname);
  if (!r)
    r = put(dir, "hosts", text, err);
  snprintf(text, sizeof(text), "nameserver %s\noptions edns0\n", nameserver ? nameserver : "");
  if (!r)
    r = put(dir, "resolv.conf", nameserver ? text : "# no network\n", err);
  return r;
}
