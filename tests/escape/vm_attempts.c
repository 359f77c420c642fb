/* SPDX-License-Identifier: Apache-2.0 */
/* vm_attempts.c - by way of what only QEMU holds: images of layers, the scratch disk, the tap, the device, the port and
 * warder beside it. Made in QEMU's place, before QEMU's own filter: a QEMU that its guest has taken over can do less.
 */
#include "attempts.h"
#include "jail/vm/vm_argv.h"
#include "wire/guest_frame.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* ---- images of layers, which all guests of a template share ---- */

/* A descriptor without the right to write answers EBADF, EINVAL or EACCES; that is the refusal meant here. */
static struct verdict not_writable(long result)
{
  if (result < 0 && (errno == EBADF || errno == EINVAL || errno == EACCES))
    return held("%s: open for reading only", strerrorname_np(errno));
  return refused(result);
}
static struct verdict write_to_a_layer(void)
{
  return not_writable(pwrite(VM_LAYER_FD, "owned", 5, 0));
}
static struct verdict truncate_a_layer(void)
{
  return not_writable(ftruncate(VM_LAYER_FD, 0));
}
static struct verdict punch_a_hole_into_a_layer(void)
{
  return not_writable(fallocate(VM_LAYER_FD, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
}
static struct verdict map_a_layer_for_writing(void)
{
  void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, VM_LAYER_FD, 0);
  return not_writable(p == MAP_FAILED ? -1 : 0);
}
static struct verdict make_a_mapped_layer_writable(void)
{
  void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, VM_LAYER_FD, 0);
  if (p == MAP_FAILED)
    return escaped("a layer can't even be mapped");
  return not_writable(mprotect(p, 4096, PROT_READ | PROT_WRITE));
}
static struct verdict reopen_a_layer_for_writing(void)
{
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", VM_LAYER_FD);
  return refused(open(path, O_RDWR));
}
static struct verdict link_a_layer_to_a_name(void)
{
  return refused(linkat(VM_LAYER_FD, "", AT_FDCWD, "/dev/layer", AT_EMPTY_PATH));
}
static struct verdict change_the_mode_of_a_layer(void)
{
  return refused(fchmod(VM_LAYER_FD, 0666));
}
static struct verdict take_a_layer_over(void)
{
  return refused(fchown(VM_LAYER_FD, getuid(), getgid()));
}
static struct verdict mark_a_layer(void)
{
  return refused(fsetxattr(VM_LAYER_FD, "user.owned", "1", 1, 0));
}
static struct verdict make_a_layer_immutable(void)
{
  int flags = FS_IMMUTABLE_FL;
  return refused(ioctl(VM_LAYER_FD, FS_IOC_SETFLAGS, &flags));
}
static struct verdict freeze_the_hosts_filesystem(void)
{
  return refused(ioctl(VM_LAYER_FD, FIFREEZE, 0));
}
static struct verdict trim_the_hosts_filesystem(void)
{
  struct fstrim_range all = {.len = UINT64_MAX};
  return refused(ioctl(VM_LAYER_FD, FITRIM, &all));
}
static struct verdict lease_a_layer(void)
{
  return refused(fcntl(VM_LAYER_FD, F_SETLEASE, F_RDLCK));
}
static struct verdict climb_from_a_layer(void)
{
  int fd = openat(VM_LAYER_FD, "..", O_RDONLY);
  return fd < 0 && errno == ENOTDIR ? held("ENOTDIR: a file has no parent") : refused(fd);
}

/* ---- the scratch disk ---- */

static struct verdict grow_the_disk_past_its_size(void)
{
  struct stat st;
  signal(SIGXFSZ, SIG_IGN);
  if (fstat(VM_SCRATCH_FD, &st))
    return escaped("no scratch disk");
  off_t far = st.st_size + ((off_t)1 << 40);
  if (ftruncate(VM_SCRATCH_FD, far) == 0)
    return escaped("the disk grew by a terabyte");
  if (errno != EFBIG)
    return refused(-1);
  if (pwrite(VM_SCRATCH_FD, "x", 1, far) > 0)
    return escaped("wrote behind the end of the disk");
  return errno == EFBIG ? held("EFBIG") : refused(-1);
}
static struct verdict raise_the_limit_of_the_disk(void)
{
  struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};
  return refused(setrlimit(RLIMIT_FSIZE, &r));
}
static struct verdict give_the_disk_away(void)
{
  return refused(fchown(VM_SCRATCH_FD, getuid(), getgid()));
}

/* ---- the tap ---- */

static struct verdict name_another_tap(void)
{
  struct ifreq q = {.ifr_name = "tap9", .ifr_flags = IFF_TAP | IFF_NO_PI};
  return refused(ioctl(VM_TAP_FD, TUNSETIFF, &q));
}
static struct verdict keep_the_tap_for_ever(void)
{
  return refused(ioctl(VM_TAP_FD, TUNSETPERSIST, 1));
}
static struct verdict own_the_tap(void)
{
  return refused(ioctl(VM_TAP_FD, TUNSETOWNER, getuid()));
}
static struct verdict attach_a_program_to_the_tap(void)
{
  struct {
    unsigned short len;
    void *filter;
  } none = {0, NULL};
  return refused(ioctl(VM_TAP_FD, TUNATTACHFILTER, &none));
}
static struct verdict steer_the_tap_by_bpf(void)
{
  int fd = -1;
  return refused(ioctl(VM_TAP_FD, TUNSETSTEERINGEBPF, &fd));
}
static struct verdict change_the_taps_hardware_address(void)
{
  struct ifreq q = {.ifr_name = "tap0", .ifr_hwaddr = {.sa_family = 1, .sa_data = {2, 0, 0, 0, 0, 9}}};
  return refused(ioctl(VM_TAP_FD, SIOCSIFHWADDR, &q));
}
static struct verdict take_the_taps_namespace(void)
{
#ifdef TUNGETDEVNETNS
  return refused(ioctl(VM_TAP_FD, TUNGETDEVNETNS, 0));
#else
  return refused(ioctl(VM_TAP_FD, _IO('T', 227), 0));
#endif
}
static struct verdict open_any_socket_but_a_local_one(void)
{
  static const int families[] = {AF_INET, AF_INET6, AF_NETLINK};
  for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
    if (socket(families[i], SOCK_DGRAM, 0) >= 0)
      return escaped("a socket of family %d", families[i]);
  return refused(-1);
}
/* Frames of any size and shape; what becomes of those that are whole is tried with a network (tests/e2e, microvm). */
static struct verdict flood_the_tap(void)
{
  static char frame[65536];
  unsigned taken = 0;
  for (unsigned i = 0; i < 20000; i++) {
    size_t n = 1 + (i * 7919u) % 1600;
    for (size_t k = 0; k < n; k++)
      frame[k] = (char)(i * 31 + k * 17);
    taken += write(VM_TAP_FD, frame, n) > 0;
  }
  return held("%u of 20000 frames went into the jail", taken);
}

/* ---- the device ---- */

static struct verdict make_a_device_beside_kvm(void)
{
  return refused(mknod("/dev/mem", S_IFCHR | 0600, 0x101));
}
static struct verdict turn_kvm_into_another_device(void)
{
  return refused(rename("/dev/kvm", "/dev/mem"));
}
static struct verdict write_to_the_root(void)
{
  return refused(open("/owned", O_WRONLY | O_CREAT, 0600));
}
static struct verdict overwrite_qemu(void)
{
  return refused(open("/qemu", O_WRONLY));
}
static struct verdict overwrite_warder(void)
{
  return refused(open("/warder", O_WRONLY));
}
static struct verdict overwrite_the_guests_kernel(void)
{
  return refused(open("/k/vmlinux", O_WRONLY));
}
static struct verdict see_more_than_the_root_has(void)
{
  static const char *const names[] = {"/proc", "/sys", "/etc", "/home", "/var", "/tmp", "/root", "/run"};
  struct stat st;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (stat(names[i], &st) == 0)
      return escaped("%s is there", names[i]);
  return refused(-1);
}

/* ---- warder, the first process ---- */

static struct verdict trace_warder(void)
{
  return refused(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
}
static struct verdict read_warders_memory(void)
{
  char byte;
  struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
  return refused(process_vm_readv(1, &here, 1, &there, 1, 0));
}
static struct verdict take_a_descriptor_of_warder(void)
{
  int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
  return pidfd < 0 ? refused(-1) : refused(syscall(SYS_pidfd_getfd, pidfd, 3, 0));
}
/* The kernel drops signals that the first process of a namespace has no handler for. */
static struct verdict stop_warder(void)
{
  if (kill(1, SIGSTOP) || kill(1, SIGKILL) || kill(1, SIGTERM))
    return refused(-1);
  return held("dropped; the next attempt goes through warder");
}
static struct verdict have_the_wardens_socket(void)
{
  return fcntl(3, F_GETFD) >= 0 ? escaped("descriptor 3 is open") : held("EBADF: not open here");
}
static struct verdict have_any_other_descriptor(void)
{
  for (int fd = 0; fd < 4096; fd++) {
    int expected = fd < 3 || fd == GUEST_PORT_FD || (fd >= VM_TAP_FD && fd < VM_LAYER_FD + GUEST_LAYER_MAX);
    if (!expected && fcntl(fd, F_GETFD) >= 0)
      return escaped("descriptor %d is open", fd);
  }
  return held("only what vm_argv.h numbers");
}

/* ---- shares of the machine ---- */

static struct verdict make_more_processes_than_allowed(void)
{
  int n = 0;
  pid_t made[512];
  while (n < 512 && (made[n] = fork()) > 0)
    n++;
  if (n < 512 && made[n] == 0)
    for (;;)
      pause();
  int code = errno;
  for (int i = 0; i < n; i++)
    kill(made[i], SIGKILL);
  while (waitpid(-1, NULL, 0) > 0)
    ;
  return n < 512 && code == EAGAIN ? held("EAGAIN after %d", n) : escaped("%d processes", n);
}
static struct verdict gain_rights_by_exec(void)
{
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? held("no_new_privs") : escaped("no_new_privs is not set");
}
static struct verdict be_root_of_the_range(void)
{
  if (getuid() == 0 || geteuid() == 0 || setuid(0) == 0)
    return escaped("root of the range");
  return refused(-1);
}

const struct attempt vm_attempts[] = {
    ATTEMPT(write_to_a_layer),
    ATTEMPT(truncate_a_layer),
    ATTEMPT(punch_a_hole_into_a_layer),
    ATTEMPT(map_a_layer_for_writing),
    ATTEMPT(make_a_mapped_layer_writable),
    ATTEMPT(reopen_a_layer_for_writing),
    ATTEMPT(link_a_layer_to_a_name),
    ATTEMPT(change_the_mode_of_a_layer),
    ATTEMPT(take_a_layer_over),
    ATTEMPT(mark_a_layer),
    ATTEMPT(make_a_layer_immutable),
    ATTEMPT(freeze_the_hosts_filesystem),
    ATTEMPT(trim_the_hosts_filesystem),
    ATTEMPT(lease_a_layer),
    ATTEMPT(climb_from_a_layer),
    ATTEMPT(grow_the_disk_past_its_size),
    ATTEMPT(raise_the_limit_of_the_disk),
    ATTEMPT(give_the_disk_away),
    ATTEMPT(name_another_tap),
    ATTEMPT(keep_the_tap_for_ever),
    ATTEMPT(own_the_tap),
    ATTEMPT(attach_a_program_to_the_tap),
    ATTEMPT(steer_the_tap_by_bpf),
    ATTEMPT(change_the_taps_hardware_address),
    ATTEMPT(take_the_taps_namespace),
    ATTEMPT(open_any_socket_but_a_local_one),
    ATTEMPT(flood_the_tap),
    ATTEMPT(make_a_device_beside_kvm),
    ATTEMPT(turn_kvm_into_another_device),
    ATTEMPT(write_to_the_root),
    ATTEMPT(overwrite_qemu),
    ATTEMPT(overwrite_warder),
    ATTEMPT(overwrite_the_guests_kernel),
    ATTEMPT(see_more_than_the_root_has),
    ATTEMPT(trace_warder),
    ATTEMPT(read_warders_memory),
    ATTEMPT(take_a_descriptor_of_warder),
    ATTEMPT(stop_warder),
    ATTEMPT(have_the_wardens_socket),
    ATTEMPT(have_any_other_descriptor),
    ATTEMPT(make_more_processes_than_allowed),
    ATTEMPT(gain_rights_by_exec),
    ATTEMPT(be_root_of_the_range),
    {NULL, NULL},
};

/* ---- hostile words ---- */

static void say(uint32_t length, uint8_t word, uint8_t zero, const char *body, size_t n)
{
  struct guest_frame head = {.length = length, .word = word, .zero = {zero}};
  if (write(GUEST_PORT_FD, &head, sizeof(head)) < 0 || (n && write(GUEST_PORT_FD, body, n) < 0))
    _exit(5);
}

void vm_say(const char *what)
{
  static char text[GUEST_ANSWER_MAX];
  memset(text, 'x', sizeof(text));
  if (!strcmp(what, "an unknown word"))
    say(0, '!', 0, NULL, 0);
  else if (!strcmp(what, "a word of the host"))
    say(5, GUEST_CONFIG, 0, "A=b\0", 5);
  else if (!strcmp(what, "a length past the limit"))
    say(GUEST_ANSWER_MAX + 1, GUEST_ANSWER, 0, NULL, 0);
  else if (!strcmp(what, "the largest length"))
    say(UINT32_MAX, GUEST_ANSWER, 0, NULL, 0);
  else if (!strcmp(what, "bytes that must be zero"))
    say(1, GUEST_ANSWER, 1, "x", 1);
  else if (!strcmp(what, "half a frame"))
    say(100, GUEST_ANSWER, 0, "half", 4);
  else if (!strcmp(what, "the question again"))
    for (int i = 0; i < 1000; i++)
      say(0, GUEST_ASKS, 0, NULL, 0);
  else if (!strcmp(what, "answers without end"))
    for (;;)
      say(sizeof(text), GUEST_ANSWER, 0, text, sizeof(text));
  else if (!strcmp(what, "a console without end"))
    for (;;)
      if (write(1, text, sizeof(text)) < 0)
        _exit(5);
  if (!strcmp(what, "the end, twice")) {
    say(0, GUEST_END, 0, NULL, 0);
    say(0, GUEST_END, 0, NULL, 0);
  }
}
