/* SPDX-License-Identifier: Apache-2.0 */
/* body_carry.c - see body_carry.h. */
#include "net/body_carry.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define PIPE_BYTES (1 << 20)
#define SLICE_US   50000
#define ENOUGH     (256 << 10) /* bytes that are worth waking up for */
#define WAIT_MS    2           /* for so many */
#define FEW        (16 << 10)  /* a sender that is slower than that has no thread wait for it */

static int pipe_open(struct body_carry *b)
{
  if (b->pipe[1] > 0)
    return 0;
  if (pipe2(b->pipe, O_CLOEXEC | O_NONBLOCK)) {
    b->pipe[0] = b->pipe[1] = 0;
    return -errno;
  }
  fcntl(b->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* refused to users with many: then in smaller pieces */
  return 0;
}

void body_carry_close(struct body_carry *b)
{
  if (b->pipe[1] > 0) {
    close(b->pipe[0]);
    close(b->pipe[1]);
  }
  b->pipe[0] = b->pipe[1] = 0;
}

static void wake_at(int sock, uint64_t bytes)
{
  int n = (int)MIN(bytes, (uint64_t)ENOUGH);
  setsockopt(sock, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n));
}

/* Whether there is something to read, after a short wait for a good piece. */
static bool more_comes(int sock)
{
  struct pollfd p = {.fd = sock, .events = POLLIN};
  int here = 0;
  return poll(&p, 1, WAIT_MS) > 0 || (!ioctl(sock, FIONREAD, &here) && here > 0);
}

int body_carry(struct body_carry *b)
{
  int64_t until = clock_mono_us() + SLICE_US;
  int r = pipe_open(b);
  b->took = 0;
  while (!r && b->took < b->most && clock_mono_us() < until) {
    uint64_t left = b->most - b->took;
    wake_at(b->sock, left);
    if (!more_comes(b->sock))
      break;
    ssize_t k = splice(b->sock, NULL, b->pipe[1], NULL, (size_t)MIN(left, (uint64_t)PIPE_BYTES),
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      break;
    b->took += (uint64_t)k;
    r = b->take(b->arg, b->pipe[0], (size_t)k);
    if (k < FEW)
      break;
  }
  wake_at(b->sock, 1);
  if (r)
    body_carry_close(b); /* what is in it is for nobody */
  return r;
}
