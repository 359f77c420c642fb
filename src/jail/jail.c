/* jail.c - the life of a box as the host sees it: birth, being found again, death, and what must not be left behind.
 *
 * Birth is one clone3 with all namespaces. Between it and the exec two processes work side by side: the child builds its
 * small mounts (child.c) while the parent writes the id maps, builds the overlay under them and hands it over. The
 * socket between them closes with the exec, which is how the parent knows that the box runs its program. */
#include "jail/jail.h"
#include "jail/cgroup.h"
#include "jail/child.h"
#include "jail/disk.h"
#include "jail/etc.h"
#include "jail/filter.h"
#include "jail/jail_inside.h"
#include "jail/jail_net.h"
#include "jail/layers.h"
#include "jail/pool.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#define BIRTH_TIMEOUT_MS 20000
#define DEATH_TIMEOUT_MS 5000
#define SHM_DEFAULT      ((uint64_t)64 << 20)
#define SHM_ZYGOTE       ((uint64_t)2 << 30) /* holds its whole heap */

/* --- checks --------------------------------------------------------------------------------------------------- */

static bool name_ok(const char *s)
{
  size_t n = s ? strlen(s) : 0;
  if (n == 0 || n > 64 || str_is(str_of(s), "tasks")) /* a file of every v1 group has that name */
    return false;
  for (; *s; s++)
    if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '-'))
      return false;
  return true;
}

static const struct cgroup_ops *groups(struct err *err)
{
  const struct cgroup_ops *ops = cgroup_host();
  if (!ops)
    err_set(err, -EOPNOTSUPP, "this host offers no control groups with memory, cpu and pids");
  return ops;
}

static int check_names(const char *instance, const char *id, struct err *err)
{
  if (!name_ok(instance) || !name_ok(id))
    return err_set(err, -EINVAL, "not a name for a box: %s/%s", instance ? instance : "", id ? id : "");
  return 0;
}

int jail_check_spec(const struct jail_spec *s, struct err *err)
{
  int r = check_names(s->instance, s->id, err);
  if (r)
    return r;
  if (!s->dir || s->dir[0] != '/' || !s->lowers || !s->argv || !s->argv[0] || s->argv[0][0] != '/' || !s->env)
    return err_set(err, -EINVAL, "box %s lacks a directory, layers or a program", s->id);
  if (!s->hostname || !*s->hostname || strlen(s->hostname) > HOST_NAME_MAX)
    return err_set(err, -EINVAL, "box %s has no hostname that fits", s->id);
  if (s->id_base < JAIL_IDS || s->id_base > UINT32_MAX - 2 * JAIL_IDS)
    return err_set(err, -EINVAL, "box %s: ids from %" PRIu32 " are not a range of their own", s->id, s->id_base);
  return 0;
}

/* --- birth ---------------------------------------------------------------------------------------------------- */

/* A user namespace belongs to whoever makes it, and its owner may enter it. Some limits (inotify instances, pending
 * signals) are counted per owner, too, all the way up: were the host's root the owner of every box, one box could use up
 * what all of them and the host itself have. So the owner is the box's own root unless the spec names another. The calling
 * thread alone changes its user for the moment of the clone; raw calls, because the C library's would change every
 * thread. */
static void own_as(uint32_t uid)
{
  if (syscall(SYS_setresuid, -1, uid, -1)) {
    log_error("a thread can't change its user");
    abort();
  }
  syscall(SYS_setfsuid, 0); /* CLONE_INTO_CGROUP asks for access to the group */
}

/* A copy of the daemon's memory for a process that is about to give it up costs more than all its namespaces. So the child
 * borrows the memory until its exec, as after vfork; a thread made for it lends its stack and its thread-local state and sleeps
 * meanwhile, so that the caller can do the parent's half. */
#define LENT_STACK 65536
#define LENT_FLAGS                                                                                                                                   \
  (CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD)
#ifdef __SANITIZE_ADDRESS__
#define LENDING false /* the sanitizer keeps books on stacks */
#else
#define LENDING true
#endif

struct lender {
  const struct child_plan *plan;
  uint32_t owner;
  int flags;
  pthread_t thread;
  sem_t begun; /* the child runs, or code says why not */
  pid_t pid;
  int code;
};

static int borrow(void *arg)
{
  struct lender *l = arg;
  sem_post(&l->begun);
  child_run(l->plan);
}

static void *lend(void *arg)
{
  struct lender *l = arg;
  _Alignas(16) char stack[LENT_STACK];
  own_as(l->owner);
  if (clone(borrow, stack + sizeof(stack), l->flags, l, &l->pid) < 0) {
    l->code = errno;
    sem_post(&l->begun);
  }
  return NULL;
}

/* Signals stay blocked in the thread and the child: no handler may run on lent memory. */
static int birth_lent(struct lender *l, int *pidfd, struct err *err)
{
  sigset_t all, before;
  sem_init(&l->begun, 0, 0);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&l->thread, NULL, lend, l);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code)
    return err_set(err, -code, "no thread for a box's first process: %s", strerrordesc_np(code));
  while (sem_wait(&l->begun) && errno == EINTR)
    ;
  int pid = l->code ? -l->code : l->pid;
  *pidfd = l->code ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
  if (*pidfd < 0) {
    code = l->code ? l->code : errno;
    if (!l->code)
      kill(pid, SIGKILL);
    pthread_join(l->thread, NULL);
    return err_set(err, -code, "cloning a box's first process: %s", strerrordesc_np(code));
  }
  return pid;
}

static int birth(const struct child_plan *plan, uint32_t owner, const struct cgroup_join *join, int *pidfd, struct err *err)
{
  struct clone_args args = {
      .flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
      .pidfd = (uint64_t)(uintptr_t)pidfd,
      .exit_signal = SIGCHLD,
  };
  /* A zygote stays in the host's pid namespace: only from an ancestor can its forks enter those of boxes. */
  if (!plan->run_as)
    args.flags |= CLONE_NEWUSER | CLONE_NEWPID;
  if (join->into >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = (uint64_t)join->into;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (owner)
    own_as(owner);
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0)
    child_run(plan);
  int saved = errno;
  if (owner)
    own_as(0);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = saved;
  return pid < 0 ? err_errno(err, "cloning a box's first process") : pid;
}

static int write_map(pid_t pid, const char *file, uint32_t base, struct err *err)
{
  char path[64], line[48];
  snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
  int n = snprintf(line, sizeof(line), "0 %" PRIu32 " %u\n", base, JAIL_IDS);
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, line, (size_t)n) != n)
    return err_errno(err, "writing %s", path);
  return 0;
}

int jail_open_ns(pid_t pid, const char *which, struct err *err)
{
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, which);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening %s", path) : fd;
}

static int tell(int sock, char what, const int *fds, size_t n, struct err *err)
{
  ssize_t k = fd_send(sock, &what, 1, fds, n, 0);
  return k < 0 ? err_set(err, (int)k, "talking to a new box: %s", strerrordesc_np((int)-k)) : 0;
}

/* End of file is the exec; a failure report is a death; silence is one too. */
static int await_exec(int sock, struct err *err)
{
  struct child_failure f = {0};
  struct pollfd p = {.fd = sock, .events = POLLIN};
  int ready;
  while ((ready = poll(&p, 1, BIRTH_TIMEOUT_MS)) < 0 && errno == EINTR)
    ;
  if (ready <= 0)
    return err_set(err, -ETIMEDOUT, "a new box did not start within %d ms", BIRTH_TIMEOUT_MS);
  ssize_t k = recv(sock, &f, sizeof(f), MSG_DONTWAIT);
  if (k == 0)
    return 0;
  if (k != (ssize_t)sizeof(f))
    return err_set(err, -EIO, "a new box sent %zd bytes where a report has %zu", k, sizeof(f));
  f.what[sizeof(f.what) - 1] = 0;
  return err_set(err, f.code > 0 ? -f.code : -EIO, "%s: %s", f.what, strerrordesc_np(f.code));
}

/* Groups that the child joins by itself are made while it is still being scheduled. */
static int make_groups(const struct jail_spec *spec, struct cgroup_join *join, struct err *err)
{
  return join->into >= 0 ? 0 : cgroup_host()->make(spec->instance, spec->id, &spec->limits, join, err);
}

/* A user namespace that is only a mapping: made by a process that ends at once. */
int jail_map_ns(uint32_t base, struct err *err)
{
  struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0)
    for (;;)
      pause();
  if (pid < 0)
    return err_errno(err, "cloning for a mapping of ids");
  int r = write_map(pid, "uid_map", base, err);
  if (!r)
    r = write_map(pid, "gid_map", base, err);
  int fd = r ? r : jail_open_ns(pid, "user", err);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  return fd;
}

static int make_root(const struct jail_spec *spec, pid_t pid, struct err *err)
{
  cleanup_fd int home = disk_open(spec->dir, &spec->limits, err);
  if (home < 0)
    return home;
  char gateway[INET_ADDRSTRLEN];
  struct in_addr a = {spec->net ? htonl(jail_net_gateway(spec->net->config)) : 0};
  inet_ntop(AF_INET, &a, gateway, sizeof(gateway));
  const char *nameserver = spec->nameserver ? spec->nameserver : spec->net ? gateway : NULL;
  int r = etc_write(home, spec->hostname, nameserver, err);
  cleanup_fd int userns = r ? r : spec->zygote ? jail_map_ns(spec->id_base, err) : jail_open_ns(pid, "user", err);
  if (userns < 0)
    return userns;
  struct layers l = {.dir = spec->dir, .lowers = spec->lowers, .home = home, .userns = userns, .root = spec->id_base, .shifted = spec->shifted};
  return layers_mount(&l, err);
}

static int attach_net(const struct jail_spec *spec, pid_t pid, struct err *err)
{
  cleanup_fd int netns = jail_open_ns(pid, "net", err);
  return netns < 0 ? netns : jail_net_attach(spec->net, netns, err);
}

/* A clone of the cache's mount with the box's ids, or -1 where there is none. */
static int make_cache(const struct jail_spec *spec, pid_t pid, int *out, struct err *err)
{
  if (!spec->cache)
    return 0;
  cleanup_fd int userns = jail_open_ns(pid, "user", err);
  cleanup_fd int tree = userns < 0 ? -1 : open_tree(spec->cache, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .userns_fd = (uint64_t)userns};
  if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "giving box %s its cache", spec->id);
  *out = steal_fd(&tree);
  return 0;
}

static int give_root(const struct jail_spec *spec, pid_t pid, int sock, struct err *err)
{
  cleanup_fd int root = make_root(spec, pid, err), cache = -1;
  int r = root < 0 ? root : make_cache(spec, pid, &cache, err);
  return r ? r : tell(sock, CHILD_ROOT, (const int[]){root, cache}, cache >= 0 ? 2 : 1, err);
}

/* The parent's half of a birth. A child that died early has said why; its words are better than our EPIPE. */
static int raise_child(const struct jail_spec *spec, pid_t pid, int sock, struct cgroup_join *join, struct err *err)
{
  int r = spec->zygote ? 0 : write_map(pid, "uid_map", spec->id_base, err);
  if (!r && !spec->zygote)
    r = write_map(pid, "gid_map", spec->id_base, err);
  if (!r)
    r = make_groups(spec, join, err);
  if (!r)
    r = tell(sock, CHILD_MAPPED, join->fds, join->n, err);
  if (!r && spec->net)
    r = attach_net(spec, pid, err);
  if (!r)
    r = give_root(spec, pid, sock, err);
  if (r && r != -EPIPE && r != -ECONNRESET && r != -ESRCH)
    return r;
  int told = await_exec(sock, err);
  if (!told && !r && !spec->zygote && (r = child_favour(pid, true)))
    err_set(err, r, "giving the agent of box %s its share of the processors: %s", spec->id, strerrordesc_np(-r));
  return told ? told : r;
}

static void reap(int pidfd)
{
  siginfo_t si;
  while (waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED | __WALL) < 0 && errno == EINTR)
    ;
}

static int spawn(const struct jail_spec *spec, struct cgroup_join *join, struct jail *out, struct err *err)
{
  const struct sock_fprog *filter = filter_get(spec->nesting, err);
  int pair[2];
  if (!filter)
    return -EINVAL;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(err, "making a socket pair");
  cleanup_fd int ours = pair[0], theirs = pair[1];
  struct child_plan plan = {
      .sock = theirs,
      .boot_fd = spec->boot_fd,
      .hostname = spec->hostname,
      .argv = spec->argv,
      .env = spec->env,
      .console = spec->console,
      .filter = filter,
      .open_files = spec->limits.open_files,
      .shm = spec->zygote          ? SHM_ZYGOTE
             : spec->limits.memory ? spec->limits.memory / 2
                                   : SHM_DEFAULT,
      .run_as = spec->zygote ? spec->id_base : 0,
  };
  cleanup_fd int pidfd = -1;
  uint32_t owner = spec->zygote ? 0 : spec->owner ? spec->owner : spec->id_base;
  struct lender lender = {.plan = &plan, .owner = owner, .flags = LENT_FLAGS};
  bool lent = LENDING && owner && join->into < 0; /* a group to be born into is a matter of clone3 */
  pid_t pid = lent ? birth_lent(&lender, &pidfd, err) : birth(&plan, owner, join, &pidfd, err);
  if (pid < 0)
    return pid;
  close(theirs);
  theirs = -1;
  int r = raise_child(spec, pid, ours, join, err);
  if (r)
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
  if (lent) /* awake again: the child has its own memory now, or none */
    pthread_join(lender.thread, NULL);
  cleanup_fd int netns = r ? -1 : jail_open_ns(pid, "net", err);
  if (!r && netns < 0)
    r = netns;
  if (!r && (r = proc_start_time(pid, &out->init.start)))
    err_set(err, r, "box %s died at birth", spec->id);
  if (r) {
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    reap(pidfd);
    return r;
  }
  out->init.pid = pid;
  out->pidfd = steal_fd(&pidfd);
  out->netns = steal_fd(&netns);
  return 0;
}

int jail_spawn(const struct jail_spec *spec, struct jail *out, struct err *err)
{
  *out = JAIL_NONE;
  const struct cgroup_ops *ops = groups(err);
  cleanup_join struct cgroup_join join = CGROUP_JOIN_NONE;
  if (!ops)
    return -EOPNOTSUPP;
  int r = jail_check_spec(spec, err);
  if (r)
    return r;
  if (ops->born_inside)
    r = ops->make(spec->instance, spec->id, &spec->limits, &join, err);
  if (!r)
    r = spawn(spec, &join, out, err);
  if (r)
    jail_remove(spec->instance, spec->id, spec->keep_dir ? NULL : spec->dir, NULL);
  return r;
}

/* --- entering ------------------------------------------------------------------------------------------------- */

static int filter_file(bool nesting, struct err *err)
{
  const struct sock_fprog *filter = filter_get(nesting, err);
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

void jail_kit_close(struct jail_kit *kit)
{
  while (kit->n > 0)
    close(kit->fds[--kit->n]);
}

int jail_kit(const struct jail_spec *spec, const struct jail *j, struct jail_kit *kit, struct err *err)
{
  kit->n = 0;
  const struct cgroup_ops *ops = groups(err);
  cleanup_join struct cgroup_join join = CGROUP_JOIN_NONE;
  if (!ops)
    return -EOPNOTSUPP;
  int r = ops->join(spec->instance, spec->id, &join, err); /* not made: the box may be gone by now */
  if (r)
    return r;
  int pidfd = fcntl(j->pidfd, F_DUPFD_CLOEXEC, 3), filter = filter_file(spec->nesting, err);
  kit->fds[kit->n++] = pidfd;
  kit->fds[kit->n++] = filter;
  for (size_t i = 0; i < join.n; i++) {
    kit->fds[kit->n++] = join.fds[i];
    join.fds[i] = -1;
  }
  join.n = 0;
  if (join.into >= 0)
    kit->fds[kit->n++] = openat(join.into, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  for (size_t i = 0; i < kit->n; i++)
    if (kit->fds[i] < 0)
      r = err_errno(err, "opening the way into box %s", spec->id);
  if (r)
    jail_kit_close(kit);
  return r;
}

int jail_adopt(const char *instance, const char *id, struct proc_id init, struct jail *out, struct err *err)
{
  *out = JAIL_NONE;
  int r = check_names(instance, id, err);
  if (r)
    return r;
  cleanup_fd int pidfd = proc_open(init);
  if (pidfd < 0)
    return err_set(err, -ESRCH, "box %s is gone", id);
  cleanup_fd int netns = jail_open_ns(init.pid, "net", NULL);
  if (netns < 0)
    return err_set(err, -ESRCH, "box %s is going", id);
  *out = (struct jail){.init = init, .pidfd = steal_fd(&pidfd), .netns = steal_fd(&netns)};
  return 0;
}

/* --- death ---------------------------------------------------------------------------------------------------- */

/* The end of pid 1 ends its whole pid namespace, in the kernel and at once. A frozen box hears no signal, so it is
 * thawed behind it: the kill is already pending and no instruction of the box runs any more. */
int jail_kill(const char *instance, const char *id, const struct jail *j, struct err *err)
{
  const struct cgroup_ops *ops = groups(err);
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

static int remove_groups(const struct cgroup_ops *ops, const char *instance, const char *id, struct err *err)
{
  int64_t deadline = clock_mono_us() + DEATH_TIMEOUT_MS * 1000;
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
  const struct cgroup_ops *ops = groups(err);
  int r = check_names(instance, id, err);
  if (!ops || r)
    return ops ? r : -EOPNOTSUPP;
  r = remove_groups(ops, instance, id, err);
  if (r || !dir)
    return r;
  pool_return(dir);
  r = path_remove_tree(AT_FDCWD, dir);
  return r && r != -ENOENT ? err_set(err, r, "removing %s: %s", dir, strerrordesc_np(-r)) : 0;
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

/* --- figures -------------------------------------------------------------------------------------------------- */

/* The overlay answers for the filesystem below its upper directory. Seen through a process of the box where one lives:
 * its image is mounted nowhere else. */
static void stat_disk(pid_t pid, const char *dir, struct jail_stats *out)
{
  struct statfs fs;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/root", pid);
  if ((pid <= 0 || statfs(path, &fs)) && (!dir || statfs(dir, &fs)))
    return;
  out->disk_limit = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
  out->disk_used = ((uint64_t)fs.f_blocks - (uint64_t)fs.f_bfree) * (uint64_t)fs.f_bsize;
}

int jail_stat(const char *instance, const char *id, const char *dir, struct jail_stats *out, struct err *err)
{
  *out = (struct jail_stats){0};
  const struct cgroup_ops *ops = groups(err);
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
    _exit(setns(j->pidfd, CLONE_NEWNS) ? 2 : umount2(JAIL_CACHE, MNT_DETACH | UMOUNT_NOFOLLOW) && errno != EINVAL && errno != ENOENT ? 1 : 0);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
    return err_set(err, -EPERM, "the box's " JAIL_CACHE " can't be taken away");
  return 0;
}

int jail_freeze(const char *instance, const char *id, bool frozen, struct err *err)
{
  const struct cgroup_ops *ops = groups(err);
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
  int r = remove_groups(s->ops, s->instance, id, NULL);
  if (r)
    s->failed = r;
}

int jail_sweep(const char *instance, bool (*known)(const char *id, void *arg), void *arg, struct err *err)
{
  struct sweep s = {.instance = instance, .ops = groups(err), .known = known, .arg = arg};
  int r = check_names(instance, "x", err);
  if (!s.ops || r)
    return s.ops ? r : -EOPNOTSUPP;
  r = s.ops->each(instance, sweep_one, &s);
  r = r ? r : s.failed;
  return r ? err_set(err, r, "sweeping %s: %s", instance, strerrordesc_np(-r)) : 0;
}

int jail_instance_open(const char *instance, struct err *err)
{
  const struct cgroup_ops *ops = groups(err);
  int r = check_names(instance, "x", err);
  if (!ops || r)
    return ops ? r : -EOPNOTSUPP;
  return ops->open(instance, err);
}

void jail_instance_close(const char *instance)
{
  const struct cgroup_ops *ops = cgroup_host();
  pool_close();
  if (ops && name_ok(instance))
    ops->close(instance);
}
