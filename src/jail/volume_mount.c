/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mount.c - see volume_mount.h. */
#include "jail/volume_mount.h"
#include "jail/fs/volume_backing.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Written by the helper, in the memory that it shares with its parent, which waits. */
struct attaching {
  int pidfd, tree;
  const char *path;
  volatile int code; /* errno */
  const char *volatile what;
};

static int look(int root, const char *path)
{
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                         .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
  return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Each part of the way that is missing is made in the directory before it. A link that leads nowhere stays one. */
static int make_way(int root, const char *path)
{
  char part[PATH_MAX];
  size_t n = strlen(path), begin = 1;
  int at = dup(root);
  for (size_t i = 1; at >= 0 && i <= n; i++) {
    if (path[i] && path[i] != '/')
      continue;
    memcpy(part, path, i);
    part[i] = 0;
    int next = look(root, part);
    if (next < 0 && errno == ENOENT && !mkdirat(at, part + begin, 0755))
      next = look(root, part);
    begin = i + 1;
    int code = errno;
    close(at);
    errno = code;
    at = next;
  }
  return at;
}

/* Between vfork and exit: plain calls only, nothing of the parent's memory but the report is written. It has all rights
 * in the box's user namespace from the setns on, and none outside. */
static const char *attach_inside(const struct attaching *a)
{
  if (setns(a->pidfd, CLONE_NEWUSER | CLONE_NEWNS))
    return "entering the box";
  if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, 0, 0, 0) || syscall(SYS_setresuid, 0, 0, 0))
    return "taking the identity of the box's root";
  umask(022);
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    return "opening the box's root";
  int at = look(root, a->path);
  if (at < 0 && errno == ENOENT)
    at = make_way(root, a->path);
  if (at < 0)
    return errno == EXDEV ? "it leads into another mount of the box" : "a directory is needed there";
  return move_mount(a->tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) ? "mounting" : NULL;
}

int volume_mount_attach(int pidfd, int tree, const char *path, struct err *err)
{
  struct attaching a = {.pidfd = pidfd, .tree = tree, .path = path};
  if (strlen(path) >= PATH_MAX || path[0] != '/')
    return err_set(err, -EINVAL, "a volume can't be mounted at '%s'", path);
  int status = 0;
  pid_t pid = vfork(); /* our page tables are not worth a copy */
  if (pid == 0) {
    a.what = attach_inside(&a);
    a.code = errno;
    _exit(a.what ? 1 : 0);
  }
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (pid < 0)
    return err_errno(err, "forking to mount a volume");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return 0;
  int code = a.what && a.code > 0 ? a.code : EIO;
  return err_set(err, code == ESRCH ? -ESRCH : -EINVAL, "a volume can't be mounted at '%s': %s (%s)", path,
                 a.what ? a.what : "the helper was killed", strerrordesc_np(code));
}

int volume_mounts_attach(const struct jail_spec *spec, int pidfd, struct err *err)
{
  int r = 0;
  for (size_t i = 0; i < spec->volumes_n && !r; i++) {
    cleanup_fd int tree = volume_backing_mount(spec->volume_place, spec->volumes[i].id, spec->id_base, err);
    r = tree < 0 ? tree : volume_mount_attach(pidfd, tree, spec->volumes[i].path, err);
  }
  return r;
}

const struct jail_volume *volume_mount_of(const struct jail_spec *spec, struct str device, struct str root)
{
  for (size_t i = 0; i < spec->volumes_n; i++)
    if (volume_backing_is(spec->volume_place, spec->volumes[i].id, device, root))
      return &spec->volumes[i];
  return NULL;
}
