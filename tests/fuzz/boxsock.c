/* SPDX-License-Identifier: Apache-2.0 */
/* boxsock.c - packets with and without descriptors through a socket that a box holds the other end of: the boot socket,
 * the one of a build, the nursery request. Each pair of bytes is a packet: its length, and how many descriptors of
 * which kind. A packet with descriptors never gives its bytes, and whatever came, no descriptor stays open. */
#include "must.h"

#include "wire/box_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>

#define PACKETS 16
#define FDS     8

static size_t open_files(void)
{
  size_t n = 0;
  DIR *d = opendir("/proc/self/fd");
  MUST(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n;
}

static ssize_t give(int sock, size_t bytes, size_t n, unsigned kind)
{
  static const char text[256];
  int fds[FDS], spare[2];
  MUST(pipe2(spare, O_CLOEXEC) == 0);
  for (size_t i = 0; i < n; i++)
    fds[i] = kind == 0 ? spare[0] : kind == 1 ? spare[1] : sock;
  ssize_t sent = fd_send(sock, text, bytes, fds, n, MSG_DONTWAIT);
  close(spare[0]);
  close(spare[1]);
  return sent;
}

static void exchange(const int pair[2], uint8_t bytes, uint8_t how)
{
  static char in[512];
  size_t n = how % FDS;
  ssize_t sent = give(pair[1], bytes ? bytes : 1, n, how / FDS % 3), got;
  MUST(sent >= 0 || n > 0); /* where the kernel refuses descriptors */
  got = box_socket_recv(pair[0], in, sizeof(in));
  MUST(got == (sent < 0 ? -EAGAIN : n ? -EPERM : sent));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  int pair[2];
  size_t before = open_files();
  MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  if (size && data[0] & 1)
    box_socket_guard(pair[0]);
  for (size_t i = 1; i + 1 < size && i < 2 * PACKETS; i += 2)
    exchange(pair, data[i], data[i + 1]);
  if (size && data[0] & 2) /* something unread at the end */
    give(pair[1], 1, data[0] % FDS, data[0] % 3);
  box_socket_close(pair[0]);
  close(pair[1]);
  for (int i = 0; open_files() > before; i++) { /* closed by other threads */
    MUST(i < 5000);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return 0;
}
