/* SPDX-License-Identifier: Apache-2.0 */
/* vm_parts.c - see vm_parts.h. */
#include "jail/vm/vm_parts.h"
#include "wire/guest_frame.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define NOBODY      65534
#define CALIBRATION 20000000 /* ns */

int vm_parts_check(const char *parts, struct err *err)
{
  static const char *const files[] = {
      "root/qemu", "root/warder", "root/k/vmlinux", "root/k/initrd", "root/fw/bios-microvm.bin", "mkfs/mkfs.erofs"};
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", parts, files[i]);
    if (access(path, R_OK))
      return err_set(err, -ENOENT, "%s is missing; scripts/deps microvm && scripts/microvm make it (setting microvm)",
                     path);
  }
  return 0;
}

/* Emulated guests have no clock to measure the processor by, spin for ever on a busy machine when they try, and see the
 * host's counter: they are told its speed. */
static uint64_t tsc_khz;

static void measure_tsc(void)
{
#ifdef __x86_64__ /* guests are of this architecture only */
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC_RAW, &a);
  uint64_t from = __builtin_ia32_rdtsc(), ns;
  do {
    clock_gettime(CLOCK_MONOTONIC_RAW, &b);
    ns = (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000 + (uint64_t)(b.tv_nsec - a.tv_nsec);
  } while (ns < CALIBRATION);
  tsc_khz = (__builtin_ia32_rdtsc() - from) * 1000000 / ns;
#endif
}

void vm_kernel_parameters(struct buf *b, enum vm_accel accel, const char *more)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  buf_addz(b, "console=ttyS0 quiet panic=-1 cryptomgr.notests random.trust_cpu=on apparmor=0 8250.nr_uarts=1 "
              "no_timer_check rcupdate.rcu_expedited=1 ima=off audit=0");
  if (accel == VM_EMULATION) {
    pthread_once(&once, measure_tsc);
    buf_addf(b, " tsc=reliable tsc_early_khz=%llu", (unsigned long long)tsc_khz);
  }
  buf_addf(b, "%s%s", more[0] ? " " : "", more);
}

/* ---- the probe ---- */

/* The probe's guest is ours; QEMU has no rights all the same. The device is opened before they go. */
static _Noreturn void run_probe(const char *parts, enum vm_accel accel, const char *parameters, int out)
{
  char kernel[PATH_MAX], initrd[PATH_MAX], firmware[PATH_MAX];
  snprintf(kernel, sizeof(kernel), "%s/root/k/vmlinux", parts);
  snprintf(initrd, sizeof(initrd), "%s/root/k/initrd", parts);
  snprintf(firmware, sizeof(firmware), "%s/root/fw", parts);
  const char *argv[] = {"qemu-system-x86_64",
                        "-sandbox",
                        "on,obsolete=deny,elevateprivileges=deny,spawn=deny",
                        "-L",
                        firmware,
                        "-M",
                        "microvm",
                        "-accel",
                        accel == VM_KVM ? "kvm" : "tcg,thread=single",
                        "-cpu",
                        accel == VM_KVM ? "host" : "max",
                        "-smp",
                        "1",
                        "-m",
                        "128",
                        "-nodefaults",
                        "-no-user-config",
                        "-display",
                        "none",
                        "-no-reboot",
                        "-serial",
                        "stdio",
                        "-kernel",
                        kernel,
                        "-initrd",
                        initrd,
                        "-append",
                        parameters,
                        NULL};
  int null = open("/dev/null", O_RDWR);
  struct stat st;
  gid_t group = accel == VM_KVM && !stat("/dev/kvm", &st) ? st.st_gid : NOBODY;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  bool opens = accel != VM_KVM || (st.st_mode & 060) == 060; /* else its owner alone may: root */
  if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
      (opens && (setgroups(0, NULL) || setresgid(group, group, group) || setresuid(NOBODY, NOBODY, NOBODY))))
    _exit(126);
  execvp(argv[0], (char *const *)argv);
  dprintf(2, "%s: %s", argv[0], strerror(errno));
  _exit(127);
}

/* Until the guest's line, the end of the output, or the limit. */
static int listen_to_probe(int fd, int limit_ms, struct buf *said)
{
  int64_t began = clock_mono_us(), until = began + limit_ms * 1000ll;
  for (;;) {
    char text[512];
    int left = (int)MAX((until - clock_mono_us()) / 1000, 0ll);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r = poll(&p, 1, left);
    if (r == 0)
      return -ETIMEDOUT;
    ssize_t n = r < 0 ? -1 : read(fd, text, sizeof(text));
    if (n == 0)
      return -EIO;
    if (n > 0)
      buf_add(said, text, (size_t)n);
    if (str_search(buf_str(said), STR(GUEST_PROBED)) >= 0)
      return (int)((clock_mono_us() - began) / 1000);
    if (buf_failed(said))
      return -EIO;
  }
}

int vm_probe(const char *parts, enum vm_accel accel, int limit_ms, struct err *err)
{
  cleanup_buf struct buf parameters = BUF_INIT(2048), said = BUF_INIT(16384);
  int fds[2], r = vm_parts_check(parts, err);
  vm_kernel_parameters(&parameters, accel, GUEST_PROBE "=1");
  if (r)
    return r;
  if (pipe2(fds, O_CLOEXEC))
    return err_errno(err, "pipe");
  cleanup_fd int in = fds[0], out = fds[1];
  pid_t pid = fork();
  if (pid == 0)
    run_probe(parts, accel, buf_z(&parameters), out);
  if (pid < 0)
    return err_errno(err, "starting QEMU");
  close(steal_fd(&out));
  r = listen_to_probe(in, limit_ms, &said);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  struct str first, rest;
  str_cut(str_trim(buf_str(&said)), '\n', &first, &rest);
  if (r == -ETIMEDOUT)
    return err_set(err, r, "a guest did not come up within %d ms", limit_ms);
  return r < 0 ? err_set(err, r, "QEMU ended without a guest: %.*s", (int)MIN(first.n, (size_t)160), first.p) : r;
}
