/* SPDX-License-Identifier: Apache-2.0 */
/* file_ops.c - see file_ops.h. */
#include "content/file_ops.h"

#include "wire/volume_path.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#define AGAIN_MAX 64   /* tries of a path while others rename */
#define SWEEP_MAX 4096 /* entries that one sweep looks at: a box may make any number */

static int proc_fds = -1; /* /proc/self/fd */

/* ---- paths ---- */

int file_open_in(int root, struct str path, int flags)
{
  char text[PATH_MAX];
  struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                         .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
  if (str_copyz(path, text, sizeof(text)))
    return -ENAMETOOLONG;
  for (int i = 0; i < AGAIN_MAX; i++) {
    long fd = syscall(SYS_openat2, root, text, &how, sizeof(how));
    if (fd >= 0)
      return (int)fd;
    if (errno != EAGAIN || (flags & O_NONBLOCK && i > 4)) /* EAGAIN also says that another holds a lease on it */
      return -errno;
  }
  return -EBUSY;
}

static int failed(int r, struct str path, struct err *err)
{
  switch (-r) {
  case ENOENT:
  case ENOTDIR:
  case ELOOP:
    return err_set(err, -ENOENT, "there is no '" STR_FMT "' in this volume", STR_ARG(path));
  case ENAMETOOLONG:
    return err_set(err, -EINVAL, "the path '" STR_FMT "' is too long", STR_ARG(str_sub(path, 0, 200)));
  case EEXIST:
    return err_set(err, -EEXIST, "'" STR_FMT "' exists already; 'force=true' replaces it", STR_ARG(path));
  case EISDIR:
    return err_set(err, -EISDIR, "'" STR_FMT "' is a directory", STR_ARG(path));
  case EAGAIN:
  case EBUSY:
    return err_set(err, -EBUSY, "'" STR_FMT "' is in use by a sandbox; try again", STR_ARG(path));
  case ENOSPC:
  case EDQUOT:
    return err_set(err, -ENOSPC,
                   "the volume is full: all its bytes (setting volume_mb) or files (setting volume_inodes) are in use");
  case EROFS:
    return err_set(err, -EIO, "the volume is damaged and can only be read");
  default:
    return err_set(err, r, "'" STR_FMT "': %s", STR_ARG(path), strerrordesc_np(-r));
  }
}

int file_place_open(int root, struct str path, struct file_place *out, struct err *err)
{
  struct str name = path_base(path);
  out->dir = -1;
  if (str_copyz(name, out->name, sizeof(out->name)))
    return failed(-ENAMETOOLONG, path, err);
  out->dir = file_open_in(root, path_dir(path), O_PATH | O_DIRECTORY);
  return out->dir < 0 ? failed(out->dir, path, err) : 0;
}

static void place_close(struct file_place *p)
{
  if (p->dir >= 0)
    close(p->dir);
}
#define cleanup_place __attribute__((cleanup(place_close)))

static bool is_root(struct str path)
{
  return str_is(path, "/");
}

/* ---- stat ---- */

static const char *type_of(mode_t mode)
{
  return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symlink" : "unknown";
}

static void put_time(struct jw *w, const char *name, const struct timespec *t)
{
  char text[CLOCK_TEXT];
  int64_t second = MAX(MIN((int64_t)t->tv_sec, (int64_t)253402300799), (int64_t)0); /* a box may set any time */
  clock_text(second * 1000000 + t->tv_nsec / 1000, text);
  jw_key(w, name);
  jw_z(w, text);
}

/* Names may be any bytes, and text is UTF-8: what it can't hold is here besides, so that programs come to it. */
static void put_bytes(struct jw *w, const char *name, struct str bytes)
{
  cleanup_buf struct buf b = BUF_INIT(16384);
  if (utf8_valid(bytes))
    return;
  base64_add(&b, bytes.p, bytes.n, true);
  jw_key(w, name);
  jw_str(w, buf_str(&b));
}

void file_put_stat(struct jw *w, int dir, struct str path, const struct stat *st)
{
  char name[256], target[PATH_MAX];
  struct str base = path_base(path);
  ssize_t n = -1;
  if (S_ISLNK(st->st_mode) && !str_copyz(base, name, sizeof(name)))
    n = readlinkat(dir, name, target, sizeof(target));
  jw_open(w, '{');
  jw_key(w, "name");
  jw_str(w, base);
  jw_key(w, "type");
  jw_z(w, type_of(st->st_mode));
  jw_key(w, "path");
  jw_str(w, path);
  put_bytes(w, "pathBytes", path);
  jw_key(w, "size");
  jw_int(w, st->st_size);
  jw_key(w, "mode");
  jw_uint(w, st->st_mode & 07777);
  jw_key(w, "uid");
  jw_uint(w, st->st_uid);
  jw_key(w, "gid");
  jw_uint(w, st->st_gid);
  put_time(w, "atime", &st->st_atim);
  put_time(w, "mtime", &st->st_mtim);
  put_time(w, "ctime", &st->st_ctim);
  if (n >= 0) {
    jw_key(w, "target");
    jw_str(w, str_make(target, (size_t)n));
    put_bytes(w, "targetBytes", str_make(target, (size_t)n));
  }
  jw_close(w, '}');
}

static void put_json(struct buf *json, int dir, struct str path, const struct stat *st)
{
  struct jw w = JW(json);
  buf_clear(json);
  file_put_stat(&w, dir, path, st);
}

static int look(int root, struct str path, struct file_place *at, struct stat *st, struct err *err)
{
  *at = (struct file_place){.dir = -1};
  if (is_root(path))
    return fstat(root, st) ? failed(-errno, path, err) : 0;
  int r = file_place_open(root, path, at, err);
  if (r)
    return r;
  return fstatat(at->dir, at->name, st, AT_SYMLINK_NOFOLLOW) ? failed(-errno, path, err) : 0;
}

int file_stat(int root, struct str path, struct buf *json, struct err *err)
{
  cleanup_place struct file_place at;
  struct stat st;
  int r = look(root, path, &at, &st, err);
  if (!r)
    put_json(json, at.dir, path, &st);
  return r;
}

/* ---- owner and mode ---- */

/* Owner first: a change of it takes bits of the mode away. */
static int set_owner(int fd, const struct file_owner *o)
{
  uid_t uid = o->uid == OWNER_KEEP ? (uid_t)-1 : o->uid;
  gid_t gid = o->gid == OWNER_KEEP ? (gid_t)-1 : o->gid;
  if ((uid != (uid_t)-1 || gid != (gid_t)-1) && fchown(fd, uid, gid))
    return -errno;
  if (o->mode != OWNER_KEEP && fchmod(fd, o->mode))
    return -errno;
  struct timespec t[2] = {{.tv_nsec = UTIME_OMIT},
                          {.tv_sec = o->mtime_us / 1000000, .tv_nsec = o->mtime_us % 1000000 * 1000}};
  return o->mtime_us != TIME_KEEP && futimens(fd, t) ? -errno : 0;
}

static int change_link(const struct file_place *at, const struct file_owner *o, struct str path, struct err *err)
{
  uid_t uid = o->uid == OWNER_KEEP ? (uid_t)-1 : o->uid;
  gid_t gid = o->gid == OWNER_KEEP ? (gid_t)-1 : o->gid;
  if (o->mode != OWNER_KEEP)
    return err_set(err, -EINVAL, "'" STR_FMT "' is a symbolic link, which has no mode of its own", STR_ARG(path));
  return fchownat(at->dir, at->name, uid, gid, AT_SYMLINK_NOFOLLOW) ? failed(-errno, path, err) : 0;
}

int file_change(int root, struct str path, const struct file_owner *o, struct buf *json, struct err *err)
{
  cleanup_place struct file_place at;
  struct stat st;
  int r = look(root, path, &at, &st, err);
  if (r)
    return r;
  if (S_ISLNK(st.st_mode)) {
    r = change_link(&at, o, path, err);
  } else if (o->uid != OWNER_KEEP || o->gid != OWNER_KEEP || o->mode != OWNER_KEEP) {
    cleanup_fd int fd =
        at.dir < 0 ? dup(root) : openat(at.dir, at.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    r = fd < 0 ? -errno : set_owner(fd, o);
    r = r == -ENXIO ? err_set(err, -EINVAL, "'" STR_FMT "' is a socket, which can't be changed here", STR_ARG(path))
        : r         ? failed(r, path, err)
                    : 0;
  }
  return r ? r : file_stat(root, path, json, err);
}

/* ---- remove ---- */

int file_remove(int root, struct str path, bool again, int64_t until_us, struct err *err)
{
  cleanup_place struct file_place at = {.dir = -1};
  if (is_root(path))
    return err_set(err, -ENOENT, "the root of a volume can't be deleted; delete the volume");
  int r = file_place_open(root, path, &at, err);
  if (r)
    return again && r == -ENOENT ? 0 : r;
  if (!unlinkat(at.dir, at.name, 0))
    return 0;
  if (errno == ENOENT && again)
    return 0;
  if (errno != EISDIR && errno != EPERM)
    return failed(-errno, path, err);
  r = tree_remove(at.dir, at.name, until_us);
  if (r == -EBUSY)
    return err_set(err, -EBUSY,
                   "'" STR_FMT "' is not deleted yet: a sandbox adds files to it meanwhile; try again to go on",
                   STR_ARG(path));
  if (r == -EAGAIN)
    return err_set(err, -EAGAIN, "'" STR_FMT "' is not deleted yet", STR_ARG(path));
  return r ? failed(r, path, err) : 0;
}

/* ---- directories ---- */

/* One that is there is success where `there` is not NULL, which says so. */
static int make_one(int dir, const char *name, const struct file_owner *o, bool *there)
{
  if (mkdirat(dir, name, 0700))
    return errno == EEXIST && there ? (*there = true, 0) : -errno;
  cleanup_fd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 ? -errno : set_owner(fd, o);
}

static int not_a_directory(struct str path, struct err *err)
{
  return err_set(err, -EEXIST, "'" STR_FMT "' exists and is not a directory", STR_ARG(path));
}

static int make_parents(int root, struct str path, const struct file_owner *o, struct err *err)
{
  for (size_t n = 1; n <= path.n; n++) {
    if (n < path.n && path.p[n] != '/')
      continue;
    struct str part = str_sub(path, 0, n);
    cleanup_place struct file_place at = {.dir = -1};
    bool there = false;
    cleanup_fd int fd = file_open_in(root, part, O_PATH | O_DIRECTORY);
    if (fd >= 0)
      continue;
    if (fd == -ENOTDIR)
      return not_a_directory(part, err);
    if (fd != -ENOENT)
      return failed(fd, part, err);
    int r = file_place_open(root, part, &at, err);
    if (r)
      return r;
    if ((r = make_one(at.dir, at.name, o, &there)))
      return failed(r, part, err);
    if (there) { /* just now by another; or a link that leads nowhere */
      cleanup_fd int now = file_open_in(root, part, O_PATH | O_DIRECTORY);
      if (now < 0)
        return not_a_directory(part, err);
    }
  }
  return 0;
}

int file_mkdir(int root, struct str path, const struct file_owner *o, bool force, bool again, struct buf *json,
               struct err *err)
{
  cleanup_place struct file_place at = {.dir = -1};
  int r = 0;
  bool there = false;
  if (force) {
    r = is_root(path) ? 0 : make_parents(root, path, o, err);
  } else if (is_root(path)) {
    r = failed(-EEXIST, path, err);
  } else if (!(r = file_place_open(root, path, &at, err))) {
    r = make_one(at.dir, at.name, o, again ? &there : NULL);
    r = r ? failed(r, path, err) : 0;
  }
  return r ? r : file_stat(root, path, json, err);
}

/* ---- links ---- */

int file_link(int root, struct str path, const char *target, const struct file_owner *o, struct err *err)
{
  cleanup_place struct file_place at = {.dir = -1};
  if (is_root(path))
    return failed(-EEXIST, path, err);
  int r = file_place_open(root, path, &at, err);
  if (r)
    return r;
  if (unlinkat(at.dir, at.name, 0) && errno != ENOENT)
    return failed(-errno, path, err);
  if (symlinkat(target, at.dir, at.name))
    return failed(-errno, path, err);
  struct file_owner owner = {o->uid, o->gid, OWNER_KEEP, TIME_KEEP};
  return change_link(&at, &owner, path, err);
}

/* ---- reading ---- */

int file_open(int root, struct str path, uint64_t *size, struct err *err)
{
  struct stat st;
  cleanup_fd int fd = file_open_in(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && fd != -ENXIO)
    return failed(fd, path, err);
  if (fd == -ENXIO || fstat(fd, &st) || !S_ISREG(st.st_mode))
    return err_set(err, -ENOENT, "'" STR_FMT "' is not a file", STR_ARG(path));
  fcntl(fd, F_SETFL, O_RDONLY);
  *size = (uint64_t)st.st_size;
  return steal_fd(&fd);
}

/* ---- uploads ---- */

int file_ops_open(struct err *err)
{
  cleanup_fd int fs = fsopen("proc", FSOPEN_CLOEXEC);
  if (fs < 0)
    return err_errno(err, "content: a view of its own descriptors");
  fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0);
  fsconfig(fs, FSCONFIG_SET_STRING, "subset", "pid", 0);
  if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return err_errno(err, "content: a view of its own descriptors");
  cleanup_fd int mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  proc_fds = mount < 0 ? -1 : openat(mount, "self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return proc_fds < 0 ? err_errno(err, "content: a view of its own descriptors") : 0;
}

/* Gives a file without a name one. Kernels from 6.10 on know a file that the caller opened itself by its descriptor. */
static int name_file(int fd, int dir, const char *name)
{
  char number[16];
  if (!linkat(fd, "", dir, name, AT_EMPTY_PATH))
    return 0;
  if (errno != ENOENT || proc_fds < 0)
    return -errno;
  snprintf(number, sizeof(number), "%d", fd);
  return linkat(proc_fds, number, dir, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static int uploads_dir(int root, bool make)
{
  if (make && mkdirat(root, UPLOADS_DIR, 0700) && errno != EEXIST)
    return -errno;
  int fd = openat(root, UPLOADS_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

/* Calls `make` with the hidden directory, again when another upload's end took it away (file_discard). What else a
 * sandbox has put in its place goes: the name is ours. */
static int in_uploads_dir(int root, int (*make)(int dir, const char *name, int fd), const char *name, int fd)
{
  for (int i = 0;; i++) {
    cleanup_fd int dir = uploads_dir(root, true);
    int r = dir < 0 ? dir : make(dir, name, fd);
    if (dir == -ENOTDIR || dir == -ELOOP)
      unlinkat(root, UPLOADS_DIR, 0);
    else if (r != -ENOENT)
      return r;
    if (i == AGAIN_MAX)
      return -EBUSY;
  }
}

static int create_in(int dir, const char *name, int unused)
{
  int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd < 0 ? -errno : fd;
}

static int nameless(int root, const char *name)
{
  int fd = openat(root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0)
    return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    return -errno;
  return in_uploads_dir(root, create_in, name, -1);
}

static int may_take(const struct file_place *at, struct str path, bool force, struct err *err)
{
  struct stat st;
  if (fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW))
    return errno == ENOENT ? 0 : failed(-errno, path, err);
  if (S_ISDIR(st.st_mode))
    return failed(-EISDIR, path, err);
  return force ? 0 : failed(-EEXIST, path, err);
}

static int has_room(int root, uint64_t size, struct err *err)
{
  struct statvfs fs;
  if (size == UINT64_MAX || fstatvfs(root, &fs) || !fs.f_blocks)
    return 0;
  uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
  if (size <= room)
    return 0;
  return err_set(err, -ENOSPC, "the file of %llu bytes does not fit into the volume, which has %llu bytes left",
                 (unsigned long long)size, (unsigned long long)room);
}

int file_upload(int root, struct str path, const char *name, uint64_t size, bool force, struct err *err)
{
  cleanup_place struct file_place at = {.dir = -1};
  if (is_root(path))
    return failed(-EISDIR, path, err);
  int r = file_place_open(root, path, &at, err);
  r = r ? r : may_take(&at, path, force, err);
  r = r ? r : has_room(root, size, err);
  if (r)
    return r;
  int fd = nameless(root, name);
  return fd < 0 ? failed(fd, path, err) : fd;
}

static int move_upload(int dir, const char *upload, const struct file_place *at, bool force)
{
  if (force)
    return renameat(dir, upload, at->dir, at->name) ? -errno : 0;
  if (!linkat(dir, upload, at->dir, at->name, 0))
    return 0; /* file_discard takes the first name */
  if (errno == EEXIST)
    return -EEXIST;
  return renameat2(dir, upload, at->dir, at->name, RENAME_NOREPLACE) ? -errno : 0;
}

static int name_in(int dir, const char *name, int fd)
{
  return name_file(fd, dir, name);
}

/* In the place of a file that is there: under another name first, because only a rename replaces. */
static int replace(int root, int fd, const struct file_place *at, const char *upload)
{
  int r = in_uploads_dir(root, name_in, upload, fd);
  cleanup_fd int dir = r ? -1 : uploads_dir(root, false);
  r = r ? r : dir < 0 ? dir : move_upload(dir, upload, at, true);
  file_discard(root, upload); /* the empty directory; and the name, if it is left */
  return r == -ENOTEMPTY || r == -EEXIST ? -EISDIR : r;
}

static int appear(int root, int fd, const char *upload, const struct file_place *at, bool force)
{
  struct stat st;
  if (fstat(fd, &st))
    return -errno;
  if (st.st_nlink) { /* it has a name in the hidden directory */
    cleanup_fd int dir = uploads_dir(root, false);
    return dir < 0 ? dir : move_upload(dir, upload, at, force);
  }
  int r = name_file(fd, at->dir, at->name);
  return r == -EEXIST && force ? replace(root, fd, at, upload) : r;
}

int file_commit(int root, struct str path, const char *name, int fd, const struct file_owner *o, bool force,
                struct buf *json, struct err *err)
{
  cleanup_place struct file_place at = {.dir = -1};
  struct stat st;
  int r = file_place_open(root, path, &at, err);
  r = r ? r : may_take(&at, path, force, err);
  if (r)
    return r;
  r = set_owner(fd, o);
  r = r ? r : appear(root, fd, name, &at, force);
  if (r)
    return failed(r, path, err);
  if (fstat(fd, &st))
    return failed(-errno, path, err);
  put_json(json, at.dir, path, &st);
  return 0;
}

int file_sync(int fd, struct str path, struct err *err)
{
  return fsync(fd) ? failed(-errno, path, err) : 0;
}

int file_sync_name(int root, struct str path, struct err *err)
{
  cleanup_fd int dir = file_open_in(root, path_dir(path), O_RDONLY | O_DIRECTORY);
  if (dir == -ENOENT || dir == -ENOTDIR)
    return 0;                                       /* a sandbox removed or renamed it already */
  if (dir >= 0 && (!fsync(dir) || errno == EINVAL)) /* EINVAL: filesystems whose directories need none */
    return 0;
  return failed(dir < 0 ? dir : -errno, path, err);
}

void file_discard(int root, const char *name)
{
  cleanup_fd int dir = uploads_dir(root, false);
  if (dir < 0)
    return;
  unlinkat(dir, name, 0);
  unlinkat(root, UPLOADS_DIR, AT_REMOVEDIR);
}

static void sweep_one(int dir, const char *name, int64_t before)
{
  struct stat st;
  if (volume_upload_valid(str_of(name)) && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
      (int64_t)st.st_mtim.tv_sec < before && (int64_t)st.st_ctim.tv_sec < before)
    unlinkat(dir, name, 0);
}

void file_sweep(int root, int64_t idle_s)
{
  int fd = openat(root, UPLOADS_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d) {
    if (fd >= 0)
      close(fd);
    return;
  }
  int64_t before = clock_wall_us() / 1000000 - idle_s;
  struct dirent *e;
  for (int i = 0; i < SWEEP_MAX && (e = readdir(d)); i++)
    sweep_one(dirfd(d), e->d_name, before);
  unlinkat(root, UPLOADS_DIR, AT_REMOVEDIR);
}

bool file_is(int root, struct str path, const struct file_owner *o, uint64_t size, struct buf *json)
{
  cleanup_place struct file_place at;
  struct stat st;
  if (look(root, path, &at, &st, NULL) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != size || st.st_uid != o->uid ||
      st.st_gid != o->gid || (st.st_mode & 07777) != o->mode)
    return false;
  put_json(json, at.dir, path, &st);
  return true;
}
