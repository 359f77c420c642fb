/* SPDX-License-Identifier: Apache-2.0 */
/* ext_files.c - see ext_files.h. */
#include "jail/checkpoint/ext_files.h"
#include "jail/checkpoint/zygote_heap.h"
#include "jail/jail.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define MAPS_MAX           ((size_t)64 << 20)
#define MARK_BYTES         65536
#define OVERLAY_LAYERS_MAX 120
#define SEEN               4096 /* marks kept */

/* Programs and libraries of a template are the same for every box of it, and so are their marks. A view of a layer has
 * a device number of its own, so that is left out; the time of the last change of an inode is not to be chosen. */
struct seen {
  uint64_t inode, size;
  struct statx_timestamp changed, written;
  uint32_t mark;
};

static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static struct seen seen_marks[SEEN];

static struct seen seen_of(const struct statx *st)
{
  return (struct seen){.inode = st->stx_ino, .size = st->stx_size, .changed = st->stx_ctime, .written = st->stx_mtime};
}

static bool is_same(const struct seen *a, const struct seen *b)
{
  return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
         a->changed.tv_nsec == b->changed.tv_nsec && a->written.tv_sec == b->written.tv_sec &&
         a->written.tv_nsec == b->written.tv_nsec;
}

static bool mark_seen(const struct statx *st, uint32_t *mark)
{
  struct seen want = seen_of(st);
  pthread_mutex_lock(&seen_lock);
  const struct seen *s = &seen_marks[want.inode % SEEN];
  bool found = s->inode && is_same(s, &want);
  *mark = s->mark;
  pthread_mutex_unlock(&seen_lock);
  return found;
}

static void mark_learn(const struct statx *st, uint32_t mark)
{
  struct seen s = seen_of(st);
  s.mark = mark;
  pthread_mutex_lock(&seen_lock);
  seen_marks[s.inode % SEEN] = s;
  pthread_mutex_unlock(&seen_lock);
}

static int mark_of(int fd, uint64_t *size, uint32_t *mark)
{
  struct statx st;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st))
    return -errno;
  *size = st.stx_size;
  if (mark_seen(&st, mark))
    return 0;
  cleanup_free char *bytes = xmalloc(MARK_BYTES);
  ssize_t n = pread(fd, bytes, MARK_BYTES, 0);
  if (n < 0)
    return -errno;
  *mark = crc32c(0, bytes, (size_t)n);
  mark_learn(&st, *mark);
  return 0;
}

/* --- at a dump ------------------------------------------------------------------------------------------------ */

/* Files are opened without waiting: what a box has mapped may be under a lease of its own. */

static bool is_own(const struct box_mounts *own, uint64_t id)
{
  for (size_t i = 0; i < own->ids.n; i++)
    if (own->ids.p[i] == id)
      return true;
  return false;
}

static bool is_known(const struct manifest *m, const char *key)
{
  for (size_t i = 0; i < m->files.n; i++)
    if (str_is(str_of(key), m->files.p[i].key))
      return true;
  return false;
}

/* Shared memory and memfds also come from mounts no box has; only views of layers are ours to find again, and the
 * runtime files, which lie below the layers, too. A name is content here: a wrong one can't be found again. */
static bool is_findable(const char *link, struct str path)
{
  static const long views[] = {OVERLAYFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC};
  struct statfs fs;
  if (str_starts(path, STR(JAIL_RUNTIME "/")))
    return true;
  for (size_t i = 0; i < ARRAY_LEN(views); i++)
    if (statfs(link, &fs) == 0 && fs.f_type == views[i])
      return true;
  return false;
}

/* 1: it is a zygote's memory, and is kept; 0: it is not. What the file is called has no say in it. */
static int add_heap(const char *link, const struct statx *st, const char *key, const char *heaps, struct manifest *m,
                    struct err *err)
{
  char name[HEAP_NAME];
  if (!zygote_heap_listed(makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino))
    return 0;
  cleanup_fd int fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 || !zygote_heap_find(fd, name))
    return 0;
  struct manifest_file f = {.key = arena_z(&m->arena, str_of(key)),
                            .path = "",
                            .heap = arena_z(&m->arena, str_of(name)),
                            .inode = st->stx_ino,
                            .size = st->stx_size};
  int r = zygote_heap_keep(heaps, name, fd, err);
  if (!r)
    vec_push(&m->files, f);
  return r ? r : 1;
}

static int add_layer_file(const char *link, struct str path, const struct statx *st, const char *key,
                          struct manifest *m, struct err *err)
{
  struct manifest_file f = {.key = arena_z(&m->arena, str_of(key)),
                            .path = arena_z(&m->arena, path),
                            .heap = "",
                            .inode = st->stx_ino,
                            .size = st->stx_size};
  if (!is_findable(link, path))
    return 0;
  if (!mark_seen(st, &f.mark)) {
    cleanup_fd int fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || mark_of(fd, &f.size, &f.mark))
      return err_errno(err, "reading " STR_FMT, STR_ARG(path));
  }
  vec_push(&m->files, f);
  return 0;
}

static int add_file(const char *link, struct str path, const struct box_mounts *own, const char *heaps,
                    struct manifest *m, struct err *err)
{
  struct statx st;
  char key[64];
  if (statx(AT_FDCWD, link, 0, STATX_BASIC_STATS | STATX_MNT_ID, &st))
    return errno == ENOENT ? 0 : err_errno(err, "reading the status of %s", link);
  if (is_own(own, st.stx_mnt_id))
    return 0;
  snprintf(key, sizeof(key), "file[%" PRIx64 ":%" PRIx64 "]", (uint64_t)st.stx_mnt_id, (uint64_t)st.stx_ino);
  if (is_known(m, key))
    return 0;
  int r = add_heap(link, &st, key, heaps, m, err);
  return r ? MIN(r, 0) : add_layer_file(link, path, &st, key, m, err);
}

/* A line of maps: RANGE access offset device INODE   PATH. Mappings of one file mostly follow each other. */
static int add_mapping(pid_t pid, struct str line, struct str *last, const struct box_mounts *own, const char *heaps,
                       struct manifest *m, struct err *err)
{
  struct str field[5], rest = line;
  char link[96];
  for (size_t i = 0; i < ARRAY_LEN(field); i++)
    str_cut(rest, ' ', &field[i], &rest);
  rest = str_trim(rest);
  if (!str_starts(rest, STR("/")) || str_is(field[4], "0") || str_eq(*last, rest))
    return 0;
  *last = rest;
  snprintf(link, sizeof(link), "/proc/%d/map_files/" STR_FMT, pid, STR_ARG(field[0]));
  return add_file(link, rest, own, heaps, m, err);
}

int ext_files_collect(pid_t pid, const struct box_mounts *own, const char *heaps, struct manifest *m, struct err *err)
{
  char link[64], path[PATH_MAX];
  cleanup_buf struct buf b = BUF_INIT(MAPS_MAX);
  snprintf(link, sizeof(link), "/proc/%d/exe", pid);
  ssize_t n = readlink(link, path, sizeof(path));
  if (n <= 0)
    return 0; /* a zombie */
  int r = add_file(link, str_make(path, (size_t)n), own, heaps, m, err);
  snprintf(link, sizeof(link), "/proc/%d/maps", pid);
  if (!r && file_read(link, &b))
    r = err_set(err, -EIO, "reading %s", link);
  struct str rest = buf_str(&b), line, last = STR_NONE;
  while (rest.n > 0 && !r) {
    str_cut(rest, '\n', &line, &rest);
    r = own->going(own->arg, err);
    r = r ? r : add_mapping(pid, line, &last, own, heaps, m, err);
  }
  return r;
}

static bool read_hex(struct str s, unsigned *out)
{
  *out = 0;
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
    if (digit > 15 || *out > UINT32_MAX >> 4)
      return false;
    *out = *out << 4 | digit;
  }
  return s.n > 0;
}

/* RANGE access offset MAJOR:MINOR INODE: whether it may be a heap, and its range. */
static bool may_be_heap(struct str line, struct str *range)
{
  struct str unused, device, inode, major, minor;
  uint64_t number;
  unsigned parts[2];
  str_cut(line, ' ', range, &line);
  str_cut(line, ' ', &unused, &line);
  str_cut(line, ' ', &unused, &line);
  str_cut(line, ' ', &device, &line);
  str_cut(line, ' ', &inode, &line);
  str_cut(device, ':', &major, &minor);
  return read_hex(major, &parts[0]) && read_hex(minor, &parts[1]) && !str_u64(inode, &number) &&
         zygote_heap_listed(makedev(parts[0], parts[1]), number);
}

void ext_files_prepare(pid_t pid, const char *heaps)
{
  char link[96], name[HEAP_NAME];
  cleanup_buf struct buf b = BUF_INIT(MAPS_MAX);
  snprintf(link, sizeof(link), "/proc/%d/maps", pid);
  if (file_read(link, &b))
    return;
  struct str rest = buf_str(&b), line, range;
  while (rest.n > 0) {
    str_cut(rest, '\n', &line, &rest);
    if (!may_be_heap(line, &range))
      continue;
    snprintf(link, sizeof(link), "/proc/%d/map_files/" STR_FMT, pid, STR_ARG(range));
    cleanup_fd int fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || !zygote_heap_find(fd, name))
      continue;
    zygote_heap_keep(heaps, name, fd, NULL);
    return;
  }
}

/* --- at a restore --------------------------------------------------------------------------------------------- */

static int open_same(int view, const struct manifest_file *f, const char *path)
{
  uint64_t size;
  uint32_t mark;
  cleanup_fd int fd = path_open_in(view, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0)
    return fd;
  int r = mark_of(fd, &size, &mark);
  if (r || size != f->size || mark != f->mark)
    return -ESTALE;
  return steal_fd(&fd);
}

/* A runtime file that was mapped by a zygote which is gone by then has its name below that zygote's mount. */
static int open_in_view(int view, const struct manifest_file *f)
{
  char path[PATH_MAX];
  int fd = open_same(view, f, f->path);
  if (fd != -ENOENT || (size_t)snprintf(path, sizeof(path), JAIL_RUNTIME "%s", f->path) >= sizeof(path))
    return fd;
  return open_same(view, f, path);
}

struct views {
  int fds[OVERLAY_LAYERS_MAX];
  size_t made;
};

/* A layer above may have replaced a file since (a fork's frozen upper, after an upgrade inside): then the view without
 * the topmost layers has the one that is meant. */
static int open_in_layers(const struct manifest_file *f, const struct overlay_layers *from, struct views *v,
                          struct err *err)
{
  int fd = -ENOENT;
  for (size_t k = 0; k < OVERLAY_LAYERS_MAX && from->lowers[k] && (fd == -ENOENT || fd == -ESTALE); k++) {
    if (k == v->made) {
      struct overlay_layers less = *from;
      less.lowers += k;
      int view = overlay_view(&less, err);
      if (view < 0)
        return view;
      v->fds[v->made++] = view;
    }
    fd = open_in_view(v->fds[k], f);
  }
  return fd >= 0 ? fd
                 : err_set(err, -ESTALE, "%s has changed since the checkpoint: was its template changed?", f->path);
}

int ext_files_open(const struct manifest *m, const struct overlay_layers *from, const char *heaps, struct criu_job *job,
                   struct err *err)
{
  struct views v = {.made = 0};
  int r = 0;
  for (size_t i = 0; i < m->files.n && !r; i++) {
    const struct manifest_file *f = &m->files.p[i];
    int fd = f->heap[0] ? zygote_heap_open(heaps, f->heap, from->userns, err) : open_in_layers(f, from, &v, err);
    r = fd < 0 ? fd : 0;
    if (!r)
      vec_push(&job->handles, ((struct criu_handle){.key = f->key, .fd = fd}));
  }
  while (v.made > 0)
    close(v.fds[--v.made]);
  return r;
}
