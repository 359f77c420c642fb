/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_floor.c - what loopback TCP costs by itself: the round trip of one byte, and the rate of one stream.
 *
 *   tcp_floor
 *
 * A child answers. Prints one JSON object: round_trip_ms (samples) and gb_per_second (samples). */
#include "base/base.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define TRIPS   5000
#define STREAM  ((size_t)256 << 20)
#define STREAMS 4

static char block[1 << 18];

static int64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void must(bool good, const char *what)
{
  if (good)
    return;
  perror(what);
  exit(1);
}

static void echo(int fd)
{
  char c;
  for (int i = 0; i < TRIPS; i++)
    must(recv(fd, &c, 1, 0) == 1 && send(fd, &c, 1, 0) == 1, "echo");
}

static void swallow(int fd)
{
  for (int i = 0; i < STREAMS; i++) {
    for (size_t left = STREAM; left > 0;) {
      ssize_t n = recv(fd, block, MIN(left, sizeof(block)), 0);
      must(n > 0, "recv");
      left -= (size_t)n;
    }
    must(send(fd, "x", 1, 0) == 1, "send");
  }
}

static pid_t serve(int listener)
{
  pid_t pid = fork();
  must(pid >= 0, "fork");
  if (pid)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int fd = accept(listener, NULL, NULL);
  must(fd >= 0, "accept");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  echo(fd);
  swallow(fd);
  _exit(0);
}

static void round_trips(int fd)
{
  char c = 'x';
  printf("{\"round_trip_ms\":[");
  for (int i = 0; i < TRIPS; i++) {
    int64_t began = now_ns();
    must(send(fd, &c, 1, 0) == 1 && recv(fd, &c, 1, 0) == 1, "round trip");
    printf("%s%.5f", i ? "," : "", (double)(now_ns() - began) / 1e6);
  }
}

static void streams(int fd)
{
  char c;
  printf("],\"gb_per_second\":[");
  for (int i = 0; i < STREAMS; i++) {
    int64_t began = now_ns();
    for (size_t left = STREAM; left > 0;) {
      ssize_t n = send(fd, block, MIN(left, sizeof(block)), 0);
      must(n > 0, "send");
      left -= (size_t)n;
    }
    must(recv(fd, &c, 1, 0) == 1, "recv");
    printf("%s%.4f", i ? "," : "", (double)STREAM / (double)(now_ns() - began));
  }
  printf("]}\n");
}

int main(void)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof(a);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(listener >= 0 && !bind(listener, (struct sockaddr *)&a, n) && !listen(listener, 1) &&
           !getsockname(listener, (struct sockaddr *)&a, &n),
       "listen");
  pid_t child = serve(listener);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  round_trips(fd);
  streams(fd);
  waitpid(child, NULL, 0);
  return 0;
}
