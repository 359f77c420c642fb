/* SPDX-License-Identifier: Apache-2.0 */
/* surface_attempts.c - what of /proc and /sys root of a box sees, may open for writing, or makes the kernel work for;
 * and attempts on the entries that were of use to an attacker once. */
#include "attempts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#define READ_MOST  (4 << 20) /* bytes of one file */
#define COST_US    50000     /* of processor time: more is told as costly */
#define COST_BYTES (1 << 20)
#define DEPTH_MOST 12

/* ---- the walk ---- */

struct walk {
  char *out;
  size_t size, n;
};

static void tell(struct walk *w, const char *what, const char *path, const char *state)
{
  if (w->n < w->size)
    w->n += (size_t)snprintf(w->out + w->n, w->size - w->n, "%s %s %s\n", what, path, state);
}

static bool opens(const char *path, int how)
{
  int fd = open(path, how | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0)
    close(fd);
  return fd >= 0;
}

static long processor_us(void)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void weigh(struct walk *w, const char *path)
{
  static char bytes[65536];
  long from = processor_us(), total = 0;
  ssize_t n = 0;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  while (fd >= 0 && total < READ_MOST && (n = read(fd, bytes, sizeof(bytes))) > 0)
    total += n;
  if (fd >= 0)
    close(fd);
  char state[64];
  snprintf(state, sizeof(state), "%ld us, %ld bytes", processor_us() - from, total);
  if (processor_us() - from > COST_US || total > COST_BYTES)
    tell(w, "cost", path, state);
}

static bool is_cover(const struct stat *st)
{
  return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static const char *state_of(const char *path, const struct stat *st, dev_t home)
{
  if (S_ISLNK(st->st_mode))
    return "link";
  if (st->st_dev != home)
    return is_cover(st) || (S_ISDIR(st->st_mode) && strncmp(path, "/proc/", 6) == 0) ? "covered" : "shown";
  return S_ISDIR(st->st_mode) || opens(path, O_RDONLY) || opens(path, O_WRONLY) ? "shown" : "refused";
}

/* A process's own files open in any way for root; whether anything can be written is told by their mode. */
static void look_at_file(struct walk *w, const char *path, const struct stat *st)
{
  if (!S_ISREG(st->st_mode))
    return;
  if (opens(path, O_WRONLY) && ((st->st_mode & 0222) || strncmp(path, "/proc/self/", 11) != 0))
    tell(w, "write", path, "-");
  weigh(w, path);
}

static bool is_process(const char *dir, const char *name)
{
  return strcmp(dir, "/proc") == 0 && name[strspn(name, "0123456789")] == 0;
}

/* Names are told down to `named` levels, files are tried everywhere below. */
static void walk_dir(struct walk *w, const char *dir, dev_t home, int named, int depth)
{
  DIR *d = depth < DEPTH_MOST ? opendir(dir) : NULL;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[1024];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
    if (e->d_name[0] == '.' || is_process(dir, e->d_name) || lstat(path, &st))
      continue;
    if (named > 0)
      tell(w, "name", path, state_of(path, &st, home));
    look_at_file(w, path, &st);
    if (S_ISDIR(st.st_mode))
      walk_dir(w, path, home, st.st_dev == home ? named - 1 : 0, depth + 1);
  }
  if (d)
    closedir(d);
}

static void walk_top(struct walk *w, const char *dir, int named)
{
  struct stat st;
  if (stat(dir, &st) == 0)
    walk_dir(w, dir, st.st_dev, named, 0);
}

/* Of a process only what lies directly in its directory: the rest is about its threads, descriptors and namespaces. */
static void walk_self(struct walk *w)
{
  DIR *d = opendir("/proc/self");
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[300];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/self/%.200s", e->d_name);
    if (e->d_name[0] == '.' || lstat(path, &st))
      continue;
    tell(w, "name", path, S_ISLNK(st.st_mode) ? "link" : "shown");
    look_at_file(w, path, &st);
  }
  if (d)
    closedir(d);
}

size_t surface(char *out, size_t size)
{
  struct walk w = {.out = out, .size = size};
  walk_top(&w, "/proc", 1);
  walk_top(&w, "/proc/sys", 1);
  walk_top(&w, "/proc/self/net", 1);
  walk_top(&w, "/sys", 6);
  walk_self(&w);
  return w.n < size ? w.n : size - 1;
}

/* ---- attempts ---- */

static struct verdict unsupported_or_empty(const char *path)
{
  DIR *d = opendir(path);
  if (!d)
    return refused(-1);
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.')
      return escaped("%s has %s", path, e->d_name);
  return held("nothing in it");
}

/* A trigger makes a kernel thread with real-time priority that outlives the box. */
static struct verdict set_a_pressure_trigger(void)
{
  static const char *const files[] = {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
    struct verdict v = try_write(files[i], "some 500000 2000000");
    if (!v.held)
      return v;
  }
  return unsupported_or_empty("/proc/pressure");
}
static struct verdict set_a_pressure_trigger_of_a_group(void)
{
  return try_write("/sys/fs/cgroup/memory.pressure", "some 500000 2000000");
}
static struct verdict read_names_of_disk_images(void)
{
  char path[64];
  for (int i = 0; i < 64; i++) {
    snprintf(path, sizeof(path), "/sys/devices/virtual/block/loop%d/loop/backing_file", i);
    struct verdict v = try_read(path);
    if (!v.held)
      return v;
  }
  return unsupported_or_empty("/sys/block");
}
static struct verdict list_block_classes(void)
{
  return unsupported_or_empty("/sys/class/block");
}
static struct verdict list_numbers_of_devices(void)
{
  return unsupported_or_empty("/sys/dev");
}
static struct verdict list_mounted_ext4(void)
{
  struct verdict v = unsupported_or_empty("/sys/fs/ext4");
  return v.held ? unsupported_or_empty("/proc/fs") : v;
}
static struct verdict list_modules(void)
{
  struct verdict v = unsupported_or_empty("/sys/module");
  return v.held ? try_read("/proc/modules") : v;
}
static struct verdict list_kernel_details(void)
{
  struct verdict v = unsupported_or_empty("/sys/kernel/debug");
  v = v.held ? unsupported_or_empty("/sys/kernel/slab") : v;
  v = v.held ? try_read("/sys/kernel/notes") : v;
  return v.held ? try_read("/proc/config.gz") : v;
}
static struct verdict read_the_hosts_command_line(void)
{
  return try_read("/proc/cmdline");
}
static struct verdict read_disk_statistics(void)
{
  struct verdict v = try_read("/proc/diskstats");
  return v.held ? try_read("/proc/partitions") : v;
}
static struct verdict read_locks_of_others(void)
{
  return try_read("/proc/locks");
}

/* Host paths have the test's own directory in them, as facts.file does. */
static struct verdict find_a_host_path_in(const char *path)
{
  static char text[262144];
  char top[128];
  snprintf(top, sizeof(top), "%s", facts.file);
  char *slash = strrchr(top, '/');
  if (!slash || slash == top)
    return escaped("no fact to look for");
  *slash = 0;
  size_t n = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t k; fd >= 0 && n < sizeof(text) - 1 && (k = read(fd, text + n, sizeof(text) - 1 - n)) > 0; n += (size_t)k)
    ;
  text[n] = 0;
  if (!n)
    return escaped("%s can't be read", path);
  return strstr(text, top) || strstr(text, "/dev/loop") ? escaped("%s names a path of the host", path)
                                                        : held("no path of the host");
}
static struct verdict find_a_host_path_in_mountinfo(void)
{
  return find_a_host_path_in("/proc/self/mountinfo");
}
static struct verdict find_a_host_path_in_mounts(void)
{
  return find_a_host_path_in("/proc/1/mounts");
}
static struct verdict find_a_host_path_in_mountstats(void)
{
  return find_a_host_path_in("/proc/self/mountstats");
}
static struct verdict find_a_host_path_in_maps(void)
{
  return find_a_host_path_in("/proc/self/maps");
}
static struct verdict find_a_host_group_in_cgroup(void)
{
  static char text[4096];
  int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
  if (n <= 0)
    return escaped("no groups to be read");
  text[n] = 0;
  for (char *at = text, *line; (line = strsep(&at, "\n"));)
    if (*line && strcmp(strrchr(line, ':') ? strrchr(line, ':') : "", ":/") != 0)
      return escaped("%s", line);
  return held("every group is the root of its own namespace");
}
/* The daemon may have been protected before it made the box; the test is. */
static struct verdict take_the_daemons_protection_from_the_oom_killer(void)
{
  return try_write("/proc/self/oom_score_adj", "-10");
}
static struct verdict climb_below_the_cover_of_sys(void)
{
  struct stat st;
  int fd = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fstatat(fd, "./../sys/block", &st, 0) == 0 ? escaped("found /sys/block") : refused(-1);
}
static struct verdict uncover_sys(void)
{
  return refused(umount2("/sys", MNT_DETACH));
}
static struct verdict write_into_sys(void)
{
  return refused(mkdir("/sys/block", 0755));
}

static struct verdict lift_own_memory_limit(void)
{
  struct verdict v = try_write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "-1");
  return v.held ? try_write("/sys/fs/cgroup/memory.max", "max") : v;
}
static struct verdict take_other_processors(void)
{
  struct verdict v = try_write("/sys/fs/cgroup/cpuset/cpuset.cpus", "0");
  return v.held ? try_write("/sys/fs/cgroup/cpuset.cpus", "0") : v;
}
static struct verdict list_groups_of_others(void)
{
  static const char *const dirs[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu",  "/sys/fs/cgroup/cpuacct",
                                     "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory/../memory"};
  for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
    DIR *d = opendir(dirs[i]);
    for (struct dirent *e; d && (e = readdir(d));)
      if (e->d_type == DT_DIR && e->d_name[0] != '.')
        return escaped("%s has %s", dirs[i], e->d_name);
    if (d)
      closedir(d);
  }
  return held("no group but its own");
}
static struct verdict write_own_memory_numbers(void)
{
  struct verdict v = try_write("/proc/meminfo", "MemTotal: 1 kB");
  return v.held ? refused(chmod("/proc/meminfo", 0666)) : v;
}
/* The daemon's next write would wait for the lease to be given up. */
static struct verdict lease_own_memory_numbers(void)
{
  int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? escaped("no /proc/meminfo") : refused(fcntl(fd, F_SETLEASE, F_RDLCK));
}

const struct attempt surface_attempts[] = {
    ATTEMPT(set_a_pressure_trigger),
    ATTEMPT(set_a_pressure_trigger_of_a_group),
    ATTEMPT(read_names_of_disk_images),
    ATTEMPT(list_block_classes),
    ATTEMPT(list_numbers_of_devices),
    ATTEMPT(list_mounted_ext4),
    ATTEMPT(list_modules),
    ATTEMPT(list_kernel_details),
    ATTEMPT(read_the_hosts_command_line),
    ATTEMPT(read_disk_statistics),
    ATTEMPT(read_locks_of_others),
    ATTEMPT(find_a_host_path_in_mountinfo),
    ATTEMPT(find_a_host_path_in_mounts),
    ATTEMPT(find_a_host_path_in_mountstats),
    ATTEMPT(find_a_host_path_in_maps),
    ATTEMPT(find_a_host_group_in_cgroup),
    ATTEMPT(take_the_daemons_protection_from_the_oom_killer),
    ATTEMPT(climb_below_the_cover_of_sys),
    ATTEMPT(uncover_sys),
    ATTEMPT(write_into_sys),
    ATTEMPT(lift_own_memory_limit),
    ATTEMPT(take_other_processors),
    ATTEMPT(list_groups_of_others),
    ATTEMPT(write_own_memory_numbers),
    ATTEMPT(lease_own_memory_numbers),
    {NULL, NULL},
};
