/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_dir.c - a checkpoint as a directory: whether it is whole, how large it is, its removal. */
#include "jail/checkpoint/checkpoint.h"
#include "jail/checkpoint/compress.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static int checkpoint_open(const char *checkpoint, struct err *err)
{
  int dir = open(checkpoint, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return dir < 0 ? err_errno(err, "opening the checkpoint %s", checkpoint) : dir;
}

int jail_checkpoint_check(const char *checkpoint, struct err *err)
{
  cleanup_manifest struct manifest m = MANIFEST_INIT;
  cleanup_fd int dir = checkpoint_open(checkpoint, err);
  int r = dir < 0 ? dir : manifest_read(dir, &m, err);
  r = r ? r : manifest_check(dir, &m, false, err);
  r = r ? r : manifest_check(dir, &m, true, err);
  return r ? r : compressed_check(dir, &m, err);
}

uint64_t jail_checkpoint_bytes(const char *checkpoint)
{
  cleanup_fd int dir = checkpoint_open(checkpoint, NULL);
  int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
  uint64_t bytes = 0;
  struct stat st;
  for (struct dirent *e; d && (e = readdir(d));)
    if (!fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
      bytes += (uint64_t)st.st_blocks * 512;
  return bytes;
}

uint64_t jail_checkpoint_most(uint64_t memory, uint64_t disk)
{
  uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  return 2 * MIN(memory ? memory : all, all) + disk + JAIL_CHECKPOINT_EXTRA;
}

int jail_checkpoint_remove(const char *checkpoint, struct err *err)
{
  cleanup_fd int dir = open(checkpoint, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir >= 0 && unlinkat(dir, MANIFEST_NAME, 0) == 0)
    fsync(dir);
  int r = path_remove_tree(AT_FDCWD, checkpoint);
  return r && r != -ENOENT ? err_set(err, r, "removing the checkpoint %s: %s", checkpoint, strerrordesc_np(-r)) : 0;
}
