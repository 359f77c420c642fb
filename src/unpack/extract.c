/* SPDX-License-Identifier: Apache-2.0 */
/* extract.c - see extract.h. Every path is resolved by the kernel with RESOLVE_IN_ROOT, last components never followed.
 */
#include "unpack/extract.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define NOBODY    65534u
#define IDS       65536u
#define WHITEOUT  ".wh."
#define OPAQUE    ".wh..wh..opq"
#define DEPTH_MAX 256 /* directories in a path */

struct stamp {
  char *path;
  int64_t mtime;
};

struct extract {
  int root;
  struct extract_limits limits;
  struct err *err;
  uint64_t bytes, entries, left_out;
  bool whiteouts;
  size_t guards;    /* so many of them hold */
  struct map fresh; /* paths this layer has brought */
  VEC(struct stamp) stamps;
  int file; /* being written */
  struct tar_entry open;
  struct str *xattrs; /* of the file being written; owned */
};

struct extract *extract_new(int root, const struct extract_limits *limits, struct err *err)
{
  struct extract *p = xcalloc(1, sizeof(*p));
  p->root = root;
  p->limits = *limits;
  p->err = err;
  p->file = -1;
  return p;
}

static void forget_xattrs(struct extract *p)
{
  for (size_t i = 0; p->xattrs && i < 2 * p->open.nxattrs; i++)
    free((char *)(uintptr_t)p->xattrs[i].p);
  free(p->xattrs);
  p->xattrs = NULL;
  p->open.nxattrs = 0;
}

void extract_free(struct extract *p)
{
  if (!p)
    return;
  for (size_t i = 0; i < p->stamps.n; i++)
    free(p->stamps.p[i].path);
  vec_free(&p->stamps);
  map_free(&p->fresh);
  forget_xattrs(p);
  if (p->file >= 0)
    close(p->file);
  free(p);
}

void extract_layer(struct extract *p, bool whiteouts)
{
  map_free(&p->fresh);
  p->fresh = (struct map){0};
  p->whiteouts = whiteouts;
}

void extract_guard(struct extract *p, bool box_root)
{
  p->guards = box_root ? 4 : 1;
}

void extract_used(struct extract *p, uint64_t bytes)
{
  p->bytes += bytes;
}

uint64_t extract_bytes(const struct extract *p)
{
  return p->bytes;
}

uint64_t extract_left_out(const struct extract *p)
{
  return p->left_out;
}

/* ---- names ---- */

/* "./a//b/" becomes "a/b"; the root itself becomes "". Names that climb are refused, not repaired. */
static int clean_name(struct extract *p, struct str name, char out[TAR_NAME_MAX + 1])
{
  struct str rest = name, part;
  size_t n = 0, depth = 0;
  while (rest.n) {
    str_cut(rest, '/', &part, &rest);
    if (!part.n || str_is(part, "."))
      continue;
    if (str_is(part, ".."))
      return err_set(p->err, -EXDEV, "the archive's entry '" STR_FMT "' leaves the directory by '..'",
                     STR_ARG(str_sub(name, 0, 200)));
    if (part.n > 255 || n + part.n + 2 > TAR_NAME_MAX || ++depth > DEPTH_MAX)
      return err_set(p->err, -ENAMETOOLONG, "the archive's entry '" STR_FMT "' has too long or too deep a name",
                     STR_ARG(str_sub(name, 0, 200)));
    if (n)
      out[n++] = '/';
    memcpy(out + n, part.p, part.n);
    n += part.n;
  }
  out[n] = 0;
  return 0;
}

static int failed(struct extract *p, const char *what, const char *path)
{
  return err_errno(p->err, "%s %.300s", what, path);
}

/* Opens the directory `path`, making what is missing of it. */
static int open_dir(struct extract *p, const char *path)
{
  char part[TAR_NAME_MAX + 1];
  int fd = path_open_in(p->root, path[0] ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd != -ENOENT)
    return fd;
  cleanup_fd int at = openat(p->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const char *name = path;
  for (const char *end = path; at >= 0 && *end; name = end + (*end == '/')) {
    end = strchrnul(name, '/');
    if (str_copyz(str_make(name, (size_t)(end - name)), part, sizeof(part)))
      return -ENAMETOOLONG;
    if (mkdirat(at, part, 0755) && errno != EEXIST)
      return -errno;
    str_copyz(str_make(path, (size_t)(end - path)), part, sizeof(part));
    close(at);
    at = path_open_in(p->root, part, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  }
  return at < 0 ? at : steal_fd(&at);
}

/* The directory of an entry, and its last name. */
static int open_parent(struct extract *p, const char *path, const char **last)
{
  char dir[TAR_NAME_MAX + 1] = "";
  const char *slash = strrchr(path, '/');
  if (slash && str_copyz(str_make(path, (size_t)(slash - path)), dir, sizeof(dir)))
    return -ENAMETOOLONG;
  *last = slash ? slash + 1 : path;
  int fd = open_dir(p, dir);
  return fd < 0 ? (errno = -fd, failed(p, "opening the directory of", path)) : fd;
}

/* ---- places that are not the archive's ---- */

/* What the server puts there, and, of a box's own root, the kernel. No sandbox would see an image's files in their
 * place either. */
static const char *const guards[] = {"usr/lib/cloche", "dev", "proc", "sys"};

static bool below(struct str path, struct str dir)
{
  return str_starts(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

static bool is_guarded(const struct extract *p, const char *path)
{
  for (size_t i = 0; i < p->guards; i++)
    if (below(str_of(path), str_of(guards[i])))
      return true;
  return false;
}

static bool holds_guarded(const struct extract *p, const char *path)
{
  for (size_t i = 0; i < p->guards; i++)
    if (below(str_of(guards[i]), str_of(path)))
      return true;
  return false;
}

/* ---- whiteouts ---- */

static bool is_fresh(struct extract *p, const char *path)
{
  return map_get(&p->fresh, str_of(path)) != NULL;
}

static void clear_old(struct extract *p, int dir, const char *path);

/* Removes one name unless this layer brought it; of a directory it brought, what is older inside. */
static void clear_name(struct extract *p, int dir, const char *name, const char *path)
{
  if (is_guarded(p, path))
    return;
  if (!is_fresh(p, path) && !holds_guarded(p, path)) {
    path_remove_tree(dir, name);
    return;
  }
  cleanup_fd int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (sub >= 0)
    clear_old(p, sub, path);
}

static void clear_old(struct extract *p, int dir, const char *path)
{
  int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = own < 0 ? NULL : fdopendir(own);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));) {
    char full[TAR_NAME_MAX + 1];
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
      continue;
    if ((size_t)snprintf(full, sizeof(full), "%s%s%s", path, path[0] ? "/" : "", e->d_name) < sizeof(full))
      clear_name(p, dir, e->d_name, full);
  }
  closedir(d);
}

static int whiteout(struct extract *p, const char *path, int parent, const char *last)
{
  char hidden[TAR_NAME_MAX + 1];
  size_t above = (size_t)(last - path);
  if (!strcmp(last, OPAQUE)) {
    str_copyz(str_make(path, above ? above - 1 : 0), hidden, sizeof(hidden));
    clear_old(p, parent, hidden);
    return 0;
  }
  const char *name = last + strlen(WHITEOUT);
  if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || !strncmp(name, WHITEOUT, strlen(WHITEOUT)))
    return err_set(p->err, -EBADMSG, "the layer has the invalid whiteout '%.200s'", path);
  snprintf(hidden, sizeof(hidden), "%.*s%s", (int)above, path, name);
  clear_name(p, parent, name, hidden);
  return 0;
}

/* ---- entries ---- */

static uint32_t id_in(uint64_t id)
{
  return id < IDS ? (uint32_t)id : NOBODY;
}

static bool wanted_xattr(struct str name)
{
  return str_is(name, "security.capability") || str_starts(name, STR("user."));
}

static int finish_fd(struct extract *p, int fd, const struct tar_entry *e, const struct str *xattrs, const char *path)
{
  if (fchown(fd, id_in(e->uid), id_in(e->gid)) || fchmod(fd, e->mode))
    return failed(p, "setting owner and mode of", path);
  for (size_t i = 0; i < e->nxattrs; i++)
    if (wanted_xattr(xattrs[2 * i]) && fsetxattr(fd, xattrs[2 * i].p, xattrs[2 * i + 1].p, xattrs[2 * i + 1].n, 0) &&
        errno != ENOTSUP)
      return failed(p, "setting an extended attribute of", path);
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = e->mtime}};
  futimens(fd, times);
  return 0;
}

static int put_dir(struct extract *p, int parent, const char *last, const struct tar_entry *e, const char *path)
{
  if (mkdirat(parent, last, 0700) && errno != EEXIST)
    return failed(p, "making the directory", path);
  cleanup_fd int fd = openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return failed(p, "opening the directory", path);
  vec_push(&p->stamps, ((struct stamp){xstrdup(path), e->mtime}));
  return finish_fd(p, fd, e, e->xattrs, path);
}

static int put_file(struct extract *p, int parent, const char *last, const struct tar_entry *e, const char *path)
{
  p->file = openat(parent, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (p->file < 0)
    return failed(p, "making the file", path);
  p->open = *e;
  p->xattrs = xcalloc(2 * e->nxattrs + 1, sizeof(*p->xattrs));
  for (size_t i = 0; i < 2 * e->nxattrs; i++) {
    char *copy = xmalloc(e->xattrs[i].n + 1);
    memcpy(copy, e->xattrs[i].p, e->xattrs[i].n);
    copy[e->xattrs[i].n] = 0;
    p->xattrs[i] = str_make(copy, e->xattrs[i].n);
  }
  return 0;
}

static int put_symlink(struct extract *p, int parent, const char *last, const struct tar_entry *e, const char *path)
{
  char target[TAR_NAME_MAX + 1];
  if (str_copyz(e->link, target, sizeof(target)) || !target[0])
    return err_set(p->err, -EBADMSG, "the link '%.200s' has no target or too long a one", path);
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = e->mtime}};
  if (symlinkat(target, parent, last) || fchownat(parent, last, id_in(e->uid), id_in(e->gid), AT_SYMLINK_NOFOLLOW))
    return failed(p, "making the link", path);
  utimensat(parent, last, times, AT_SYMLINK_NOFOLLOW);
  return 0;
}

static int put_hardlink(struct extract *p, int parent, const char *last, const struct tar_entry *e, const char *path)
{
  char target[TAR_NAME_MAX + 1];
  const char *name;
  int r = clean_name(p, e->link, target);
  if (r || !target[0])
    return r ? r : err_set(p->err, -EBADMSG, "the hard link '%.200s' has no target", path);
  cleanup_fd int dir = open_parent(p, target, &name);
  if (dir < 0)
    return dir;
  return linkat(dir, name, parent, last, 0) ? failed(p, "making the hard link", path) : 0;
}

static int put_fifo(struct extract *p, int parent, const char *last, const struct tar_entry *e, const char *path)
{
  if (mkfifoat(parent, last, 0600) || fchownat(parent, last, id_in(e->uid), id_in(e->gid), AT_SYMLINK_NOFOLLOW) ||
      fchmodat(parent, last, e->mode, 0))
    return failed(p, "making the pipe", path);
  return 0;
}

/* What is there goes, but a directory where a directory comes stays with its contents. */
static int make_room(struct extract *p, int parent, const char *last, const struct tar_entry *e, const char *path)
{
  struct stat st;
  if (fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW))
    return errno == ENOENT ? 0 : failed(p, "looking at", path);
  if (S_ISDIR(st.st_mode) && e->kind == TAR_DIR)
    return 0;
  if (holds_guarded(p, path))
    return err_set(p->err, -EBADMSG, "the layer puts something else in the place of the directory '%s'", path);
  int r = path_remove_tree(parent, last);
  return r ? (errno = -r, failed(p, "replacing", path)) : 0;
}

static int put(struct extract *p, int parent, const char *last, const struct tar_entry *e, const char *path)
{
  static int (*const ways[])(struct extract *, int, const char *, const struct tar_entry *,
                             const char *) = {[TAR_FILE] = put_file,
                                              [TAR_DIR] = put_dir,
                                              [TAR_SYMLINK] = put_symlink,
                                              [TAR_HARDLINK] = put_hardlink,
                                              [TAR_FIFO] = put_fifo};
  int r = make_room(p, parent, last, e, path);
  r = r ? r : ways[e->kind](p, parent, last, e, path);
  if (!r && p->whiteouts)
    map_put(&p->fresh, str_of(path), p);
  return r;
}

static int root_entry(struct extract *p, const struct tar_entry *e)
{
  if (e->kind != TAR_DIR)
    return err_set(p->err, -EBADMSG, "an entry of the archive has no name");
  cleanup_fd int fd = openat(p->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? failed(p, "opening", "the root") : finish_fd(p, fd, e, e->xattrs, "/");
}

static int entry(void *arg, const struct tar_entry *e)
{
  struct extract *p = arg;
  char path[TAR_NAME_MAX + 1];
  const char *last;
  if (++p->entries > p->limits.entries)
    return err_set(p->err, -E2BIG, "more than %llu entries", (unsigned long long)p->limits.entries);
  if (e->size > p->limits.bytes - MIN(p->bytes, p->limits.bytes))
    return err_set(p->err, -EFBIG, "unpacked it is larger than %llu MiB", (unsigned long long)(p->limits.bytes >> 20));
  int r = clean_name(p, e->name, path);
  if (r)
    return r;
  if (!path[0])
    return root_entry(p, e);
  if (is_guarded(p, path))
    return 0; /* with no file open, its contents go nowhere */
  cleanup_fd int parent = open_parent(p, path, &last);
  if (parent < 0)
    return parent;
  if (p->whiteouts && !strncmp(last, WHITEOUT, strlen(WHITEOUT)))
    return e->size ? err_set(p->err, -EBADMSG, "the whiteout '%.200s' has contents", path)
                   : whiteout(p, path, parent, last);
  if (e->kind == TAR_DEVICE) {
    p->left_out++;
    return 0;
  }
  return put(p, parent, last, e, path);
}

static int data(void *arg, struct str piece)
{
  struct extract *p = arg;
  p->bytes += piece.n;
  if (p->bytes > p->limits.bytes)
    return err_set(p->err, -EFBIG, "unpacked it is larger than %llu MiB", (unsigned long long)(p->limits.bytes >> 20));
  if (p->file < 0)
    return 0;
  int r = fd_write_all(p->file, piece.p, piece.n);
  return r ? err_set(p->err, r, "writing a file: %s", strerrordesc_np(-r)) : 0;
}

static int end(void *arg)
{
  struct extract *p = arg;
  if (p->file < 0) /* a whiteout, or in a place that is not the archive's */
    return 0;
  int r = finish_fd(p, p->file, &p->open, p->xattrs, "a file");
  close(steal_fd(&p->file));
  forget_xattrs(p);
  return r;
}

const struct tar_ops extract_ops = {entry, data, end};

int extract_finish(struct extract *p)
{
  for (size_t i = p->stamps.n; i-- > 0;) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = p->stamps.p[i].mtime}};
    cleanup_fd int fd = path_open_in(p->root, p->stamps.p[i].path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd >= 0)
      futimens(fd, times);
  }
  return 0;
}
