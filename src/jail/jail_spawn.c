/* SPDX-License-Identifier: Apache-2.0 */
/* jail_spawn.c - the launch of a box, in two halves.
 *
 * The first half (jail_create) is one clone with all namespaces, the id maps, the control groups and the link to the
 * outside: a created jail, which waits for its root and knows nothing yet of layers, files or a program. Meanwhile its
 * process builds its small mounts (jail_child.c). The second half (jail_start) builds the overlay under the id maps and
 * hands it over with all that is left to know. The socket between the two processes closes with the exec, which is how
 * the parent knows that the box runs its program; a parent that is gone is how a created jail knows that it is over. */
#include "jail/boot_id.h"
#include "jail/cgroup.h"
#include "jail/jail_child.h"
#include "jail/fs/disk.h"
#include "jail/fs/etc_files.h"
#include "jail/seccomp_filter.h"
#include "jail/jail.h"
#include "jail/jail_internal.h"
#include "jail/net/jail_net.h"
#include "jail/fs/overlay.h"
#include "jail/view_server.h"
#include "jail/vm_files.h"
#include "jail/volume_mount.h"

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
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define LAUNCH_TIMEOUT_MS 20000
#define SHM_DEFAULT       ((uint64_t)64 << 20)
#define SHM_ZYGOTE        ((uint64_t)2 << 30) /* holds its whole heap */

/* --- the clone ------------------------------------------------------------------------------------------------ */

/* A user namespace belongs to whoever makes it, and its owner may enter it. Some limits (inotify instances, pending
 * signals) are counted per owner, too, all the way up: were the host's root the owner of every box, one box could use
 * up what all of them and the host itself have. So the owner is the box's own root unless the spec names another. The
 * calling thread alone changes its user for the moment of the clone; raw calls, because the C library's would change
 * every thread. */
static void own_as(uint32_t uid)
{
  if (syscall(SYS_setresuid, -1, uid, -1)) {
    log_error("changing the user of a thread failed");
    abort();
  }
  proc_hide();              /* the change of user may have undone it */
  syscall(SYS_setfsuid, 0); /* CLONE_INTO_CGROUP asks for access to the group */
}

/* A copy of the daemon's memory for a process that is about to give it up costs more than all its namespaces. So the
 * child borrows the memory until its exec, as after vfork; a thread made for it lends its stack and its thread-local
 * state and sleeps meanwhile, so that the caller can do the parent's half. */
#define LENT_STACK 65536
#define LENT_FLAGS                                                                                                     \
  (CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |           \
   CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD)
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
static int clone_lent(struct lender *l, int *pidfd, struct err *err)
{
  sigset_t all, before;
  sem_init(&l->begun, 0, 0);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&l->thread, NULL, lend, l);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code)
    return err_set(err, -code, "creating a thread for a box's first process: %s", strerrordesc_np(code));
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

static int clone_child(const struct child_plan *plan, uint32_t owner, const struct cgroup_join *join, int *pidfd,
                       struct err *err)
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

/* --- the first half ------------------------------------------------------------------------------------------- */

struct jail_created {
  struct child_plan plan; /* read by the child, which may borrow this memory */
  struct lender lender;
  struct cgroup_join join;
  char instance[JAIL_NAME_MAX + 1], id[JAIL_NAME_MAX + 1], hostname[HOST_NAME_MAX + 1];
  pid_t pid;
  int pidfd, sock;
  bool lent, zygote;
};

static int write_map(pid_t pid, const char *file, uint32_t inside, uint32_t base, struct err *err)
{
  char path[PROC_PATH], line[48];
  snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
  int n = snprintf(line, sizeof(line), "%" PRIu32 " %" PRIu32 " %u\n", inside, base, JAIL_IDS);
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, line, (size_t)n) != n)
    return err_errno(err, "writing %s", path);
  return 0;
}

int jail_open_ns(pid_t pid, const char *which, struct err *err)
{
  char path[PROC_PATH];
  snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, which);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "opening %s", path) : fd;
}

/* It has all of the daemon's descriptors, so it must not outlive a daemon that is killed in this very moment. */
static _Noreturn void wait_as_mapping(pid_t parent)
{
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent)
    _exit(1);
  for (;;)
    pause();
}

/* A user namespace that is only a mapping: made by a process that ends at once. */
int jail_map_ns(uint32_t base, struct err *err)
{
  return jail_map_ns_from(0, base, err);
}

int jail_map_ns_from(uint32_t inside, uint32_t base, struct err *err)
{
  struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  pid_t ours = getpid(), pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0)
    wait_as_mapping(ours);
  if (pid < 0)
    return err_errno(err, "cloning a process for an id mapping");
  int r = write_map(pid, "uid_map", inside, base, err);
  if (!r)
    r = write_map(pid, "gid_map", inside, base, err);
  int fd = r ? r : jail_open_ns(pid, "user", err);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  return fd;
}

static int tell(int sock, const void *what, size_t n, const int *fds, size_t nfds, struct err *err)
{
  ssize_t k = fd_send(sock, what, n, fds, nfds, 0);
  return k < 0 ? err_set(err, (int)k, "sending to the first process of a box: %s", strerrordesc_np((int)-k)) : 0;
}

/* End of file is the exec; a failure report is a death; silence is one too. */
static int await_exec(int sock, struct err *err)
{
  struct child_failure f = {0};
  struct pollfd p = {.fd = sock, .events = POLLIN};
  int ready;
  while ((ready = poll(&p, 1, LAUNCH_TIMEOUT_MS)) < 0 && errno == EINTR)
    ;
  if (ready <= 0)
    return err_set(err, -ETIMEDOUT, "a new box did not start within %d ms", LAUNCH_TIMEOUT_MS);
  ssize_t k = recv(sock, &f, sizeof(f), MSG_DONTWAIT);
  if (k == 0)
    return 0;
  if (k != (ssize_t)sizeof(f))
    return err_set(err, -EIO, "the first process of a box sent %zd bytes, a report has %zu", k, sizeof(f));
  f.what[sizeof(f.what) - 1] = 0;
  return err_set(err, f.code > 0 ? -f.code : -EIO, "%s: %s", f.what, strerrordesc_np(f.code));
}

/* A child that died early has said why; its words are better than our EPIPE. */
static int report_failure(const struct jail_created *b, int r, struct err *err)
{
  if (r != -EPIPE && r != -ECONNRESET && r != -ESRCH)
    return r;
  int told = await_exec(b->sock, err);
  return told ? told : r;
}

/* Groups that the child joins by itself are made while it is still being scheduled. */
static int make_groups(const struct jail_spec *spec, struct cgroup_join *join, struct err *err)
{
  return join->into >= 0 ? 0 : cgroup_host()->make(spec->instance, spec->id, &spec->limits, join, err);
}

static int attach_net(const struct jail_spec *spec, pid_t pid, struct err *err)
{
  cleanup_fd int netns = jail_open_ns(pid, "net", err);
  return netns < 0 ? netns : jail_net_attach(spec->net, netns, err);
}

/* A daemon that is protected from the OOM killer hands that down as the floor to which a box's root could return. Only
 * a writer with CAP_SYS_RESOURCE on the host moves the floor. EACCES: it is above zero already. */
static int raise_oom_floor(pid_t pid, struct err *err)
{
  char path[PROC_PATH];
  snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  return fd < 0 || (write(fd, "0", 1) != 1 && errno != EACCES) ? err_errno(err, "writing %s", path) : 0;
}

static int create_namespaces(const struct jail_spec *spec, struct jail_created *b, struct err *err)
{
  int r = spec->zygote ? 0 : raise_oom_floor(b->pid, err);
  if (!r && !spec->zygote)
    r = write_map(b->pid, "uid_map", 0, spec->id_base, err);
  if (!r && !spec->zygote)
    r = write_map(b->pid, "gid_map", 0, spec->id_base, err);
  if (!r)
    r = make_groups(spec, &b->join, err);
  if (!r)
    r = tell(b->sock, &(char){CHILD_MAPPED}, 1, b->join.fds, b->join.n, err);
  if (!r && spec->net)
    r = attach_net(spec, b->pid, err);
  return r;
}

static void plan_child(const struct jail_spec *spec, struct jail_created *b, const struct sock_fprog *filter, int sock)
{
  b->plan = (struct child_plan){
      .sock = sock,
      .hostname = b->hostname,
      .filter = filter,
      .shm = spec->zygote          ? SHM_ZYGOTE
             : spec->limits.memory ? spec->limits.memory / 2
                                   : SHM_DEFAULT,
      .vm = spec->vm != NULL,
      .run_as = spec->zygote ? spec->id_base : 0,
  };
}

static int begin_child(const struct jail_spec *spec, struct jail_created *b, struct err *err)
{
  const struct sock_fprog *filter = spec->zygote ? filter_zygote(err) : spec->vm ? filter_vm(err) : filter_get(err);
  int pair[2];
  if (!filter)
    return -EINVAL;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(err, "making a socket pair");
  b->sock = pair[0];
  cleanup_fd int theirs = pair[1];
  plan_child(spec, b, filter, theirs);
  uint32_t owner = spec->zygote ? 0 : spec->owner ? spec->owner : spec->id_base;
  b->lender = (struct lender){.plan = &b->plan, .owner = owner, .flags = LENT_FLAGS};
  b->lent = LENDING && owner && b->join.into < 0; /* a control group to start in is a matter of clone3 */
  b->pid = b->lent ? clone_lent(&b->lender, &b->pidfd, err) : clone_child(&b->plan, owner, &b->join, &b->pidfd, err);
  return MIN(b->pid, 0);
}

static void reap(int pidfd)
{
  siginfo_t si;
  while (waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED | __WALL) < 0 && errno == EINTR)
    ;
}

/* What is left when the child is over, or has its own life. */
static void created_end(struct jail_created *b, bool killed)
{
  if (killed && b->pidfd >= 0)
    syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
  if (b->lent && b->pid > 0) /* awake again: the child has its own memory now, or none */
    pthread_join(b->lender.thread, NULL);
  if (killed && b->pidfd >= 0)
    reap(b->pidfd);
  cgroup_join_close(&b->join);
  if (b->pidfd >= 0)
    close(b->pidfd);
  if (b->sock >= 0)
    close(b->sock);
  free(b);
}

void jail_created_free(struct jail_created *b)
{
  char instance[sizeof(b->instance)], id[sizeof(b->id)];
  if (!b)
    return;
  memcpy(instance, b->instance, sizeof(instance));
  memcpy(id, b->id, sizeof(id));
  created_end(b, true);
  jail_remove(instance, id, NULL, NULL);
}

int jail_create(const struct jail_spec *spec, struct jail_created **out, struct err *err)
{
  const struct cgroup_ops *ops = jail_groups(err);
  int r = ops ? jail_check_namespaces(spec, err) : -EOPNOTSUPP;
  if (r)
    return r;
  struct jail_created *b = xcalloc(1, sizeof(*b));
  b->pidfd = b->sock = -1;
  b->join = CGROUP_JOIN_NONE;
  snprintf(b->instance, sizeof(b->instance), "%s", spec->instance);
  snprintf(b->id, sizeof(b->id), "%s", spec->id);
  snprintf(b->hostname, sizeof(b->hostname), "%s", spec->hostname);
  if (ops->born_inside)
    r = ops->make(spec->instance, spec->id, &spec->limits, &b->join, err);
  r = r ? r : begin_child(spec, b, err);
  if (!r)
    r = report_failure(b, create_namespaces(spec, b, err), err);
  if (r)
    jail_created_free(b);
  else
    *out = b;
  return r;
}

/* --- the second half ------------------------------------------------------------------------------------------ */

static int make_root(const struct jail_spec *spec, pid_t pid, struct overlay_spent *spent, struct err *err)
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
  struct overlay_layers l = {.dir = spec->dir,
                             .lowers = spec->lowers,
                             .home = home,
                             .userns = userns,
                             .root = spec->id_base,
                             .shifted = spec->shifted,
                             .spent = spent};
  return overlay_mount(&l, err);
}

/* A clone of the cache's mount with the box's ids, or -1 where there is none. */
static int make_cache(const struct jail_spec *spec, pid_t pid, int *out, struct err *err)
{
  if (!spec->cache)
    return 0;
  cleanup_fd int userns = jail_open_ns(pid, "user", err);
  cleanup_fd int tree =
      userns < 0 ? -1 : open_tree(spec->cache, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                            .propagation = MS_PRIVATE,
                            .userns_fd = (uint64_t)userns};
  if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "mounting the cache of box %s", spec->id);
  *out = steal_fd(&tree);
  return 0;
}

static void add_texts(struct buf *b, const char *const *list, uint16_t *count)
{
  for (*count = 0; list[*count]; ++*count)
    buf_add(b, list[*count], strlen(list[*count]) + 1);
}

static int write_order(const struct jail_spec *spec, const struct child_params *given, struct buf *b, struct err *err)
{
  struct child_params o = *given;
  o.what = CHILD_ROOT;
  o.boot = spec->boot_fd >= 0;
  o.runtime = spec->runtime != NULL;
  o.console = spec->console != NULL;
  o.open_files = spec->limits.open_files;
  buf_add(b, &o, sizeof(o));
  if (spec->console)
    buf_add(b, spec->console, strlen(spec->console) + 1);
  add_texts(b, spec->argv, &o.args);
  add_texts(b, spec->env, &o.envs);
  if (buf_failed(b) || o.args > CHILD_TEXTS || o.envs > CHILD_TEXTS)
    return err_set(err, -E2BIG, "the program of box %s has too many arguments or variables", spec->id);
  memcpy(b->p, &o, sizeof(o));
  return 0;
}

/* Since 6.2 an exec enters the time namespace that was made for children; before, the first process would stay in the
 * host's. */
static bool exec_enters_clock(void)
{
  struct utsname u;
  struct str major, minor, rest;
  uint64_t a, b;
  if (uname(&u))
    return false;
  str_cut(str_of(u.release), '.', &major, &rest);
  size_t n = strspn(rest.p, "0123456789");
  minor = str_make(rest.p, MIN(n, rest.n));
  return !str_u64(major, &a) && !str_u64(minor, &b) && (a > 6 || (a == 6 && b >= 2));
}

/* The child writes its clocks' offsets to it. -1: this kernel has none, and boxes show the host's uptime. */
static int open_clock(const struct jail_spec *spec, pid_t pid)
{
  char path[PROC_PATH];
  snprintf(path, sizeof(path), "/proc/%d/timens_offsets", pid);
  return spec->zygote || !exec_enters_clock() ? -1 : open(path, O_WRONLY | O_CLOEXEC);
}

/* What the box sees of its own control groups: the host's directories, read-only. Behind fds[*n]; the caller closes. */
static int open_groups(const struct jail_spec *spec, int *fds, size_t *n, uint8_t *given, struct err *err)
{
  const struct mount_attr attr = {.attr_set =
                                      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                                  .propagation = MS_PRIVATE};
  for (size_t i = 0; i < CGROUP_SHOWN_MAX; i++) {
    char dir[PATH_MAX];
    if (cgroup_host()->shown(spec->instance, spec->id, i, dir, sizeof(dir)))
      continue;
    cleanup_fd int tree = open_tree(AT_FDCWD, dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, (struct mount_attr *)&attr, sizeof(attr)))
      return err_errno(err, "mounting %s", dir);
    fds[(*n)++] = steal_fd(&tree);
    *given |= (uint8_t)(1u << i);
  }
  return 0;
}

static int send_root(const struct jail_spec *spec, const struct jail_created *b, struct limit_view *view,
                     struct err *err)
{
  cleanup_spent struct overlay_spent spent = {.n = 0};
  cleanup_buf struct buf order = BUF_INIT(CHILD_PARAMS_MAX);
  cleanup_fd int root = make_root(spec, b->pid, &spent, err), cache = -1;
  int fds[CHILD_FDS], r = root < 0 ? root : make_cache(spec, b->pid, &cache, err);
  cleanup_fd int runtime = r || !spec->runtime ? -1 : jail_runtime(spec, err);
  if (!r && spec->runtime)
    r = MIN(runtime, 0);
  /* A zygote is no machine of its own; its forks see the boot id of the box they enter. */
  cleanup_fd int boot_id = r || spec->zygote ? -1 : boot_id_renew(spec->dir, err);
  if (!r && !spec->zygote)
    r = MIN(boot_id, 0);
  if (!r && !spec->zygote)
    r = limit_view_make(spec->instance, spec->id, view, err);
  cleanup_fd int clock = r ? -1 : open_clock(spec, b->pid);
  struct child_params given = {
      .cache = cache >= 0, .boot_id = boot_id >= 0, .view = view->tree >= 0, .clock = clock >= 0};
  size_t n = 0, own;
  fds[n++] = root;
  if (spec->boot_fd >= 0)
    fds[n++] = spec->boot_fd;
  if (cache >= 0)
    fds[n++] = cache;
  if (runtime >= 0)
    fds[n++] = runtime;
  if (boot_id >= 0)
    fds[n++] = boot_id;
  if (view->tree >= 0)
    fds[n++] = view->tree;
  if (clock >= 0)
    fds[n++] = clock;
  own = n;
  given.unified = cgroup_host()->unified;
  if (!r && !spec->zygote)
    r = open_groups(spec, fds, &n, &given.groups, err);
  r = r ? r : write_order(spec, &given, &order, err);
  r = r ? r : tell(b->sock, order.p, order.n, fds, n, err);
  while (n > own)
    close(fds[--n]);
  return r;
}

/* The same for a guest's keeper. */
static int send_vm_root(const struct jail_spec *spec, const struct jail_created *b, struct err *err)
{
  cleanup_buf struct buf order = BUF_INIT(CHILD_PARAMS_MAX);
  cleanup_vm struct vm_files files = VM_FILES_NONE;
  int r = vm_files_open(spec, b->pid, &files, err), fds[CHILD_FDS];
  size_t n = 0;
  if (r)
    return r;
  struct jail_spec own = *spec;
  struct child_params given = {.view = files.devices >= 0, .given = (uint8_t)files.n, .file_bytes = files.file_bytes};
  own.argv = files.argv;
  own.env = files.env;
  own.runtime = own.console = NULL;
  fds[n++] = files.root;
  fds[n++] = spec->boot_fd;
  if (files.devices >= 0)
    fds[n++] = files.devices;
  for (size_t i = 0; i < files.n; i++)
    fds[n++] = files.fds[i];
  r = write_order(&own, &given, &order, err);
  return r ? r : tell(b->sock, order.p, order.n, fds, n, err);
}

static int start_child(const struct jail_spec *spec, const struct jail_created *b, struct limit_view *view,
                       struct err *err)
{
  int r = spec->vm ? send_vm_root(spec, b, err) : send_root(spec, b, view, err);
  r = report_failure(b, r, err);
  r = r ? r : await_exec(b->sock, err);
  if (!r && !spec->zygote && !spec->vm && (r = child_set_priority(b->pid, true)))
    err_set(err, r, "setting the priority of the agent of box %s: %s", spec->id, strerrordesc_np(-r));
  return r;
}

static int start_process(const struct jail_spec *spec, struct jail_created *b, struct jail *out, struct err *err)
{
  cleanup_view struct limit_view view = LIMIT_VIEW_NONE;
  int r = start_child(spec, b, &view, err);
  r = r ? r : volume_mounts_attach(spec, b->pidfd, err);
  cleanup_fd int netns = r ? -1 : jail_open_ns(b->pid, "net", err);
  if (!r && netns < 0)
    r = netns;
  if (!r && (r = proc_start_time(b->pid, &out->init.start)))
    err_set(err, r, "box %s: its first process exited during launch", spec->id);
  if (r)
    return r;
  if (!spec->zygote && !spec->vm)
    view_watch(spec->instance, spec->id, b->pid, &view);
  out->init.pid = b->pid;
  out->pidfd = steal_fd(&b->pidfd);
  out->netns = steal_fd(&netns);
  return 0;
}

int jail_start(const struct jail_spec *spec, struct jail_created *b, struct jail *out, struct err *err)
{
  *out = JAIL_NONE;
  int r = jail_check_spec(spec, err);
  if (!r)
    r = start_process(spec, b, out, err);
  created_end(b, r != 0);
  if (r)
    jail_remove(spec->instance, spec->id, spec->keep_dir ? NULL : spec->dir, NULL);
  return r;
}

int jail_spawn(const struct jail_spec *spec, struct jail *out, struct err *err)
{
  struct jail_created *b;
  *out = JAIL_NONE;
  int r = jail_check_spec(spec, err);
  r = r ? r : jail_create(spec, &b, err);
  return r ? r : jail_start(spec, b, out, err);
}
