/* SPDX-License-Identifier: Apache-2.0 */
/* enter_copy SECONDS - root of a box copies the descriptors of what enters it from outside.
 *
 * Descriptor 3 of each process that appears is asked for without a pause until the kernel gives it, and then all
 * others. What is not the box's own is told: sockets whose other side is outside, pidfds, control group files. The
 * processes are killed after a while, so that others are sent. From a socket to the outside messages are taken for the
 * rest of the time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FDS      24
#define PROBE_NS 300000000ll
#define AHEAD    6
#define REST_US  1500000

static int line = -1;
static unsigned copied, rounds;
static long long deadline;

static long long now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static pid_t last_pid(void)
{
  pid_t pid = fork();
  if (pid == 0)
    _exit(0);
  waitpid(pid, NULL, 0);
  return pid;
}

/* What no process of a box should have. */
static void judge(pid_t pid, int fd, int copy)
{
  char link[64], text[256] = "";
  struct ucred peer = {.pid = -1};
  socklen_t len = sizeof(peer);
  snprintf(link, sizeof(link), "/proc/self/fd/%d", copy);
  if (readlink(link, text, sizeof(text) - 1) < 0)
    return;
  copied++;
  if (!strncmp(text, "socket:", 7) && !getsockopt(copy, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid == 0) {
    printf("FOREIGN socket to a process outside, descriptor %d of process %d\n", fd, pid);
    line = line < 0 ? dup(copy) : line;
  }
  if (strstr(text, "pidfd") || strstr(text, "cgroup") || strstr(text, "/tasks") || strstr(text, "memfd:filter"))
    printf("FOREIGN %s, descriptor %d of process %d\n", text, fd, pid);
}

/* The kernel refuses as long as the process has more rights than we do. */
static void snatch(pid_t pid, int target)
{
  int copy;
  while ((copy = (int)syscall(SYS_pidfd_getfd, target, 3, 0)) < 0 && errno == EPERM && now_ns() < deadline)
    ;
  kill(pid, SIGSTOP);
  if (copy >= 0)
    judge(pid, 3, copy);
  for (int fd = 0; fd < FDS; fd++) {
    int other = (int)syscall(SYS_pidfd_getfd, target, fd, 0);
    if (other >= 0)
      judge(pid, fd, other);
    close(other);
  }
  kill(pid, SIGCONT);
  close(copy);
}

/* Threads have numbers, too, but no pidfd. */
static int open_next(pid_t *base)
{
  for (pid_t pid = *base + 1; pid <= *base + AHEAD; pid++) {
    int target = (int)syscall(SYS_pidfd_open, pid, 0);
    if (target >= 0) {
      *base = pid;
      return target;
    }
  }
  return -1;
}

/* Processes that appear one after the other, until there is none for a while. */
static void await_some(void)
{
  pid_t base = last_pid(), first = base;
  for (long long end = now_ns() + PROBE_NS; now_ns() < end && now_ns() < deadline && line < 0;) {
    int target = open_next(&base);
    if (target < 0)
      continue;
    rounds++;
    snatch(base, target);
    close(target);
  }
  if (base == first)
    return;
  usleep(REST_US);
  for (pid_t pid = first + 1; pid <= base; pid++)
    kill(pid, SIGKILL);
}

static void take_messages(void)
{
  char text[4096], control[1024];
  while (line >= 0 && now_ns() < deadline) {
    struct iovec part = {text, sizeof(text) - 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(line, &m, MSG_DONTWAIT);
    if (n > 0) {
      text[n] = 0;
      printf("TAKEN a message for another box, with %zu bytes of descriptors: %.120s\n", (size_t)m.msg_controllen,
             text);
      return;
    }
    usleep(20);
  }
}

int main(int argc, char **argv)
{
  deadline = now_ns() + atoll(argc > 1 ? argv[1] : "10") * 1000000000ll;
  puts("watching");
  fflush(stdout);
  while (now_ns() < deadline && line < 0)
    await_some();
  take_messages();
  printf("looked at %u processes, copied %u descriptors\n", rounds, copied);
  return 0;
}
