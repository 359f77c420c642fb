/* SPDX-License-Identifier: Apache-2.0 */
/* box_socket.c - see box_socket.h. A box that sends descriptors loses the socket it sent them through, so at most one
 * message per box comes to the closing threads; when all of them are held up, the rest waits in their queue as open
 * descriptors. */
#include "wire/box_socket.h"

#include <pthread.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define CLOSERS    8
#define RIGHTS_MAX 253 /* SCM_MAX_FD: descriptors in one message */

/* ---- closing aside ---- */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t more;
  VEC(int) queue;
  size_t threads, idle;
} closers = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static int next_to_close(void)
{
  pthread_mutex_lock(&closers.lock);
  closers.idle++;
  while (!closers.queue.n)
    pthread_cond_wait(&closers.more, &closers.lock);
  closers.idle--;
  int fd = closers.queue.p[--closers.queue.n];
  pthread_mutex_unlock(&closers.lock);
  return fd;
}

static void *closer_run(void *arg)
{
  for (;;)
    close(next_to_close());
  return arg;
}

static void close_aside(int fd)
{
  pthread_t thread;
  pthread_mutex_lock(&closers.lock);
  vec_push(&closers.queue, fd);
  if (closers.queue.n > closers.idle && closers.threads < CLOSERS && !pthread_create(&thread, NULL, closer_run, NULL)) {
    pthread_detach(thread);
    closers.threads++;
  }
  pthread_cond_signal(&closers.more);
  pthread_mutex_unlock(&closers.lock);
}

/* ---- the sockets ---- */

static bool guarded(int fd)
{
  int passes = 1;
  socklen_t len = sizeof(passes);
  return !getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &len) && !passes;
}

void box_socket_guard(int fd)
{
  if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int)))
    log_debug("SO_PASSRIGHTS: %s; descriptors from sandboxes are closed aside", strerror(errno));
}

/* The linger of a socket that was sent directly is taken from it; what hides in another socket's queue is for the
 * threads. */
static size_t drop_rights(struct msghdr *m)
{
  size_t n = 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int), n++) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){0}, sizeof(struct linger));
      close_aside(fd);
    }
  }
  return n;
}

ssize_t box_socket_recv(int fd, void *p, size_t n)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(RIGHTS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
  } control;
  struct iovec part = {p, n};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
  ssize_t got;
  do
    got = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return -errno;
  return drop_rights(&m) ? -EPERM : got;
}

void box_socket_close(int fd)
{
  if (guarded(fd))
    close(fd);
  else
    close_aside(fd);
}
