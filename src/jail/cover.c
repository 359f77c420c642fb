/* SPDX-License-Identifier: Apache-2.0 */
/* cover.c - see cover.h. */
#include "jail/cover.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Of the box's own namespaces, or numbers that common programs and runtimes read at start: counts of processors,
 * memory, load. */
static const char *const proc_shown[] = {"cgroups",     "cpuinfo", "filesystems", "loadavg", "meminfo", "mounts",
                                         "net",         "self",    "stat",        "swaps",   "sys",     "sysvipc",
                                         "thread-self", "tty",     "uptime",      "version", "vmstat"};

/* Links in class/net lead to devices/virtual/net; both show the box's own network namespace. */
static const char *const sys_shown[] = {"class/net", "devices/system/cpu", "devices/system/node", "devices/virtual/net",
                                        "kernel/mm/transparent_hugepage"};

/* What the directories above lie in, parents first, and the one that runtimes look for. */
static const char *const sys_dirs[] = {"class",
                                       "class/net",
                                       "devices",
                                       "devices/system",
                                       "devices/system/cpu",
                                       "devices/system/node",
                                       "devices/virtual",
                                       "devices/virtual/net",
                                       "fs",
                                       "fs/bpf",
                                       "fs/cgroup",
                                       "fs/cgroup/memory",
                                       "fs/cgroup/cpu",
                                       "fs/cgroup/cpuacct",
                                       "fs/cgroup/cpuset",
                                       "fs/cgroup/pids",
                                       "kernel",
                                       "kernel/mm",
                                       "kernel/mm/transparent_hugepage"};
#define COVER_PATH 300           /* "/proc/" or "/sys/" and a name */
#define EMPTY_DIR  "/sys/fs/bpf" /* as on a host that uses none */

/* ---- before the root is entered ---- */

static const char *make_dirs(int sys)
{
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
  for (size_t i = 0; i < ARRAY_LEN(sys_dirs); i++)
    if (mkdirat(sys, sys_dirs[i], 0755))
      return sys_dirs[i];
  return mount_setattr(sys, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ? "/sys" : NULL;
}

static bool is_shown(const char *name)
{
  if (*name == '.' || (*name >= '0' && *name <= '9'))
    return true;
  for (size_t i = 0; i < ARRAY_LEN(proc_shown); i++)
    if (!strcmp(name, proc_shown[i]))
      return true;
  return false;
}

/* Raw: the C library's own would ask for the effective identity in a way of its own. */
static bool can_open(int dir, const char *name)
{
  return !syscall(SYS_faccessat, dir, name, R_OK) || !syscall(SYS_faccessat, dir, name, W_OK);
}

static bool note_name(struct cover *c, const char *name, bool dir)
{
  size_t len = strlen(name) + 1;
  if (c->n + dir + len > sizeof(c->names))
    return false;
  if (dir)
    c->names[c->n++] = '/';
  memcpy(c->names + c->n, name, len);
  c->n += len;
  return true;
}

struct entry { /* as the kernel writes it */
  uint64_t ino, off;
  uint16_t len;
  uint8_t type;
  char name[];
};

static bool note_entry(struct cover *c, int dir, const struct entry *e)
{
  if (is_shown(e->name) || e->type == DT_LNK || (e->type != DT_DIR && !can_open(dir, e->name)))
    return true; /* links of proc lead to a process's own directory */
  return note_name(c, e->name, e->type == DT_DIR);
}

static const char *note_names(struct cover *c, int proc)
{
  _Alignas(struct entry) char bytes[4096];
  cleanup_fd int dir = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  long n;
  while ((n = dir < 0 ? -1 : syscall(SYS_getdents64, dir, bytes, sizeof(bytes))) > 0)
    for (long at = 0; at < n;) {
      const struct entry *e = (const struct entry *)(bytes + at);
      if (!note_entry(c, dir, e)) {
        errno = E2BIG;
        return "/proc";
      }
      at += e->len;
    }
  return n < 0 ? "/proc" : NULL;
}

const char *cover_prepare(struct cover *cover, int proc)
{
  const char *failed = make_dirs(cover->sys);
  cover->n = 0;
  return failed ? failed : note_names(cover, proc);
}

/* ---- in the new root ---- */

static int path_of(char path[COVER_PATH], const char *prefix, const char *name)
{
  size_t a = strlen(prefix), b = strlen(name);
  if (a + b >= COVER_PATH) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(path, prefix, a);
  memcpy(path + a, name, b + 1);
  return 0;
}

/* Older kernels take parts of a mount only once it is attached, and a kernel may lack one. */
static const char *apply_sys(int sys)
{
  int parts[ARRAY_LEN(sys_shown)];
  char path[COVER_PATH];
  for (size_t i = 0; i < ARRAY_LEN(sys_shown); i++) {
    parts[i] =
        path_of(path, "/sys/", sys_shown[i]) ? -1 : open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (parts[i] < 0 && errno != ENOENT)
      return sys_shown[i];
  }
  if (move_mount(sys, "", AT_FDCWD, "/sys", MOVE_MOUNT_F_EMPTY_PATH))
    return "/sys";
  for (size_t i = 0; i < ARRAY_LEN(sys_shown); i++) {
    if (parts[i] < 0)
      continue;
    if (path_of(path, "/sys/", sys_shown[i]) || move_mount(parts[i], "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH))
      return sys_shown[i];
    close(parts[i]);
  }
  close(sys);
  return NULL;
}

static const char *apply_proc(const struct cover *c)
{
  char path[COVER_PATH];
  for (size_t at = 0; at < c->n; at += strlen(c->names + at) + 1) {
    const char *name = c->names + at;
    bool dir = *name == '/';
    if (path_of(path, dir ? "/proc" : "/proc/", name) ||
        mount(dir ? EMPTY_DIR : "/dev/null", path, NULL, MS_BIND, NULL))
      return name;
  }
  return NULL;
}

/* sys: switches of the host, of which a box may read those of its own namespaces; dev below it names the host's drives.
 */
static const char *apply_switches(void)
{
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
  if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) ||
      mount_setattr(AT_FDCWD, "/proc/sys", 0, &attr, sizeof(attr)))
    return "/proc/sys";
  return mount(EMPTY_DIR, "/proc/sys/dev", NULL, MS_BIND, NULL) && errno != ENOENT ? "/proc/sys/dev" : NULL;
}

const char *cover_apply(const struct cover *cover)
{
  const char *failed = apply_sys(cover->sys);
  failed = failed ? failed : apply_proc(cover);
  return failed ? failed : apply_switches();
}
