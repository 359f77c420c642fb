/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_v1.c - limits on hosts with one hierarchy per controller.
 *
 * The hierarchies are found in /proc/self/mountinfo: a controller may be mounted alone or together with others
 * ("cpu,cpuacct"), and each distinct mount gets one group per box. memory, cpu and pids must be there for the host to
 * count as usable; cpuacct, freezer and cpuset are used where they are. */
#include "jail/cgroup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>

enum { MEMORY, CPU, PIDS, CPUACCT, FREEZER, CPUSET, CONTROLLERS };
static const char *const controller_names[CONTROLLERS] = {"memory", "cpu", "pids", "cpuacct", "freezer", "cpuset"};
static const int shown[CGROUP_SHOWN_MAX] = {MEMORY, CPU, CPUACCT, CPUSET, PIDS}; /* as cgroup_shown */

static struct {
  char mounts[CONTROLLERS][256]; /* distinct mount points */
  size_t n;
  int at[CONTROLLERS]; /* controller -> index into mounts, -1 = absent */
} host;

static int mount_index(struct str point)
{
  for (size_t i = 0; i < host.n; i++)
    if (str_is(point, host.mounts[i]))
      return (int)i;
  if (host.n == CONTROLLERS || str_copyz(point, host.mounts[host.n], sizeof(host.mounts[0])))
    return -1;
  return (int)host.n++;
}

static bool has_word(struct str list, const char *word)
{
  struct str item;
  while (list.n > 0) {
    str_cut(list, ',', &item, &list);
    if (str_is(item, word))
      return true;
  }
  return false;
}

/* A mountinfo line: id parent dev root POINT options... - TYPE source SUPEROPTIONS */
static void see_mount(struct str line)
{
  struct str field[5], type, source, options, rest = line;
  for (size_t i = 0; i < ARRAY_LEN(field); i++)
    str_cut(rest, ' ', &field[i], &rest);
  ptrdiff_t dash = str_search(rest, STR(" - "));
  if (dash < 0)
    return;
  rest = str_skip(rest, (size_t)dash + 3);
  str_cut(rest, ' ', &type, &rest);
  str_cut(rest, ' ', &source, &options);
  if (!str_is(type, "cgroup") || !str_is(field[3], "/"))
    return;
  for (size_t i = 0; i < CONTROLLERS; i++)
    if (host.at[i] < 0 && has_word(options, controller_names[i]))
      host.at[i] = mount_index(field[4]);
}

static void look(void)
{
  for (size_t i = 0; i < CONTROLLERS; i++)
    host.at[i] = -1;
  cleanup_buf struct buf b = BUF_INIT(4 << 20);
  if (file_read("/proc/self/mountinfo", &b))
    return;
  struct str rest = buf_str(&b), line;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    see_mount(line);
  }
}

static bool v1_usable(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look);
  return host.at[MEMORY] >= 0 && host.at[CPU] >= 0 && host.at[PIDS] >= 0;
}

struct group {
  char path[PATH_MAX];
};

static const char *group_at(struct group *g, size_t mount, const char *instance, const char *id)
{
  if (id)
    snprintf(g->path, sizeof(g->path), "%s/cloche-%s/%s", host.mounts[mount], instance, id);
  else
    snprintf(g->path, sizeof(g->path), "%s/cloche-%s", host.mounts[mount], instance);
  return g->path;
}

/* The group of one controller, or NULL where the host lacks it. */
static const char *group_of(struct group *g, int controller, const char *instance, const char *id)
{
  return host.at[controller] < 0 ? NULL : group_at(g, (size_t)host.at[controller], instance, id);
}

static int set_u64(const char *dir, const char *file, uint64_t value, struct err *err)
{
  char text[U64_TEXT];
  snprintf(text, sizeof(text), "%" PRIu64, value);
  int r = cgroup_put(dir, file, text);
  return r ? err_set(err, r, "setting %s/%s to %s: %s", dir, file, text, strerrordesc_np(-r)) : 0;
}

/* A new group of this hierarchy has neither processors nor memory and takes no process. */
static int inherit_cpus(const char *instance, struct err *err)
{
  static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};
  struct group g;
  char text[CGROUP_CPUS_TEXT];
  int r = 0;
  for (size_t i = 0; i < ARRAY_LEN(files) && !r && group_of(&g, CPUSET, instance, NULL); i++) {
    r = cgroup_get(host.mounts[host.at[CPUSET]], files[i], text, sizeof(text));
    r = r ? r : cgroup_put(g.path, files[i], text);
  }
  return r ? err_set(err, r, "setting up %s: %s", g.path, strerrordesc_np(-r)) : 0;
}

/* All boxes together weigh as much as one busy process of the host per core; a new group weighs as much as one. */
static int v1_open(const char *instance, struct err *err)
{
  struct group g;
  for (size_t i = 0; i < host.n; i++)
    if (mkdir(group_at(&g, i, instance, NULL), 0755) && errno != EEXIST)
      return err_errno(err, "making the control group %s", g.path);
  int r = inherit_cpus(instance, err);
  cgroup_adopt_cpus(&cgroup_v1, instance);
  return r ? r : set_u64(group_of(&g, CPU, instance, NULL), "cpu.shares", 1024 * (uint64_t)get_nprocs(), err);
}

static void v1_close(const char *instance)
{
  struct group g;
  for (size_t i = 0; i < host.n; i++)
    rmdir(group_at(&g, i, instance, NULL));
}

/* Balancing goes on in the domain of the host: off here means that no domain of its own is made. */
static int bind_cpus(const char *instance, const char *id, unsigned cpus, struct err *err)
{
  struct group top, g;
  char mems[CGROUP_CPUS_TEXT], list[CGROUP_CPUS_TEXT];
  if (!group_of(&top, CPUSET, instance, NULL))
    return 0;
  group_of(&g, CPUSET, instance, id);
  int r = cgroup_get(top.path, "cpuset.mems", mems, sizeof(mems));
  r = r ? r : cpu_share_take(instance, id, cpus, list);
  r = r ? r : cgroup_put(g.path, "cpuset.sched_load_balance", "0");
  r = r ? r : cgroup_put(g.path, "cpuset.mems", mems);
  r = r ? r : cgroup_put(g.path, "cpuset.cpus", list);
  return r ? err_set(err, r, "setting processors of %s: %s", g.path, strerrordesc_np(-r)) : 0;
}

static int limit(const char *instance, const char *id, const struct jail_limits *l, struct err *err)
{
  struct group g;
  int r = 0;
  if (l->memory) {
    group_of(&g, MEMORY, instance, id);
    r = set_u64(g.path, "memory.limit_in_bytes", l->memory, err);
    /* Hosts without swap accounting lack the file; there memory alone is the limit. */
    if (!r && set_u64(g.path, "memory.memsw.limit_in_bytes", l->memory, NULL) == -EINVAL)
      r = err_set(err, -EINVAL, "the host refuses a swap limit of %" PRIu64 " bytes for %s", l->memory, id);
  }
  if (!r && l->cpus)
    r = set_u64(group_of(&g, CPU, instance, id), "cpu.cfs_quota_us", (uint64_t)l->cpus * 100000, err);
  if (!r && l->pids)
    r = set_u64(group_of(&g, PIDS, instance, id), "pids.max", l->pids, err);
  return r ? r : bind_cpus(instance, id, l->cpus, err);
}

static int join_add(struct cgroup_join *join, const char *dir, struct err *err)
{
  char path[PATH_MAX + 8];
  snprintf(path, sizeof(path), "%s/tasks", dir);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return err_errno(err, "opening %s", path);
  join->fds[join->n++] = fd;
  return 0;
}

static int v1_make(const char *instance, const char *id, const struct jail_limits *limits, struct cgroup_join *join,
                   struct err *err)
{
  struct group g;
  for (size_t i = 0; i < host.n; i++) {
    group_at(&g, i, instance, id);
    if (mkdir(g.path, 0755) && errno != EEXIST)
      return err_errno(err, "making the control group %s", g.path);
    int r = join_add(join, g.path, err);
    if (r)
      return r;
  }
  return limit(instance, id, limits, err);
}

static int v1_join(const char *instance, const char *id, struct cgroup_join *join, struct err *err)
{
  struct group g;
  int r = 0;
  for (size_t i = 0; i < host.n && !r; i++)
    r = join_add(join, group_at(&g, i, instance, id), err);
  return r;
}

/* A box's processes are in all hierarchies alike; one list is enough. */
static int v1_kill(const char *instance, const char *id)
{
  struct group g;
  return cgroup_kill_listed(group_of(&g, PIDS, instance, id));
}

static int v1_remove(const char *instance, const char *id)
{
  struct group g;
  for (size_t i = 0; i < host.n; i++)
    if (rmdir(group_at(&g, i, instance, id)) && errno != ENOENT)
      return -errno;
  cpu_share_release(instance, id);
  return 0;
}

static int v1_stat(const char *instance, const char *id, struct jail_stats *out, struct err *err)
{
  struct group g;
  uint64_t usage, cpu_ns = 0;
  int r = cgroup_get_u64(group_of(&g, MEMORY, instance, id), "memory.usage_in_bytes", &usage);
  if (r)
    return err_set(err, r, "no control group of box %s", id);
  cgroup_get_u64(g.path, "memory.limit_in_bytes", &out->memory_limit);
  if (out->memory_limit > (uint64_t)1 << 60)
    out->memory_limit = 0;
  /* Shared memory counts as cache there, yet no one can take it back: it is use. */
  out->memory_cache = cgroup_get_key(g.path, "memory.stat", "total_cache");
  out->memory_cache -= MIN(out->memory_cache, cgroup_get_key(g.path, "memory.stat", "total_shmem"));
  out->memory_used = usage > out->memory_cache ? usage - out->memory_cache : 0;
  out->oom_kills = cgroup_get_key(g.path, "memory.oom_control", "oom_kill");
  if (group_of(&g, CPUACCT, instance, id))
    cgroup_get_u64(g.path, "cpuacct.usage", &cpu_ns);
  out->cpu_usec = cpu_ns / 1000;
  cgroup_get_u64(group_of(&g, PIDS, instance, id), "pids.current", &out->pids);
  return 0;
}

static uint64_t ticks_usec(uint64_t ticks)
{
  return ticks * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void v1_memory(const char *dir, struct cgroup_usage *u)
{
  char text[8192];
  cgroup_get_u64(dir, "memory.usage_in_bytes", &u->used);
  if (cgroup_get(dir, "memory.stat", text, sizeof(text)))
    return;
  cgroup_memory_in(text, false, u);
}

static int v1_usage(const char *instance, const char *id, bool memory, struct cgroup_usage *u)
{
  struct group g;
  char text[256];
  *u = (struct cgroup_usage){0};
  int r = cgroup_get_u64(group_of(&g, MEMORY, instance, id), "memory.limit_in_bytes", &u->limit);
  if (r)
    return r;
  if (u->limit > (uint64_t)1 << 60)
    u->limit = 0;
  if (memory)
    v1_memory(g.path, u);
  if (group_of(&g, CPUACCT, instance, id) && !cgroup_get(g.path, "cpuacct.stat", text, sizeof(text))) {
    u->user_usec = ticks_usec(cgroup_key_in(text, "user"));
    u->system_usec = ticks_usec(cgroup_key_in(text, "system"));
  }
  cgroup_get_u64(group_of(&g, PIDS, instance, id), "pids.current", &u->tasks);
  return 0;
}

static int v1_shown(const char *instance, const char *id, size_t which, char *dir, size_t size)
{
  struct group g;
  return group_of(&g, shown[which], instance, id) ? str_copyz(str_of(g.path), dir, size) : -ENOENT;
}

static int v1_cpus(const char *instance, const char *id, char *list, size_t size)
{
  struct group g;
  return group_of(&g, CPUSET, instance, id) ? cgroup_get(g.path, "cpuset.cpus", list, size) : -ENOENT;
}

/* FREEZING becomes FROZEN once every task has reached a stopping point; a task in the kernel may take a moment. */
static int v1_freeze(const char *instance, const char *id, bool frozen, struct err *err)
{
  struct group g;
  char state[16];
  const char *want = frozen ? "FROZEN" : "THAWED";
  if (!group_of(&g, FREEZER, instance, id))
    return err_set(err, -EOPNOTSUPP, "this host has no freezer");
  for (int i = 0; i < 2000; i++) {
    int r = cgroup_put(g.path, "freezer.state", want);
    if (!r)
      r = cgroup_get(g.path, "freezer.state", state, sizeof(state));
    if (r)
      return err_set(err, r, "%s of box %s: %s", frozen ? "freezing" : "thawing", id, strerrordesc_np(-r));
    if (str_is(str_of(state), want))
      return 0;
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  }
  cgroup_put(g.path, "freezer.state", "THAWED");
  return err_set(err, -ETIMEDOUT, "box %s did not freeze within a second", id);
}

static int v1_freezer(const char *instance, const char *id, char *dir, size_t size)
{
  struct group g;
  if (!group_of(&g, FREEZER, instance, id))
    return -EOPNOTSUPP;
  return str_copyz(str_of(g.path), dir, size);
}

static pid_t v1_any(const char *instance, const char *id)
{
  struct group g;
  return cgroup_first_listed(group_of(&g, PIDS, instance, id));
}

static int v1_each(const char *instance, void (*seen)(const char *id, void *arg), void *arg)
{
  struct group g;
  int r = 0;
  for (size_t i = 0; i < host.n && !r; i++)
    r = cgroup_each_dir(group_at(&g, i, instance, NULL), seen, arg);
  return r;
}

const struct cgroup_ops cgroup_v1 = {
    .name = "v1",
    .usable = v1_usable,
    .open = v1_open,
    .close = v1_close,
    .make = v1_make,
    .join = v1_join,
    .kill = v1_kill,
    .remove = v1_remove,
    .stat = v1_stat,
    .usage = v1_usage,
    .shown = v1_shown,
    .cpus = v1_cpus,
    .freeze = v1_freeze,
    .freezer = v1_freezer,
    .any = v1_any,
    .each = v1_each,
};
