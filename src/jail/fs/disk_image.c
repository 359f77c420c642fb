/* SPDX-License-Identifier: Apache-2.0 */
/* disk_image.c - sparse image files, the seeds they are copied from, and loop devices.
 *
 * mkfs takes tens of milliseconds, a copy of a fresh image's few allocated blocks takes one: the first box of a size
 * leaves a seed beside the boxes (.seeds/<bytes>-<inodes>.img) and later ones copy its extents. The filesystem has no
 * journal and no barriers: a box does not outlive a crash of the host, and what must (a paused one) is unmounted
 * cleanly and written out by jail_sync. */
#include "jail/fs/disk_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdatomic.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#define INODE_BYTES     256
#define INODE_EVERY     16384               /* one inode per so many bytes, unless told */
#define OVERHEAD        ((uint64_t)4 << 20) /* group descriptors and bitmaps, so that the limit is what files can use */
#define SYSFS_PATH      300                 /* "/sys/block/<name>/loop/backing_file" */
#define LOOP_TRIES      64
#define LOOP_NAME       32    /* "/dev/loop" and a number */
#define FREE_TIMEOUT_MS 10000 /* for the mounts of a dead box to go */
#define LOOK_TRIES      100
#define GUESSES         4096
#define JOURNAL_MIB     16
#define RESERVED_INODES 11 /* of ext4 itself; the first is the root */
#define STRINGIFY_(x)   #x
#define STRINGIFY(x)    STRINGIFY_(x)

/* --- the seed ------------------------------------------------------------------------------------------------- */

static uint64_t inodes_of(const struct jail_limits *l)
{
  return l->inodes ? l->inodes + 16 : MAX(l->disk / INODE_EVERY, (uint64_t)1024);
}

static uint64_t image_bytes(const struct jail_limits *l)
{
  uint64_t bytes = l->disk + inodes_of(l) * INODE_BYTES + OVERHEAD;
  return (bytes + 4095) / 4096 * 4096;
}

static int run_program(const char *const *argv, const char *path, struct err *err)
{
  const char *env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
  pid_t pid;
  int status = 0, r = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, (char *const *)env);
  if (r)
    return err_set(err, -r, "running %s: %s", argv[0], strerrordesc_np(r));
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(status) || WEXITSTATUS(status))
    return err_set(err, -EIO, "%s of %s failed", argv[0], path);
  return 0;
}

static int run_mkfs(const char *path, const struct jail_limits *l, struct err *err)
{
  char inodes[U64_TEXT];
  snprintf(inodes, sizeof(inodes), "%" PRIu64, inodes_of(l));
  const char *argv[] = {"mkfs.ext4",
                        "-q",
                        "-F",
                        "-m",
                        "0",
                        "-b",
                        "4096",
                        "-I",
                        "256",
                        "-N",
                        inodes,
                        "-O",
                        "^has_journal,^resize_inode",
                        "-E",
                        "lazy_itable_init=1,nodiscard,root_owner=0:0",
                        path,
                        NULL};
  return run_program(argv, path, err);
}

/* `path` ends in XXXXXX, which becomes a name that nobody else has. */
static int make_image(char *path, const struct jail_limits *l, struct err *err)
{
  cleanup_fd int fd = mkostemp(path, O_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)image_bytes(l)))
    return err_errno(err, "making the disk image %s", path);
  return run_mkfs(path, l, err);
}

static int seed_path(char out[PATH_MAX], const char *boxes, const struct jail_limits *l, struct err *err)
{
  if ((size_t)snprintf(out, PATH_MAX, "%s/.seeds/%" PRIu64 "-%" PRIu64 ".img", boxes, image_bytes(l), inodes_of(l)) <
      PATH_MAX)
    return 0;
  return err_set(err, -ENAMETOOLONG, "path too long: %s/.seeds", boxes);
}

/* Made under another name and renamed: whoever finds the seed finds a whole one. Several workers may make the same seed
 * at a time, each under a name of its own; the last one stays, and all are alike. */
int disk_seed(const char *boxes, const struct jail_limits *limits, struct err *err)
{
  char dir[PATH_MAX], path[PATH_MAX], temp[PATH_MAX + 8];
  int r = seed_path(path, boxes, limits, err);
  if (r || access(path, F_OK) == 0)
    return r;
  snprintf(dir, sizeof(dir), "%s/.seeds", boxes);
  if (mkdir(dir, 0700) && errno != EEXIST)
    return err_errno(err, "making %s", dir);
  snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
  r = make_image(temp, limits, err);
  if (!r && rename(temp, path))
    r = err_errno(err, "naming the seed %s", path);
  if (r)
    unlink(temp);
  return r;
}

/* --- a box's image -------------------------------------------------------------------------------------------- */

static int copy_extent(int from, int to, off_t at, off_t end)
{
  while (at < end) {
    off_t in = at, out = at;
    ssize_t k = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return k ? -errno : -EIO;
    at += k;
  }
  return 0;
}

/* Blocks are shared where the filesystem can (btrfs, xfs), and copied elsewhere. */
static int copy_sparse(int from, int to)
{
  struct stat st;
  if (!ioctl(to, FICLONE, from))
    return 0;
  if (fstat(from, &st) || ftruncate(to, st.st_size))
    return -errno;
  for (off_t at = 0; at < st.st_size;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0)
      return errno == ENXIO ? 0 : -errno;
    off_t hole = lseek(from, data, SEEK_HOLE);
    int r = hole < 0 ? -errno : copy_extent(from, to, data, hole);
    if (r)
      return r;
    at = hole;
  }
  return 0;
}

int disk_image_make(const char *boxes, const char *path, const struct jail_limits *l, struct err *err)
{
  char seed[PATH_MAX];
  int r = disk_seed(boxes, l, err);
  if (!r)
    r = seed_path(seed, boxes, l, err);
  if (r)
    return r;
  cleanup_fd int from = open(seed, O_RDONLY | O_CLOEXEC);
  cleanup_fd int to = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (from < 0 || to < 0)
    return err_errno(err, "making the disk image %s", path);
  r = copy_sparse(from, to);
  return r ? err_set(err, r, "copying the seed to %s: %s", path, strerrordesc_np(-r)) : 0;
}

/* --- the loop device ------------------------------------------------------------------------------------------ */

/* The kernel names a free device, another process may take it first: then once more. */
static int loop_attach(int image, uint32_t flags, char name[LOOP_NAME], struct err *err)
{
  struct loop_config config = {
      .fd = (uint32_t)image,
      .block_size = 4096,
      .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | flags},
  };
  cleanup_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0)
    return err_errno(err, "opening /dev/loop-control");
  for (int i = 0; i < LOOP_TRIES; i++) {
    int n = ioctl(control, LOOP_CTL_GET_FREE);
    if (n < 0)
      return err_errno(err, "finding a free loop device");
    snprintf(name, LOOP_NAME, "/dev/loop%d", n);
    cleanup_fd int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) == 0)
      return steal_fd(&fd);
    if (errno != EBUSY && errno != ENXIO && errno != ENOENT)
      return err_errno(err, "setting up %s", name);
  }
  return err_set(err, -EBUSY, "no free loop device after %d tries", LOOP_TRIES);
}

/* `path` is what the device holds, for messages. `way`: of a disk, nobarrier, else each end waits for the host's disk;
 * of what is durable, discard, so that the image gives back what is deleted. */
static int device_mount(const char *name, const char *path, const char *way, struct err *err)
{
  cleanup_fd int fs = fsopen("ext4", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", name, 0) ||
      fsconfig(fs, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0) || fsconfig(fs, FSCONFIG_SET_FLAG, way, NULL, 0) ||
      fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return err_errno(err, "mounting %s", path);
  int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
  return fd < 0 ? err_errno(err, "mounting %s", path) : fd;
}

/* The kernel lets go of a dead box's mounts a moment after its last process. Two devices on one image would each write
 * what the other does not know. */
static bool image_held(const char *path)
{
  DIR *d = opendir("/sys/block");
  bool held = false;
  for (struct dirent *e; d && !held && (e = readdir(d));) {
    char name[SYSFS_PATH];
    cleanup_buf struct buf b = BUF_INIT(PATH_MAX + 32);
    if (strncmp(e->d_name, "loop", 4))
      continue;
    snprintf(name, sizeof(name), "/sys/block/%s/loop/backing_file", e->d_name);
    held = !file_read(name, &b) && str_is(str_trim(buf_str(&b)), path);
  }
  if (d)
    closedir(d);
  return held;
}

/* Only who alone has a file open for writing is given a lease, and a device has its image open. One call, where looking
 * through all devices takes milliseconds when there are many; where leases is not available, that is done. */
static bool image_alone(int fd)
{
  bool alone = !fcntl(fd, F_SETLEASE, F_WRLCK);
  if (alone)
    fcntl(fd, F_SETLEASE, F_UNLCK);
  return alone;
}

int disk_image_wait_free(const char *path, struct err *err)
{
  char real[PATH_MAX];
  int64_t deadline = clock_mono_us() + FREE_TIMEOUT_MS * 1000;
  cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || !realpath(path, real))
    return err_errno(err, "finding %s", path);
  while (!image_alone(fd) && image_held(real)) {
    if (clock_mono_us() > deadline)
      return err_set(err, -EBUSY, "the disk %s is still in use after %d ms", path, FREE_TIMEOUT_MS);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return 0;
}

bool disk_image_in_use(const char *path)
{
  char real[PATH_MAX];
  cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
  return fd >= 0 && realpath(path, real) && !image_alone(fd) && image_held(real);
}

/* Which device an image was seen on last, by its inode: a guess that is checked before it is believed. */
static atomic_uint guesses[GUESSES]; /* number of the device + 1 */

static void guess_learn(ino_t inode, const char *name)
{
  uint64_t n;
  if (!str_u64(str_skip(str_of(name), strlen("/dev/loop")), &n) && n < UINT32_MAX)
    atomic_store(&guesses[inode % GUESSES], (unsigned)n + 1);
}

#define WAY_DISK    "nobarrier"
#define WAY_DURABLE "discard"

/* What is durable passes by the host's page cache (where its filesystem can; else the kernel leaves the flag out): its
 * bytes are in memory once, and are copied once less on their way. A box's disk is there for a while only and gains
 * from what the host has not written out yet. */
static uint32_t loop_flags(const char *way)
{
  return strcmp(way, WAY_DURABLE) == 0 ? LO_FLAGS_DIRECT_IO : 0;
}

static int image_mount(const char *path, const char *way, struct err *err)
{
  char name[LOOP_NAME];
  struct stat st;
  cleanup_fd int image = open(path, O_RDWR | O_CLOEXEC);
  if (image < 0)
    return err_errno(err, "opening %s", path);
  cleanup_fd int loop = loop_attach(image, loop_flags(way), name, err);
  if (loop >= 0 && !fstat(image, &st))
    guess_learn(st.st_ino, name);
  return loop < 0 ? loop : device_mount(name, path, way, err);
}

/* --- mounted -------------------------------------------------------------------------------------------------- */

/* The overlay is mounted volatile and leaves a mark that keeps it from being mounted again, for fear that the host
 * crashed meanwhile. Who opens an old disk knows that it did not, or has called jail_sync before. */
int disk_make_dirs(int tree, struct err *err)
{
  unlinkat(tree, "work/work/incompat/volatile/dirty", 0);
  unlinkat(tree, "work/work/incompat/volatile", AT_REMOVEDIR);
  if ((mkdirat(tree, "upper", 0755) && errno != EEXIST) || (mkdirat(tree, "work", 0700) && errno != EEXIST))
    return err_errno(err, "making a box's upper and work directories");
  return 0;
}

static int finish(int tree, struct err *err)
{
  cleanup_fd int fd = tree;
  int r = fd < 0 ? fd : disk_make_dirs(fd, err);
  return r ? r : steal_fd(&fd);
}

int disk_image_open(const char *image, struct err *err)
{
  int r = disk_image_wait_free(image, err);
  return r ? r : finish(image_mount(image, WAY_DISK, err), err);
}

int disk_make(const char *boxes, const char *image, const struct jail_limits *limits, struct err *err)
{
  int r = disk_image_make(boxes, image, limits, err);
  if (!r)
    r = finish(image_mount(image, WAY_DISK, err), err);
  if (r < 0)
    unlink(image);
  return r;
}

/* --- looking in ------------------------------------------------------------------------------------------------ */

/* Whether an open device is that of an image. It stays so while it is open. */
static bool is_backed_by(int loop, const struct stat *image)
{
  struct loop_info64 info;
  return loop >= 0 && ioctl(loop, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == image->st_dev &&
         info.lo_inode == image->st_ino;
}

static bool backed_by(const char *name, const struct stat *image)
{
  cleanup_fd int fd = open(name, O_RDONLY | O_CLOEXEC);
  return is_backed_by(fd, image);
}

/* The device of an image that is in use. A second device for the same image would show what the disk holds, not what
 * the box sees; the same device shows the very same filesystem. */
static int loop_of(const char *image, char name[LOOP_NAME])
{
  struct stat st;
  if (stat(image, &st))
    return -errno;
  unsigned guess = atomic_load(&guesses[st.st_ino % GUESSES]);
  snprintf(name, LOOP_NAME, "/dev/loop%u", guess - 1);
  if (guess && backed_by(name, &st))
    return 0;
  DIR *d = opendir("/sys/block");
  if (!d)
    return -errno;
  int r = -ENOENT;
  for (struct dirent *e; r && (e = readdir(d));) {
    char backing[SYSFS_PATH];
    snprintf(backing, sizeof(backing), "/sys/block/%.200s/loop/backing_file", e->d_name);
    if (!str_starts(str_of(e->d_name), STR("loop")) || access(backing, F_OK))
      continue;
    snprintf(name, LOOP_NAME, "/dev/%.20s", e->d_name);
    if (backed_by(name, &st)) {
      guess_learn(st.st_ino, name);
      r = 0;
    }
  }
  closedir(d);
  return r;
}

/* Between the look at a device and the mount it may become another image's, of somebody else: it is held open, and
 * looked at again through the descriptor that holds it. */
static int mount_shared(const char *image, const char *way, struct err *err)
{
  char name[LOOP_NAME];
  int tree = -1;
  struct stat st;
  if (stat(image, &st))
    return err_errno(err, "finding %s", image);
  for (int i = 0; i < LOOK_TRIES; i++) {
    *err = ERR_NONE;
    bool used = !loop_of(image, name);
    cleanup_fd int loop = used ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (used && !is_backed_by(loop, &st)) {
      tree = err_set(err, -EBUSY, "the device of %s has just become another's", image);
      continue;
    }
    tree = used ? device_mount(name, image, way, err) : image_mount(image, way, err);
    if (tree >= 0 || !used)
      return tree;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  }
  return tree;
}

/* The mount is taken for writing, as the box's own is, because a filesystem is one or the other; nothing is written. A
 * box that is just being taken down may hold its device for a moment more. */
int disk_image_look(const char *image, struct err *err)
{
  return mount_shared(image, WAY_DISK, err);
}

/* --- what outlives crashes -------------------------------------------------------------------------------------- */

static int run_durable_mkfs(const char *path, uint64_t inodes, uint32_t owner, struct err *err)
{
  char number[U64_TEXT], features[96];
  snprintf(number, sizeof(number), "%" PRIu64, inodes + RESERVED_INODES);
  snprintf(features, sizeof(features), "lazy_itable_init=1,nodiscard,root_owner=%" PRIu32 ":%" PRIu32, owner, owner);
  const char *argv[] = {"mkfs.ext4",
                        "-q",
                        "-F",
                        "-m",
                        "0",
                        "-b",
                        "4096",
                        "-I",
                        "256",
                        "-N",
                        number,
                        "-e",
                        "remount-ro",
                        "-J",
                        "size=" STRINGIFY(JOURNAL_MIB),
                        "-O",
                        "has_journal,^resize_inode",
                        "-E",
                        features,
                        path,
                        NULL};
  return run_program(argv, path, err);
}

int disk_image_make_durable(const char *image, uint64_t bytes, uint64_t inodes, uint32_t owner, struct err *err)
{
  uint64_t whole = bytes + (inodes + RESERVED_INODES) * INODE_BYTES + OVERHEAD + ((uint64_t)JOURNAL_MIB << 20);
  cleanup_fd int fd = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)((whole + 4095) / 4096 * 4096)))
    return err_errno(err, "making %s", image);
  int r = run_durable_mkfs(image, inodes, owner, err);
  cleanup_fd int tree = r ? r : mount_shared(image, WAY_DURABLE, err);
  if (tree < 0)
    return tree;
  cleanup_fd int root = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || unlinkat(root, "lost+found", AT_REMOVEDIR) || fchmod(root, 0777) || syncfs(root) || fsync(fd))
    return err_errno(err, "preparing %s", image);
  return 0;
}

uint64_t disk_image_own_inodes(void)
{
  return RESERVED_INODES - 1;
}

/* The kernel's words for a filesystem that it does not recognise or trust are many. */
int disk_image_mount_durable(const char *image, struct err *err)
{
  int tree = access(image, F_OK) ? err_errno(err, "opening %s", image) : mount_shared(image, WAY_DURABLE, err);
  if (tree == -EINVAL || tree == -EUCLEAN || tree == -EBADMSG || tree == -EIO || tree == -ENOTBLK || tree == -EROFS)
    return err_set(err, -EUCLEAN,
                   "%s is damaged and can't be mounted: unmount it everywhere and repair it with 'e2fsck -f %s', or "
                   "restore it from a backup",
                   image, image);
  return tree;
}

int disk_image_device(const char *image, unsigned *major_out, unsigned *minor_out)
{
  char name[LOOP_NAME];
  struct stat st;
  int r = loop_of(image, name);
  if (r || stat(name, &st))
    return r ? r : -errno;
  *major_out = major(st.st_rdev);
  *minor_out = minor(st.st_rdev);
  return 0;
}
