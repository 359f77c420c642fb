/* SPDX-License-Identifier: Apache-2.0 */
/* boot_id.c - see boot_id.h. */
#include "jail/boot_id.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#define READONLY_WAIT_MS 2000
#define ATTRIBUTES       (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static int path_in(char out[PATH_MAX], const char *dir, struct err *err)
{
  if ((size_t)snprintf(out, PATH_MAX, "%s/" BOOT_ID_NAME, dir) < PATH_MAX)
    return 0;
  return err_set(err, -ENAMETOOLONG, "path too long: %s/" BOOT_ID_NAME, dir);
}

/* One page and two inodes: the root and the file. */
static int make_tmpfs(void)
{
  cleanup_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", BOOT_ID_SOURCE, 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "mode", "755", 0) || fsconfig(fs, FSCONFIG_SET_STRING, "size", "4096", 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", "2", 0) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return -1;
  return fsmount(fs, FSMOUNT_CLOEXEC, ATTRIBUTES);
}

/* A mount with a file open for writing does not become read-only, and a process that another thread forks meanwhile has
 * the file open until its exec. That is over in a moment. */
static int make_readonly(int tree, struct err *err)
{
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
  for (unsigned waited = 0; mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)); waited++) {
    if (errno != EBUSY || waited == READONLY_WAIT_MS)
      return err_errno(err, "making a boot id read-only");
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return 0;
}

static int mount_id(const char id[UUID_TEXT], struct err *err)
{
  char line[UUID_TEXT + 1];
  int n = snprintf(line, sizeof(line), "%s\n", id);
  cleanup_fd int tree = make_tmpfs();
  cleanup_fd int file =
      tree < 0 ? -1 : openat(tree, BOOT_ID_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);
  if (file < 0 || fd_write_all(file, line, (size_t)n))
    return err_errno(err, "making a boot id");
  close(steal_fd(&file));
  int r = make_readonly(tree, err);
  return r ? r : steal_fd(&tree);
}

int boot_id_renew(const char *dir, struct err *err)
{
  char path[PATH_MAX], id[UUID_TEXT];
  int r = path_in(path, dir, err);
  if (!r && unlink(path) && errno != ENOENT)
    r = err_errno(err, "removing %s", path);
  if (r)
    return r;
  uuid4(id);
  return mount_id(id, err);
}

/* A file that was cut short by a crash of the host is as good as none. */
int boot_id_keep(const char *dir, struct err *err)
{
  char path[PATH_MAX], id[UUID_TEXT];
  cleanup_buf struct buf b = BUF_INIT(UUID_TEXT);
  int r = path_in(path, dir, err);
  if (r)
    return r;
  if (file_read(path, &b) || !uuid_valid(buf_str(&b)) || str_copyz(buf_str(&b), id, sizeof(id)))
    return boot_id_renew(dir, err);
  return mount_id(id, err);
}

/* The way there is through the root of the box's first process, which may have chosen another one: no link is followed,
 * nothing but a plain file is read, without waiting (for the other end of a pipe, or for a lease that a frozen process
 * holds), and what is read must look like an id. */
static int read_of(pid_t pid, char id[UUID_TEXT])
{
  char path[PROC_PATH];
  struct stat st;
  cleanup_buf struct buf b = BUF_INIT(UUID_TEXT);
  snprintf(path, sizeof(path), "/proc/%d/root", pid);
  cleanup_fd int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  cleanup_fd int fd =
      root < 0 ? -1 : path_open_in(root, BOOT_ID_POINT, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  int r = root < 0 ? -errno : fd < 0 ? fd : fstat(fd, &st) || !S_ISREG(st.st_mode) ? -EINVAL : fd_read_all(fd, &b);
  struct str text = str_trim(buf_str(&b));
  return r ? r : !uuid_valid(text) ? -EBADMSG : str_copyz(text, id, UUID_TEXT);
}

/* A new file each time: to replace the content of an old one would wait for the host's disk. */
int boot_id_save(const char *dir, pid_t pid, struct err *err)
{
  char path[PATH_MAX], id[UUID_TEXT];
  int r = path_in(path, dir, err);
  if (!r && (r = read_of(pid, id)))
    err_set(err, r, "reading the boot id of the box in %s: %s", dir, strerrordesc_np(-r));
  if (r)
    return r;
  unlink(path);
  cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd < 0 || fd_write_all(fd, id, strlen(id)) ? err_errno(err, "writing %s", path) : 0;
}

int boot_id_settle(const char *dir, struct err *err)
{
  char path[PATH_MAX];
  int r = path_in(path, dir, err);
  if (r)
    return r;
  cleanup_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) /* a box of an earlier version */
    return 0;
  cleanup_fd int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 || top < 0 || fsync(fd) || fsync(top) ? err_errno(err, "writing out %s", path) : 0;
}
