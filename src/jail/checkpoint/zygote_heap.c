/* heap.c - see heap.h. The file is large and mostly holes; only pages that hold something are written and summed up. */
#include "jail/checkpoint/zygote_heap.h"
#include "jail/checkpoint/checkpoint.h"
#include "jail/checkpoint/manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define PREFIX    "cloche-heap-"
#define NAME_MAX_ 48
#define PAGE      4096
#define CHUNK     ((size_t)256 << 10)
#define KNOWN     64
#define REST_S    3600 /* a heap that no image names yet may be on its way into one */

const char *heap_name(const char *path)
{
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  if (strncmp(base, PREFIX, sizeof(PREFIX) - 1) || strlen(base) >= NAME_MAX_)
    return NULL;
  for (const char *c = base; *c; c++)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-'))
      return NULL;
  return base;
}

/* --- pages ---------------------------------------------------------------------------------------------------- */

static bool is_zero(const char *page)
{
  return page[0] == 0 && memcmp(page, page + 1, PAGE - 1) == 0;
}

/* Sums up, and copies to `to` where it is one, what a stretch of the file holds. */
static int take_chunk(const char *bytes, size_t n, off_t at, int to, uint32_t *sum)
{
  for (size_t i = 0; i + PAGE <= n; i += PAGE) {
    uint64_t place = (uint64_t)at + i;
    if (is_zero(bytes + i))
      continue;
    *sum = crc32c(crc32c(*sum, &place, sizeof(place)), bytes + i, PAGE);
    if (to >= 0 && pwrite(to, bytes + i, PAGE, (off_t)place) != PAGE)
      return errno ? -errno : -EIO;
  }
  return 0;
}

static int take_extent(int from, off_t at, off_t end, int to, uint32_t *sum)
{
  cleanup_free char *bytes = xmalloc(CHUNK);
  int r = 0;
  while (at < end && !r) {
    ssize_t n = pread(from, bytes, (size_t)MIN((off_t)CHUNK, end - at), at);
    if (n < PAGE)
      return n < 0 ? -errno : -EIO;
    n -= n % PAGE;
    r = take_chunk(bytes, (size_t)n, at, to, sum);
    at += n;
  }
  return r;
}

static int take_all(int from, int to, uint32_t *sum)
{
  struct stat st;
  int r = fstat(from, &st) ? -errno : 0;
  *sum = 0;
  for (off_t at = 0; !r && at < st.st_size;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0)
      return errno == ENXIO ? 0 : -errno;
    off_t hole = lseek(from, data, SEEK_HOLE);
    data -= data % PAGE;
    r = hole < 0 ? -errno : take_extent(from, data, hole, to, sum);
    at = hole;
  }
  return r;
}

/* --- keeping -------------------------------------------------------------------------------------------------- */

static bool heap_known(const char *name, bool learn)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char names[KNOWN][NAME_MAX_];
  static size_t next;
  bool found = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < KNOWN && !found; i++)
    found = !strcmp(names[i], name);
  if (!found && learn)
    snprintf(names[next++ % KNOWN], NAME_MAX_, "%s", name);
  pthread_mutex_unlock(&lock);
  return found;
}

static int sum_path(char out[PATH_MAX], const char *heaps, const char *name, const char *tail)
{
  return (size_t)snprintf(out, PATH_MAX, "%s/%s%s", heaps, name, tail) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int copy_heap(const char *heaps, const char *temp, const char *name, int from, struct err *err)
{
  char path[PATH_MAX], sums[PATH_MAX], text[48];
  struct stat st;
  uint32_t sum = 0;
  cleanup_fd int to = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int r = to < 0 || fstat(from, &st) || ftruncate(to, st.st_size) ? -errno : take_all(from, to, &sum);
  if (!r && fsync(to))
    r = -errno;
  if (!r && !(r = sum_path(sums, heaps, name, ".sum"))) {
    int n = snprintf(text, sizeof(text), "%08" PRIx32 " %lld\n", sum, (long long)st.st_size);
    r = file_write_atomic(sums, text, (size_t)n, 0400);
  }
  if (!r && !(r = sum_path(path, heaps, name, "")) && rename(temp, path))
    r = -errno;
  return r ? err_set(err, r, "keeping the memory of a zygote in %s: %s", heaps, strerrordesc_np(-r)) : 0;
}

int heap_keep(const char *heaps, const char *name, int fd, struct err *err)
{
  char path[PATH_MAX], temp[PATH_MAX], tail[40];
  snprintf(tail, sizeof(tail), ".%d-%" PRId64, getpid(), clock_mono_us());
  if (sum_path(path, heaps, name, "") || sum_path(temp, heaps, name, tail))
    return err_set(err, -ENAMETOOLONG, "too long a name: %s/%s", heaps, name);
  if (mkdir(heaps, 0700) && errno != EEXIST)
    return err_errno(err, "making %s", heaps);
  if (access(path, F_OK) == 0)
    return utimensat(AT_FDCWD, path, NULL, 0) ? err_errno(err, "touching %s", path) : 0;
  int r = copy_heap(heaps, temp, name, fd, err);
  cleanup_fd int dir = open(heaps, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (r)
    unlink(temp);
  else if (dir < 0 || fsync(dir))
    r = err_errno(err, "writing out %s", heaps);
  return r;
}

/* --- finding again -------------------------------------------------------------------------------------------- */

static int check(const char *heaps, const char *name, int fd, struct err *err)
{
  char path[PATH_MAX], text[48];
  uint32_t sum = 0;
  struct stat st;
  cleanup_buf struct buf b = BUF_INIT(64);
  if (heap_known(name, false))
    return 0;
  int r = sum_path(path, heaps, name, ".sum");
  if (!r && (file_read(path, &b) || fstat(fd, &st) || take_all(fd, -1, &sum)))
    r = -EBADMSG;
  int n = r ? 0 : snprintf(text, sizeof(text), "%08" PRIx32 " %lld\n", sum, (long long)st.st_size);
  if (r || !str_eq(buf_str(&b), str_make(text, (size_t)n)))
    return err_set(err, -EBADMSG, "the checkpoint is damaged: %s/%s does not match its checksum", heaps, name);
  heap_known(name, true);
  return 0;
}

int heap_open(const char *heaps, const char *name, int userns, struct err *err)
{
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY, .userns_fd = (uint64_t)userns};
  cleanup_fd int dir = open_tree(AT_FDCWD, heaps, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (dir < 0 || mount_setattr(dir, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "mounting %s", heaps);
  cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return err_set(err, errno == ENOENT ? -EBADMSG : -errno, "the checkpoint is damaged: %s/%s is missing", heaps, name);
  int r = check(heaps, name, fd, err);
  return r ? r : steal_fd(&fd);
}

/* --- an end --------------------------------------------------------------------------------------------------- */

static void see_image(const char *images, const char *image, struct buf *named)
{
  char path[PATH_MAX];
  cleanup_manifest struct manifest m = MANIFEST_INIT;
  snprintf(path, sizeof(path), "%s/%s", images, image);
  cleanup_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0 || manifest_read(dir, &m, NULL))
    return;
  for (size_t i = 0; i < m.files.n; i++)
    if (heap_name(m.files.p[i].path))
      buf_addf(named, "%s\n", heap_name(m.files.p[i].path));
}

static bool is_old(int dir, const char *name)
{
  struct stat st;
  return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime + REST_S < clock_wall_us() / 1000000;
}

void jail_heaps_sweep(const char *heaps, const char *images)
{
  cleanup_buf struct buf named = BUF_INIT(16 << 20);
  cleanup_dir DIR *all = opendir(images), *kept = opendir(heaps);
  for (struct dirent *e; all && (e = readdir(all));)
    if (e->d_name[0] != '.')
      see_image(images, e->d_name, &named);
  for (struct dirent *e; kept && !buf_failed(&named) && (e = readdir(kept));) {
    struct str name, tail;
    str_cut(str_of(e->d_name), '.', &name, &tail);
    if (!name.n || !str_starts(name, STR(PREFIX)) || !is_old(dirfd(kept), e->d_name))
      continue;
    if (tail.n > 3 || str_search(buf_str(&named), name) < 0) /* what a killed copy left, or what nothing needs */
      unlinkat(dirfd(kept), e->d_name, 0);
  }
}
