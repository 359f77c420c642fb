/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - a gate reads bytes from strangers, so it holds nothing worth stealing.
 *
 * Order matters: the empty root needs privilege, so it comes first; then groups, gid and uid; then no_new_privs;
 * then the threads start, which have all of that from their beginning; and the filter last, for all threads, because
 * starting them and installing it need calls that it does not list. What the list leaves out fails with EPERM
 * rather than killing: a forgotten call then costs one request, not all connections of this gate. */
#include "gate/confine.h"

#include "base/base.h"
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>

static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(close),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendfile),
    SCMP_SYS(splice),
    SCMP_SYS(tee),
    SCMP_SYS(accept),
    SCMP_SYS(accept4),
    SCMP_SYS(shutdown),
    SCMP_SYS(getsockopt),
    SCMP_SYS(setsockopt),
    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_create1),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(eventfd2),
    SCMP_SYS(pipe2),
    SCMP_SYS(fcntl),
    SCMP_SYS(dup),
    SCMP_SYS(dup3),
    SCMP_SYS(ioctl),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(getrandom),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(nanosleep),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(tgkill),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(getrlimit),
    SCMP_SYS(prlimit64),
    SCMP_SYS(getrusage),
    SCMP_SYS(sysinfo),
    SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(membarrier),
};

static int empty_root(struct err *err)
{
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
    return err_errno(err, "gate: own mount namespace");
  if (mount("cloche-gate", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0555") || chdir("/tmp") ||
      mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_RDONLY, NULL))
    return err_errno(err, "gate: empty root");
  if (chroot(".") || chdir("/"))
    return err_errno(err, "gate: chroot");
  return 0;
}

static int become(unsigned uid, struct err *err)
{
  gid_t gid = (gid_t)uid;
  if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
    return err_errno(err, "gate: become uid %u", uid);
  return 0;
}

static int filter(struct err *err)
{
  scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  int r = ctx ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1) : -ENOMEM; /* of all threads, or of none */
  for (size_t i = 0; !r && i < ARRAY_LEN(allowed); i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
  r = r ? r : seccomp_load(ctx);
  seccomp_release(ctx);
  return r ? err_set(err, r, "gate: system call filter: %s", strerrordesc_np(-r)) : 0;
}

int gate_filter(unsigned uid, struct err *err)
{
#ifdef __SANITIZE_ADDRESS__
  if (!uid)
    return 0;
#endif
  return filter(err);
}

int gate_confine(unsigned uid, struct err *err)
{
#ifdef __SANITIZE_ADDRESS__
  if (!uid) /* looking for leaks needs tracing and /proc: a build under sanitizers may leave the confinement out */
    return 0;
#endif
  int r = uid ? empty_root(err) : 0;
  r = r || !uid ? r : become(uid, err);
  if (!r && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0)))
    r = err_errno(err, "gate: no new privileges");
  return r;
}
