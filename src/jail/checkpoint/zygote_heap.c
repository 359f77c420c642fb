/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_heap.c - see zygote_heap.h. The file is large and mostly holes; only pages that hold something are written and
 * summed up. */
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
#include <sys/statvfs.h>

#define PAGE        4096
#define CHUNK       ((size_t)256 << 10)
#define REST_S      3600 /* a heap that no checkpoint names yet may be on its way into one */
#define SIZE_MAX_   "1g" /* of one heap in memory */
#define HANDLE_MAX  64
#define LINE_MAX_   (2 * HANDLE_MAX + 128)
#define OWNER_BYTES 4 /* of a name */
#define OPERATORS   "00000000"
#define IDS         ".ids"
#define SUM         ".sum"
#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif

/* --- which file is a heap ------------------------------------------------------------------------------------- */

/* The file handle holds the inode's generation, a random number of the kernel's: device and inode numbers of a file
 * that is gone are given to others, who may be a box's. */
struct identity {
  uint64_t device, inode;
  char handle[2 * HANDLE_MAX + 1]; /* hex */
};

struct known {
  char name[HEAP_NAME];
  struct identity id;
  bool checked; /* its kept copy matched its checksum */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct known) registry;
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER; /* a kept copy is touched, or found old and removed */

bool zygote_heap_name_valid(const char *name)
{
  size_t n = 0;
  while ((name[n] >= 'a' && name[n] <= 'f') || (name[n] >= '0' && name[n] <= '9'))
    n++;
  return n == HEAP_NAME - 1 && !name[n];
}

static int identify(int fd, struct identity *out)
{
  union {
    struct file_handle head;
    char room[sizeof(struct file_handle) + HANDLE_MAX];
  } h = {.head.handle_bytes = HANDLE_MAX - 4};
  struct stat st;
  int mount;
  if (fstat(fd, &st) || !S_ISREG(st.st_mode))
    return -EINVAL;
  *out = (struct identity){.device = st.st_dev, .inode = st.st_ino};
  if (name_to_handle_at(fd, "", &h.head, &mount, AT_EMPTY_PATH) &&
      name_to_handle_at(fd, "", &h.head, &mount, AT_EMPTY_PATH | AT_HANDLE_FID))
    return -errno;
  hex_encode((const uint8_t *)h.head.f_handle, h.head.handle_bytes, out->handle);
  return 0;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
  return a->device == b->device && a->inode == b->inode && !strcmp(a->handle, b->handle);
}

static void registry_add(const char *name, const struct identity *id)
{
  struct known k = {.id = *id};
  snprintf(k.name, sizeof(k.name), "%s", name);
  pthread_mutex_lock(&lock);
  bool found = false;
  for (size_t i = 0; i < registry.n && !found; i++)
    found = is_same(&registry.p[i].id, id) && !strcmp(registry.p[i].name, name);
  if (!found)
    vec_push(&registry, k);
  pthread_mutex_unlock(&lock);
}

bool zygote_heap_listed(uint64_t device, uint64_t inode)
{
  bool found = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < registry.n && !found; i++)
    found = registry.p[i].id.device == device && registry.p[i].id.inode == inode;
  pthread_mutex_unlock(&lock);
  return found;
}

bool zygote_heap_find(int fd, char name[HEAP_NAME])
{
  struct identity id;
  struct statvfs fs;
  bool found = false;
  if (fstatvfs(fd, &fs) || !(fs.f_flag & ST_RDONLY) || identify(fd, &id))
    return false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < registry.n && !found; i++)
    if ((found = is_same(&registry.p[i].id, &id)))
      memcpy(name, registry.p[i].name, HEAP_NAME);
  pthread_mutex_unlock(&lock);
  return found;
}

/* --- across restarts of the daemon ---------------------------------------------------------------------------- */

static int path_of(char out[PATH_MAX], const char *heaps, const char *name, const char *tail)
{
  return (size_t)snprintf(out, PATH_MAX, "%s/%s%s", heaps, name, tail) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static struct str boot_id(void)
{
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  static char text[64];
  cleanup_buf struct buf b = BUF_INIT(256);
  pthread_mutex_lock(&once);
  if (!text[0] && !file_read("/proc/sys/kernel/random/boot_id", &b))
    str_copyz(str_trim(buf_str(&b)), text, sizeof(text));
  pthread_mutex_unlock(&once);
  return str_of(text);
}

/* A line "boot device inode handle": boxes outlive the daemon, and what they have mapped is known again by the next
 * one. */
static int write_identity(const char *heaps, const char *name, const struct identity *id, struct err *err)
{
  char path[PATH_MAX], line[LINE_MAX_];
  int n = snprintf(line, sizeof(line), STR_FMT " %" PRIu64 " %" PRIu64 " %s\n", STR_ARG(boot_id()), id->device,
                   id->inode, id->handle);
  if (path_of(path, heaps, name, IDS))
    return err_set(err, -ENAMETOOLONG, "path too long: %s/%s", heaps, name);
  cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd < 0 || fd_write_all(fd, line, (size_t)n) ? err_errno(err, "writing %s", path) : 0;
}

static void read_identity(const char *name, struct str line)
{
  struct str boot, device, inode, handle;
  struct identity id = {0};
  str_cut(line, ' ', &boot, &line);
  str_cut(line, ' ', &device, &line);
  str_cut(line, ' ', &inode, &handle);
  if (str_eq(boot, boot_id()) && !str_u64(device, &id.device) && !str_u64(inode, &id.inode) &&
      !str_copyz(handle, id.handle, sizeof(id.handle)))
    registry_add(name, &id);
}

static void read_identities(int dir, const char *name)
{
  char file[HEAP_NAME + sizeof(IDS)];
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  snprintf(file, sizeof(file), "%s" IDS, name);
  cleanup_fd int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fd_read_all(fd, &b))
    return;
  struct str rest = buf_str(&b), line;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    read_identity(name, line);
  }
}

static void register_kept(int dir, const char *name)
{
  struct identity id;
  cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0 && !identify(fd, &id))
    registry_add(name, &id);
}

void heaps_load(const char *heaps)
{
  cleanup_dir DIR *d = opendir(heaps);
  for (struct dirent *e; d && (e = readdir(d));) {
    char name[HEAP_NAME];
    struct str base, tail;
    str_cut(str_of(e->d_name), '.', &base, &tail);
    if (str_copyz(base, name, sizeof(name)) || !zygote_heap_name_valid(name))
      continue;
    if (!tail.n)
      register_kept(dirfd(d), name);
    else if (str_is(tail, &IDS[1]))
      read_identities(dirfd(d), name);
  }
}

/* --- making --------------------------------------------------------------------------------------------------- */

static int zygote_heap_tmpfs(void)
{
  cleanup_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "700", 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "size", SIZE_MAX_, 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", "2", 0) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return -1;
  return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
}

int zygote_heap_make(struct zygote_heap_file *out, const char *owner, struct err *err)
{
  uint8_t bytes[(HEAP_NAME - 1) / 2], hash[SHA256_LEN] = {0};
  *out = HEAP_FILE_NONE;
  random_bytes(bytes, sizeof(bytes));
  if (owner[0])
    sha256_of(owner, strlen(owner), hash);
  memcpy(bytes, hash, OWNER_BYTES);
  hex_encode(bytes, sizeof(bytes), out->name);
  out->mount = zygote_heap_tmpfs();
  out->to = out->mount < 0 ? -1 : openat(out->mount, "heap", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  out->from = out->to < 0 ? -1 : openat(out->mount, "heap", O_RDONLY | O_CLOEXEC);
  if (out->from >= 0)
    return 0;
  int r = err_errno(err, "making a file for the memory of a zygote");
  zygote_heap_close(out);
  return r;
}

void zygote_heap_close(struct zygote_heap_file *h)
{
  int *const fds[] = {&h->mount, &h->to, &h->from};
  for (size_t i = 0; i < ARRAY_LEN(fds); i++)
    if (*fds[i] >= 0)
      close(steal_fd(fds[i]));
}

/* The kernel makes a filesystem read-only only while nobody has a file of it open for writing, and nobody can open one
 * afterwards. */
static int make_read_only(int mount)
{
  cleanup_fd int fs = fspick(mount, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) || fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0))
    return -errno;
  return 0;
}

int zygote_heap_seal(const char *heaps, struct zygote_heap_file *h, struct err *err)
{
  struct identity id;
  if (h->to >= 0)
    close(steal_fd(&h->to));
  int r = make_read_only(h->mount);
  if (r)
    return err_set(err, r, "sealing the memory of a zygote: %s",
                   r == -EBUSY ? "it still has the file open for writing" : strerrordesc_np(-r));
  r = identify(h->from, &id);
  if (r)
    return err_set(err, r, "identifying the memory of a zygote: %s", strerrordesc_np(-r));
  if (mkdir(heaps, 0700) && errno != EEXIST)
    return err_errno(err, "making %s", heaps);
  r = write_identity(heaps, h->name, &id, err);
  if (!r)
    registry_add(h->name, &id);
  return r;
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

static int copy_heap(const char *heaps, const char *temp, const char *name, int from, struct err *err)
{
  char path[PATH_MAX], sums[PATH_MAX], text[48];
  struct stat st;
  struct identity id;
  uint32_t sum = 0;
  cleanup_fd int to = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int r = to < 0 || fstat(from, &st) || ftruncate(to, st.st_size) ? -errno : take_all(from, to, &sum);
  if (!r && fsync(to))
    r = -errno;
  if (!r && !(r = path_of(sums, heaps, name, SUM))) {
    int n = snprintf(text, sizeof(text), "%08" PRIx32 " %lld\n", sum, (long long)st.st_size);
    r = file_write_atomic(sums, text, (size_t)n, 0400);
  }
  if (!r && !(r = path_of(path, heaps, name, "")) && rename(temp, path))
    r = -errno;
  r = r ? r : identify(to, &id);
  if (r)
    return err_set(err, r, "keeping the memory of a zygote in %s: %s", heaps, strerrordesc_np(-r));
  registry_add(name, &id);
  return write_identity(heaps, name, &id, err);
}

static struct {
  uint64_t most, owner_most, reserve, coming; /* bytes; of copies under way */
} room;                                       /* under `keeping` */

void heaps_limit(uint64_t bytes, uint64_t owner_bytes, uint64_t reserve)
{
  pthread_mutex_lock(&keeping);
  room.most = bytes;
  room.owner_most = owner_bytes;
  room.reserve = reserve;
  pthread_mutex_unlock(&keeping);
}

/* Those whose names begin so. */
static uint64_t kept_bytes(const char *heaps, struct str owner)
{
  struct stat st;
  uint64_t bytes = 0;
  cleanup_dir DIR *d = opendir(heaps);
  for (struct dirent *e; d && (e = readdir(d));)
    if (zygote_heap_name_valid(e->d_name) && str_starts(str_of(e->d_name), owner) &&
        !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
      bytes += (uint64_t)st.st_blocks * 512;
  return bytes;
}

/* A zygote that ends again and again leaves a heap each time that a box of it is written to disk. */
static int take_room(const char *heaps, const char *name, uint64_t bytes, struct err *err)
{
  struct statvfs fs;
  struct str owner = str_sub(str_of(name), 0, 2 * OWNER_BYTES);
  uint64_t kept = room.most ? kept_bytes(heaps, STR("")) + room.coming : 0;
  bool owned = room.owner_most && !str_is(owner, OPERATORS);
  uint64_t theirs = owned ? kept_bytes(heaps, owner) + room.coming : 0;
  if (owned && theirs + bytes > room.owner_most)
    return err_set(err, -ENOSPC,
                   "the loaded memory of this sandbox's Python takes %" PRIu64 " MiB; %" PRIu64 " of %" PRIu64
                   " MiB of its team are in use (team_heaps_mb)",
                   bytes >> 20, theirs >> 20, room.owner_most >> 20);
  if (room.most && kept + bytes > room.most)
    return err_set(err, -ENOSPC,
                   "the loaded memory of this sandbox's Python takes %" PRIu64 " MiB; %" PRIu64 " of %" PRIu64
                   " MiB are in use (heaps_mb)",
                   bytes >> 20, kept >> 20, room.most >> 20);
  if (statvfs(heaps, &fs) == 0) {
    uint64_t reserve = MIN(room.reserve, (uint64_t)fs.f_blocks * fs.f_frsize / 20);
    if ((uint64_t)fs.f_bavail * fs.f_frsize < reserve + bytes + room.coming)
      return err_set(err, -ENOSPC, "this server's disk is full: %" PRIu64 " MiB are kept in reserve (disk_reserve_mb)",
                     reserve >> 20);
  }
  room.coming += bytes;
  return 0;
}

int zygote_heap_keep(const char *heaps, const char *name, int fd, struct err *err)
{
  struct stat st;
  char path[PATH_MAX], temp[PATH_MAX], tail[40];
  snprintf(tail, sizeof(tail), ".%d-%" PRId64, getpid(), clock_mono_us());
  if (path_of(path, heaps, name, "") || path_of(temp, heaps, name, tail))
    return err_set(err, -ENAMETOOLONG, "path too long: %s/%s", heaps, name);
  if (mkdir(heaps, 0700) && errno != EEXIST)
    return err_errno(err, "making %s", heaps);
  pthread_mutex_lock(&keeping);
  bool kept = utimensat(AT_FDCWD, path, NULL, 0) == 0;
  uint64_t bytes = kept || fstat(fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
  int r = kept ? 0 : take_room(heaps, name, bytes, err);
  pthread_mutex_unlock(&keeping);
  if (kept || r)
    return r;
  r = copy_heap(heaps, temp, name, fd, err);
  pthread_mutex_lock(&keeping);
  room.coming -= bytes;
  pthread_mutex_unlock(&keeping);
  cleanup_fd int dir = open(heaps, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (r)
    unlink(temp);
  else if (dir < 0 || fsync(dir))
    r = err_errno(err, "writing out %s", heaps);
  return r;
}

/* --- finding again -------------------------------------------------------------------------------------------- */

/* Whether a file was found right before; `now`: it is. */
static bool was_checked(const struct identity *id, bool now)
{
  bool found = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < registry.n; i++)
    if (is_same(&registry.p[i].id, id))
      found |= registry.p[i].checked |= now;
  pthread_mutex_unlock(&lock);
  return found;
}

static int check(const char *heaps, const char *name, int fd, struct err *err)
{
  char path[PATH_MAX], text[48];
  uint32_t sum = 0;
  struct stat st;
  struct identity id;
  cleanup_buf struct buf b = BUF_INIT(64);
  int r = identify(fd, &id) ? -EBADMSG : 0;
  if (!r && was_checked(&id, false))
    return 0;
  r = r ? r : path_of(path, heaps, name, SUM);
  if (!r && (file_read(path, &b) || fstat(fd, &st) || take_all(fd, -1, &sum)))
    r = -EBADMSG;
  int n = r ? 0 : snprintf(text, sizeof(text), "%08" PRIx32 " %lld\n", sum, (long long)st.st_size);
  if (r || !str_eq(buf_str(&b), str_make(text, (size_t)n)))
    return err_set(err, -EBADMSG, "the checkpoint is damaged: %s/%s does not match its checksum", heaps, name);
  registry_add(name, &id);
  was_checked(&id, true);
  return 0;
}

int zygote_heap_open(const char *heaps, const char *name, int userns, struct err *err)
{
  struct mount_attr attr = {
      .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE, .userns_fd = (uint64_t)userns};
  if (!zygote_heap_name_valid(name))
    return err_set(err, -EBADMSG, "the checkpoint is damaged: '%s' is not the name of a zygote's memory", name);
  cleanup_fd int dir = open_tree(AT_FDCWD, heaps, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (dir < 0 || mount_setattr(dir, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "mounting %s", heaps);
  cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return err_set(err, errno == ENOENT ? -EBADMSG : -errno, "the checkpoint is damaged: %s/%s is missing", heaps,
                   name);
  int r = check(heaps, name, fd, err);
  return r ? r : steal_fd(&fd);
}

/* --- an end --------------------------------------------------------------------------------------------------- */

static void see_checkpoint(const char *checkpoints, const char *checkpoint, struct buf *named)
{
  char path[PATH_MAX];
  cleanup_manifest struct manifest m = MANIFEST_INIT;
  snprintf(path, sizeof(path), "%s/%s", checkpoints, checkpoint);
  cleanup_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0 || manifest_read(dir, &m, NULL))
    return;
  for (size_t i = 0; i < m.files.n; i++)
    if (m.files.p[i].heap[0])
      buf_addf(named, "%s\n", m.files.p[i].heap);
}

static bool is_old(int dir, const char *name)
{
  struct stat st;
  return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime + REST_S < clock_wall_us() / 1000000;
}

/* A checksum is as old as what it is of: that is touched while a checkpoint that will name it is made. */
static bool is_due(int dir, const char *file, struct str name, struct str tail)
{
  char heap[HEAP_NAME];
  bool sum =
      str_is(tail, &SUM[1]) && !str_copyz(name, heap, sizeof(heap)) && !faccessat(dir, heap, F_OK, AT_SYMLINK_NOFOLLOW);
  return is_old(dir, sum ? heap : file);
}

static bool is_of_this_boot(int dir, const char *name)
{
  char file[HEAP_NAME + sizeof(IDS)];
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  snprintf(file, sizeof(file), "%s" IDS, name);
  cleanup_fd int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  return fd >= 0 && !fd_read_all(fd, &b) && boot_id().n && str_search(buf_str(&b), boot_id()) >= 0;
}

/* Identities are of one boot: what is mapped from a heap whose kept copy is gone can be kept again. */
static bool is_needed(int dir, struct str name, struct str tail, struct str named)
{
  char heap[HEAP_NAME];
  if (!str_copyz(name, heap, sizeof(heap)) && zygote_heap_name_valid(heap) && str_is(tail, &IDS[1]))
    return !faccessat(dir, heap, F_OK, AT_SYMLINK_NOFOLLOW) || is_of_this_boot(dir, heap);
  return (!tail.n || str_is(tail, &SUM[1])) && str_search(named, name) >= 0;
}

void jail_heaps_sweep(const char *heaps, const char *checkpoints)
{
  cleanup_buf struct buf named = BUF_INIT(16 << 20);
  cleanup_dir DIR *all = opendir(checkpoints), *kept = opendir(heaps);
  for (struct dirent *e; all && (e = readdir(all));)
    if (e->d_name[0] != '.')
      see_checkpoint(checkpoints, e->d_name, &named);
  for (struct dirent *e; kept && !buf_failed(&named) && (e = readdir(kept));) {
    struct str name, tail;
    str_cut(str_of(e->d_name), '.', &name, &tail);
    if (!name.n || is_needed(dirfd(kept), name, tail, buf_str(&named)))
      continue;
    pthread_mutex_lock(&keeping);
    if (is_due(dirfd(kept), e->d_name, name, tail))
      unlinkat(dirfd(kept), e->d_name, 0); /* what a killed copy left, or what nothing needs */
    pthread_mutex_unlock(&keeping);
  }
}
