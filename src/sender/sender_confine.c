/* SPDX-License-Identifier: Apache-2.0 */
/* sender_confine.c - see sender_confine.h.
 *
 * As of a gate (src/gate/confine.c): the root first, which needs privilege; then limits, groups, gid and uid; then
 * no_new_privs; then the threads; the filter last, for all of them. What the sender has beyond a gate: sockets of its
 * own to the internet, threads that resolve names, and the files these read. The files are copies, because a bind mount
 * would show the old file for ever once somebody replaces it; the supervisor starts the sender again when one of them
 * changes. */
#include "sender/sender_confine.h"

#include "base/base.h"
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES ((size_t)256 << 10)
#define MEMORY_MAX     ((rlim_t)2 << 30)
#define FILES_MAX      ((rlim_t)4096)

static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(close),
    SCMP_SYS(openat), /* of a root with three files */
    SCMP_SYS(newfstatat),
    SCMP_SYS(fstat),
    SCMP_SYS(statx),
    SCMP_SYS(lseek),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(recvfrom),
    SCMP_SYS(connect),
    SCMP_SYS(bind),
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
    SCMP_SYS(ioctl),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(membarrier),
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
    SCMP_SYS(uname),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(tgkill),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(prlimit64),
    SCMP_SYS(getrusage),
    SCMP_SYS(sysinfo),
};

static int put_file(const char *path, struct str text, struct err *err)
{
  cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  int r = fd < 0 ? -errno : fd_write_all(fd, text.p, text.n);
  return r ? err_set(err, r, "sender: %s: %s", path, strerrordesc_np(-r)) : 0;
}

/* Read before the root changes; a file that is missing or too long is left out. */
static int copy_files(struct err *err)
{
  static const char *const names[] = {"/etc/resolv.conf", "/etc/hosts"};
  if (mkdir("etc", 0755))
    return err_errno(err, "sender: its /etc");
  int r = put_file("etc/nsswitch.conf", STR("hosts: files dns\n"), err);
  for (size_t i = 0; !r && i < ARRAY_LEN(names); i++) {
    cleanup_buf struct buf b = BUF_INIT(FILE_MAX_BYTES);
    if (!file_read(names[i], &b))
      r = put_file(names[i] + 1, buf_str(&b), err);
  }
  return r;
}

static int small_root(struct err *err)
{
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
    return err_errno(err, "sender: own mount namespace");
  if (mount("cloche-sender", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=1m,mode=0555") || chdir("/tmp"))
    return err_errno(err, "sender: its root");
  int r = copy_files(err);
  if (r)
    return r;
  if (mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) || chroot(".") ||
      chdir("/"))
    return err_errno(err, "sender: chroot");
  return 0;
}

static int set_limits(struct err *err)
{
  struct rlimit files, none = {0, 0};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max = MIN(files.rlim_max, FILES_MAX);
  if (setrlimit(RLIMIT_NOFILE, &files) || setrlimit(RLIMIT_CORE, &none) || setrlimit(RLIMIT_FSIZE, &none))
    return err_errno(err, "sender: limits");
#ifndef __SANITIZE_ADDRESS__
  struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
  if (setrlimit(RLIMIT_AS, &memory))
    return err_errno(err, "sender: limit of memory");
#endif
  return 0;
}

static int become(unsigned uid, struct err *err)
{
  gid_t gid = (gid_t)uid;
  if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
    return err_errno(err, "sender: become uid %u", uid);
  return 0;
}

/* TCP and UDP, and the kernel's list of addresses by which answers of name servers are sorted; no unix socket. */
static int allow_sockets(scmp_filter_ctx ctx)
{
  static const int families[] = {AF_INET, AF_INET6};
  int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                           SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
  for (size_t i = 0; !r && i < ARRAY_LEN(families); i++)
    for (int type = SOCK_STREAM; !r && type <= SOCK_DGRAM; type++)
      r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]),
                           SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, (scmp_datum_t)type));
  return r;
}

static int filter(struct err *err)
{
  scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  int r = ctx ? 0 : -ENOMEM;
  for (size_t i = 0; !r && i < ARRAY_LEN(allowed); i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
  r = r ? r : allow_sockets(ctx);
  r = r ? r : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
  r = r ? r : seccomp_load(ctx);
  seccomp_release(ctx);
  return r ? err_set(err, r, "sender: system call filter: %s", strerrordesc_np(-r)) : 0;
}

int sender_confine(unsigned uid, void (*threads)(void *arg), void *arg, struct err *err)
{
#ifdef __SANITIZE_ADDRESS__
  if (!uid) { /* looking for leaks needs tracing and /proc: a build under sanitizers may leave the confinement out */
    threads(arg);
    return 0;
  }
#endif
  int r = uid ? small_root(err) : 0;
  r = r ? r : set_limits(err);
  r = r || !uid ? r : become(uid, err);
  if (!r && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0)))
    r = err_errno(err, "sender: no new privileges");
  if (r)
    return r;
  threads(arg);
  return filter(err);
}
