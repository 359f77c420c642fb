/* SPDX-License-Identifier: Apache-2.0 */
/* limit_view.c - see limit_view.h. */
#include "jail/limit_view.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>
#include <time.h>

#define ATTRIBUTES   (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME)
#define TMPFS_BYTES  "4m" /* the most; cpuinfo of many processors */
#define TMPFS_INODES "7"  /* the root and VIEW_FILES */
#define STAT_PAGE    4096 /* /proc/stat is so long for each STAT_CPUS processors */
#define STAT_CPUS    32
#define LOADAVG_SIZE 56
#define CPUINFO_MAX  ((size_t)3 << 20)

const char *const view_names[VIEW_FILES] = {"meminfo", "stat", "loadavg", "cpuinfo", "swaps", "cpus"};
const char *const view_points[VIEW_POINTS] = {"/proc/meminfo",
                                              "/proc/stat",
                                              "/proc/loadavg",
                                              "/proc/cpuinfo",
                                              "/proc/swaps",
                                              "/sys/devices/system/cpu/online",
                                              "/sys/devices/system/cpu/possible",
                                              "/sys/devices/system/cpu/present"};
const enum view_file view_at[VIEW_POINTS] = {VIEW_MEMINFO, VIEW_STAT, VIEW_LOADAVG, VIEW_CPUINFO,
                                             VIEW_SWAPS,   VIEW_CPUS, VIEW_CPUS,    VIEW_CPUS};

/* --- texts ---------------------------------------------------------------------------------------------------- */

/* Nine digits of kB are a terabyte; more makes the line longer, as it does in the kernel's own file. */
static void memory_line(struct buf *out, const char *name, uint64_t bytes)
{
  buf_addf(out, "%-15s%9" PRIu64 " kB\n", name, bytes >> 10);
}

void view_write_meminfo(const struct view_numbers *v, struct buf *out)
{
  const struct cgroup_usage *u = &v->usage;
  uint64_t used = MIN(u->used, u->limit), left = u->limit - used;
  uint64_t available = MIN(left + u->active_file + u->inactive_file + u->slab_reclaimable, u->limit);
  memory_line(out, "MemTotal:", u->limit);
  memory_line(out, "MemFree:", left);
  memory_line(out, "MemAvailable:", available);
  memory_line(out, "Buffers:", 0);
  memory_line(out, "Cached:", u->file + u->shmem);
  memory_line(out, "SwapCached:", 0);
  memory_line(out, "Active:", u->active_anon + u->active_file);
  memory_line(out, "Inactive:", u->inactive_anon + u->inactive_file);
  memory_line(out, "Active(anon):", u->active_anon);
  memory_line(out, "Inactive(anon):", u->inactive_anon);
  memory_line(out, "Active(file):", u->active_file);
  memory_line(out, "Inactive(file):", u->inactive_file);
  memory_line(out, "Unevictable:", u->unevictable);
  memory_line(out, "Mlocked:", u->unevictable);
  memory_line(out, "SwapTotal:", 0);
  memory_line(out, "SwapFree:", 0);
  memory_line(out, "Dirty:", u->dirty);
  memory_line(out, "Writeback:", u->writeback);
  memory_line(out, "AnonPages:", u->anon);
  memory_line(out, "Mapped:", u->mapped);
  memory_line(out, "Shmem:", u->shmem);
  memory_line(out, "KReclaimable:", u->slab_reclaimable);
  memory_line(out, "Slab:", u->slab_reclaimable + u->slab_unreclaimable);
  memory_line(out, "SReclaimable:", u->slab_reclaimable);
  memory_line(out, "SUnreclaim:", u->slab_unreclaimable);
  memory_line(out, "KernelStack:", u->kernel_stack);
  memory_line(out, "PageTables:", u->page_tables);
  memory_line(out, "CommitLimit:", u->limit);
  memory_line(out, "Committed_AS:", u->anon + u->shmem);
  memory_line(out, "Hugepagesize:", (uint64_t)2 << 20);
}

static void cpu_line(struct buf *out, const char *name, uint64_t user, uint64_t system, uint64_t idle)
{
  buf_addf(out, "%s %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " 0 0 0 0 0 0\n", name, user, system, idle);
}

/* In hundredths of a second. Groups don't say which processor it was: each gets the same share. What is left over to
 * the fixed size is spaces behind "intr", a line that is long everywhere. */
void view_write_stat(const struct view_numbers *v, struct buf *out)
{
  unsigned n = MAX(v->cpus, 1u);
  uint64_t user = v->usage.user_usec / 10000, system = v->usage.system_usec / 10000;
  uint64_t all = v->uptime_usec / 10000 * n, idle = all - MIN(user + system, all);
  size_t size = STAT_PAGE * (size_t)((n + STAT_CPUS - 1) / STAT_CPUS);
  cleanup_buf struct buf rest = BUF_INIT(1024);
  buf_addf(&rest,
           "\nctxt 0\nbtime %" PRIu64 "\nprocesses %" PRIu64
           "\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
           v->boot_time, v->usage.tasks);
  cpu_line(out, "cpu ", user, system, idle);
  for (unsigned i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof(name), "cpu%u", i);
    cpu_line(out, name, user / n, system / n, idle / n);
  }
  buf_addz(out, "intr 0");
  while (out->n + rest.n < size)
    buf_addz(out, " ");
  buf_add(out, rest.p, rest.n);
}

void view_write_loadavg(const struct view_numbers *v, struct buf *out)
{
  for (size_t i = 0; i < ARRAY_LEN(v->load); i++) {
    uint64_t hundredths = (v->load[i] * 100 + VIEW_LOAD_ONE / 2) / VIEW_LOAD_ONE;
    buf_addf(out, "%" PRIu64 ".%02u ", hundredths / 100, (unsigned)(hundredths % 100));
  }
  buf_addf(out, "1/%" PRIu64 " %" PRIu64, v->usage.tasks, v->usage.tasks);
  while (out->n < LOADAVG_SIZE - 1)
    buf_addz(out, " ");
  buf_addz(out, "\n");
}

/* One paragraph for each processor; what comes before the first and where there are no such paragraphs is kept. */
void view_write_cpuinfo(struct str host, unsigned cpus, struct buf *out)
{
  unsigned seen = 0;
  while (host.n > 0) {
    ptrdiff_t end = str_search(host, STR("\n\n"));
    size_t n = end < 0 ? host.n : (size_t)end + 2;
    bool processor = str_starts(host, STR("processor"));
    if (!processor || seen < cpus)
      buf_add(out, host.p, n);
    seen += processor;
    host = str_skip(host, n);
  }
}

unsigned view_count_cpus(const char *list)
{
  struct str rest = str_trim(str_of(list)), item, first, last;
  uint64_t a, b;
  unsigned n = 0;
  while (rest.n > 0) {
    str_cut(rest, ',', &item, &rest);
    bool range = str_cut(item, '-', &first, &last);
    if (str_u64(first, &a) || (range && str_u64(last, &b)))
      return 0;
    n += range && b >= a ? (unsigned)(b - a + 1) : 1;
  }
  return n;
}

/* --- numbers -------------------------------------------------------------------------------------------------- */

static uint64_t clock_usec(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int view_measure(const char *instance, const char *id, bool memory, int64_t offset_usec, struct view_numbers *out)
{
  int r = cgroup_host()->usage(instance, id, memory, &out->usage);
  if (!out->usage.limit) {
    struct sysinfo si;
    out->usage.limit = sysinfo(&si) ? 0 : (uint64_t)si.totalram * si.mem_unit;
  }
  int64_t up = (int64_t)clock_usec(CLOCK_BOOTTIME) + offset_usec;
  out->uptime_usec = (uint64_t)MAX(up, 0);
  out->boot_time = (clock_usec(CLOCK_REALTIME) - out->uptime_usec) / 1000000;
  return r;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

static struct buf host_cpuinfo = BUF_INIT(CPUINFO_MAX);

/* Once: on many processors the kernel takes milliseconds to write it. */
static void read_cpuinfo(void)
{
  file_read("/proc/cpuinfo", &host_cpuinfo);
}

static int make_tmpfs(void)
{
  cleanup_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", LIMIT_VIEW_SOURCE, 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "mode", "755", 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "size", TMPFS_BYTES, 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", TMPFS_INODES, 0) ||
      fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return -1;
  return fsmount(fs, FSMOUNT_CLOEXEC, ATTRIBUTES);
}

static int make_file(int tree, enum view_file which, const struct buf *text)
{
  cleanup_fd int fd = openat(tree, view_names[which], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);
  if (fd < 0 || buf_failed(text) || fd_write_all(fd, text->p, text->n))
    return -1;
  return steal_fd(&fd);
}

static void write_file(enum view_file which, const struct view_numbers *v, const char *cpus, struct buf *out)
{
  switch (which) {
  case VIEW_MEMINFO:
    view_write_meminfo(v, out);
    break;
  case VIEW_STAT:
    view_write_stat(v, out);
    break;
  case VIEW_LOADAVG:
    view_write_loadavg(v, out);
    break;
  case VIEW_CPUINFO:
    view_write_cpuinfo(buf_str(&host_cpuinfo), v->cpus, out);
    break;
  case VIEW_SWAPS:
    buf_addz(out, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    break;
  default:
    buf_addf(out, "%s\n", cpus);
  }
}

int limit_view_make(const char *instance, const char *id, struct limit_view *out, struct err *err)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  char cpus[CGROUP_CPUS_TEXT];
  struct view_numbers v = {0};
  pthread_once(&once, read_cpuinfo);
  int r = cgroup_host()->cpus(instance, id, cpus, sizeof(cpus));
  if (r)
    snprintf(cpus, sizeof(cpus), "0-%d", get_nprocs() - 1);
  v.cpus = view_count_cpus(cpus);
  view_measure(instance, id, false, 0, &v);
  v.uptime_usec = 0;
  *out = LIMIT_VIEW_NONE;
  out->tree = make_tmpfs();
  for (enum view_file i = 0; i < VIEW_FILES && out->tree >= 0; i++) {
    cleanup_buf struct buf text = BUF_INIT(CPUINFO_MAX);
    write_file(i, &v, cpus, &text);
    int fd = make_file(out->tree, i, &text);
    if (fd < 0) {
      limit_view_close(out);
      return err_errno(err, "writing %s of box %s", view_names[i], id);
    }
    if (i < VIEW_LIVE)
      out->live[i] = fd;
    else
      close(fd);
  }
  return out->tree < 0 ? err_errno(err, "making a tmpfs for the limits of box %s", id) : 0;
}

void limit_view_close(struct limit_view *v)
{
  for (size_t i = 0; i < VIEW_LIVE; i++)
    if (v->live[i] >= 0)
      close(v->live[i]);
  if (v->tree >= 0)
    close(v->tree);
  *v = LIMIT_VIEW_NONE;
}
