/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_v2.c - limits on hosts with the unified hierarchy.
 *
 * Usable when the mount at /sys/fs/cgroup is cgroup2 and offers memory, cpu and pids: hybrid hosts, whose unified
 * mount has no controllers left, go the v1 way. A box is launched into its group (CLONE_INTO_CGROUP). */
#include "jail/cgroup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <time.h>

#define V2_ROOT "/sys/fs/cgroup"

static bool v2_usable(void)
{
  struct statfs fs;
  char text[512];
  if (statfs(V2_ROOT, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
    return false;
  if (cgroup_get(V2_ROOT, "cgroup.controllers", text, sizeof(text)))
    return false;
  bool memory = false, cpu = false, pids = false;
  struct str rest = str_of(text), word;
  while (rest.n > 0) {
    str_cut(rest, ' ', &word, &rest);
    memory |= str_is(word, "memory");
    cpu |= str_is(word, "cpu");
    pids |= str_is(word, "pids");
  }
  return memory && cpu && pids;
}

struct group {
  char path[PATH_MAX];
};

static const char *group_of(struct group *g, const char *instance, const char *id)
{
  if (id)
    snprintf(g->path, sizeof(g->path), V2_ROOT "/cloche-%s/%s", instance, id);
  else
    snprintf(g->path, sizeof(g->path), V2_ROOT "/cloche-%s", instance);
  return g->path;
}

static int v2_open(const char *instance, struct err *err)
{
  struct group g;
  cgroup_put(V2_ROOT, "cgroup.subtree_control", "+memory +cpu +pids"); /* systemd has often done it */
  cgroup_put(V2_ROOT, "cgroup.subtree_control", "+cpuset"); /* not everywhere: boxes then count the host's processors */
  if (mkdir(group_of(&g, instance, NULL), 0755) && errno != EEXIST)
    return err_errno(err, "making the control group %s", g.path);
  int r = cgroup_put(g.path, "cgroup.subtree_control", "+memory +cpu +pids");
  cgroup_put(g.path, "cgroup.subtree_control", "+cpuset");
  cgroup_adopt_cpus(&cgroup_v2, instance);
  char weight[16];
  snprintf(weight, sizeof(weight), "%d", MIN(100 * get_nprocs(), 10000));
  if (!r)
    r = cgroup_put(g.path, "cpu.weight", weight); /* one busy process of the host per core, not one for all boxes */
  return r ? err_set(err, r, "setting up %s: %s", g.path, strerrordesc_np(-r)) : 0;
}

static void v2_close(const char *instance)
{
  struct group g;
  rmdir(group_of(&g, instance, NULL));
}

static int set_text(const char *dir, const char *file, const char *text, struct err *err)
{
  int r = cgroup_put(dir, file, text);
  return r ? err_set(err, r, "setting %s/%s to %s: %s", dir, file, text, strerrordesc_np(-r)) : 0;
}

static int limit(const char *instance, const char *id, const char *dir, const struct jail_limits *l, struct err *err)
{
  char text[48];
  int r = 0;
  if (l->memory) {
    snprintf(text, sizeof(text), "%" PRIu64, l->memory);
    r = set_text(dir, "memory.max", text, err);
    if (!r)
      cgroup_put(dir, "memory.swap.max", "0"); /* absent where the kernel has no swap accounting */
  }
  if (!r && l->cpus) {
    snprintf(text, sizeof(text), "%" PRIu64 " 100000", (uint64_t)l->cpus * 100000);
    r = set_text(dir, "cpu.max", text, err);
    char list[CGROUP_CPUS_TEXT];
    int unbound = r ? r : cpu_share_take(instance, id, l->cpus, list);
    unbound = unbound ? unbound : cgroup_put(dir, "cpuset.cpus", list);
    if (!r && unbound && unbound != -ENOENT)
      r = err_set(err, unbound, "setting processors of %s: %s", dir, strerrordesc_np(-unbound));
  }
  if (!r && l->pids) {
    snprintf(text, sizeof(text), "%u", l->pids);
    r = set_text(dir, "pids.max", text, err);
  }
  return r;
}

static int v2_join(const char *instance, const char *id, struct cgroup_join *join, struct err *err)
{
  struct group g;
  group_of(&g, instance, id);
  join->into = open(g.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return join->into < 0 ? err_errno(err, "opening %s", g.path) : 0;
}

static int v2_make(const char *instance, const char *id, const struct jail_limits *limits, struct cgroup_join *join,
                   struct err *err)
{
  struct group g;
  group_of(&g, instance, id);
  if (mkdir(g.path, 0755) && errno != EEXIST)
    return err_errno(err, "making the control group %s", g.path);
  int r = v2_join(instance, id, join, err);
  return r ? r : limit(instance, id, g.path, limits, err);
}

static int v2_kill(const char *instance, const char *id)
{
  struct group g;
  int r = cgroup_put(group_of(&g, instance, id), "cgroup.kill", "1");
  return r == -ENOENT ? cgroup_kill_listed(g.path) : r; /* cgroup.kill came with 5.14 */
}

static int v2_remove(const char *instance, const char *id)
{
  struct group g;
  if (rmdir(group_of(&g, instance, id)) && errno != ENOENT)
    return -errno;
  cpu_share_release(instance, id);
  return 0;
}

static int v2_stat(const char *instance, const char *id, struct jail_stats *out, struct err *err)
{
  struct group g;
  uint64_t usage = 0;
  int r = cgroup_get_u64(group_of(&g, instance, id), "memory.current", &usage);
  if (r)
    return err_set(err, r, "no control group of box %s", id);
  if (cgroup_get_u64(g.path, "memory.max", &out->memory_limit))
    out->memory_limit = 0; /* "max" */
  /* Shared memory counts as file pages there, yet no one can take it back: it is use. */
  out->memory_cache = cgroup_get_key(g.path, "memory.stat", "file");
  out->memory_cache -= MIN(out->memory_cache, cgroup_get_key(g.path, "memory.stat", "shmem"));
  out->memory_used = usage > out->memory_cache ? usage - out->memory_cache : 0;
  out->oom_kills = cgroup_get_key(g.path, "memory.events", "oom_kill");
  out->cpu_usec = cgroup_get_key(g.path, "cpu.stat", "usage_usec");
  cgroup_get_u64(g.path, "pids.current", &out->pids);
  return 0;
}

static void v2_memory(const char *dir, struct cgroup_usage *u)
{
  char text[8192];
  cgroup_get_u64(dir, "memory.current", &u->used);
  if (cgroup_get(dir, "memory.stat", text, sizeof(text)))
    return;
  cgroup_memory_in(text, true, u);
}

static int v2_usage(const char *instance, const char *id, bool memory, struct cgroup_usage *u)
{
  struct group g;
  char text[1024];
  *u = (struct cgroup_usage){0};
  int r = cgroup_get(group_of(&g, instance, id), "cpu.stat", text, sizeof(text));
  if (r)
    return r;
  u->user_usec = cgroup_key_in(text, "user_usec");
  u->system_usec = cgroup_key_in(text, "system_usec");
  if (cgroup_get_u64(g.path, "memory.max", &u->limit))
    u->limit = 0; /* "max" */
  if (memory)
    v2_memory(g.path, u);
  cgroup_get_u64(g.path, "pids.current", &u->tasks);
  return 0;
}

static int v2_shown(const char *instance, const char *id, size_t which, char *dir, size_t size)
{
  struct group g;
  return which ? -ENOENT : str_copyz(str_of(group_of(&g, instance, id)), dir, size);
}

static int v2_cpus(const char *instance, const char *id, char *list, size_t size)
{
  struct group g;
  return cgroup_get(group_of(&g, instance, id), "cpuset.cpus.effective", list, size);
}

static int v2_freeze(const char *instance, const char *id, bool frozen, struct err *err)
{
  struct group g;
  int r = cgroup_put(group_of(&g, instance, id), "cgroup.freeze", frozen ? "1" : "0");
  for (int i = 0; !r && i < 2000; i++) {
    if (cgroup_get_key(g.path, "cgroup.events", "frozen") == (frozen ? 1 : 0))
      return 0;
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  }
  if (r)
    return err_set(err, r, "%s of box %s: %s", frozen ? "freezing" : "thawing", id, strerrordesc_np(-r));
  cgroup_put(g.path, "cgroup.freeze", "0");
  return err_set(err, -ETIMEDOUT, "box %s did not freeze within a second", id);
}

static int v2_freezer(const char *instance, const char *id, char *dir, size_t size)
{
  struct group g;
  return str_copyz(str_of(group_of(&g, instance, id)), dir, size);
}

static pid_t v2_any(const char *instance, const char *id)
{
  struct group g;
  return cgroup_first_listed(group_of(&g, instance, id));
}

static int v2_each(const char *instance, void (*seen)(const char *id, void *arg), void *arg)
{
  struct group g;
  return cgroup_each_dir(group_of(&g, instance, NULL), seen, arg);
}

const struct cgroup_ops cgroup_v2 = {
    .name = "v2",
    .born_inside = true,
    .unified = true,
    .usable = v2_usable,
    .open = v2_open,
    .close = v2_close,
    .make = v2_make,
    .join = v2_join,
    .kill = v2_kill,
    .remove = v2_remove,
    .stat = v2_stat,
    .usage = v2_usage,
    .shown = v2_shown,
    .cpus = v2_cpus,
    .freeze = v2_freeze,
    .freezer = v2_freezer,
    .any = v2_any,
    .each = v2_each,
};
