/* SPDX-License-Identifier: Apache-2.0 */
/* process_attempts.c - by way of other processes, namespaces, capabilities and limits. */
#include "attempts.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static struct verdict signal_a_host_process(void)
{
  return refused(kill(facts.pid, SIGTERM));
}
static struct verdict trace_a_host_process(void)
{
  return refused(ptrace(PTRACE_ATTACH, facts.pid, NULL, NULL));
}
static struct verdict read_a_host_processs_memory(void)
{
  char byte;
  struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)0x400000, 1};
  return refused(process_vm_readv(facts.pid, &here, 1, &there, 1, 0));
}
static struct verdict open_a_host_process(void)
{
  return refused(syscall(SYS_pidfd_open, facts.pid, 0));
}
static struct verdict see_host_processes(void)
{
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/status", facts.pid);
  return try_read(path);
}
static struct verdict reprioritise_a_host_process(void)
{
  return refused(setpriority(PRIO_PROCESS, (id_t)facts.pid, 19));
}
static struct verdict unshare_user(void)
{
  return refused(unshare(CLONE_NEWUSER));
}
static struct verdict unshare_mount(void)
{
  return refused(unshare(CLONE_NEWNS));
}
static struct verdict unshare_network(void)
{
  return refused(unshare(CLONE_NEWNET));
}
static struct verdict unshare_pid(void)
{
  return refused(unshare(CLONE_NEWPID));
}
static struct verdict clone_user(void)
{
  long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
  if (pid == 0)
    _exit(0);
  return refused(pid);
}
static struct verdict clone3_user(void)
{
  struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  long pid = syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0)
    _exit(0);
  return refused(pid);
}
static struct verdict enter(const char *path, int kind)
{
  int fd = open(path, O_RDONLY);
  if (fd < 0)
    return refused(-1);
  return refused(setns(fd, kind));
}
static struct verdict enter_a_mount_namespace(void)
{
  return enter("/proc/self/ns/mnt", CLONE_NEWNS);
}
static struct verdict enter_a_network_namespace(void)
{
  return enter("/proc/self/ns/net", CLONE_NEWNET);
}
static struct verdict rewrite_the_id_map(void)
{
  return try_write("/proc/self/uid_map", "0 0 4294967295");
}
static struct verdict become_an_unmapped_id(void)
{
  if (setresuid(70000, 70000, 70000) == 0)
    return escaped("became an id outside the range");
  return errno == EINVAL ? held("EINVAL: no such id in here") : refused(-1);
}
static struct verdict give_a_file_to_an_unmapped_id(void)
{
  int fd = open("/tmp/gift", O_CREAT | O_WRONLY, 0600);
  if (fd < 0)
    return refused(-1);
  if (fchown(fd, 70000, 70000) == 0)
    return escaped("gave a file to an id outside the range");
  return errno == EINVAL ? held("EINVAL: no such id in here") : refused(-1);
}
static struct verdict regain_capabilities(void)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {0x1ff, 0x1ff, 0x1ff}};
  return refused(syscall(SYS_capset, &head, all));
}
static struct verdict raise_an_ambient_capability(void)
{
  return refused(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
}

static long caps_effective(void)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}, {0}};
  return syscall(SYS_capget, &head, data) ? -1 : (long)data[0].effective;
}
/* A file that grants SYS_ADMIN when run: the bounding set must cut it. The effective bit makes the kernel refuse the
 * exec outright when it can't be given. */
static struct verdict run_a_file_with_a_capability(void)
{
  static const struct {
    uint32_t magic, permitted, inheritable, permitted_hi, inheritable_hi;
  } cap = {0x02000001, 1u << CAP_SYS_ADMIN, 0, 0, 0};
  char block[65536];
  int in = open("/proc/self/exe", O_RDONLY), out = open("/tmp/capped", O_CREAT | O_TRUNC | O_WRONLY, 0755);
  for (ssize_t n; (n = read(in, block, sizeof(block))) > 0;)
    if (write(out, block, (size_t)n) != n)
      return escaped("no copy of the program");
  close(out);
  if (setxattr("/tmp/capped", "security.capability", &cap, sizeof(cap), 0))
    return refused(-1);
  execl("/tmp/capped", "capped", "regain_capabilities", NULL);
  return refused(-1);
}
static struct verdict have_admin_capabilities_at_all(void)
{
  long caps = caps_effective();
  long bad = 1L << CAP_SYS_ADMIN | 1L << CAP_NET_ADMIN | 1L << CAP_SYS_MODULE | 1L << CAP_SYS_RAWIO |
             1L << CAP_SYS_BOOT | 1L << CAP_SYS_TIME | 1L << CAP_MKNOD | 1L << CAP_MAC_ADMIN;
  return caps < 0 || (caps & bad) ? escaped("capabilities %lx", caps & bad) : held("none of them");
}
static struct verdict shed_the_filter(void)
{
  /* A filter that allows everything, put on top: the stricter one below must still answer. */
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  struct {
    unsigned short code;
    unsigned char jt, jf;
    unsigned k;
  } allow = {0x06, 0, 0, 0x7fff0000};
  struct {
    unsigned short len;
    void *filter;
  } program = {1, &allow};
  if (prctl(PR_SET_SECCOMP, 2, &program))
    return escaped("no filter could be added");
  return refused(syscall(SYS_keyctl, 0, -3, 1));
}
/* The first process of a box serves the box's owner; root inside has the same user id. */
static struct verdict slow_the_first_process(void)
{
  return refused(setpriority(PRIO_PROCESS, 1, 19));
}
static struct verdict slow_the_first_processs_group(void)
{
  return refused(setpriority(PRIO_PGRP, 1, 19));
}
static struct verdict slow_all_of_root(void)
{
  return refused(setpriority(PRIO_USER, 0, 19));
}
static struct verdict slow_the_first_process_by_a_wide_number(void)
{
  return refused(syscall(SYS_setpriority, (long)PRIO_PROCESS, (1L << 32) + 1, 19L));
}
static struct verdict make_the_first_process_idle(void)
{
  struct sched_param p = {0};
  return refused(sched_setscheduler(1, SCHED_IDLE, &p));
}
static struct verdict pin_the_first_process(void)
{
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  return refused(sched_setaffinity(1, sizeof(one), &one));
}
static struct verdict take_the_first_processs_files(void)
{
  struct rlimit r = {0, 0};
  return refused(prlimit(1, RLIMIT_NOFILE, &r, NULL));
}
static struct verdict take_a_real_time_priority(void)
{
  struct sched_param p = {.sched_priority = 1};
  return refused(sched_setscheduler(0, SCHED_FIFO, &p));
}
static struct verdict raise_own_priority(void)
{
  return refused(setpriority(PRIO_PROCESS, 0, -20));
}
static struct verdict raise_the_open_file_limit(void)
{
  struct rlimit r = {1 << 20, 1 << 20};
  return refused(setrlimit(RLIMIT_NOFILE, &r));
}
static struct verdict raise_the_core_limit(void)
{
  struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};
  return refused(setrlimit(RLIMIT_CORE, &r));
}
static struct verdict lock_all_memory(void)
{
  size_t n = (size_t)1 << 30;
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || mlock(p, n) == 0)
    return escaped("locked a gigabyte");
  return errno == ENOMEM ? held("ENOMEM") : refused(-1);
}
static struct verdict find_a_host_segment(void)
{
  return refused(shmget(facts.key, 0, 0));
}
static struct verdict find_a_host_descriptor(void)
{
  DIR *d = opendir("/proc/1/fd");
  for (struct dirent *e; d && (e = readdir(d));)
    if (e->d_name[0] != '.' && strtol(e->d_name, NULL, 10) > 3) {
      char link[300], target[64];
      snprintf(link, sizeof(link), "/proc/1/fd/%s", e->d_name);
      ssize_t n = readlink(link, target, sizeof(target) - 1);
      target[n > 0 ? n : 0] = 0;
      return escaped("descriptor %s is %s", e->d_name, target);
    }
  return d ? held("only 0 to 3") : refused(-1);
}
static struct verdict rename_the_host(void)
{
  return refused(sethostname("owned", 5));
}

const struct attempt process_attempts[] = {
    ATTEMPT(signal_a_host_process),
    ATTEMPT(trace_a_host_process),
    ATTEMPT(read_a_host_processs_memory),
    ATTEMPT(open_a_host_process),
    ATTEMPT(see_host_processes),
    ATTEMPT(reprioritise_a_host_process),
    ATTEMPT(unshare_user),
    ATTEMPT(unshare_mount),
    ATTEMPT(unshare_network),
    ATTEMPT(unshare_pid),
    ATTEMPT(clone_user),
    ATTEMPT(clone3_user),
    ATTEMPT(enter_a_mount_namespace),
    ATTEMPT(enter_a_network_namespace),
    ATTEMPT(rewrite_the_id_map),
    ATTEMPT(become_an_unmapped_id),
    ATTEMPT(give_a_file_to_an_unmapped_id),
    ATTEMPT(regain_capabilities),
    ATTEMPT(raise_an_ambient_capability),
    ATTEMPT(run_a_file_with_a_capability),
    ATTEMPT(have_admin_capabilities_at_all),
    ATTEMPT(shed_the_filter),
    ATTEMPT(slow_the_first_process),
    ATTEMPT(slow_the_first_processs_group),
    ATTEMPT(slow_all_of_root),
    ATTEMPT(slow_the_first_process_by_a_wide_number),
    ATTEMPT(make_the_first_process_idle),
    ATTEMPT(pin_the_first_process),
    ATTEMPT(take_the_first_processs_files),
    ATTEMPT(take_a_real_time_priority),
    ATTEMPT(raise_own_priority),
    ATTEMPT(raise_the_open_file_limit),
    ATTEMPT(raise_the_core_limit),
    ATTEMPT(lock_all_memory),
    ATTEMPT(find_a_host_segment),
    ATTEMPT(find_a_host_descriptor),
    ATTEMPT(rename_the_host),
    {NULL, NULL},
};
