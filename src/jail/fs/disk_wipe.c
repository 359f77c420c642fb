/* SPDX-License-Identifier: Apache-2.0 */
/* disk_wipe.c - see disk_wipe.h. Nothing here follows a link or a mount: the tree is a detached mount that nobody else
 * can reach, names are taken one at a time from descriptors of their directories. A file that refuses to go (an
 * immutable one, say) is a reason to give the disk up, not to insist. */
#include "jail/fs/disk_wipe.h"

#include "jail/fs/disk_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

int disk_usage_read(int tree, struct disk_usage *out)
{
  struct statfs fs;
  if (fstatfs(tree, &fs))
    return -errno;
  *out = (struct disk_usage){.blocks = (uint64_t)fs.f_blocks,
                             .block_bytes = (uint64_t)fs.f_bsize,
                             .free = (uint64_t)fs.f_bfree,
                             .files = (uint64_t)fs.f_files,
                             .free_files = (uint64_t)fs.f_ffree};
  return 0;
}

static bool same(const struct disk_usage *a, const struct disk_usage *b)
{
  return a->blocks == b->blocks && a->block_bytes == b->block_bytes && a->free == b->free && a->files == b->files &&
         a->free_files == b->free_files;
}

bool disk_wipe_worth(int tree, const struct disk_usage *fresh, const struct disk_wipe_limits *limits)
{
  struct disk_usage now = {0};
  return !disk_usage_read(tree, &now) && now.blocks == fresh->blocks && now.files == fresh->files &&
         now.free <= fresh->free && now.free_files <= fresh->free_files &&
         (fresh->free - now.free) * now.block_bytes <= limits->bytes &&
         fresh->free_files - now.free_files <= limits->files;
}

static DIR *open_in(int at, const char *name)
{
  cleanup_fd int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (d)
    steal_fd(&fd);
  return d;
}

static bool is_dots(const char *name)
{
  return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* The directory `name` and all in it; *left counts entries down. */
static int remove_dir(int at, const char *name, unsigned depth, unsigned *left)
{
  if (depth == 0)
    return -ELOOP;
  cleanup_dir DIR *d = open_in(at, name);
  if (!d)
    return -errno;
  errno = 0;
  for (struct dirent *e; (e = readdir(d)); errno = 0) {
    if (is_dots(e->d_name))
      continue;
    if ((*left)-- == 0)
      return -E2BIG;
    int r = e->d_type == DT_DIR                ? remove_dir(dirfd(d), e->d_name, depth - 1, left)
            : unlinkat(dirfd(d), e->d_name, 0) ? -errno
                                               : 0;
    if (r)
      return r;
  }
  if (errno)
    return -errno;
  return unlinkat(at, name, AT_REMOVEDIR) ? -errno : 0;
}

static int remove_dir_of_box(int tree, const char *name, unsigned *left)
{
  int r = remove_dir(tree, name, WIPE_DEPTH, left);
  return r == -ENOENT ? 0 : r;
}

/* Beside the two directories a new disk has what mkfs made, and nothing more. */
static int only_known_dirs(int tree)
{
  static const char *const names[] = {"upper", "work", "lost+found"};
  cleanup_dir DIR *d = open_in(tree, ".");
  if (!d)
    return -errno;
  errno = 0;
  for (struct dirent *e; (e = readdir(d)); errno = 0) {
    bool known = is_dots(e->d_name);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
      known |= !strcmp(e->d_name, names[i]);
    if (!known)
      return -EUCLEAN;
  }
  return -errno;
}

int disk_wipe_disk(int tree, const struct disk_usage *fresh, const struct disk_wipe_limits *limits)
{
  struct disk_usage now = {0};
  struct err err = ERR_NONE;
  unsigned left = limits->files;
  int r = remove_dir_of_box(tree, "upper", &left);
  r = r ? r : remove_dir_of_box(tree, "work", &left);
  r = r ? r : only_known_dirs(tree);
  r = r ? r : disk_make_dirs(tree, &err);
  r = r ? r : disk_usage_read(tree, &now);
  if (r)
    return r;
  return same(&now, fresh) ? 0 : -EAGAIN;
}
