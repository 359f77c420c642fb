/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp_filter.c - the seccomp program of a box.
 *
 * A deny list: what a program in a box has no business with, because it reaches past namespaces (modules, kexec,
 * clocks, vsock, keyrings), because it opens kernel code that has often been outbound networking (bpf, perf, io_uring,
 * userfaultfd, nf_tables by way of netlink, exotic socket families), or because a checkpoint can't hold it (io_uring,
 * memfd_secret). Calls newer than this list are unknown to it, so the program answers ENOSYS to every number above
 * FILTER_LAST_CALL; programs take that as an older kernel. So does another ABI: 32-bit and x32 calls would be a way
 * around the list.
 *
 * clone3 passes its flags by pointer, where no filter can look: it answers ENOSYS and the C library uses clone. */
#include "jail/seccomp_filter.h"

#include <linux/keyctl.h>
#include <linux/audit.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of the macros of libseccomp */

/* removexattrat; 467 is open_tree_attr. The numbers from 424 on are the same on every architecture. */
#define FILTER_LAST_CALL 466

struct denial {
  int call;
  int code;
};

static const struct denial denials[] = {
    /* the kernel itself */
    {SCMP_SYS(init_module), EPERM},
    {SCMP_SYS(finit_module), EPERM},
    {SCMP_SYS(delete_module), EPERM},
    {SCMP_SYS(create_module), ENOSYS},
    {SCMP_SYS(get_kernel_syms), ENOSYS},
    {SCMP_SYS(query_module), ENOSYS},
    {SCMP_SYS(kexec_load), EPERM},
    {SCMP_SYS(kexec_file_load), EPERM},
    {SCMP_SYS(reboot), EPERM},
    {SCMP_SYS(syslog), EPERM},
    {SCMP_SYS(acct), EPERM},
    {SCMP_SYS(swapon), EPERM},
    {SCMP_SYS(swapoff), EPERM},
    {SCMP_SYS(nfsservctl), ENOSYS},
    {SCMP_SYS(lookup_dcookie), EPERM},
    {SCMP_SYS(sysfs), ENOSYS},
    {SCMP_SYS(_sysctl), ENOSYS},
    {SCMP_SYS(uselib), ENOSYS},
    {SCMP_SYS(ustat), ENOSYS},
    {SCMP_SYS(vhangup), EPERM},
    {SCMP_SYS(quotactl), EPERM},
    {SCMP_SYS(quotactl_fd), EPERM},
    /* clocks are the host's */
    {SCMP_SYS(clock_settime), EPERM},
    {SCMP_SYS(settimeofday), EPERM},
    /* hardware */
    {SCMP_SYS(ioperm), EPERM},
    {SCMP_SYS(iopl), EPERM},
    {SCMP_SYS(modify_ldt), ENOSYS},
    /* large surfaces that a sandboxed program can do without */
    {SCMP_SYS(bpf), EPERM},
    {SCMP_SYS(perf_event_open), EPERM},
    {SCMP_SYS(userfaultfd), EPERM},
    {SCMP_SYS(io_uring_setup), ENOSYS},
    {SCMP_SYS(io_uring_enter), ENOSYS},
    {SCMP_SYS(io_uring_register), ENOSYS},
    {SCMP_SYS(memfd_secret), ENOSYS},
    /* 128 groups for all boxes of an owner, and no limit that a box could have of its own; inotify has one */
    {SCMP_SYS(fanotify_init), ENOSYS},
    /* keyrings are only half in namespaces */
    {SCMP_SYS(add_key), EPERM},
    {SCMP_SYS(request_key), EPERM},
    {SCMP_SYS(keyctl), EPERM},
    /* names of files that go around path permissions */
    {SCMP_SYS(open_by_handle_at), EPERM},
    /* flags behind a pointer */
    {SCMP_SYS(clone3), ENOSYS},
};

/* What creates and enters namespaces and mounts. Root of the box lacks the capability too; the list holds even where a
 * bug grants it. */
static const struct denial namespace_denials[] = {
    {SCMP_SYS(mount), EPERM},     {SCMP_SYS(umount2), EPERM},       {SCMP_SYS(pivot_root), EPERM},
    {SCMP_SYS(setns), EPERM},     {SCMP_SYS(fsopen), EPERM},        {SCMP_SYS(fsconfig), EPERM},
    {SCMP_SYS(fsmount), EPERM},   {SCMP_SYS(fspick), EPERM},        {SCMP_SYS(move_mount), EPERM},
    {SCMP_SYS(open_tree), EPERM}, {SCMP_SYS(mount_setattr), EPERM},
};

/* Families and netlink protocols with a use inside a box; all others answer as if the kernel lacked them. */
static const unsigned families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
static const unsigned netlinks[] = {NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_AUDIT, NETLINK_KOBJECT_UEVENT,
                                    NETLINK_GENERIC};

static bool is_in(const unsigned *list, size_t n, unsigned value)
{
  for (size_t i = 0; i < n; i++)
    if (list[i] == value)
      return true;
  return false;
}

enum kind { KIND_BOX, KIND_ZYGOTE, KIND_VM, KINDS };

/* What a fork of a zygote calls before it has the box's own filter: see kernels/python/enter_box.c. */
static bool is_entering(int call)
{
  return call == SCMP_SYS(setns) || call == SCMP_SYS(keyctl);
}

static int deny_list(scmp_filter_ctx ctx, const struct denial *list, size_t n, enum kind kind)
{
  int r = 0;
  for (size_t i = 0; i < n && !r; i++)
    if (kind != KIND_ZYGOTE || !is_entering(list[i].call))
      r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint16_t)list[i].code), list[i].call, 0);
  return r;
}

/* Each unwanted value has its rule, and one "greater than" catches the rest of 64 bits: the kernel cuts the argument to
 * 32, so a value with bits above them must not pass as something else. */
static int deny_sockets(scmp_filter_ctx ctx)
{
  const uint32_t no_family = SCMP_ACT_ERRNO(EAFNOSUPPORT), no_protocol = SCMP_ACT_ERRNO(EPROTONOSUPPORT);
  int r = seccomp_rule_add(ctx, no_family, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
  for (unsigned f = 0; f < AF_NETLINK && !r; f++)
    if (!is_in(families, ARRAY_LEN(families), f))
      r = seccomp_rule_add(ctx, no_family, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, f));
  if (!r)
    r = seccomp_rule_add(ctx, no_protocol, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                         SCMP_A2(SCMP_CMP_GT, NETLINK_GENERIC));
  for (unsigned p = 0; p < NETLINK_GENERIC && !r; p++)
    if (!is_in(netlinks, ARRAY_LEN(netlinks), p))
      r = seccomp_rule_add(ctx, no_protocol, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                           SCMP_A2(SCMP_CMP_EQ, p));
  return r;
}

/* What would let root of the box slow down or cripple its first process, the agent, which has the same user id: its
 * priority, its processors, its resource limits. Reading them stays allowed. The kernel cuts these arguments to 32
 * bits, so the filter compares no more. */
#define FIRST       1
#define LOW(n, v)   SCMP_CMP(n, SCMP_CMP_MASKED_EQ, UINT32_MAX, v)
#define IOPRIO_USER 3

static int spare_first(scmp_filter_ctx ctx)
{
  const uint32_t no = SCMP_ACT_ERRNO(EPERM);
  static const int by_pid[] = {SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setparam), SCMP_SYS(sched_setattr),
                               SCMP_SYS(sched_setaffinity),  SCMP_SYS(migrate_pages),  SCMP_SYS(move_pages)};
  int r = 0;
  for (size_t i = 0; i < ARRAY_LEN(by_pid) && !r; i++)
    r = seccomp_rule_add(ctx, no, by_pid[i], 1, LOW(0, FIRST));
  r = r ? r : seccomp_rule_add(ctx, no, SCMP_SYS(prlimit64), 2, LOW(0, FIRST), SCMP_CMP(2, SCMP_CMP_NE, 0));
  r = r ? r : seccomp_rule_add(ctx, no, SCMP_SYS(setpriority), 1, LOW(1, FIRST));
  r = r ? r : seccomp_rule_add(ctx, no, SCMP_SYS(setpriority), 1, LOW(0, PRIO_USER));
  r = r ? r : seccomp_rule_add(ctx, no, SCMP_SYS(ioprio_set), 1, LOW(1, FIRST));
  return r ? r : seccomp_rule_add(ctx, no, SCMP_SYS(ioprio_set), 1, LOW(0, IOPRIO_USER));
}

static int deny_escapes(scmp_filter_ctx ctx, enum kind kind)
{
  const scmp_datum_t user = CLONE_NEWUSER;
  int r = deny_list(ctx, namespace_denials, ARRAY_LEN(namespace_denials), kind);
  if (!r && kind != KIND_VM) /* there all of it is denied */
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, user, user));
  if (!r)
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, user, user));
  return r;
}

/* Around a guest. Other processes, System V objects, devices, roots and everything that is neither a file, a thread nor
 * a local socket: QEMU gets what it needs as descriptors. */
static const struct denial vm_denials[] = {
    {SCMP_SYS(ptrace), EPERM},
    {SCMP_SYS(process_vm_readv), EPERM},
    {SCMP_SYS(process_vm_writev), EPERM},
    {SCMP_SYS(process_madvise), EPERM},
    {SCMP_SYS(process_mrelease), EPERM},
    {SCMP_SYS(pidfd_open), EPERM},
    {SCMP_SYS(pidfd_getfd), EPERM},
    {SCMP_SYS(pidfd_send_signal), EPERM},
    {SCMP_SYS(kcmp), EPERM},
    {SCMP_SYS(chroot), EPERM},
    {SCMP_SYS(mknod), EPERM},
    {SCMP_SYS(mknodat), EPERM},
    {SCMP_SYS(name_to_handle_at), EPERM},
    {SCMP_SYS(unshare), EPERM},
    {SCMP_SYS(personality), EPERM},
    {SCMP_SYS(shmget), ENOSYS},
    {SCMP_SYS(shmat), ENOSYS},
    {SCMP_SYS(shmctl), ENOSYS},
    {SCMP_SYS(semget), ENOSYS},
    {SCMP_SYS(msgget), ENOSYS},
    {SCMP_SYS(mq_open), ENOSYS},
    {SCMP_SYS(inotify_init), ENOSYS},
    {SCMP_SYS(inotify_init1), ENOSYS},
    {SCMP_SYS(io_setup), ENOSYS},
    {SCMP_SYS(adjtimex), EPERM},
    {SCMP_SYS(clock_adjtime), EPERM},
    {SCMP_SYS(sethostname), EPERM},
    {SCMP_SYS(setdomainname), EPERM},
    {SCMP_SYS(landlock_create_ruleset), ENOSYS},
};

/* What the tap answers to whoever holds it, without asking for a right. */
static const unsigned vm_ioctls[] = {TUNSETIFF,          TUNSETPERSIST,  TUNSETOWNER,      TUNSETGROUP,
                                     TUNSETLINK,         TUNSETDEBUG,    TUNSETIFINDEX,    TUNATTACHFILTER,
                                     TUNDETACHFILTER,    TUNSETTXFILTER, TUNSETFILTEREBPF, TUNSETCARRIER,
                                     TUNSETSTEERINGEBPF, _IO('T', 227),  SIOCSIFHWADDR,    SIOCGSKNS};

static int deny_to_vm(scmp_filter_ctx ctx)
{
  int r = deny_list(ctx, vm_denials, ARRAY_LEN(vm_denials), KIND_VM);
  for (size_t i = 0; i < ARRAY_LEN(vm_ioctls) && !r; i++)
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1, LOW(1, vm_ioctls[i]));
  if (!r)
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX));
  return r;
}

static int compose(scmp_filter_ctx ctx, enum kind kind)
{
  int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  if (!r)
    r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (!r)
    r = deny_list(ctx, denials, ARRAY_LEN(denials), kind);
  if (!r && kind != KIND_VM)
    r = deny_sockets(ctx);
  if (!r)
    r = spare_first(ctx);
  if (!r &&
      kind == KIND_ZYGOTE) /* a fork on its way into a box leaves the session keyring, and does no more with keys */
    r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(keyctl), 1,
                         SCMP_A0(SCMP_CMP_NE, KEYCTL_JOIN_SESSION_KEYRING));
  if (!r)
    r = deny_escapes(ctx, kind);
  if (!r && kind == KIND_VM)
    r = deny_to_vm(ctx);
  return r;
}

/* Puts "numbers above the last known call answer ENOSYS" before libseccomp's program. Jumps are relative, so the
 * program behind does not notice. */
static int assemble(struct sock_fprog *out, const void *tail, size_t bytes)
{
  const struct sock_filter head[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, FILTER_LAST_CALL, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
  };
  size_t n = ARRAY_LEN(head) + bytes / sizeof(struct sock_filter);
  if (n > BPF_MAXINSNS)
    return -E2BIG;
  struct sock_filter *code = xcalloc(n, sizeof(*code));
  memcpy(code, head, sizeof(head));
  memcpy(code + ARRAY_LEN(head), tail, bytes);
  *out = (struct sock_fprog){.len = (unsigned short)n, .filter = code};
  return 0;
}

int filter_export(void *ctx, struct sock_fprog *out)
{
  cleanup_fd int fd = memfd_create("filter", MFD_CLOEXEC);
  cleanup_buf struct buf b = BUF_INIT(BPF_MAXINSNS * sizeof(struct sock_filter));
  if (fd < 0)
    return -errno;
  int r = seccomp_export_bpf(ctx, fd);
  if (!r && lseek(fd, 0, SEEK_SET) < 0)
    r = -errno;
  if (!r)
    r = fd_read_all(fd, &b);
  return r ? r : assemble(out, b.p, b.n);
}

static struct sock_fprog programs[KINDS];
static int failures[KINDS];

static void build(void)
{
  for (enum kind kind = 0; kind < KINDS; kind++) {
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    failures[kind] = ctx ? compose(ctx, kind) : -ENOMEM;
    if (!failures[kind])
      failures[kind] = filter_export(ctx, &programs[kind]);
    if (ctx)
      seccomp_release(ctx);
  }
}

static const struct sock_fprog *get(enum kind kind, struct err *err)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, build);
  if (!failures[kind])
    return &programs[kind];
  err_set(err, failures[kind], "building the seccomp program: %s", strerrordesc_np(-failures[kind]));
  return NULL;
}

const struct sock_fprog *filter_get(struct err *err)
{
  return get(KIND_BOX, err);
}

const struct sock_fprog *filter_zygote(struct err *err)
{
  return get(KIND_ZYGOTE, err);
}

const struct sock_fprog *filter_vm(struct err *err)
{
  return get(KIND_VM, err);
}
