/* SPDX-License-Identifier: Apache-2.0 */
/* pid1.c - what the kernel and the box expect of process 1.
 *
 * All signals arrive through one signalfd, so no handler ever interrupts anything and the sender is known: a SIGTERM,
 * SIGINT or SIGPWR ends the box only when it comes from outside (its sender has no pid in here); the same signal from a
 * process of the box, root's included, is read and dropped. SIGKILL and SIGSTOP from inside never reach pid 1 of a
 * pid namespace. The end: SIGTERM to all, two seconds, then the kernel takes the rest along with us. */
#include "agent/pid1.h"
#include "agent/reap.h"
#include "agent/spawn.h"
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GRACE_MS 2000

static struct {
  uv_poll_t poll;
  uv_timer_t grace;
  int fd;
  bool leaving;
  void (*leave)(void);
} pid1 = {.fd = -1};

/* Numbers 0 to 3 are spoken for in every child (spawn.h), so nothing of ours may ever get them. */
static void low_fds_fill(void)
{
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd < 3)
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd > 3)
    close(fd);
}

static void limits_raise(void)
{
  struct rlimit lim;
  if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
    lim.rlim_cur = lim.rlim_max;
    setrlimit(RLIMIT_NOFILE, &lim);
  }
}

/* Not -1000: what a privileged writer sets here becomes the floor that children may return to, and a process nobody
 * may kill would hang the box at its memory limit. Refused in a user namespace unless the warden did it before. */
static void oom_shield(void)
{
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  if (write(fd, "-999", 4) < 0)
    log_debug("oom_score_adj stays: %s", strerror(errno));
  close(fd);
}

/* One heap for all threads, and large pieces mapped on their own: what a big request needed goes back when it is over.
 */
static void heap_keep_small(void)
{
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

/* Signals of bad accesses, of which a build under sanitizers tells before it ends; exec resets them. */
static bool is_sanitizers(int sig)
{
#ifdef __SANITIZE_ADDRESS__
  return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGABRT;
#else
  return false;
#endif
}

void pid1_default_signals(void)
{
  static const unsigned long by_default[4]; /* the kernel's own struct; the C library would leave two signals out */
  for (int sig = 1; sig < NSIG; sig++)
    if (!is_sanitizers(sig))
      syscall(SYS_rt_sigaction, sig, by_default, NULL, 8);
}

void pid1_prepare(void)
{
  heap_keep_small();
  pid1_default_signals();
  signal(SIGPIPE, SIG_IGN);
  umask(022);
  low_fds_fill();
  spawn_prepare();
  limits_raise();
  oom_shield();
  prctl(PR_SET_NAME, "cloche-agent");
  if (getpid() != 1)
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void grace_over(uv_timer_t *t UNUSED)
{
  if (getpid() == 1)
    kill(-1, SIGKILL);
  pid1.leave();
}

static bool any_child(void)
{
  siginfo_t info = {0};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void leave_begin(void)
{
  if (pid1.leaving)
    return;
  pid1.leaving = true;
  log_info("ending");
  if (getpid() == 1)
    kill(-1, SIGTERM);
  uv_timer_start(&pid1.grace, grace_over, any_child() ? GRACE_MS : 0, 0);
}

static void signals_read(uv_poll_t *p UNUSED, int status UNUSED, int events UNUSED)
{
  struct signalfd_siginfo got[16];
  bool child = false, end = false;
  ssize_t n;
  while ((n = read(pid1.fd, got, sizeof(got))) > 0)
    for (size_t i = 0; i < (size_t)n / sizeof(got[0]); i++) {
      child |= got[i].ssi_signo == SIGCHLD;
      end |= got[i].ssi_signo != SIGCHLD && (getpid() != 1 || got[i].ssi_pid == 0);
    }
  if (child)
    reap_now();
  if (end)
    leave_begin();
  if (pid1.leaving && !any_child())
    uv_timer_start(&pid1.grace, grace_over, 0, 0);
}

int pid1_start(uv_loop_t *loop, void (*leave)(void), struct err *err)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGPWR);
  sigprocmask(SIG_BLOCK, &set, NULL);
  pid1.leave = leave;
  pid1.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (pid1.fd < 0)
    return err_errno(err, "signalfd");
  uv_timer_init(loop, &pid1.grace);
  uv_poll_init(loop, &pid1.poll, pid1.fd);
  uv_poll_start(&pid1.poll, UV_READABLE, signals_read);
  return 0;
}
