/* SPDX-License-Identifier: Apache-2.0 */
/* tree_copy.c - see backup.h. cp does the copying: it is part of every Debian system, and knows holes, reflinks, hard
 * links, devices and attributes. Trees that boxes can change meanwhile are never given to it. */
#include "cli/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

const char *const backup_parts[] = {"layers", "checkpoints", "heaps", "runtime", "boxes", "files", "builds", "volumes"};
const size_t backup_parts_n = ARRAY_LEN(backup_parts);

int tree_copy(const char *from, const char *to, struct err *err)
{
  if (faccessat(AT_FDCWD, from, F_OK, AT_SYMLINK_NOFOLLOW))
    return err_errno(err, "%s", from);
  pid_t pid = fork();
  if (pid < 0)
    return err_errno(err, "fork");
  if (pid == 0) {
    setenv("LC_ALL", "C", 1);
    execlp("cp", "cp", "-a", "--reflink=auto", "--sparse=always", "-T", "--", from, to, (char *)NULL);
    _exit(127);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFEXITED(status) && !WEXITSTATUS(status))
    return 0;
  bool gone = faccessat(AT_FDCWD, from, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  path_remove_tree(AT_FDCWD, to);
  return err_set(err, gone ? -ENOENT : -EIO, "copying %s to %s failed; the reason is above", from, to);
}

int tree_sync(const char *path, struct err *err)
{
  cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 || syncfs(fd) ? err_errno(err, "writing out %s", path) : 0;
}
