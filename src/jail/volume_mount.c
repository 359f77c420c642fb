/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mount.c - see volume_mount.h. */
#include "jail/volume_mount.h"
#include "jail/fs/volume_backing.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/stat.h>
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

/* --- read-only and back ------------------------------------------------------------------------------------------ */

struct changing {
  int pidfd;
  const char *point;
  uint64_t mount;
  bool readonly;
  volatile int code;
};

/* The box may rename what is above the mount in this very moment: its number says whether it is the one. */
static int change_inside(const struct changing *c)
{
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  struct mount_attr attr = {.attr_set = c->readonly ? MOUNT_ATTR_RDONLY : 0,
                            .attr_clr = c->readonly ? 0 : MOUNT_ATTR_RDONLY};
  struct statx st;
  if (setns(c->pidfd, CLONE_NEWUSER | CLONE_NEWNS))
    return errno;
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int at = root < 0 ? -1 : (int)syscall(SYS_openat2, root, c->point, &how, sizeof(how));
  if (at < 0 || syscall(SYS_statx, at, "", AT_EMPTY_PATH, STATX_MNT_ID, &st))
    return errno;
  if (st.stx_mnt_id != c->mount)
    return ENOENT;
  return mount_setattr(at, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ? errno : 0;
}

static int change(struct changing *c)
{
  int status = 0;
  pid_t pid = vfork();
  if (pid == 0) {
    c->code = change_inside(c);
    _exit(0);
  }
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  return pid < 0 ? -errno : -c->code;
}

/* Mountinfo writes blanks and the like as three octal digits. */
static void plain(char *s)
{
  char *out = s;
  for (; *s; s++, out++) {
    *out = *s;
    if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
      *out = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
      s += 3;
    }
  }
  *out = 0;
}

static int change_line(const struct volume_place *p, const char *id, int pidfd, bool readonly, struct str line)
{
  struct str field[6];
  char point[PATH_MAX];
  uint64_t mount;
  for (size_t i = 0; i < ARRAY_LEN(field); i++)
    str_cut(line, ' ', &field[i], &line);
  bool is = str_starts(field[5], STR("ro"));
  if (is == readonly || !volume_backing_is(p, id, field[2], field[3]) || str_u64(field[0], &mount) ||
      str_copyz(field[4], point, sizeof(point)))
    return 0;
  plain(point);
  int r = change(&(struct changing){.pidfd = pidfd, .point = point, .mount = mount, .readonly = readonly});
  return r ? r : 1;
}

int volume_mount_set_readonly(const struct volume_place *p, const char *id, struct proc_id init, bool readonly,
                              struct err *err)
{
  char path[PROC_PATH];
  cleanup_buf struct buf b = BUF_INIT(4 << 20);
  cleanup_fd int pidfd = proc_open(init);
  snprintf(path, sizeof(path), "/proc/%d/mountinfo", init.pid);
  int r = pidfd < 0 ? -ESRCH : file_read(path, &b), changed = 0;
  struct str rest = buf_str(&b), line;
  while (!r && rest.n) {
    str_cut(rest, '\n', &line, &rest);
    int k = change_line(p, id, pidfd, readonly, line);
    r = MIN(k, 0);
    changed |= k > 0;
  }
  return r ? err_set(err, r, "volume %s can't become %s in a box: %s", id, readonly ? "read-only" : "writable",
                     strerrordesc_np(-r))
           : changed;
}

const struct jail_volume *volume_mount_of(const struct jail_spec *spec, struct str device, struct str root)
{
  for (size_t i = 0; i < spec->volumes_n; i++)
    if (volume_backing_is(spec->volume_place, spec->volumes[i].id, device, root))
      return &spec->volumes[i];
  return NULL;
}
