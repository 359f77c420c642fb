/* SPDX-License-Identifier: Apache-2.0 */
/* splice.c - bytes from one socket to another that nobody looks at.
 *
 * splice(2) moves references to the socket buffers' pages through a pipe, so a body crosses a proxy without being
 * copied in and out. The loop keeps one empty pipe. What the far socket does not take at once stays in it: the pipe
 * then becomes a piece of that connection's queue, in its place among the others, and the loop gets a new one
 * (conn_splice, conn.c). */
#include "net/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20)

int splice_pipe_open(int pipe[2])
{
  if (pipe[1] > 0)
    return 0;
  if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK))
    return -errno;
  fcntl(pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* refused to users with many: then in smaller pieces */
  return 0;
}

void splice_pipe_close(int pipe[2])
{
  if (pipe[1] > 0) {
    close(pipe[0]);
    close(pipe[1]);
  }
  pipe[0] = pipe[1] = 0;
}

ssize_t splice_out(int pipe, int sock, size_t n)
{
  struct held_sigpipe held = sigpipe_hold();
  ssize_t r = splice(pipe, NULL, sock, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  int code = r < 0 ? errno : 0;
  sigpipe_release(&held, code);
  return r < 0 ? -code : r;
}

/* One error for two reasons: nothing came, or the pipe is full. */
static int why_not(int sock)
{
  int waiting = 0;
  return ioctl(sock, FIONREAD, &waiting) == 0 && waiting > 0 ? -ENOBUFS : -EAGAIN;
}

ssize_t splice_into(int sock, int pipe, uint64_t most)
{
  ssize_t came =
      splice(sock, NULL, pipe, NULL, (size_t)MIN(most, (uint64_t)PIPE_BYTES), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (came >= 0)
    return came;
  return errno == EAGAIN ? why_not(sock) : errno == EINVAL ? -ENOSYS : -errno;
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
