/* SPDX-License-Identifier: Apache-2.0 */
/* link_remap.c - see link_remap.h. */
#include "jail/checkpoint/link_remap.h"
#include "base/base.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define LIST_MAX ((size_t)16 << 20)
#define NAME     "link_remap."

static void take_away(int root, const char *path, uint64_t inode, bool exact)
{
  struct stat st;
  char parent[PATH_MAX], name[NAME_MAX + 1];
  if (str_copyz(path_dir(str_of(path)), parent, sizeof(parent)) ||
      str_copyz(path_base(str_of(path)), name, sizeof(name)) || !str_starts(str_of(name), STR(NAME)))
    return;
  cleanup_fd int dir = path_open_in(root, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || (exact && st.st_ino != inode))
    return;
  if (unlinkat(dir, name, 0))
    log_warn("removing link remap %s from a box failed: %s", path, strerrordesc_np(errno));
}

/* "inode path", each ended by a zero; a dump that was killed may have left half of one. */
void link_remaps_remove(int dir, pid_t pid, bool exact)
{
  char at[PROC_PATH];
  cleanup_buf struct buf b = BUF_INIT(LIST_MAX);
  cleanup_fd int list = openat(dir, LINK_REMAPS_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (list < 0 || fd_read_all(list, &b))
    return;
  snprintf(at, sizeof(at), "/proc/%d/root", pid);
  cleanup_fd int root = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct str rest = buf_str(&b), one, inode;
  while (root >= 0 && rest.n && str_find(rest, 0) >= 0) {
    uint64_t number;
    char path[PATH_MAX];
    str_cut(rest, 0, &one, &rest);
    str_cut(one, ' ', &inode, &one);
    if (!str_u64(inode, &number) && !str_copyz(one, path, sizeof(path)))
      take_away(root, path, number, exact);
  }
}
