/* SPDX-License-Identifier: Apache-2.0 */
/* image_filter.c - see image_filter.h.
 *
 * A list of what is allowed: reading a tree, writing a file, memory, the loader's own calls. The maker has
 * CAP_SYS_ADMIN, because marks of overlays can't be read without it, so nothing is on the list that this right would
 * open: no mount, no namespace, no ioctl, no bpf, no handle of a file, no attribute that is set, no socket, no signal
 * but to itself, no process. What is left out fails with EPERM. */
#include "jail/fs/image_filter.h"
#include "jail/seccomp_filter.h"

#include <pthread.h>
#include <sched.h>
#include <seccomp.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of the macros of libseccomp */

static const int allowed[] = {
    /* the one exec, and what the loader and the C library do first; there is one program to be found */
    SCMP_SYS(execve),
    SCMP_SYS(arch_prctl),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(uname),
    SCMP_SYS(getrandom),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    /* memory, threads, time */
    SCMP_SYS(brk),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage),
    /* itself; it is alone in its pid namespace */
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
    /* files: mounts say what may be written */
    SCMP_SYS(open),
    SCMP_SYS(openat),
    SCMP_SYS(close),
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(preadv),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(pwrite64),
    SCMP_SYS(pwritev),
    SCMP_SYS(lseek),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fallocate),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(copy_file_range),
    SCMP_SYS(sendfile),
    SCMP_SYS(fadvise64),
    SCMP_SYS(fcntl),
    SCMP_SYS(dup),
    SCMP_SYS(unlink),
    SCMP_SYS(umask),
    SCMP_SYS(stat),
    SCMP_SYS(lstat),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(statfs),
    SCMP_SYS(fstatfs),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(getdents64),
    SCMP_SYS(getcwd),
    SCMP_SYS(listxattr),
    SCMP_SYS(llistxattr),
    SCMP_SYS(flistxattr),
    SCMP_SYS(getxattr),
    SCMP_SYS(lgetxattr),
    SCMP_SYS(fgetxattr),
};

static int compose(scmp_filter_ctx ctx)
{
  int r = 0;
  for (size_t i = 0; i < ARRAY_LEN(allowed) && !r; i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
  /* threads, and no other process; clone3 has its flags where no filter can look, and the C library then uses clone */
  r = r ? r
        : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                           SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  r = r ? r : seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  /* limits are read, never set */
  return r ? r : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_EQ, 0));
}

static struct sock_fprog program;
static int failure;

static void build(void)
{
  scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  failure = ctx ? compose(ctx) : -ENOMEM;
  failure = failure ? failure : filter_export(ctx, &program);
  if (ctx)
    seccomp_release(ctx);
}

const struct sock_fprog *image_filter(struct err *err)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, build);
  if (!failure)
    return &program;
  err_set(err, failure, "building the seccomp program for layer images: %s", strerrordesc_np(-failure));
  return NULL;
}
