/* SPDX-License-Identifier: Apache-2.0 */
/* jail_doctor.c - one small function per question, each of which does the thing in question and undoes it. */
#include "jail/jail_doctor.h"
#include "jail/cgroup.h"
#include "jail/checkpoint/checkpoint.h"
#include "jail/fs/disk.h"
#include "jail/fs/disk_image.h"
#include "jail/seccomp_filter.h"
#include "jail/fs/overlay.h"
#include "jail/net/rtnl.h"
#include "jail/vm/vm_parts.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define tell   jail_check_tell
#define advise jail_check_advise

void jail_check_tell(struct jail_check *c, enum jail_health health, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  c->health = health;
  vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
  va_end(ap);
}

void jail_check_advise(struct jail_check *c, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(c->remedy, sizeof(c->remedy), fmt, ap);
  va_end(ap);
}

/* Exit status and first bytes of what a program prints; -1 when it can't be run. */
static int run(const char *const *argv, char *text, size_t size)
{
  int fds[2], status = 0;
  pid_t pid;
  const char *env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
  posix_spawn_file_actions_t fa;
  if (pipe2(fds, O_CLOEXEC))
    return -1;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_adddup2(&fa, fds[1], 1);
  posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
  int r = posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)argv, (char *const *)env);
  posix_spawn_file_actions_destroy(&fa);
  close(fds[1]);
  ssize_t n = r ? 0 : read(fds[0], text, size - 1);
  text[n > 0 ? n : 0] = 0;
  close(fds[0]);
  if (r || waitpid(pid, &status, 0) < 0)
    return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- namespaces and filters ----------------------------------------------------------------------------------- */

static void check_root(struct jail_check *c, const struct jail_place *place)
{
  if (geteuid() == 0)
    tell(c, JAIL_FINE, "runs as root");
  else {
    tell(c, JAIL_BROKEN, "not root: the warden makes namespaces, mounts and control groups");
    advise(c, "run it as root");
  }
}

static void check_kernel(struct jail_check *c, const struct jail_place *place)
{
  struct utsname u;
  struct str major, rest, minor;
  uint64_t a = 0, b = 0;
  uname(&u);
  str_cut(str_of(u.release), '.', &major, &rest);
  str_cut(rest, '.', &minor, &rest);
  str_u64(major, &a);
  str_u64(minor, &b);
  if (a > 6 || (a == 6 && b >= 15))
    tell(c, JAIL_FINE, "Linux %s", u.release);
  else if (a == 6 || (a == 5 && b >= 19))
    tell(c, JAIL_WORSE, "Linux %s: layers are attached to the host's tree for a moment (6.15 needs no such moment)",
         u.release);
  else
    tell(c, JAIL_BROKEN, "Linux %s: 5.19 or newer is needed for overlays of idmapped layers", u.release);
  if (c->health != JAIL_FINE)
    advise(c, "boot a newer kernel; Debian 12 has 6.1, Debian 13 has 6.12, backports have newer ones");
}

/* A process in a user namespace of its own, mapped to an unused range; it waits until it is killed. */
static pid_t mapped_process(int *userns)
{
  char path[PROC_PATH];
  struct clone_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
  } args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0)
    for (;;)
      pause();
  for (int i = 0; pid > 0 && i < 2; i++) {
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, i ? "gid_map" : "uid_map");
    cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0 2000000000 65536", 18) != 18) {
      kill(pid, SIGKILL);
      waitpid(pid, NULL, 0);
      return -1;
    }
  }
  snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
  *userns = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  return pid;
}

static void check_userns(struct jail_check *c, const struct jail_place *place)
{
  int userns = -1;
  pid_t pid = mapped_process(&userns);
  if (pid < 0) {
    tell(c, JAIL_BROKEN, "no user namespace can be made and mapped: %s", strerrordesc_np(errno));
    advise(c, "sysctl user.max_user_namespaces=65536; in a container, run it privileged");
    return;
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  close(userns);
  tell(c, JAIL_FINE, "user namespaces with mapped ids");
}

static void check_cgroup(struct jail_check *c, const struct jail_place *place)
{
  const struct cgroup_ops *ops = cgroup_host();
  struct err err = ERR_NONE;
  char instance[32];
  snprintf(instance, sizeof(instance), "doctor%d", getpid());
  if (!ops)
    tell(c, JAIL_BROKEN, "no control groups with memory, cpu and pids: limits would not hold");
  else if (ops->open(instance, &err))
    tell(c, JAIL_BROKEN, "control groups %s: %s", ops->name, err.msg);
  else
    tell(c, JAIL_FINE, "control groups %s: memory, cpu and pids", ops->name);
  if (c->health == JAIL_BROKEN)
    advise(c, "boot with systemd.unified_cgroup_hierarchy=1, or mount the v1 controllers memory, cpu and pids; in a "
              "container, let it have the host's control groups writable (--cgroupns=host, Delegate=yes)");
  if (ops)
    ops->close(instance);
}

/* A fresh directory for a probe, 0700. */
static bool make_top(const char *data, char top[PATH_MAX])
{
  char id[13];
  random_id(id, 12);
  snprintf(top, PATH_MAX, "%s/doctor-%s", data, id);
  return mkdir(top, 0700) == 0;
}

static int probe_layers(const char *top, bool *copied, struct err *err)
{
  char lower[PATH_MAX], box[PATH_MAX], shifted[PATH_MAX];
  int userns = -1;
  snprintf(lower, sizeof(lower), "%s/lower", top);
  snprintf(box, sizeof(box), "%s/box", top);
  snprintf(shifted, sizeof(shifted), "%s/shifted", top);
  if (mkdir(lower, 0755))
    return err_errno(err, "making %s", lower);
  pid_t pid = mapped_process(&userns);
  if (pid < 0)
    return err_errno(err, "making a user namespace");
  cleanup_fd int ns = userns, home = disk_open(box, &(struct jail_limits){0}, err);
  struct overlay_layers l = {.dir = box,
                             .lowers = (const char *[]){lower, NULL},
                             .home = home,
                             .userns = ns,
                             .root = 2000000000,
                             .shifted = shifted};
  cleanup_fd int root = home < 0 ? home : overlay_mount(&l, err);
  int r = MIN(root, 0);
  if (!r && mkdirat(root, "probe", 0755) && errno != EOVERFLOW) /* the host's root has no id in there */
    r = err_errno(err, "writing to the overlay");
  *copied = access(shifted, F_OK) == 0;
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  return r;
}

static void check_overlay(struct jail_check *c, const struct jail_place *place)
{
  struct err err = ERR_NONE;
  char top[PATH_MAX];
  if (!make_top(place->data, top)) {
    tell(c, JAIL_BROKEN, "can't write to %s: %s", place->data, strerrordesc_np(errno));
    advise(c, "choose another data directory (--data), or make its filesystem writable");
    return;
  }
  bool copied = false;
  if (probe_layers(top, &copied, &err))
    tell(c, JAIL_BROKEN, "no overlay in %s: %s", place->data, err.msg);
  else if (copied)
    tell(c, JAIL_WORSE,
         "the filesystem of %s can't map ids: every box range gets its own copy of a template (slow first starts, much "
         "disk)",
         place->data);
  else
    tell(c, JAIL_FINE, "overlay of idmapped layers");
  if (c->health != JAIL_FINE)
    advise(c, "put the data directory on ext4, xfs or btrfs (--data)");
  path_remove_tree(AT_FDCWD, top);
}

static void check_seccomp(struct jail_check *c, const struct jail_place *place)
{
  struct err err = ERR_NONE;
  const struct sock_fprog *f = filter_get(&err);
  if (f)
    tell(c, JAIL_FINE, "filter of %u instructions", f->len);
  else
    tell(c, JAIL_BROKEN, "%s", err.msg);
}

/* --- limits and comfort --------------------------------------------------------------------------------------- */

static void check_disk(struct jail_check *c, const struct jail_place *place)
{
  struct err err = ERR_NONE;
  char top[PATH_MAX], image[PATH_MAX];
  if (!make_top(place->data, top)) {
    tell(c, JAIL_WORSE, "can't write to %s: %s", place->data, strerrordesc_np(errno));
    advise(c, "choose another data directory (--data), or make its filesystem writable");
    return;
  }
  snprintf(image, sizeof(image), "%s/probe.img", top);
  cleanup_fd int tree = disk_make(top, image, &(struct jail_limits){.disk = 8u << 20, .inodes = 64}, &err);
  if (tree < 0)
    tell(c, JAIL_WORSE, "%s: boxes can't have a disk limit and one can fill the host's disk", err.msg);
  else
    tell(c, JAIL_FINE, "disk limits by ext4 images on loop devices");
  if (tree < 0)
    advise(c, "modprobe loop ext4; in a container, let it have /dev/loop-control and the loop devices");
  path_remove_tree(AT_FDCWD, top);
}

static void check_freezer(struct jail_check *c, const struct jail_place *place)
{
  bool v1 = access("/sys/fs/cgroup/freezer", F_OK) == 0, v2 = cgroup_host() == &cgroup_v2;
  if (v1 || v2)
    tell(c, JAIL_FINE, "processes can be frozen");
  else
    tell(c, JAIL_WORSE, "no freezer: sandboxes can't be paused");
  if (c->health != JAIL_FINE)
    advise(c, "mount -t cgroup -o freezer cgroup /sys/fs/cgroup/freezer, or boot with control groups v2");
}

/* In a network namespace of its own, in a process of its own. */
static int probe_net(void)
{
  static const char *const argv[] = {
      "nft", "add table inet doctor; add chain inet doctor p { type nat hook postrouting priority 100; }", NULL};
  char text[64];
  if (unshare(CLONE_NEWNET))
    return 1;
  cleanup_fd int here = rtnl_open(), ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (here < 0 || ns < 0 || rtnl_veth(here, "probe0", ns))
    return 2;
  return run(argv, text, sizeof(text)) == 0 ? 0 : 3;
}

static void check_net(struct jail_check *c, const struct jail_place *place)
{
  static const char *const why[] = {"", "no network namespace can be made", "the kernel has no veth",
                                    "nft is not installed, or the kernel has no nf_tables with NAT"};
  int status = 0;
  pid_t pid = fork();
  if (pid == 0)
    _exit(probe_net());
  if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) >= (int)ARRAY_LEN(why))
    tell(c, JAIL_WORSE, "the network could not be tried");
  else if (WEXITSTATUS(status))
    tell(c, JAIL_WORSE, "%s: outbound networking disabled", why[WEXITSTATUS(status)]);
  else
    tell(c, JAIL_FINE, "veth and nftables: outbound networking available");
  if (c->health != JAIL_FINE)
    advise(c, "apt install nftables; modprobe veth nf_tables nf_nat; or accept it with internet = 0");
}

/* A version off the list and a criu without our patches work less surely, which the row says. */
static void tell_criu(struct jail_check *c, struct str version, const char *program, long long ms)
{
  static const char *const notes[] = {
      [JAIL_CRIU_FOREIGN] = "; not built by scripts/criu, so without its patches (criu/README.md)",
      [JAIL_CRIU_UNTRIED] = "; an untried version (criu/tried), built here because no tried one was available",
      [JAIL_CRIU_TRIED] = "",
  };
  enum jail_criu_origin origin = jail_criu_origin(program);
  tell(c, origin == JAIL_CRIU_TRIED ? JAIL_FINE : JAIL_WORSE,
       "tier checkpoint: criu " STR_FMT "; a tiny box was written to disk and brought back in %lld ms%s",
       STR_ARG(version), ms, notes[origin]);
}

/* Nothing less than a real dump and restore tells; a version alone has been wrong before. */
static void check_criu(struct jail_check *c, const struct jail_place *place)
{
  static const char *const agent[] = {"/usr/lib/cloche/agent", NULL};
  const struct jail_criu criu = {.program = place->criu ? place->criu : JAIL_CRIU_DEFAULT};
  const char *const argv[] = {criu.program, "--version", NULL};
  char text[128], instance[32];
  struct str version, rest;
  struct err why = ERR_NONE;
  if (run(argv, text, sizeof(text)) < 0 || !text[0]) {
    tell(c, JAIL_WORSE,
         "tier frozen: no criu at %s. Paused sandboxes stay in memory and are lost with a reboot; forks and snapshots "
         "keep files only",
         criu.program);
    advise(c, "scripts/criu builds it (package cloche-criu), or name another one with --criu");
    return;
  }
  str_cut(str_skip(str_of(text), strlen("Version: ")), '\n', &version, &rest);
  snprintf(instance, sizeof(instance), "doctor%d", getpid());
  int64_t began = clock_mono_us();
  bool tried = place->runtime && access(place->runtime, F_OK) == 0;
  int r = tried ? jail_instance_open(instance, &why) : 0;
  if (!r && tried)
    r = jail_criu_prove(&criu, instance, place->data, place->runtime, agent, &why);
  jail_instance_close(instance);
  if (r)
    tell(c, JAIL_WORSE,
         "tier frozen: %s. Paused sandboxes stay in memory and are lost with a reboot; forks and snapshots keep files "
         "only",
         why.msg);
  else if (!tried)
    tell(c, JAIL_FINE, "criu " STR_FMT " (not tried)", STR_ARG(version));
  else
    tell_criu(c, version, criu.program, (long long)(clock_mono_us() - began) / 1000);
}

/* Which tiers of isolation work: tried by booting a guest, because a device that opens may run none. Processes in
 * namespaces need nothing of it, so its absence is worse only where the tier is asked for. */
static void check_kvm(struct jail_check *c, const struct jail_place *place)
{
  struct err why = ERR_NONE;
  const char *parts = place->microvm ? place->microvm : VM_PARTS_DEFAULT;
  enum jail_health missing = place->microvm_wanted ? JAIL_WORSE : JAIL_FINE;
  if (access("/dev/kvm", R_OK | W_OK)) {
    tell(c, missing, "tier process works; tier microvm does not: no /dev/kvm");
    advise(c, "enable virtualisation in the firmware or nested virtualisation in the hypervisor (modprobe kvm_intel or "
              "kvm_amd), if microvm is wanted");
  } else if (vm_parts_check(parts, &why)) {
    tell(c, missing, "tier process works; tier microvm was not tried: %.200s", why.msg);
  } else {
    int ms = vm_probe(parts, VM_KVM, VM_PROBE_MS, &why);
    if (ms >= 0)
      tell(c, JAIL_FINE, "tiers process and microvm work: a guest under KVM was up after %d ms", ms);
    else
      tell(c, missing, "tier process works; tier microvm does not: /dev/kvm is there, but %.200s", why.msg);
  }
  if (!c->remedy[0] && c->health != JAIL_FINE)
    advise(c, "isolation = process, or a machine whose KVM runs guests; microvm_emulation = on is for tests only");
}

static void check_files(struct jail_check *c, const struct jail_place *place)
{
  struct rlimit r;
  getrlimit(RLIMIT_NOFILE, &r);
  if (r.rlim_max >= 65536)
    tell(c, JAIL_FINE, "%llu open files", (unsigned long long)r.rlim_max);
  else
    tell(c, JAIL_WORSE, "only %llu open files: enough for about %llu boxes", (unsigned long long)r.rlim_max,
         (unsigned long long)r.rlim_max / 16);
  if (c->health != JAIL_FINE)
    advise(c, "LimitNOFILE=1048576 in the unit, or ulimit -Hn 1048576 before the start");
}

static void check_inotify(struct jail_check *c, const struct jail_place *place)
{
  char text[32];
  uint64_t n = 0;
  if (cgroup_get("/proc/sys/fs/inotify", "max_user_instances", text, sizeof(text)) || str_u64(str_of(text), &n))
    n = 0;
  tell(c, n >= 128 ? JAIL_FINE : JAIL_WORSE, "%llu inotify instances per box (fs.inotify.max_user_instances)",
       (unsigned long long)n);
  if (n < 128)
    advise(c, "sysctl fs.inotify.max_user_instances=1024; a running server raises it (inotify_instances)");
}

size_t jail_doctor(const struct jail_place *place, struct jail_check out[JAIL_CHECKS_MAX])
{
  static const struct {
    const char *id, *name;
    void (*check)(struct jail_check *c, const struct jail_place *place);
  } checks[] = {
      {"root", "root", check_root},
      {"kernel", "kernel", check_kernel},
      {"user_namespaces", "user namespaces", check_userns},
      {"control_groups", "control groups", check_cgroup},
      {"overlay", "overlay", check_overlay},
      {"seccomp", "seccomp", check_seccomp},
      {"disk_limits", "disk limits", check_disk},
      {"freezer", "freezer", check_freezer},
      {"network", "network", check_net},
      {"checkpoints", "checkpoints", check_criu},
      {"virtual_machines", "virtual machines", check_kvm},
      {"open_files", "open files", check_files},
      {"inotify", "inotify", check_inotify},
  };
  _Static_assert(ARRAY_LEN(checks) <= JAIL_CHECKS_MAX, "room for every check");
  for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
    out[i] = (struct jail_check){.id = checks[i].id, .name = checks[i].name};
    checks[i].check(&out[i], place);
  }
  return ARRAY_LEN(checks);
}
