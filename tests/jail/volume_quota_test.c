/* SPDX-License-Identifier: Apache-2.0 */
/* volume_quota_test.c - volumes that are directories with project quotas, on ext4 and on xfs. Needs root and a kernel
 * that has them (CONFIG_QFMT_V2, CONFIG_XFS_QUOTA): tests/jail/other-kernel runs it under Debian's. */
#include "jail/fs/volume_quota.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define VOLUME "0b0c0d0e-1111-4222-8333-444455556666"
#define OTHER  "aaaabbbb-1111-4222-8333-444455556666"
/* The same number of a project. */
#define ONE    "5f0c0d0e-1111-4222-8333-1f2e0016dd96"
#define TWIN   "5f0c0d0e-1111-4222-8333-1e2c89aa4620"
#define MIB    ((uint64_t)1 << 20)

static char top[] = "/tmp/cloche-quota-XXXXXX";
static struct volume_place place = {.directory = true};
static const struct volume_limits small = {.bytes = 8 * MIB, .inodes = 50};

/* A filesystem of the kind in a file, mounted with quotas at `top`. */
static void mount_kind(const char *kind)
{
  char line[512];
  bool xfs = !strcmp(kind, "xfs");
  snprintf(line, sizeof(line), "truncate -s 400M %s.img && mkfs.%s -q %s %s.img && mount -o loop,prjquota %s.img %s",
           top, kind, xfs ? "-f" : "-F -O quota,project -E quotatype=prjquota", top, top, top);
  assert_int_equal(system(line), 0);
}

static int unmount(void **state)
{
  char line[256];
  snprintf(line, sizeof(line), "umount %s; rm -f %s.img", top, top);
  return system(line);
}

static int on_ext4(void **state)
{
  mount_kind("ext4");
  return 0;
}

static int on_xfs(void **state)
{
  mount_kind("xfs");
  return 0;
}

static void create(const char *id)
{
  struct err err = ERR_NONE;
  if (volume_backing_create(&place, id, &small, &err))
    fail_msg("%s", err.msg);
}

static struct volume_usage usage(const char *id)
{
  struct err err = ERR_NONE;
  struct volume_usage u;
  if (volume_backing_usage(&place, id, 100000, &u, &err))
    fail_msg("%s", err.msg);
  return u;
}

static void remove_volume(const char *id)
{
  struct err err = ERR_NONE;
  if (volume_backing_remove(&place, id, &err) || volume_backing_clear(&place, id, INT64_MAX, &err))
    fail_msg("%s", err.msg);
}

/* What `act` returns in a process without rights, as those that write for tenants are. */
static int as_tenant(int (*act)(int root), const char *id)
{
  struct err err = ERR_NONE;
  int root = volume_backing_open(&place, id, &err), status = 0;
  assert_true(root >= 0);
  pid_t pid = fork();
  if (pid == 0)
    _exit(setgid(VOLUME_ID_BASE) || setuid(VOLUME_ID_BASE) ? 255 : act(root));
  assert_int_equal(waitpid(pid, &status, 0), pid);
  close(root);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* MiB that could be written, up to 20. */
static int fill_bytes(int root)
{
  static char mib[1 << 20];
  int fd = openat(root, "big", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  uint64_t n = 0;
  ssize_t k = fd < 0 ? -1 : 0;
  while (k >= 0 && n < 20 * MIB) {
    n += (uint64_t)k;
    k = write(fd, mib, sizeof(mib)); /* the last one may be short */
  }
  if (k < 0 && errno != EDQUOT && errno != ENOSPC)
    return 254;
  close(fd);
  return (int)(n / MIB);
}

static int fill_inodes(int root)
{
  int n = 0;
  for (; n < 100; n++) {
    char name[16];
    snprintf(name, sizeof(name), "%d", n);
    int fd = openat(root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
      return errno == EDQUOT || errno == ENOSPC ? n : 254;
    close(fd);
  }
  return n;
}

/* 0: refused. A box has a user namespace of its own, and so has the content process. */
static int leave_project(int root)
{
  struct fsxattr attr;
  if (unshare(CLONE_NEWUSER))
    return 253;
  int fd = openat(root, "mine", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr))
    return 252;
  attr.fsx_projid = 0;
  return ioctl(fd, FS_IOC_FSSETXATTR, &attr) ? 0 : 1;
}

static void bytes_end_at_the_limit_and_others_go_on(void **state)
{
  create(VOLUME);
  create(OTHER);
  int n = as_tenant(fill_bytes, VOLUME);
  assert_in_range(n, 6, 8);
  struct volume_usage u = usage(VOLUME);
  assert_int_equal(u.bytes_max, small.bytes);
  assert_in_range(u.bytes, 6 * MIB, small.bytes);
  assert_true(u.whole);
  assert_in_range(as_tenant(fill_bytes, OTHER), 6, 8);
  remove_volume(VOLUME);
  remove_volume(OTHER);
}

static void no_volume_shares_anothers_limit(void **state)
{
  struct err err = ERR_NONE;
  assert_int_equal(volume_quota_project(ONE), volume_quota_project(TWIN));
  create(ONE);
  assert_int_equal(volume_backing_create(&place, TWIN, &small, &err), -ESHUTDOWN);
  assert_non_null(strstr(err.msg, "try again"));
  assert_int_equal(usage(ONE).bytes_max, small.bytes);
  remove_volume(ONE);
  int r = -ESHUTDOWN;
  for (int i = 0; i < 100 && r == -ESHUTDOWN; i++) { /* xfs counts files that went a while longer */
    r = volume_backing_create(&place, TWIN, &small, &err);
    usleep(r ? 100000 : 0);
  }
  assert_int_equal(r, 0);
  remove_volume(TWIN);
}

static void inodes_end_at_the_limit(void **state)
{
  create(VOLUME);
  int n = as_tenant(fill_inodes, VOLUME);
  assert_in_range(n, 40, 50);
  struct volume_usage u = usage(VOLUME);
  assert_int_equal(u.inodes_max, small.inodes);
  assert_in_range(u.inodes, 40, 50);
  remove_volume(VOLUME);
}

static void a_limit_that_is_raised_holds_at_once(void **state)
{
  struct err err = ERR_NONE;
  create(VOLUME);
  assert_int_equal(volume_backing_limit(&place, VOLUME, &(struct volume_limits){16 * MIB, 100}, &err), 0);
  assert_in_range(as_tenant(fill_bytes, VOLUME), 14, 16);
  remove_volume(VOLUME);
}

static void statfs_tells_the_limit(void **state)
{
  struct err err = ERR_NONE;
  struct statvfs fs;
  create(VOLUME);
  int root = volume_backing_open(&place, VOLUME, &err);
  assert_int_equal(fstatvfs(root, &fs), 0);
  close(root);
  assert_in_range((uint64_t)fs.f_blocks * fs.f_frsize, 7 * MIB, 8 * MIB);
  remove_volume(VOLUME);
}

static void no_tenant_leaves_its_project(void **state)
{
  create(VOLUME);
  assert_int_equal(as_tenant(leave_project, VOLUME), 0);
  remove_volume(VOLUME);
}

#define ON(fs, test)                                                                                                   \
  {                                                                                                                    \
#test "_on_" #fs, test, on_##fs, unmount, NULL                                                                     \
  }

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      ON(ext4, bytes_end_at_the_limit_and_others_go_on),
      ON(xfs, bytes_end_at_the_limit_and_others_go_on),
      ON(ext4, inodes_end_at_the_limit),
      ON(ext4, no_volume_shares_anothers_limit),
      ON(xfs, inodes_end_at_the_limit),
      ON(xfs, no_volume_shares_anothers_limit),
      ON(ext4, a_limit_that_is_raised_holds_at_once),
      ON(xfs, a_limit_that_is_raised_holds_at_once),
      ON(ext4, statfs_tells_the_limit),
      ON(xfs, statfs_tells_the_limit),
      ON(ext4, no_tenant_leaves_its_project),
      ON(xfs, no_tenant_leaves_its_project),
  };
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(top)) {
    perror("a place for the test");
    return 2;
  }
  place.dir = top;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(top);
  return failed;
}
