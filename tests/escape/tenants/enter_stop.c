/* SPDX-License-Identifier: Apache-2.0 */
/* enter_stop SECONDS - root of a box stops what enters it from outside, as soon as it has a pid.
 *
 * The next process from now on gets SIGSTOP without a pause until it is there. One that has made another process
 * already was stopped too late: both are killed, so that the agent asks for another. One that has not is left as it is
 * for the rest of the time. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROBE_NS 300000000ll
#define LATE_US  300000

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

/* A number may be a thread's, of the agent for example. */
static int is_process(pid_t pid)
{
  char path[64], line[128];
  int tgid = 0;
  snprintf(path, sizeof(path), "/proc/%d/status", pid);
  FILE *f = fopen(path, "r");
  while (f && !tgid && fgets(line, sizeof(line), f))
    sscanf(line, "Tgid: %d", &tgid);
  if (f)
    fclose(f);
  return tgid == pid;
}

/* The process that was stopped, or 0. */
static pid_t stop_next(void)
{
  pid_t next = last_pid() + 1;
  long long probe = now_ns() + PROBE_NS;
  while (kill(next, SIGSTOP)) {
    if (now_ns() > deadline)
      return 0;
    if (now_ns() > probe) {
      next = last_pid() + 1;
      probe = now_ns() + PROBE_NS;
    }
  }
  return next;
}

int main(int argc, char **argv)
{
  deadline = now_ns() + atoll(argc > 1 ? argv[1] : "10") * 1000000000ll;
  unsigned stopped = 0, held = 0;
  puts("stopping");
  fflush(stdout);
  while (!held && now_ns() < deadline) {
    pid_t pid = stop_next();
    if (!pid)
      break;
    if (!is_process(pid)) {
      kill(pid, SIGCONT);
      continue;
    }
    stopped++;
    usleep(LATE_US);
    held = !kill(pid, 0) && kill(pid + 1, 0);
    for (pid_t late = pid; !held && late < pid + 3; late++)
      kill(late, SIGKILL);
  }
  while (held && now_ns() < deadline)
    usleep(10000);
  printf("stopped %u processes, held %u\n", stopped, held);
  return 0;
}
