/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_attempts.c - by way of the kernel's own switches: proc, sysfs and system calls that are the host's. */
#include "attempts.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/kexec.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

static struct verdict set_core_pattern(void)
{
  return try_write("/proc/sys/kernel/core_pattern", "|/tmp/handler");
}
static struct verdict set_modprobe_path(void)
{
  return try_write("/proc/sys/kernel/modprobe", "/tmp/handler");
}
static struct verdict press_sysrq(void)
{
  struct stat st;
  if (stat("/proc/sysrq-trigger", &st) == 0 && S_ISCHR(st.st_mode))
    return held("covered by /dev/null");
  return try_write("/proc/sysrq-trigger", "h");
}
static struct verdict read_kernel_memory(void)
{
  return try_read("/proc/kcore");
}
static struct verdict read_kernel_symbols(void)
{
  return try_read("/proc/kallsyms");
}
static struct verdict read_kernel_log_file(void)
{
  return try_read("/proc/kmsg");
}
static struct verdict read_kernel_log_call(void)
{
  char text[256];
  return refused(syscall(SYS_syslog, 3, text, sizeof(text)));
}
static struct verdict read_host_keys(void)
{
  return try_read("/proc/keys");
}
static struct verdict read_interrupts(void)
{
  return try_read("/proc/interrupts");
}
static struct verdict set_panic_on_oom(void)
{
  return try_write("/proc/sys/vm/panic_on_oom", "1");
}
static struct verdict drop_host_caches(void)
{
  return try_write("/proc/sys/vm/drop_caches", "1");
}
static struct verdict open_the_kernel_log(void)
{
  return try_write("/proc/sys/kernel/dmesg_restrict", "0");
}
static struct verdict register_binfmt(void)
{
  return try_write("/proc/sys/fs/binfmt_misc/register", ":x:M::\\x7fX::/tmp/handler:C");
}
static struct verdict raise_host_file_limit(void)
{
  return try_write("/proc/sys/fs/file-max", "9");
}
static struct verdict steer_an_interrupt(void)
{
  return try_write("/proc/irq/default_smp_affinity", "1");
}
static struct verdict set_uevent_helper(void)
{
  return try_write("/sys/kernel/uevent_helper", "/tmp/handler");
}
static struct verdict change_huge_pages(void)
{
  return try_write("/sys/kernel/mm/transparent_hugepage/enabled", "never");
}
static struct verdict set_release_agent(void)
{
  return try_write("/sys/fs/cgroup/memory/release_agent", "/tmp/handler");
}
static struct verdict leave_the_memory_group(void)
{
  return try_write("/sys/fs/cgroup/memory/tasks", "0");
}
static struct verdict become_immune_to_oom(void)
{
  return try_write("/proc/self/oom_score_adj", "-1000");
}
static struct verdict set_latency_policy(void)
{
  return refused(open("/dev/cpu_dma_latency", O_RDWR));
}

static struct verdict load_a_module(void)
{
  static const char image[64] = "\177ELF";
  return refused(syscall(SYS_init_module, image, sizeof(image), ""));
}
static struct verdict load_a_module_file(void)
{
  return refused(syscall(SYS_finit_module, open("/cloche/guest", O_RDONLY), "", 0));
}
static struct verdict unload_a_module(void)
{
  return refused(syscall(SYS_delete_module, "loop", O_NONBLOCK));
}
static struct verdict load_another_kernel(void)
{
  return refused(syscall(SYS_kexec_load, 0, 0, NULL, KEXEC_ON_CRASH));
}
static struct verdict reboot_the_host(void)
{
  /* Only the harmless request that toggles Ctrl-Alt-Del; the filter does not look at it. */
  return refused(syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF, NULL));
}
static struct verdict load_a_bpf_map(void)
{
  union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};
  return refused(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}
static struct verdict watch_with_perf(void)
{
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK};
  attr.exclude_kernel = 1;
  return refused(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}
static struct verdict handle_page_faults(void)
{
  return refused(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */));
}
static struct verdict use_io_uring(void)
{
  struct io_uring_params p = {0};
  return refused(syscall(SYS_io_uring_setup, 4, &p));
}
static struct verdict add_a_key(void)
{
  return refused(syscall(SYS_add_key, "user", "cloche", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}
static struct verdict read_the_session_keyring(void)
{
  return refused(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
}
static struct verdict hide_memory_from_the_kernel(void)
{
  return refused(syscall(447 /* memfd_secret */, 0));
}
static struct verdict set_the_clock(void)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return refused(clock_settime(CLOCK_REALTIME, &now));
}
static struct verdict set_the_time_of_day(void)
{
  struct timeval now;
  gettimeofday(&now, NULL);
  return refused(settimeofday(&now, NULL));
}
static struct verdict slew_the_clock(void)
{
  struct timex t = {.modes = ADJ_FREQUENCY, .freq = 0};
  return refused(adjtimex(&t));
}
static struct verdict turn_swap_on(void)
{
  return refused(syscall(SYS_swapon, "/tmp/swap", 0));
}
static struct verdict turn_accounting_on(void)
{
  int fd = open("/tmp/acct", O_CREAT | O_WRONLY, 0600);
  close(fd);
  return refused(acct("/tmp/acct"));
}
static struct verdict set_a_quota(void)
{
  return refused(quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL));
}
static struct verdict reach_io_ports(void)
{
#ifdef SYS_iopl
  return refused(syscall(SYS_iopl, 3));
#else
  return held("no ports on this architecture");
#endif
}
static struct verdict hang_up_the_terminal(void)
{
  return refused(syscall(SYS_vhangup));
}
/* A call newer than the filter's list. */
static struct verdict use_a_call_of_tomorrow(void)
{
  return refused(syscall(467 /* open_tree_attr */, AT_FDCWD, "/", 0, NULL, 0));
}
#ifdef __x86_64__
/* The same kernel by its 32-bit system calls: mount is number 21 there. */
static struct verdict enter_by_the_32_bit_door(void)
{
  long r;
  __asm__ volatile("int $0x80" : "=a"(r) : "0"(20 /* getpid */) : "memory", "r8", "r9", "r10", "r11");
  if (r < 0) {
    errno = (int)-r;
    return refused(-1);
  }
  return escaped("a 32-bit call answered %ld", r);
}
static struct verdict enter_by_the_x32_door(void)
{
  return refused(syscall(0x40000000 | SYS_getpid));
}
#endif

const struct attempt kernel_attempts[] = {
    ATTEMPT(set_core_pattern),
    ATTEMPT(set_modprobe_path),
    ATTEMPT(press_sysrq),
    ATTEMPT(read_kernel_memory),
    ATTEMPT(read_kernel_symbols),
    ATTEMPT(read_kernel_log_file),
    ATTEMPT(read_kernel_log_call),
    ATTEMPT(read_host_keys),
    ATTEMPT(read_interrupts),
    ATTEMPT(set_panic_on_oom),
    ATTEMPT(drop_host_caches),
    ATTEMPT(open_the_kernel_log),
    ATTEMPT(register_binfmt),
    ATTEMPT(raise_host_file_limit),
    ATTEMPT(steer_an_interrupt),
    ATTEMPT(set_uevent_helper),
    ATTEMPT(change_huge_pages),
    ATTEMPT(set_release_agent),
    ATTEMPT(leave_the_memory_group),
    ATTEMPT(become_immune_to_oom),
    ATTEMPT(set_latency_policy),
    ATTEMPT(load_a_module),
    ATTEMPT(load_a_module_file),
    ATTEMPT(unload_a_module),
    ATTEMPT(load_another_kernel),
    ATTEMPT(reboot_the_host),
    ATTEMPT(load_a_bpf_map),
    ATTEMPT(watch_with_perf),
    ATTEMPT(handle_page_faults),
    ATTEMPT(use_io_uring),
    ATTEMPT(add_a_key),
    ATTEMPT(read_the_session_keyring),
    ATTEMPT(hide_memory_from_the_kernel),
    ATTEMPT(set_the_clock),
    ATTEMPT(set_the_time_of_day),
    ATTEMPT(slew_the_clock),
    ATTEMPT(turn_swap_on),
    ATTEMPT(turn_accounting_on),
    ATTEMPT(set_a_quota),
    ATTEMPT(reach_io_ports),
    ATTEMPT(hang_up_the_terminal),
    ATTEMPT(use_a_call_of_tomorrow),
#ifdef __x86_64__
    ATTEMPT(enter_by_the_32_bit_door),
    ATTEMPT(enter_by_the_x32_door),
#endif
    {NULL, NULL},
};
