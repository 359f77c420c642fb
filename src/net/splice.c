/* SPDX-License-Identifier: Apache-2.0 */
/* splice.c - bytes from one socket to another that nobody looks at.
 *
 * splice(2) moves references to the socket buffers' pages through a pipe, so a body crosses a proxy without being
 * copied in and out. The loop keeps one empty pipe. What the far socket does not take at once stays in it: the pipe
 * then becomes a piece of that connection's queue, in its place among the others, and the loop gets a new one. */
#include "net/splice.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

#define PIPE_BYTES (1 << 20)

static int pipe_ready(struct net *n)
{
  if (n->pipe[1] > 0)
    return 0;
  if (pipe2(n->pipe, O_CLOEXEC | O_NONBLOCK))
    return -errno;
  fcntl(n->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* refused to users with many: then in smaller pieces */
  return 0;
}

void splice_close(struct net *n)
{
  if (n->pipe[1] > 0) {
    close(n->pipe[0]);
    close(n->pipe[1]);
  }
  n->pipe[0] = n->pipe[1] = 0;
}

ssize_t splice_out(int pipe, int sock, size_t n)
{
  struct held_sigpipe held = sigpipe_hold();
  ssize_t r = splice(pipe, NULL, sock, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  int code = r < 0 ? errno : 0;
  sigpipe_release(&held, code);
  return r < 0 ? -code : r;
}

ssize_t splice_bytes(struct conn *from, struct conn *to, uint64_t most)
{
  struct net *n = from->net;
  if (pipe_ready(n) < 0)
    return -ENOSYS;
  ssize_t came = splice(from->fd, NULL, n->pipe[1], NULL, (size_t)MIN(most, (uint64_t)PIPE_BYTES),
                        SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (came <= 0)
    return came == 0 ? 0 : errno == EINVAL ? -ENOSYS : -errno;
  conn_push_now(to); /* a head may wait for the first bytes of its body */
  size_t left = (size_t)came;
  while (left && !to->out) {
    ssize_t went = splice_out(n->pipe[0], to->fd, left);
    if (went <= 0)
      break;
    left -= (size_t)went;
  }
  if (left) {
    int rest = n->pipe[0];
    close(n->pipe[1]);
    n->pipe[0] = n->pipe[1] = 0;
    conn_write_pipe(to, rest, left);
  }
  return came;
}

/* One error for two reasons: nothing came, or the pipe is full. */
static int why_not(const struct conn *from)
{
  int waiting = 0;
  return ioctl(from->fd, FIONREAD, &waiting) == 0 && waiting > 0 ? -ENOBUFS : -EAGAIN;
}

ssize_t splice_into(struct conn *from, int pipe, uint64_t most)
{
  ssize_t came =
      splice(from->fd, NULL, pipe, NULL, (size_t)MIN(most, (uint64_t)PIPE_BYTES), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (came >= 0)
    return came;
  return errno == EAGAIN ? why_not(from) : errno == EINVAL ? -ENOSYS : -errno;
}

/* ---- SIGPIPE ---- */

struct held_sigpipe sigpipe_hold(void)
{
  struct held_sigpipe h;
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &h.before);
  return h;
}

void sigpipe_release(const struct held_sigpipe *h, int code)
{
  static const struct timespec at_once = {0, 0};
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  if (code == EPIPE && !sigismember(&h->before, SIGPIPE))
    sigtimedwait(&pipe_only, NULL, &at_once);
  pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}
