/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - what both generations of control groups share: small files, lists of processes, the choice. */
#include "jail/cgroup.h"
#include "jail/cpu_share.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

void cgroup_join_close(struct cgroup_join *join)
{
  for (size_t i = 0; i < join->n; i++)
    close(join->fds[i]);
  if (join->into >= 0)
    close(join->into);
  *join = CGROUP_JOIN_NONE;
}

const char *const cgroup_shown[CGROUP_SHOWN_MAX] = {"memory", "cpu", "cpuacct", "cpuset", "pids"};

struct adoption {
  const struct cgroup_ops *ops;
  const char *instance;
};

static void adopt(const char *id, void *arg)
{
  const struct adoption *a = arg;
  char list[CPU_LIST_TEXT];
  if (!a->ops->cpus(a->instance, id, list, sizeof(list)))
    cpu_share_adopt(a->instance, id, list);
}

void cgroup_adopt_cpus(const struct cgroup_ops *ops, const char *instance)
{
  ops->each(instance, adopt, &(struct adoption){ops, instance});
}

/* What memory.stat calls the same in both generations. */
static const struct {
  size_t at; /* in struct cgroup_usage */
  const char *v1, *v2;
} memory_fields[] = {
    {offsetof(struct cgroup_usage, file), "total_cache", "file"},
    {offsetof(struct cgroup_usage, shmem), "total_shmem", "shmem"},
    {offsetof(struct cgroup_usage, anon), "total_rss", "anon"},
    {offsetof(struct cgroup_usage, active_file), "total_active_file", "active_file"},
    {offsetof(struct cgroup_usage, inactive_file), "total_inactive_file", "inactive_file"},
    {offsetof(struct cgroup_usage, active_anon), "total_active_anon", "active_anon"},
    {offsetof(struct cgroup_usage, inactive_anon), "total_inactive_anon", "inactive_anon"},
    {offsetof(struct cgroup_usage, unevictable), "total_unevictable", "unevictable"},
    {offsetof(struct cgroup_usage, mapped), "total_mapped_file", "file_mapped"},
    {offsetof(struct cgroup_usage, dirty), "total_dirty", "file_dirty"},
    {offsetof(struct cgroup_usage, writeback), "total_writeback", "file_writeback"},
    {offsetof(struct cgroup_usage, slab_reclaimable), NULL, "slab_reclaimable"},
    {offsetof(struct cgroup_usage, slab_unreclaimable), NULL, "slab_unreclaimable"},
    {offsetof(struct cgroup_usage, kernel_stack), NULL, "kernel_stack"},
    {offsetof(struct cgroup_usage, page_tables), NULL, "pagetables"},
};

void cgroup_memory_in(const char *text, bool unified, struct cgroup_usage *u)
{
  for (size_t i = 0; i < ARRAY_LEN(memory_fields); i++) {
    const char *key = unified ? memory_fields[i].v2 : memory_fields[i].v1;
    if (key)
      *(uint64_t *)((char *)u + memory_fields[i].at) = cgroup_key_in(text, key);
  }
  u->file -= MIN(u->file, u->shmem); /* shared memory counts as file pages there */
}

static const struct cgroup_ops *chosen;

static void choose(void)
{
  if (cgroup_v2.usable())
    chosen = &cgroup_v2;
  else if (cgroup_v1.usable())
    chosen = &cgroup_v1;
}

const struct cgroup_ops *cgroup_host(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, choose);
  return chosen;
}

static int open_in(const char *dir, const char *file, int flags)
{
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
    return -ENAMETOOLONG;
  int fd = open(path, flags | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

int cgroup_put(const char *dir, const char *file, const char *value)
{
  cleanup_fd int fd = open_in(dir, file, O_WRONLY);
  if (fd < 0)
    return fd;
  return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

int cgroup_get(const char *dir, const char *file, char *text, size_t size)
{
  cleanup_fd int fd = open_in(dir, file, O_RDONLY);
  if (fd < 0)
    return fd;
  size_t n = 0;
  while (n < size - 1) {
    ssize_t k = read(fd, text + n, size - 1 - n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0)
      return -errno;
    if (k == 0)
      break;
    n += (size_t)k;
  }
  if (n > 0 && text[n - 1] == '\n')
    n--;
  text[n] = 0;
  return 0;
}

int cgroup_get_u64(const char *dir, const char *file, uint64_t *out)
{
  char text[64];
  int r = cgroup_get(dir, file, text, sizeof(text));
  return r ? r : str_u64(str_of(text), out);
}

uint64_t cgroup_get_key(const char *dir, const char *file, const char *key)
{
  char text[8192];
  return cgroup_get(dir, file, text, sizeof(text)) ? 0 : cgroup_key_in(text, key);
}

uint64_t cgroup_key_in(const char *text, const char *key)
{
  struct str rest = str_of(text), line, name, value;
  uint64_t number = 0;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    if (str_cut(line, ' ', &name, &value) && str_is(name, key) && str_u64(str_trim(value), &number) == 0)
      return number;
  }
  return 0;
}

/* A pid read from a list may be someone else's by now: the pidfd pins it, then the list is asked once more. */
static bool listed(const char *dir, pid_t pid)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  cleanup_fd int fd = open_in(dir, "cgroup.procs", O_RDONLY);
  if (fd < 0 || fd_read_all(fd, &b))
    return false;
  char word[16];
  int n = snprintf(word, sizeof(word), "%d", pid);
  struct str rest = buf_str(&b), line;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    if (str_eq(line, str_make(word, (size_t)n)))
      return true;
  }
  return false;
}

int cgroup_pidfd(const char *dir, pid_t pid)
{
  cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0)
    return -errno;
  return listed(dir, pid) ? steal_fd(&pidfd) : -ESRCH;
}

static void kill_one(const char *dir, pid_t pid)
{
  cleanup_fd int pidfd = cgroup_pidfd(dir, pid);
  if (pidfd >= 0)
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

int cgroup_kill_listed(const char *dir)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  cleanup_fd int fd = open_in(dir, "cgroup.procs", O_RDONLY);
  if (fd < 0)
    return fd == -ENOENT ? 0 : fd;
  int r = fd_read_all(fd, &b);
  if (r)
    return r;
  struct str rest = buf_str(&b), line;
  while (rest.n > 0) {
    uint64_t pid;
    str_cut(rest, '\n', &line, &rest);
    if (str_u64(line, &pid) == 0 && pid > 1 && pid <= INT_MAX)
      kill_one(dir, (pid_t)pid);
  }
  return 0;
}

pid_t cgroup_first_listed(const char *dir)
{
  char text[4096];
  uint64_t pid;
  struct str first, rest;
  if (cgroup_get(dir, "cgroup.procs", text, sizeof(text)))
    return 0;
  str_cut(str_of(text), '\n', &first, &rest);
  return str_u64(first, &pid) == 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

int cgroup_each_dir(const char *dir, void (*seen)(const char *id, void *arg), void *arg)
{
  cleanup_dir DIR *d = opendir(dir);
  if (!d)
    return errno == ENOENT ? 0 : -errno;
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_type == DT_DIR && e->d_name[0] != '.')
      seen(e->d_name, arg);
  return 0;
}
