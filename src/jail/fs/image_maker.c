/* SPDX-License-Identifier: Apache-2.0 */
/* image_maker.c - see image_maker.h.
 *
 * Whoever takes mkfs.erofs over finds: a root with the program and its libraries, read-only; the one layer, read-only,
 * without devices, set-user-id or links that are followed; the image, which is this layer's and goes to guests that
 * have the layer anyway; a small tmpfs. Namespaces of its own for processes, network, IPC and names. The user nobody
 * with the two rights that reading a layer needs: to read every file, and CAP_SYS_ADMIN for marks of overlays
 * (trusted.overlay.*), which no user namespace can give; the system calls that this right is for are not on its list
 * (image_filter.c). Limits on memory, processor time and the size of the image.
 *
 * The child is a copy of a process with threads: it makes system calls and nothing else. */
#include "jail/fs/image_maker.h"
#include "jail/fs/image_filter.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NOBODY      65534
#define RIGHTS      (1u << CAP_DAC_READ_SEARCH | 1u << CAP_SYS_ADMIN)
#define LAST_CAP    63
#define MEMORY_MAX  (4ull << 30)
#define IMAGE_MAX   (64ull << 30)
#define CPU_SECONDS 1800
#define FILES_MAX   256
#define TMP_OPTIONS "size=64m,nr_inodes=64,mode=1777"
#define SETUP_FAILS 120 /* the status of a child that did not come to its exec: this and the step */

struct maker {
  int root, layer, image; /* detached mounts */
  int null;
  const char *at; /* a directory of this machine to mount the root over, in a namespace of the child's own */
  const struct sock_fprog *filter;
};

static int clone_mount(int at, const char *path, uint64_t attributes)
{
  struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
  unsigned empty = path[0] ? 0 : AT_EMPTY_PATH;
  cleanup_fd int tree = open_tree(at, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | empty);
  return tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ? -1 : steal_fd(&tree);
}

/* ---- the child ---- */

static bool enter_root(const struct maker *m)
{
  const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
         !move_mount(m->root, "", AT_FDCWD, m->at, MOVE_MOUNT_F_EMPTY_PATH) && !chdir(m->at) &&
         !move_mount(m->layer, "", AT_FDCWD, "layer", MOVE_MOUNT_F_EMPTY_PATH) &&
         !move_mount(m->image, "", AT_FDCWD, "image", MOVE_MOUNT_F_EMPTY_PATH) &&
         !mount("tmp", "tmp", "tmpfs", plain, TMP_OPTIONS) && !syscall(SYS_pivot_root, ".", ".") &&
         !umount2(".", MNT_DETACH) && !chdir("/");
}

static bool limit(int what, rlim_t most)
{
  return !setrlimit(what, &(struct rlimit){most, most});
}

static bool set_limits(void)
{
  return limit(RLIMIT_AS, MEMORY_MAX) && limit(RLIMIT_FSIZE, IMAGE_MAX) && limit(RLIMIT_CPU, CPU_SECONDS) &&
         limit(RLIMIT_NOFILE, FILES_MAX) && limit(RLIMIT_CORE, 0) && limit(RLIMIT_MEMLOCK, 0) &&
         limit(RLIMIT_MSGQUEUE, 0);
}

static bool keep_rights(void)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{RIGHTS, RIGHTS, RIGHTS}, {0, 0, 0}};
  for (unsigned long cap = 0; cap <= LAST_CAP; cap++)
    if (!(cap < 32 && (RIGHTS & 1u << cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL)
      return false;
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || syscall(SYS_setgroups, 0, NULL) ||
      syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) || syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) ||
      syscall(SYS_capset, &head, data))
    return false;
  return !prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) &&
         !prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void be_maker(const struct maker *m)
{
  static char program[] = "/" IMAGE_MAKER_PROGRAM, packed[] = "-zlz4", quiet[] = "--quiet", image[] = "/image",
              layer[] = "/layer";
  char *const argv[] = {program, packed, quiet, image, layer, NULL}, *const env[] = {NULL};
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (!enter_root(m))
    _exit(SETUP_FAILS);
  if (dup2(m->null, 0) || dup2(m->null, 1) != 1 || dup2(m->null, 2) != 2 || syscall(SYS_close_range, 3, ~0u, 0))
    _exit(SETUP_FAILS + 1);
  if (!set_limits())
    _exit(SETUP_FAILS + 2);
  if (!keep_rights() || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) /* a change of user forgets the signal */
    _exit(SETUP_FAILS + 3);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, m->filter))
    _exit(SETUP_FAILS + 4);
  execve(program, argv, env);
  _exit(SETUP_FAILS + 5);
}

/* ---- its parent ---- */

static int run_child(const struct maker *m, const char *layer, struct err *err)
{
  unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;
  int status = 0;
  pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
  if (pid == 0)
    be_maker(m);
  if (pid < 0)
    return err_errno(err, "starting %s", IMAGE_MAKER_PROGRAM);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED(status))
    return err_set(err, -EIO, "making an image of %s: %s was killed by signal %d", layer, IMAGE_MAKER_PROGRAM,
                   WTERMSIG(status));
  if (WEXITSTATUS(status))
    return err_set(err, -EIO, "making an image of %s: %s ended with status %d", layer, IMAGE_MAKER_PROGRAM,
                   WEXITSTATUS(status));
  return 0;
}

int image_maker_run(const char *root, const char *layer, int image, struct err *err)
{
  const uint64_t fixed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  const uint64_t data = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW;
  const struct sock_fprog *filter = image_filter(err);
  if (!filter)
    return -EIO;
  cleanup_fd int root_tree = clone_mount(AT_FDCWD, root, fixed);
  if (root_tree < 0)
    return err_errno(err, "mounting %s (scripts/microvm makes it)", root);
  cleanup_fd int layer_tree = clone_mount(AT_FDCWD, layer, fixed | data);
  if (layer_tree < 0)
    return err_errno(err, "mounting %s", layer);
  cleanup_fd int image_tree = clone_mount(image, "", data);
  cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (image_tree < 0 || null < 0 || fchown(image, NOBODY, NOBODY))
    return err_errno(err, "preparing the image of %s", layer);
  return run_child(&(struct maker){root_tree, layer_tree, image_tree, null, root, filter}, layer, err);
}
