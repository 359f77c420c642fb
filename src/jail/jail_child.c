/* SPDX-License-Identifier: Apache-2.0 */
/* jail_child.c - a new process isolates itself.
 *
 * Order matters and is told here once. The id maps first, which the parent writes: before them no file can be made.
 * Groups next, so that every page and task counts. proc and sysfs are mounted while the host's own are still visible,
 * because the kernel lets a user namespace mount them only where nothing it could not see before gets uncovered. Then
 * the root arrives, the host's tree is detached, and from there on every path is one inside the box, so nothing a
 * template holds (a /dev that is a symlink) can lead outside. seccomp comes before the capabilities go, since loading a
 * filter without no_new_privs needs one, and no_new_privs would break sudo. Any failure is written to the parent and
 * ends the process; there is no half-built box. */
#include "jail/jail_child.h"
#include "jail/boot_id.h"
#include "jail/limit_view.h"
#include "jail/cover.h"
#include "jail/jail_defs.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define OPEN_FILES_SOFT 65536
#define PTYS            "256" /* of the 3,072 that all boxes of a host share */
#define SOCK_SLOT       200   /* out of the way of the descriptors the program gets */

static __thread int report_sock; /* of the thread: launches side by side share the daemon's memory, see jail.c */

static _Noreturn void die(const char *what, const char *which)
{
  struct child_failure f = {.code = errno ? errno : EIO};
  size_t n = 0;
  for (const char *p = what; *p && n < sizeof(f.what) - 1;)
    f.what[n++] = *p++;
  for (const char *p = which ? which : ""; *p && n < sizeof(f.what) - 1;)
    f.what[n++] = *p++;
  ssize_t unused = write(report_sock, &f, sizeof(f));
  (void)unused;
  _exit(127);
}

/* --- identity ------------------------------------------------------------------------------------------------- */

static void wait_for(char what, int *fds, size_t *n)
{
  char byte = 0;
  if (fd_recv(report_sock, &byte, 1, fds, n, 0) != 1 || byte != what)
    _exit(127); /* the parent has given up, and knows why */
}

struct orders {
  union {
    struct child_params head;
    char bytes[CHILD_PARAMS_MAX];
  };
  int root, boot, cache, runtime, boot_id, view, clock, groups[CGROUP_SHOWN_MAX], given[CHILD_GIVEN];
  unsigned given_n;
  bool unified;
  unsigned open_files;
  uint64_t file_bytes;
  const char *console;
  char *argv[CHILD_TEXTS + 1], *env[CHILD_TEXTS + 1];
};

static char *next_text(char **at, const char *end)
{
  char *text = *at, *stop = memchr(text, 0, (size_t)(end - text));
  if (!stop)
    _exit(127); /* the parent writes nothing like that */
  *at = stop + 1;
  return text;
}

static void take_texts(char **list, size_t n, char **at, const char *end)
{
  for (size_t i = 0; i < n; i++)
    list[i] = next_text(at, end);
  list[n] = NULL;
}

/* The boot socket goes out of the way of descriptor 3, where the program expects it. */
static void take_orders(struct orders *o)
{
  int fds[CHILD_FDS];
  size_t n = ARRAY_LEN(fds), used = 1;
  ssize_t k = fd_recv(report_sock, o->bytes, sizeof(o->bytes), fds, &n, 0);
  if (k < (ssize_t)sizeof(o->head) || o->head.what != CHILD_ROOT || o->head.args > CHILD_TEXTS ||
      o->head.envs > CHILD_TEXTS ||
      n != 1u + o->head.boot + o->head.cache + o->head.runtime + o->head.boot_id + o->head.view + o->head.clock +
               (unsigned)__builtin_popcount(o->head.groups) + o->head.given ||
      o->head.given > CHILD_GIVEN)
    _exit(127); /* the parent has given up, and knows why */
  struct child_params head = o->head;
  char *at = o->bytes + sizeof(head), *end = o->bytes + k;
  o->root = fds[0];
  o->boot = head.boot ? fcntl(fds[used++], F_DUPFD_CLOEXEC, SOCK_SLOT) : -1;
  o->cache = head.cache ? fds[used++] : -1;
  o->runtime = head.runtime ? fds[used++] : -1;
  o->boot_id = head.boot_id ? fds[used++] : -1;
  o->view = head.view ? fds[used++] : -1;
  o->clock = head.clock ? fds[used++] : -1;
  for (size_t i = 0; i < CGROUP_SHOWN_MAX; i++)
    o->groups[i] = head.groups >> i & 1 ? fds[used++] : -1;
  o->given_n = head.given;
  for (size_t i = 0; i < head.given; i++) /* out of the way of the numbers they will have */
    if ((o->given[i] = fcntl(fds[used++], F_DUPFD_CLOEXEC, SOCK_SLOT)) < 0)
      die("moving a descriptor", NULL);
  o->unified = head.unified;
  o->open_files = head.open_files;
  o->file_bytes = head.file_bytes;
  o->console = head.console ? next_text(&at, end) : NULL;
  take_texts(o->argv, head.args, &at, end);
  take_texts(o->env, head.envs, &at, end);
  if (head.boot && o->boot < 0)
    die("moving the boot descriptor", NULL);
}

static void join_groups(void)
{
  int fds[CGROUP_JOIN_MAX];
  size_t n = ARRAY_LEN(fds);
  wait_for(CHILD_MAPPED, fds, &n);
  for (size_t i = 0; i < n; i++)
    if (write(fds[i], "0", 1) != 1)
      die("joining a control group", NULL);
  if (unshare(CLONE_NEWCGROUP))
    die("making a cgroup namespace", NULL);
}

/* Straight to the kernel: the C library's calls would ask the parent's other threads, which aren't here. */
static void become(uint32_t id)
{
  if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, id, id, id) || syscall(SYS_setresuid, id, id, id))
    die("taking an identity", NULL);
  proc_hide(); /* the memory is the daemon's until the exec */
}

static void become_root(const char *hostname)
{
  become(0);
  if (sethostname(hostname, strlen(hostname)))
    die("setting the hostname", NULL);
  if (setsid() < 0)
    die("starting a session", NULL);
  /* The daemon's session keyring stays behind. */
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
    die("leaving the keyring", NULL);
}

static void decimal(uint64_t v, char out[U64_TEXT])
{
  char digits[U64_TEXT];
  size_t n = 0, m = 0;
  do
    digits[n++] = (char)('0' + v % 10);
  while (v /= 10);
  while (n > 0)
    out[m++] = digits[--n];
  out[m] = 0;
}

/* Where the kernel has no such limits, the user outside has them alone. */
const char *child_limit_watching(void)
{
  static const struct {
    const char *file;
    uint64_t most;
  } limits[] = {
      {"/proc/sys/user/max_inotify_instances", JAIL_INOTIFY_INSTANCES},
      {"/proc/sys/user/max_inotify_watches", JAIL_INOTIFY_WATCHES},
  };
  for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
    char text[U64_TEXT];
    decimal(limits[i].most, text);
    cleanup_fd int fd = open(limits[i].file, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, text, strlen(text)) < 0)
      return limits[i].file;
  }
  return NULL;
}

/* Echo requests without a capability; a file capability of ping does not reach into a box's own ids. */
const char *child_allow_ping(void)
{
  static const char file[] = "/proc/sys/net/ipv4/ping_group_range", range[] = "0 65535";
  _Static_assert(JAIL_IDS == 65536, "the groups of a box");
  cleanup_fd int fd = open(file, O_WRONLY | O_CLOEXEC);
  return fd < 0 || write(fd, range, sizeof(range) - 1) < 0 ? file : NULL;
}

/* Before /proc/sys is covered. */
static void limit_watching(void)
{
  const char *file = child_limit_watching();
  if (file)
    die("limiting ", file);
}

static void loopback_up(void)
{
  struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK};
  cleanup_fd int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (s < 0 || ioctl(s, SIOCSIFFLAGS, &ifr))
    die("bringing lo up", NULL);
}

/* --- mounts --------------------------------------------------------------------------------------------------- */

static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};

struct trees {
  int proc, sys, dev, pts, shm;
  struct cover cover;
  int devices[ARRAY_LEN(devices)];
};

struct option {
  const char *key, *value;
};

static int make_mount(const char *type, const struct option *options, unsigned attributes)
{
  cleanup_fd int fs = fsopen(type, FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", type, 0))
    die("opening the filesystem ", type);
  for (const struct option *o = options; o && o->key; o++)
    if (fsconfig(fs, FSCONFIG_SET_STRING, o->key, o->value, 0))
      die("setting a mount option of ", type);
  if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    die("creating the filesystem ", type);
  int fd = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
  if (fd < 0)
    die("mounting ", type);
  return fd;
}

static void make_trees(struct trees *t, const struct child_plan *plan)
{
  /* In the host's pid namespace, where other boxes' processes and their command lines are. */
  static const struct option own_only[] = {{"hidepid", "2"}, {NULL, NULL}};
  char size[U64_TEXT];
  const unsigned plain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  decimal(plan->shm, size);
  t->proc = make_mount("proc", plan->run_as ? own_only : NULL, plain);
  t->sys = make_mount("sysfs", NULL, plain | MOUNT_ATTR_RDONLY);
  t->cover.sys =
      make_mount("tmpfs", (struct option[]){{"mode", "755"}, {"size", "0"}, {"nr_inodes", "40"}, {NULL, NULL}}, plain);
  const char *failed = cover_prepare(&t->cover, t->proc);
  if (failed)
    die("preparing the view of ", failed);
  t->dev =
      make_mount("tmpfs", (struct option[]){{"mode", "755"}, {"size", "65536"}, {"nr_inodes", "1024"}, {NULL, NULL}},
                 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  t->pts = make_mount(
      "devpts", (struct option[]){{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}, {"max", PTYS}, {NULL, NULL}},
      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  t->shm = make_mount("tmpfs", (struct option[]){{"mode", "1777"}, {"size", size}, {NULL, NULL}},
                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
    t->devices[i] = open_tree(AT_FDCWD, devices[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (t->devices[i] < 0)
      die("taking the device ", devices[i]);
  }
}

/* Hosts with systemd share their mounts between namespaces: without this a zygote's mounts would reach the host, and
 * the devices of a box would follow the host's, which criu can't restore. */
static void leave_host_mounts(void)
{
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
    die("making mounts private", NULL);
}

/* The new root goes on top of "/", and the pair of dots swaps them without a directory for the old one. */
static void enter_root(int root)
{
  if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH))
    die("placing the root", NULL);
  if (fchdir(root) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
    die("entering the root", NULL);
}

static void place(int tree, const char *at)
{
  if (mkdir(at, 0755) && errno != EEXIST)
    die("making the directory ", at);
  if (move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH))
    die("mounting on ", at);
  close(tree);
}

/* The way there is the box's to arrange, between its runs: no link is followed, and what is missing is made. Nobody
 * else runs in the box before the exec, so the program that is executed by this path is the one in the mount. */
static void place_runtime(int tree)
{
  static const char *const way[] = {"usr", "lib", "cloche"};
  int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; i < ARRAY_LEN(way); i++) {
    if (at < 0 || (mkdirat(at, way[i], 0755) && errno != EEXIST))
      die("making the way to ", JAIL_RUNTIME);
    int next = openat(at, way[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
      die("a directory is needed on the way to " JAIL_RUNTIME ": ", way[i]);
    close(at);
    at = next;
  }
  if (move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
    die("mounting on ", JAIL_RUNTIME);
  close(at);
  close(tree);
}

static void place_devices(const struct trees *t)
{
  static const struct option links[] = {{"/dev/ptmx", "pts/ptmx"},
                                        {"/dev/fd", "/proc/self/fd"},
                                        {"/dev/stdin", "/proc/self/fd/0"},
                                        {"/dev/stdout", "/proc/self/fd/1"},
                                        {"/dev/stderr", "/proc/self/fd/2"}};
  for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
    if (mknod(devices[i], S_IFREG | 0666, 0) ||
        move_mount(t->devices[i], "", AT_FDCWD, devices[i], MOVE_MOUNT_F_EMPTY_PATH))
      die("placing the device ", devices[i]);
    close(t->devices[i]);
  }
  for (size_t i = 0; i < ARRAY_LEN(links); i++)
    if (symlink(links[i].value, links[i].key))
      die("linking ", links[i].key);
}

/* Only files of the mount are wanted. Kernels before 6.15 give out parts of a mount only once it is attached: there it
 * lies on /dev/shm for a moment. A kernel may lack a point. */
static void place_files(int tree, const struct option *files, size_t n)
{
  int probe = open_tree(tree, files[0].value, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), dir = tree;
  bool staged = probe < 0 && errno == EINVAL;
  if (probe >= 0)
    close(probe);
  if (staged) {
    if (move_mount(tree, "", AT_FDCWD, "/dev/shm", MOVE_MOUNT_F_EMPTY_PATH))
      die("mounting on ", "/dev/shm");
    dir = open("/dev/shm", O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  for (size_t i = 0; i < n; i++) {
    int file = open_tree(dir, files[i].value, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (file < 0 || (move_mount(file, "", AT_FDCWD, files[i].key, MOVE_MOUNT_F_EMPTY_PATH) && errno != ENOENT))
      die("mounting on ", files[i].key);
    close(file);
  }
  if (staged && (close(dir) || umount2("/dev/shm", MNT_DETACH)))
    die("taking a mount off ", "/dev/shm");
  close(tree);
}

static void place_view(int tree)
{
  struct option files[VIEW_POINTS];
  for (size_t i = 0; i < VIEW_POINTS; i++)
    files[i] = (struct option){view_points[i], view_names[view_at[i]]};
  place_files(tree, files, VIEW_POINTS);
}

static void place_groups(const struct orders *o)
{
  char path[64] = "/sys/fs/cgroup/";
  size_t n = strlen(path);
  for (size_t i = 0; i < CGROUP_SHOWN_MAX; i++) {
    if (o->groups[i] < 0)
      continue;
    memcpy(path + n, cgroup_shown[i], strlen(cgroup_shown[i]) + 1);
    if (o->unified)
      path[n] = 0;
    if (move_mount(o->groups[i], "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH))
      die("mounting on ", path);
    close(o->groups[i]);
  }
}

static void build_root(const struct child_plan *plan, struct orders *o)
{
  struct trees t;
  leave_host_mounts();
  make_trees(&t, plan);
  take_orders(o);
  enter_root(o->root);
  close(o->root);
  umask(0);
  place(t.proc, "/proc");
  place(t.sys, "/sys");
  place(t.dev, "/dev");
  place(t.pts, "/dev/pts");
  place(t.shm, "/dev/shm");
  if (o->cache >= 0)
    place(o->cache, JAIL_CACHE);
  if (o->runtime >= 0)
    place_runtime(o->runtime);
  place_devices(&t);
  const char *failed = cover_apply(&t.cover);
  if (failed)
    die("covering ", failed);
  if (o->boot_id >= 0)
    place_files(o->boot_id, &(struct option){BOOT_ID_POINT, BOOT_ID_NAME}, 1);
  if (o->view >= 0)
    place_view(o->view);
  place_groups(o);
  if ((mkdir("/tmp", 01777) && errno != EEXIST) || (mkdir("/run", 0755) && errno != EEXIST))
    die("making /tmp and /run", NULL);
  umask(022);
}

/* Uptime, the age of processes and the time of boot all begin here. The kernel enters the new clocks with the exec. The
 * file is this process's own, opened by the parent: on the parent's memory a child may not write its own files. */
static void begin_uptime(int offsets)
{
  struct timespec now;
  char line[U64_TEXT + 16] = "boottime -", digits[U64_TEXT];
  clock_gettime(CLOCK_BOOTTIME, &now);
  decimal((uint64_t)now.tv_sec, digits);
  size_t n = strlen(line), k = strlen(digits);
  memcpy(line + n, digits, k);
  memcpy(line + n + k, " 0", 2);
  if (unshare(CLONE_NEWTIME))
    die("making a time namespace", NULL);
  if (write(offsets, line, n + k + 2) < 0)
    die("setting the uptime", NULL);
  close(offsets);
}

/* --- the last steps ------------------------------------------------------------------------------------------- */

static void limit_counted_by_user(void)
{
  static const struct {
    int which;
    rlim_t most;
  } limits[] = {{RLIMIT_MSGQUEUE, JAIL_QUEUE_BYTES},
                {RLIMIT_SIGPENDING, JAIL_SIGNALS_PENDING},
                {RLIMIT_MEMLOCK, JAIL_LOCKED_BYTES}};
  for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
    struct rlimit now;
    if (getrlimit(limits[i].which, &now))
      die("reading a limit", NULL);
    if (now.rlim_max != RLIM_INFINITY &&
        limits[i].which != RLIMIT_MEMLOCK) /* the kernel's sum of that one is in pages */
      now.rlim_max /= JAIL_LIMIT_SHARE;
    now.rlim_max = MIN(now.rlim_max, limits[i].most);
    now.rlim_cur = now.rlim_max;
    if (setrlimit(limits[i].which, &now))
      die("setting a limit", NULL);
  }
}

static void limit_resources(unsigned open_files, bool zygote)
{
  struct rlimit files, core = {1, 1};
  if (getrlimit(RLIMIT_NOFILE, &files))
    die("reading the limit of open files", NULL);
  if (open_files && open_files < files.rlim_max)
    files.rlim_max = open_files;
  files.rlim_cur = MIN(files.rlim_max, (rlim_t)OPEN_FILES_SOFT);
  if (setrlimit(RLIMIT_NOFILE, &files))
    die("setting the limit of open files", NULL);
  /* One, not zero: a core_pattern that is a pipe ignores zero and would run the host's handler for a box's crash. */
  if (setrlimit(RLIMIT_CORE, &core))
    die("setting the core limit", NULL);
  if (!zygote) /* whose user is the owner of boxes: all that they have counts as its own */
    limit_counted_by_user();
  if (zygote) { /* its forks enter boxes; those of boxes themselves: see raise_oom_floor in jail_spawn.c */
    cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || (write(fd, "0", 1) != 1 && errno != EACCES))
      die("giving up the daemon's protection from the OOM killer", NULL);
  }
}

/* What the sanitizers of an agent find goes to the log of a daemon that has some itself, if a test asks for it. */
static bool keeps_stderr(void)
{
#ifdef __SANITIZE_ADDRESS__
  return getenv("CLOCHE_AGENT_STDERR") != NULL;
#else
  return false;
#endif
}

static void arrange_descriptors(const struct orders *o)
{
  int null = open("/dev/null", O_RDWR);
  int console = o->console ? open(o->console, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600) : null;
  if (null < 0 || console < 0)
    die("opening the console", o->console);
  if (dup2(null, 0) < 0 || dup2(console, 1) < 0 || (!keeps_stderr() && dup2(console, 2) < 0))
    die("arranging descriptors", NULL);
  if (o->boot >= 0 && dup2(o->boot, 3) < 0)
    die("placing the boot descriptor", NULL);
  unsigned first = o->boot >= 0 ? 4 : 3;
  if (syscall(SYS_close_range, first, report_sock - 1, 0) || syscall(SYS_close_range, report_sock + 1, ~0u, 0))
    die("closing the host's descriptors", NULL);
}

/* While there is the capability for it: no_new_privs would break sudo, in a zygote's forks, too. */
static void load_filter(const struct child_plan *plan)
{
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, plan->filter))
    die("loading the seccomp program", NULL);
}

/* What dpkg, sudo, package scripts, debuggers and servers on low ports need inside their own namespaces. SYS_ADMIN and
 * NET_ADMIN are not among them: they would let the box take its own covers off and reach the kernel's mount and
 * netfilter code. */
static const unsigned kept[] = {
    CAP_CHOWN,       CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,     CAP_FSETID,           CAP_KILL,
    CAP_SETGID,      CAP_SETUID,       CAP_SETPCAP,         CAP_SETFCAP,    CAP_NET_BIND_SERVICE, CAP_NET_RAW,
    CAP_IPC_LOCK,    CAP_IPC_OWNER,    CAP_SYS_CHROOT,      CAP_SYS_PTRACE, CAP_SYS_NICE,         CAP_SYS_RESOURCE,
    CAP_AUDIT_WRITE, CAP_LEASE,
};

static bool is_kept(unsigned cap)
{
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    if (kept[i] == cap)
      return true;
  return false;
}

uint64_t child_capabilities(void)
{
  uint64_t mask = 0;
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    mask |= 1ull << kept[i];
  return mask;
}

static void drop_capabilities(void)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}, {0}};
  for (unsigned cap = 0; cap < 64; cap++)
    if (!is_kept(cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL)
      die("dropping a capability", NULL);
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    data[kept[i] / 32].permitted |= 1u << (kept[i] % 32);
  data[0].effective = data[0].permitted;
  data[1].effective = data[1].permitted;
  if (syscall(SYS_capset, &head, data) || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
    die("dropping capabilities", NULL);
}

/* A zygote's come back, all of them, when a fork of it enters a user namespace that belongs to it; till then it has
 * none and gets none. */
static void drop_bounding(void)
{
  for (unsigned cap = 0; cap < 64; cap++)
    if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL)
      die("dropping a capability", NULL);
}

/* ---- around a guest ---- */

#define VM_USER 1000 /* of the box's range: not its root */

/* The first of the given is for standard input and output; the others become 4, 5, ... */
static void arrange_for_vm(const struct orders *o)
{
  if (!o->given_n || o->boot < 0)
    die("no descriptors for the guest", NULL);
  for (int fd = 0; fd < 3; fd++)
    if (dup2(o->given[0], fd) < 0)
      die("arranging descriptors", NULL);
  if (dup2(o->boot, 3) < 0)
    die("placing the boot descriptor", NULL);
  for (unsigned i = 1; i < o->given_n; i++)
    if (dup2(o->given[i], 3 + (int)i) < 0)
      die("arranging descriptors", NULL);
  if (syscall(SYS_close_range, 3 + o->given_n, report_sock - 1, 0) || syscall(SYS_close_range, report_sock + 1, ~0u, 0))
    die("closing the host's descriptors", NULL);
}

/* The disk is a file of the host that QEMU may write to: without a limit it could grow past what the box may have. */
static void limit_file_size(uint64_t bytes)
{
  const struct rlimit r = {bytes, bytes};
  if (bytes && setrlimit(RLIMIT_FSIZE, &r))
    die("limiting the size of files", NULL);
}

/* A read-only root without /proc and /sys; /dev has what `view` brings, if anything. No right is left, and none comes
 * back: neither root of the box's ids nor a file capability. */
static void confine_vm(const struct child_plan *plan, struct orders *o)
{
  leave_host_mounts();
  take_orders(o);
  enter_root(o->root);
  if (o->view >= 0)
    place(o->view, "/dev");
  limit_resources(o->open_files, false);
  limit_file_size(o->file_bytes);
  arrange_for_vm(o);
  load_filter(plan);
  drop_bounding();
  become(VM_USER);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    die("giving up new rights", NULL);
}

/* Handlers of the parent's end with exec, ignored signals and the mask would not. */
static void reset_signals(void)
{
  static const unsigned long by_default[4]; /* the kernel's own struct; the C library would leave two signals out */
  sigset_t none;
  for (int s = 1; s < 65; s++)
    syscall(SYS_rt_sigaction, s, by_default, NULL, 8);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The daemon's descriptors go first of all: among them is the parent's end of our own socket, and those of launches on
 * other threads. A child that kept them would never see that a killed daemon is gone, and sit there for ever. */
static void drop_the_rest(int sock)
{
  if (syscall(SYS_close_range, 3, sock - 1, 0) || syscall(SYS_close_range, sock + 1, ~0u, 0))
    die("closing the daemon's descriptors", NULL);
}

/* The fields that every version of the call has; libraries differ in whether they declare the type. */
struct schedule {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};
#define RESET_ON_FORK 1
#define MOST_FAVOURED (-20)

int child_set_priority(pid_t pid, bool favoured)
{
  struct schedule s = {.size = sizeof(s), .flags = favoured ? RESET_ON_FORK : 0, .nice = favoured ? MOST_FAVOURED : 0};
  return syscall(SYS_sched_setattr, pid, &s, 0) ? -errno : 0;
}

_Noreturn void child_run(const struct child_plan *plan)
{
  struct orders orders;
  report_sock = plan->sock;
  int high = fcntl(plan->sock, F_DUPFD_CLOEXEC, SOCK_SLOT);
  if (high < 0)
    die("moving the socket", NULL);
  report_sock = high;
  drop_the_rest(report_sock);
  join_groups();
  become_root(plan->hostname);
  if (!plan->run_as)
    limit_watching();
  if (plan->vm) {
    confine_vm(plan, &orders);
    reset_signals();
    execve(orders.argv[0], orders.argv, orders.env);
    die("executing ", orders.argv[0]);
  }
  loopback_up();
  if (!plan->run_as && child_allow_ping())
    die("allowing ping", NULL);
  build_root(plan, &orders);
  limit_resources(orders.open_files, plan->run_as != 0);
  if (orders.clock >= 0)
    begin_uptime(orders.clock);
  if (plan->run_as) { /* before any file is made: the host's root has no id on these mounts */
    drop_bounding();
    load_filter(plan);
    become(plan->run_as);
  }
  arrange_descriptors(&orders);
  if (!plan->run_as) {
    load_filter(plan);
    drop_capabilities();
  }
  reset_signals();
  execve(orders.argv[0], orders.argv, orders.env);
  die("executing ", orders.argv[0]);
}
