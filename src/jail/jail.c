/* SPDX-License-Identifier: Apache-2.0 */
/* jail.c - the life of a box as the host sees it, after its launch (jail_spawn.c): being found again, death, and what
 * must not be left behind. */
#include "jail/jail.h"
#include "jail/cgroup.h"
#include "jail/jail_child.h"
#include "jail/fs/disk.h"
#include "jail/fs/etc_files.h"
#include "jail/seccomp_filter.h"
#include "jail/jail_internal.h"
#include "jail/net/jail_net.h"
#include "jail/fs/overlay.h"
#include "jail/fs/disk_pool.h"
#include "jail/view_server.h"
#include "jail/volume_mount.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#define DEATH_TIMEOUT_MS 5000

/* --- checks --------------------------------------------------------------------------------------------------- */

static bool name_ok(const char *s)
{
  size_t n = s ? strlen(s) : 0;
  if (n == 0 || n > JAIL_NAME_MAX || str_is(str_of(s), "tasks")) /* a file of every v1 group has that name */
    return false;
  for (; *s; s++)
    if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '-'))
      return false;
  return true;
}

const struct cgroup_ops *jail_groups(struct err *err)
{
  const struct cgroup_ops *ops = cgroup_host();
  if (!ops)
    err_set(err, -EOPNOTSUPP, "this host offers no control groups with memory, cpu and pids");
  return ops;
}

static int check_names(const char *instance, const char *id, struct err *err)
{
  if (!name_ok(instance) || !name_ok(id))
    return err_set(err, -EINVAL, "invalid box name: %s/%s", instance ? instance : "", id ? id : "");
  return 0;
}

int jail_check_namespaces(const struct jail_spec *s, struct err *err)
{
  int r = check_names(s->instance, s->id, err);
  if (r)
    return r;
  if (!s->hostname || !*s->hostname || strlen(s->hostname) > HOST_NAME_MAX)
    return err_set(err, -EINVAL, "box %s: its hostname is missing or too long", s->id);
  if (s->id_base < JAIL_IDS || s->id_base > UINT32_MAX - 2 * JAIL_IDS)
    return err_set(err, -EINVAL, "box %s: ids from %" PRIu32 " are not a valid range", s->id, s->id_base);
  return 0;
}

int jail_check_spec(const struct jail_spec *s, struct err *err)
{
  int r = jail_check_namespaces(s, err);
  if (r)
    return r;
  if (!s->dir || s->dir[0] != '/' || !s->lowers || !s->argv || !s->argv[0] || s->argv[0][0] != '/' || !s->env)
    return err_set(err, -EINVAL, "box %s lacks a directory, layers or a program", s->id);
  return 0;
}

/* --- entering ------------------------------------------------------------------------------------------------- */

static int filter_file(struct err *err)
{
  const struct sock_fprog *filter = filter_get(err);
  if (!filter)
    return -EINVAL;
  cleanup_fd int fd = memfd_create("filter", MFD_CLOEXEC);
  size_t n = filter->len * sizeof(*filter->filter);
  if (fd < 0 || fd_write_all(fd, filter->filter, n) || lseek(fd, 0, SEEK_SET))
    return err_errno(err, "writing the filter");
  return steal_fd(&fd);
}

uint64_t jail_capabilities(void)
{
  return child_capabilities();
}

void jail_enter_fds_close(struct jail_enter_fds *enter_fds)
{
  while (enter_fds->n > 0)
    close(enter_fds->fds[--enter_fds->n]);
}

int jail_enter_fds(const struct jail_spec *spec, const struct jail *j, struct jail_enter_fds *enter_fds,
                   struct err *err)
{
  enter_fds->n = 0;
  const struct cgroup_ops *ops = jail_groups(err);
  cleanup_join struct cgroup_join join = CGROUP_JOIN_NONE;
  if (!ops)
    return -EOPNOTSUPP;
  int r = ops->join(spec->instance, spec->id, &join, err); /* not made: the box may be gone by now */
  if (r)
    return r;
  int pidfd = fcntl(j->pidfd, F_DUPFD_CLOEXEC, 3), filter = filter_file(err);
  enter_fds->fds[enter_fds->n++] = pidfd;
  enter_fds->fds[enter_fds->n++] = filter;
  for (size_t i = 0; i < join.n; i++) {
    enter_fds->fds[enter_fds->n++] = join.fds[i];
    join.fds[i] = -1;
  }
  join.n = 0;
  if (join.into >= 0)
    enter_fds->fds[enter_fds->n++] = openat(join.into, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  for (size_t i = 0; i < enter_fds->n; i++)
    if (enter_fds->fds[i] < 0)
      r = err_errno(err, "opening descriptors to enter box %s", spec->id);
  if (r)
    jail_enter_fds_close(enter_fds);
  return r;
}

uint32_t jail_owner(const struct jail *j)
{
  uid_t uid = 0;
  cleanup_fd int fd = jail_open_ns(j->init.pid, "user", NULL);
  return fd < 0 || ioctl(fd, NS_GET_OWNER_UID, &uid) ? 0 : uid;
}

int jail_adopt(const char *instance, const char *id, struct proc_id init, struct jail *out, struct err *err)
{
  *out = JAIL_NONE;
  int r = check_names(instance, id, err);
  if (r)
    return r;
  cleanup_fd int pidfd = proc_open(init);
  if (pidfd < 0)
    return err_set(err, -ESRCH, "box %s does not exist any more", id);
  cleanup_fd int netns = jail_open_ns(init.pid, "net", NULL);
  if (netns < 0)
    return err_set(err, -ESRCH, "box %s is being removed", id);
  view_adopt(instance, id, init.pid);
  *out = (struct jail){.init = init, .pidfd = steal_fd(&pidfd), .netns = steal_fd(&netns)};
  return 0;
}

/* --- death ---------------------------------------------------------------------------------------------------- */

void jail_kill_init(const struct jail *j)
{
  if (j->pidfd >= 0)
    syscall(SYS_pidfd_send_signal, j->pidfd, SIGKILL, NULL, 0);
}

/* The end of pid 1 ends its whole pid namespace, in the kernel and at once. A frozen box hears no signal, so it is
 * thawed behind it: the kill is already pending and no instruction of the box runs any more. */
int jail_kill(const char *instance, const char *id, const struct jail *j, struct err *err)
{
  const struct cgroup_ops *ops = jail_groups(err);
  int r = check_names(instance, id, err);
  if (!ops || r)
    return ops ? r : -EOPNOTSUPP;
  if (j && j->pidfd >= 0 && syscall(SYS_pidfd_send_signal, j->pidfd, SIGKILL, NULL, 0) && errno != ESRCH)
    r = err_errno(err, "killing box %s", id);
  ops->kill(instance, id);
  ops->freeze(instance, id, false, NULL);
  return r;
}

static void rest(long us)
{
  nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int remove_groups(const struct cgroup_ops *ops, const char *instance, const char *id, int wait_ms,
                         struct err *err)
{
  int64_t deadline = clock_mono_us() + wait_ms * 1000;
  long pause = 100;
  int r;
  while ((r = ops->remove(instance, id)) == -EBUSY && clock_mono_us() < deadline) {
    rest(pause);
    pause = MIN(pause * 2, 10000L);
  }
  return r ? err_set(err, r, "removing the control groups of box %s: %s", id, strerrordesc_np(-r)) : 0;
}

int jail_remove(const char *instance, const char *id, const char *dir, struct err *err)
{
  int r = jail_remove_within(instance, id, dir, DEATH_TIMEOUT_MS, err);
  return r == -EAGAIN ? -EBUSY : r;
}

int jail_remove_within(const char *instance, const char *id, const char *dir, int wait_ms, struct err *err)
{
  const struct cgroup_ops *ops = jail_groups(err);
  int r = check_names(instance, id, err);
  if (!ops || r)
    return ops ? r : -EOPNOTSUPP;
  view_forget(instance, id);
  r = remove_groups(ops, instance, id, wait_ms, err);
  if (r || !dir)
    return r == -EBUSY ? -EAGAIN : r;
  disk_pool_return(dir);
  r = path_remove_tree(AT_FDCWD, dir);
  return r && r != -ENOENT ? err_set(err, r, "removing %s: %s", dir, strerrordesc_np(-r)) : 0;
}

int jail_sync(const char *dir, struct err *err)
{
  return disk_sync(dir, err);
}

int jail_wait(const struct jail *j, int timeout_ms, int *status)
{
  struct pollfd p = {.fd = j->pidfd, .events = POLLIN};
  int ready;
  while ((ready = poll(&p, 1, timeout_ms)) < 0 && errno == EINTR)
    ;
  if (ready <= 0)
    return -ETIMEDOUT;
  siginfo_t si = {0};
  *status = -1;
  if (waitid(P_PIDFD, (id_t)j->pidfd, &si, WEXITED | WNOHANG | __WALL) == 0 && si.si_pid)
    *status = si.si_code == CLD_EXITED ? si.si_status : 128 + si.si_status;
  return 0;
}

void jail_close(struct jail *j)
{
  int status;
  if (j->pidfd >= 0) {
    jail_wait(j, 0, &status);
    close(j->pidfd);
  }
  if (j->netns >= 0)
    close(j->netns);
  *j = JAIL_NONE;
}

/* --- statistics ----------------------------------------------------------------------------------------------- */

/* The overlay answers for the filesystem below its upper directory. Seen through a process of the box where one lives:
 * its image is mounted nowhere else. */
static void stat_disk(pid_t pid, const char *dir, struct jail_stats *out)
{
  struct statfs fs;
  char path[PROC_PATH];
  snprintf(path, sizeof(path), "/proc/%d/root", pid);
  if ((pid <= 0 || statfs(path, &fs)) && (!dir || statfs(dir, &fs)))
    return;
  out->disk_limit = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
  out->disk_used = ((uint64_t)fs.f_blocks - (uint64_t)fs.f_bfree) * (uint64_t)fs.f_bsize;
}

int jail_stat(const char *instance, const char *id, const char *dir, struct jail_stats *out, struct err *err)
{
  *out = (struct jail_stats){0};
  const struct cgroup_ops *ops = jail_groups(err);
  int r = check_names(instance, id, err);
  if (!ops || r)
    return ops ? r : -EOPNOTSUPP;
  r = ops->stat(instance, id, out, err);
  if (!r)
    stat_disk(ops->any(instance, id), dir, out);
  return r;
}

int jail_uncache(const struct jail *j, struct err *err)
{
  int status = 0;
  pid_t pid = fork();
  if (pid == 0)
    _exit(setns(j->pidfd, CLONE_NEWNS)                                                              ? 2
          : umount2(JAIL_CACHE, MNT_DETACH | UMOUNT_NOFOLLOW) && errno != EINVAL && errno != ENOENT ? 1
                                                                                                    : 0);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
    return err_set(err, -EPERM, "the box's " JAIL_CACHE " can't be removed");
  return 0;
}

int jail_mount_volumes(const struct jail_spec *spec, const struct jail *j, struct err *err)
{
  return volume_mounts_attach(spec, j->pidfd, err);
}

int jail_volume_readonly(const struct volume_place *p, const char *id, struct proc_id init, bool readonly,
                         struct err *err)
{
  return volume_mount_set_readonly(p, id, init, readonly, err);
}

int jail_freeze(const char *instance, const char *id, bool frozen, struct err *err)
{
  const struct cgroup_ops *ops = jail_groups(err);
  int r = check_names(instance, id, err);
  if (!ops || r)
    return ops ? r : -EOPNOTSUPP;
  return ops->freeze(instance, id, frozen, err);
}

/* --- the instance --------------------------------------------------------------------------------------------- */

struct sweep {
  const char *instance;
  const struct cgroup_ops *ops;
  bool (*known)(const char *id, void *arg);
  void *arg;
  int failed;
};

static void sweep_one(const char *id, void *arg)
{
  struct sweep *s = arg;
  if (!name_ok(id) || s->known(id, s->arg))
    return;
  s->ops->kill(s->instance, id);
  s->ops->freeze(s->instance, id, false, NULL);
  int r = remove_groups(s->ops, s->instance, id, DEATH_TIMEOUT_MS, NULL);
  if (r)
    s->failed = r;
}

int jail_sweep(const char *instance, bool (*known)(const char *id, void *arg), void *arg, struct err *err)
{
  struct sweep s = {.instance = instance, .ops = jail_groups(err), .known = known, .arg = arg};
  int r = check_names(instance, "x", err);
  if (!s.ops || r)
    return s.ops ? r : -EOPNOTSUPP;
  r = s.ops->each(instance, sweep_one, &s);
  r = r ? r : s.failed;
  return r ? err_set(err, r, "sweeping %s: %s", instance, strerrordesc_np(-r)) : 0;
}

/* What a user namespace allows its owner of these is what its maker had when it was made. Boxes of one zygote have one
 * owner, so a limit there would be one for all of them; each has its own inside (jail_child.c). */
static void lift_owner_limits(void)
{
  static const int counted[] = {RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING, RLIMIT_MEMLOCK, RLIMIT_NPROC};
  const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  bool shared = false;
  for (size_t i = 0; i < ARRAY_LEN(counted); i++)
    shared |= setrlimit((__rlimit_resource_t)counted[i], &none) != 0;
  if (shared)
    log_warn("boxes share the daemon's limits of message queues and pending signals: %s; give it CAP_SYS_RESOURCE or "
             "start it with these limits unlimited",
             strerror(errno));
}

int jail_instance_open(const char *instance, struct err *err)
{
  const struct cgroup_ops *ops = jail_groups(err);
  int r = check_names(instance, "x", err);
  if (!ops || r)
    return ops ? r : -EOPNOTSUPP;
  lift_owner_limits();
  return ops->open(instance, err);
}

void jail_instance_close(const char *instance)
{
  const struct cgroup_ops *ops = cgroup_host();
  disk_pool_close();
  if (ops && name_ok(instance))
    ops->close(instance);
}
