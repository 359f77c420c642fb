/* SPDX-License-Identifier: Apache-2.0 */
/* enter_watch ZYGOTE SECONDS CAPABILITIES - runs on the host as root: looks at everything that the zygote's forks hold
 * while they have a pid in a box, at each of their system calls, before and after it.
 *
 * Told is each process in a box that has another descriptor than /dev/null and one socket, a capability beside the
 * given ones (hexadecimal), or no filter. Watched are the first system calls of each process: what it does as a kernel
 * is not looked at. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCHED 64
#define STOPS   40 /* of one process in a box */

static unsigned long long allowed;
static unsigned inside, wrong;

static struct {
  pid_t pid;
  unsigned stops;
} seen[WATCHED];

static unsigned *stops_of(pid_t pid)
{
  unsigned at = 0;
  while (at < WATCHED - 1 && seen[at].pid && seen[at].pid != pid)
    at++;
  seen[at].pid = pid;
  return &seen[at].stops;
}

static void tell(pid_t pid, const char *what, const char *detail)
{
  wrong++;
  printf("HOLDS process %d in a box: %s %s\n", pid, what, detail);
}

static void check_files(pid_t pid)
{
  char path[64], text[256];
  unsigned sockets = 0;
  snprintf(path, sizeof(path), "/proc/%d/fd", pid);
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));) {
    ssize_t n = e->d_name[0] == '.' ? -1 : readlinkat(dirfd(d), e->d_name, text, sizeof(text) - 1);
    if (n < 0)
      continue;
    text[n] = 0;
    if (!strncmp(text, "socket:", 7) ? ++sockets > 1 : strcmp(text, "/dev/null") != 0)
      tell(pid, "descriptor", text);
  }
  if (d)
    closedir(d);
}

static void check_status(pid_t pid)
{
  char path[64], line[256], caps[32] = "";
  int in_box = 0, filtered = 0;
  snprintf(path, sizeof(path), "/proc/%d/status", pid);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof(line), f)) {
    int outer, inner;
    if (sscanf(line, "NSpid: %d %d", &outer, &inner) == 2)
      in_box = 1;
    sscanf(line, "CapEff: %31s", caps);
    sscanf(line, "Seccomp: %d", &filtered);
  }
  if (f)
    fclose(f);
  if (!in_box || ++*stops_of(pid) > STOPS)
    return;
  inside++;
  if (strtoull(caps, NULL, 16) & ~allowed)
    tell(pid, "capabilities", caps);
  if (!filtered)
    tell(pid, "no filter", "");
  check_files(pid);
}

int main(int argc, char **argv)
{
  if (argc != 4)
    return 2;
  pid_t zygote = atoi(argv[1]);
  time_t end = time(NULL) + atoi(argv[2]);
  allowed = strtoull(argv[3], NULL, 16);
  long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
  if (ptrace(PTRACE_SEIZE, zygote, 0, options) || ptrace(PTRACE_INTERRUPT, zygote, 0, 0)) {
    perror("seizing the zygote");
    return 1;
  }
  puts("watching");
  fflush(stdout);
  while (time(NULL) < end && wrong < 20) {
    int status;
    pid_t pid = waitpid(-1, &status, __WALL | WNOHANG);
    if (pid == 0)
      usleep(200);
    if (pid <= 0 || !WIFSTOPPED(status))
      continue;
    int sig = WSTOPSIG(status), event = status >> 16;
    if (pid != zygote)
      check_status(pid);
    ptrace(PTRACE_SYSCALL, pid, 0, event || sig == (SIGTRAP | 0x80) ? 0 : (long)sig);
  }
  printf("looked at %u moments in boxes, %u of them wrong\n", inside, wrong);
  return 0; /* our end lets everything go */
}
