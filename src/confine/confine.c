/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - see confine.h.
 *
 * Order matters: the root needs privilege, so it comes first; then limits, groups, gid and uid; then no_new_privs; the
 * filter last, for all threads, because starting them and installing it need calls that it does not list. What the list
 * leaves out fails with EPERM rather than killing: a forgotten call then costs one request, not all of them. */
#include "confine/confine.h"

#include "base/base.h"
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of the macros of libseccomp */

#define FILE_MAX_BYTES ((size_t)256 << 10)

/* What an event loop with threads needs of descriptors that it was given. Nothing here opens, names or creates
 * anything but pipes and events, and nothing reaches another process. */
static const int common[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(close),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(recvfrom),
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
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(tgkill), /* abort() */
    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(prlimit64),
    SCMP_SYS(getrusage),
    SCMP_SYS(sysinfo),
};

static bool left_out(unsigned uid)
{
#if defined(__SANITIZE_ADDRESS__) || defined(CLOCHE_COVERAGE)
  return !uid;
#else
  return false;
#endif
}

/* ---- the root ---- */

static int make_directory(const char *name, const char *path, struct err *err)
{
  struct str dir, file;
  char text[256];
  if (!str_cut(str_of(path), '/', &dir, &file))
    return 0;
  str_copyz(str_sub(dir, 0, sizeof(text) - 1), text, sizeof(text));
  return mkdir(text, 0755) && errno != EEXIST ? err_errno(err, "%s: directory /%s of its root", name, text) : 0;
}

static int put_file(const char *name, const char *path, struct str text, struct err *err)
{
  int r = make_directory(name, path, err);
  if (r)
    return r;
  cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  r = fd < 0 ? -errno : fd_write_all(fd, text.p, text.n);
  return r ? err_set(err, r, "%s: /%s of its root: %s", name, path, strerrordesc_np(-r)) : 0;
}

/* In the directory that will be the root; the host's files still have their names. */
static int put_files(const struct confine_role *role, struct err *err)
{
  int r = 0;
  for (size_t i = 0; !r && i < role->nfiles; i++) {
    const struct confine_file *f = &role->files[i];
    cleanup_buf struct buf b = BUF_INIT(FILE_MAX_BYTES);
    if (f->text)
      r = put_file(role->name, f->path + 1, str_of(f->text), err);
    else if (!file_read(f->path, &b))
      r = put_file(role->name, f->path + 1, buf_str(&b), err);
  }
  return r;
}

/* By a descriptor: our root is mounted over what may hold it. */
static int bind_folder(const struct confine_role *role, int fd, struct err *err)
{
  const unsigned long flags = MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  const char *at = role->folder ? role->folder_at + 1 : NULL;
  char from[PROC_PATH];
  if (!role->folder)
    return 0;
  snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
  if (mkdir(at, 0755) || mount(from, at, NULL, MS_BIND, NULL) ||
      mount(NULL, at, NULL, MS_REMOUNT | MS_RDONLY | flags, NULL))
    return err_errno(err, "%s: directory %s for its root", role->name, role->folder);
  return 0;
}

static int small_root(const struct confine_role *role, struct err *err)
{
  const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  char options[64];
  snprintf(options, sizeof(options), "size=%zu,mode=0555", 4096 + role->nfiles * (FILE_MAX_BYTES + 4096));
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
    return err_errno(err, "%s: own mount namespace", role->name);
  cleanup_fd int folder = role->folder ? open(role->folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  if (role->folder && folder < 0)
    return err_errno(err, "%s: directory %s for its root", role->name, role->folder);
  if (mount(role->name, "/tmp", "tmpfs", flags, options) || chdir("/tmp"))
    return err_errno(err, "%s: its root", role->name);
  int r = put_files(role, err);
  r = r ? r : bind_folder(role, folder, err);
  if (r)
    return r;
  if (mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_RDONLY | flags, NULL) || chroot(".") || chdir("/"))
    return err_errno(err, "%s: chroot", role->name);
  return 0;
}

/* ---- limits, identity ---- */

static int limit(int what, uint64_t most)
{
  struct rlimit l;
  if (getrlimit(what, &l))
    return -1;
  l.rlim_cur = l.rlim_max = MIN(l.rlim_max, (rlim_t)most);
  return setrlimit(what, &l);
}

/* The log is the one file that a role may always write to; where it is none, nothing of that kind is left. */
static bool logs_to_a_file(void)
{
  struct stat st;
  return !fstat(STDERR_FILENO, &st) && S_ISREG(st.st_mode);
}

static int set_limits(const struct confine_role *role, struct err *err)
{
  if (role->fds_max && limit(RLIMIT_NOFILE, role->fds_max))
    return err_errno(err, "%s: limit of %ju open files", role->name, (uintmax_t)role->fds_max);
  signal(SIGXFSZ, SIG_IGN); /* a write over the limit fails; it does not end the process */
  bool grows = role->writes_files || logs_to_a_file();
  if (limit(RLIMIT_CORE, 0) || (!grows && limit(RLIMIT_FSIZE, 0)))
    return err_errno(err, "%s: limits", role->name);
#ifndef __SANITIZE_ADDRESS__
  if (role->memory_max && limit(RLIMIT_AS, role->memory_max))
    return err_errno(err, "%s: limit of %ju bytes of memory", role->name, (uintmax_t)role->memory_max);
#endif
  return 0;
}

static int become(const struct confine_role *role, unsigned uid, struct err *err)
{
  gid_t gid = (gid_t)uid;
  if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
    return err_errno(err, "%s: become uid %u", role->name, uid);
  return 0;
}

int confine_rights(const struct confine_role *role, unsigned uid, struct err *err)
{
  if (left_out(uid))
    return 0;
  int r = uid ? small_root(role, err) : 0;
  r = r ? r : set_limits(role, err);
  r = r || !uid || role->own_ids ? r : become(role, uid, err);
  if (!r && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0)))
    r = err_errno(err, "%s: no new privileges", role->name);
  return r;
}

/* ---- system calls ---- */

static int allow(scmp_filter_ctx ctx, const int *calls, size_t n)
{
  int r = 0;
  for (size_t i = 0; !r && i < n; i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
  return r;
}

static int allow_socket(scmp_filter_ctx ctx, const struct confine_socket *s)
{
  struct scmp_arg_cmp is[3] = {SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)s->family)};
  unsigned n = 1;
  if (s->type)
    is[n++] = SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, (scmp_datum_t)s->type); /* without SOCK_CLOEXEC and SOCK_NONBLOCK */
  if (s->protocol >= 0)
    is[n++] = SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)s->protocol);
  return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), n, is);
}

int confine_no_rings(struct err *err)
{
  static const int calls[] = {SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register)};
  scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
  int r = ctx ? 0 : -ENOMEM;
  for (size_t i = 0; !r && i < ARRAY_LEN(calls); i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), calls[i], 0);
  r = r ? r : seccomp_load(ctx);
  seccomp_release(ctx);
  return r ? err_set(err, r, "a process without io_uring: %s", strerrordesc_np(-r)) : 0;
}

int confine_filter(const struct confine_role *role, unsigned uid, struct err *err)
{
  if (left_out(uid))
    return 0;
  scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  int r = ctx ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1) : -ENOMEM; /* of all threads, or of none */
  r = r ? r : allow(ctx, common, ARRAY_LEN(common));
  r = r ? r : allow(ctx, role->calls, role->ncalls);
  for (size_t i = 0; !r && i < role->nrefusals; i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((unsigned)role->refusals[i].error), role->refusals[i].call, 0);
  for (size_t i = 0; !r && i < role->nsockets; i++)
    r = allow_socket(ctx, &role->sockets[i]);
  r = r ? r : seccomp_load(ctx);
  seccomp_release(ctx);
  return r ? err_set(err, r, "%s: system call filter: %s", role->name, strerrordesc_np(-r)) : 0;
}
