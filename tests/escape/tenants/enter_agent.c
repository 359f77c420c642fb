/* SPDX-License-Identifier: Apache-2.0 */
/* enter_agent - a false agent: as first process of a box it says that it is ready, and seizes whatever enters the box
 * between its steps.
 *
 * What it finds goes to /tmp/false-agent: that it ran, and each process that it could trace while that had capabilities
 * or system calls which no process of a box has. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEPS 1500
#define ADMIN (1ull << 21)

static int report;

static long long now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void status_of(pid_t pid, unsigned long long *caps, int *seccomp)
{
  char path[64], text[4096] = "";
  snprintf(path, sizeof(path), "/proc/%d/status", pid);
  int fd = open(path, O_RDONLY);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
  close(fd);
  const char *at = n > 0 ? strstr(text, "CapEff:\t") : NULL;
  *caps = at ? strtoull(at + 8, NULL, 16) : 0;
  at = n > 0 ? strstr(text, "Seccomp:\t") : NULL;
  *seccomp = at ? atoi(at + 9) : -1;
}

static void step_through(pid_t pid)
{
  for (int i = 0; i < STEPS && !kill(pid, SIGSTOP); i++) {
    unsigned long long caps;
    int seccomp;
    status_of(pid, &caps, &seccomp);
    if (((caps & ADMIN) || seccomp == 0) && !ptrace(PTRACE_SEIZE, pid, 0, 0)) {
      int target = (int)syscall(SYS_pidfd_open, pid, 0), line = (int)syscall(SYS_pidfd_getfd, target, 3, 0);
      dprintf(report, "seized process %d with capabilities %llx, seccomp %d; %s its descriptor 3\n", pid, caps, seccomp,
              line < 0 ? "not" : "copied");
      ptrace(PTRACE_DETACH, pid, 0, 0);
      kill(pid, SIGCONT);
      return;
    }
    kill(pid, SIGCONT);
    for (long long end = now_ns() + 20000; now_ns() < end;)
      ;
  }
}

int main(void)
{
  static char packet[1 << 20];
  long long end = now_ns() + 8000000000ll;
  pid_t last = 1;
  report = open("/tmp/false-agent", O_WRONLY | O_CREAT | O_APPEND, 0644);
  dprintf(report, "ran as process %d\n", getpid());
  while (now_ns() < end)
    for (pid_t pid = last + 1; pid <= last + 20; pid++)
      if (!kill(pid, SIGSTOP)) {
        last = pid;
        step_through(pid);
        break;
      }
  ssize_t n = recv(3, packet, sizeof(packet), MSG_DONTWAIT);
  send(3, "R", 1, 0);
  dprintf(report, "took %zd bytes\n", n);
  for (;;)
    pause();
}
