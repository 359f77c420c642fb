/* SPDX-License-Identifier: Apache-2.0 */
/* enter_watch ZYGOTE SECONDS CAPABILITIES - runs on the host as root: looks at everything that the zygote's forks hold
 * while they have a pid in a box, at each of their system calls, before and after it.
 *
 * Told is each process in a box that has another descriptor than /dev/null and one socket, a capability beside the
 * given ones (hexadecimal), or no filter; or that can be traced before its last step, which makes it so. Watched are
 * the first system calls of each process: what it does as a kernel is not looked at. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
  int settled; /* it has asked for being dumpable */
} seen[WATCHED];

static unsigned place_of(pid_t pid)
{
  unsigned at = 0;
  while (at < WATCHED - 1 && seen[at].pid && seen[at].pid != pid)
    at++;
  seen[at].pid = pid;
  return at;
}

static void tell(pid_t pid, const char *what, const char *detail)
{
  wrong++;
  printf("HOLDS process %d in a box: %s %s\n", pid, what, detail);
}

static void note_last_step(pid_t pid, unsigned at)
{
  struct __ptrace_syscall_info info;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
      info.entry.nr == SYS_prctl && info.entry.args[0] == PR_SET_DUMPABLE && info.entry.args[1] == 1)
    seen[at].settled = 1;
}

/* What is not dumpable has files in /proc that belong to root of the namespace its program was started in: the host's.
 */
static void check_hidden(pid_t pid)
{
  char path[64];
  struct stat st;
  snprintf(path, sizeof(path), "/proc/%d/status", pid);
  if (!stat(path, &st) && st.st_uid != 0)
    tell(pid, "dumpable", "");
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
  unsigned at = in_box ? place_of(pid) : 0;
  if (!in_box || ++seen[at].stops > STOPS)
    return;
  inside++;
  note_last_step(pid, at);
  if (!seen[at].settled)
    check_hidden(pid);
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
