/* SPDX-License-Identifier: Apache-2.0 */
/* fdx.c - descriptors and processes by name. */
#include "base/fdx.h"
#include "base/core.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int fd_write_all(int fd, const void *p, size_t n)
{
  for (const char *at = p; n > 0;) {
    ssize_t k = write(fd, at, n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0 && errno == EAGAIN) {
      poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000);
      continue;
    }
    if (k < 0)
      return -errno;
    at += k;
    n -= (size_t)k;
  }
  return 0;
}

int fd_read_all(int fd, struct buf *out)
{
  char chunk[16384];
  for (;;) {
    ssize_t k = read(fd, chunk, sizeof(chunk));
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return k ? -errno : 0;
    int r = buf_add(out, chunk, (size_t)k);
    if (r)
      return r;
  }
}

int file_read(const char *path, struct buf *out)
{
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -errno : fd_read_all(fd, out);
}

int file_write_atomic(const char *path, const void *p, size_t n, unsigned mode)
{
  char tmp[4096];
  if ((size_t)snprintf(tmp, sizeof(tmp), "%s.%d.tmp", path, getpid()) >= sizeof(tmp))
    return -ENAMETOOLONG;
  cleanup_fd int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0)
    return -errno;
  int r = fd_write_all(fd, p, n);
  if (!r && (fsync(fd) || rename(tmp, path)))
    r = -errno;
  if (r)
    unlink(tmp);
  return r;
}

int fd_nonblock(int fd)
{
  int flags = fcntl(fd, F_GETFL);
  return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

int fd_cloexec(int fd)
{
  return fcntl(fd, F_SETFD, FD_CLOEXEC) ? -errno : 0;
}

#define FD_MSG_MAX 40

ssize_t fd_send(int sock, const void *p, size_t n, const int *fds, size_t nfds, int flags)
{
  union {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * FD_MSG_MAX)];
  } c = {0};
  struct iovec iov = {(void *)p, n};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
  if (nfds > FD_MSG_MAX)
    return -EINVAL;
  if (nfds) {
    m.msg_control = &c;
    m.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    *h = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * nfds)};
    memcpy(CMSG_DATA(h), fds, sizeof(int) * nfds);
  }
  ssize_t k;
  do
    k = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
  while (k < 0 && errno == EINTR);
  return k < 0 ? -errno : k;
}

ssize_t fd_recv(int sock, void *p, size_t n, int *fds, size_t *nfds, int flags)
{
  union {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * FD_MSG_MAX)];
  } c;
  struct iovec iov = {p, n};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
  size_t room = nfds ? *nfds : 0, got = 0;
  ssize_t k;
  do
    k = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
  while (k < 0 && errno == EINTR);
  if (k < 0)
    return -errno;
  for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
      continue;
    size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
      if (got < room)
        fds[got++] = fd;
      else
        close(fd);
    }
  }
  if (nfds)
    *nfds = got;
  return k;
}

int proc_start_time(pid_t pid, uint64_t *start)
{
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  cleanup_buf struct buf b = BUF_INIT(8192);
  int r = file_read(path, &b);
  if (r)
    return r == -ENOENT ? -ESRCH : r;
  /* The name in parentheses may hold anything; fields are counted behind the last one. */
  ptrdiff_t close_paren = str_rfind(buf_str(&b), ')');
  if (close_paren < 0)
    return -EIO;
  struct str rest = str_skip(buf_str(&b), (size_t)close_paren + 2), field = STR_NONE;
  for (int i = 3; i <= 22; i++)
    str_cut(rest, ' ', &field, &rest);
  return str_u64(field, start);
}

int proc_open(struct proc_id id)
{
  int fd = (int)syscall(SYS_pidfd_open, id.pid, 0);
  if (fd < 0)
    return -errno;
  uint64_t start;
  int r = proc_start_time(id.pid, &start);
  if (!r && start == id.start)
    return fd;
  close(fd);
  return -ESRCH;
}

void proc_hide(void)
{
#ifndef __SANITIZE_ADDRESS__ /* looking for leaks needs tracing */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
  setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}); /* a pipe in core_pattern ignores zero */
}
