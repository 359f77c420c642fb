/* SPDX-License-Identifier: GPL-2.0-only */
/* cloche-link-remap.h - what scripts/criu adds to criu's care for files that lost the name they were opened by.
 *
 * Such a file that has another name still gets one more for the time of its sleep, a link beside the old place. criu takes these
 * away itself when a dump lets the box go on, and so from an image that is to be restored later. Here they stay: each is
 * written down in the image first ("inode path", ended by a zero), and whoever keeps the image removes them (src/jail/checkpoint/link_remap.c). */
#ifndef CLOCHE_CRIU_LINKS_H
#define CLOCHE_CRIU_LINKS_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline int cloche_link(int images, const char *path, unsigned long inode)
{
  char head[32];
  int n = snprintf(head, sizeof(head), "%lu ", inode), fd = openat(images, "links", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  size_t all = strlen(path) + 1;
  int good = fd >= 0 && write(fd, head, n) == n && write(fd, path, all) == (ssize_t)all && !fsync(fd);
  if (fd >= 0)
    close(fd);
  return good ? 0 : -1;
}

#endif
