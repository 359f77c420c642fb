/* outside.c - see outside.h. */
#include "jail/outside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define MAPS_MAX   ((size_t)64 << 20)
#define MARK_BYTES 65536
#define LAYERS_MAX 120

static int mark_of(int fd, uint64_t *size, uint32_t *mark)
{
  cleanup_free char *bytes = xmalloc(MARK_BYTES);
  struct stat st;
  ssize_t n = pread(fd, bytes, MARK_BYTES, 0);
  if (n < 0 || fstat(fd, &st))
    return -errno;
  *size = (uint64_t)st.st_size;
  *mark = crc32c(0, bytes, (size_t)n);
  return 0;
}

/* --- at a dump ------------------------------------------------------------------------------------------------ */

static bool is_own(const struct outside_mounts *own, uint64_t id)
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

/* Shared memory and memfds also come from mounts no box has; only views of layers are ours to find again. */
static bool is_view(const char *link)
{
  struct statfs fs;
  return statfs(link, &fs) == 0 &&
         (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

static int add_file(const char *link, struct str path, const struct outside_mounts *own, struct manifest *m, struct err *err)
{
  struct statx st;
  char key[64];
  if (statx(AT_FDCWD, link, 0, STATX_BASIC_STATS | STATX_MNT_ID, &st))
    return errno == ENOENT ? 0 : err_errno(err, "looking at %s", link);
  if (is_own(own, st.stx_mnt_id))
    return 0;
  snprintf(key, sizeof(key), "file[%" PRIx64 ":%" PRIx64 "]", (uint64_t)st.stx_mnt_id, (uint64_t)st.stx_ino);
  if (is_known(m, key) || !is_view(link))
    return 0;
  struct manifest_file f = {.key = arena_z(&m->arena, str_of(key)), .path = arena_z(&m->arena, path), .inode = st.stx_ino};
  cleanup_fd int fd = open(link, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || mark_of(fd, &f.size, &f.mark))
    return err_errno(err, "reading " STR_FMT, STR_ARG(path));
  vec_push(&m->files, f);
  return 0;
}

/* A line of maps: RANGE access offset device INODE   PATH. Mappings of one file mostly follow each other. */
static int add_mapping(pid_t pid, struct str line, struct str *last, const struct outside_mounts *own, struct manifest *m, struct err *err)
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
  return add_file(link, rest, own, m, err);
}

int outside_collect(pid_t pid, const struct outside_mounts *own, struct manifest *m, struct err *err)
{
  char link[64], path[PATH_MAX];
  cleanup_buf struct buf b = BUF_INIT(MAPS_MAX);
  snprintf(link, sizeof(link), "/proc/%d/exe", pid);
  ssize_t n = readlink(link, path, sizeof(path));
  if (n <= 0)
    return 0; /* a zombie */
  int r = add_file(link, str_make(path, (size_t)n), own, m, err);
  snprintf(link, sizeof(link), "/proc/%d/maps", pid);
  if (!r && file_read(link, &b))
    r = err_set(err, -EIO, "reading %s", link);
  struct str rest = buf_str(&b), line, last = STR_NONE;
  while (rest.n > 0 && !r) {
    str_cut(rest, '\n', &line, &rest);
    r = add_mapping(pid, line, &last, own, m, err);
  }
  return r;
}

/* --- at a restore --------------------------------------------------------------------------------------------- */

static int open_in_view(int view, const struct manifest_file *f)
{
  uint64_t size;
  uint32_t mark;
  cleanup_fd int fd = path_open_in(view, f->path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0)
    return fd;
  int r = mark_of(fd, &size, &mark);
  if (r || size != f->size || mark != f->mark)
    return -ESTALE;
  return steal_fd(&fd);
}

static int add_handle(const struct manifest_file *f, int fd, struct criu_job *job)
{
  vec_push(&job->handles, ((struct criu_handle){.key = f->key, .fd = fd}));
  return 0;
}

/* A layer above may have replaced a file since (a fork's frozen upper, after an upgrade inside): then the view without
 * the topmost layers has the one that is meant. */
int outside_open(const struct manifest *m, const struct layers *from, struct criu_job *job, struct err *err)
{
  int views[LAYERS_MAX], r = 0;
  size_t n = 0, made = 0;
  while (from->lowers[n] && n < LAYERS_MAX)
    n++;
  for (size_t i = 0; i < m->files.n && r >= 0; i++) {
    int fd = -ENOENT;
    for (size_t k = 0; k < n && (fd == -ENOENT || fd == -ESTALE); k++) {
      if (k == made) {
        struct layers less = *from;
        less.lowers += k;
        views[made] = layers_view(&less, err);
        if ((r = views[made]) < 0)
          break;
        made++;
      }
      fd = open_in_view(views[k], &m->files.p[i]);
    }
    if (fd >= 0)
      r = add_handle(&m->files.p[i], fd, job);
    else if (r >= 0)
      r = err_set(err, -ESTALE, "%s is not what it was at the checkpoint: was its template changed?", m->files.p[i].path);
  }
  while (made > 0)
    close(views[--made]);
  return MIN(r, 0);
}
