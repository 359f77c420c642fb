/* SPDX-License-Identifier: Apache-2.0 */
/* volume_test.c - the files of volumes: images and directories, their limits, and boxes that share them. Needs root. */
#include "box.h"
#include "jail/fs/volume_backing.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define VOLUME "0b0c0d0e-1111-4222-8333-444455556666"
#define OTHER  "aaaabbbb-1111-4222-8333-444455556666"
#define SCAN   100000

static struct test_host test_host;
static char images_dir[128], trees_dir[128];
static struct volume_place images, trees;
static const struct volume_limits small = {.bytes = 16u << 20, .inodes = 200};

static void create(const struct volume_place *p, const char *id)
{
  struct err err = ERR_NONE;
  if (volume_backing_create(p, id, &small, &err))
    fail_msg("%s", err.msg);
}

static int open_volume(const struct volume_place *p, const char *id)
{
  struct err err = ERR_NONE;
  int fd = volume_backing_open(p, id, &err);
  if (fd < 0)
    fail_msg("%s", err.msg);
  return fd;
}

static void remove_volume(const struct volume_place *p, const char *id)
{
  struct err err = ERR_NONE;
  if (volume_backing_remove(p, id, &err))
    fail_msg("%s", err.msg);
}

static struct volume_usage usage_of(const struct volume_place *p, const char *id)
{
  struct err err = ERR_NONE;
  struct volume_usage u;
  if (volume_backing_usage(p, id, SCAN, &u, &err))
    fail_msg("%s", err.msg);
  return u;
}

static void put(int dir, const char *name, size_t bytes)
{
  static const char block[4096];
  cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  for (size_t n = 0; n < bytes; n += sizeof(block))
    assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
}

/* --- by themselves --------------------------------------------------------------------------------------------- */

static void a_new_volume_is_empty_and_belongs_to_no_user_of_the_host(void **state)
{
  const struct volume_place *both[] = {&images, &trees};
  for (size_t i = 0; i < ARRAY_LEN(both); i++) {
    struct stat st;
    struct statfs fs;
    create(both[i], VOLUME);
    cleanup_fd int fd = open_volume(both[i], VOLUME);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_uid, VOLUME_ID_BASE);
    assert_int_equal(st.st_gid, VOLUME_ID_BASE);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(st.st_nlink, 2); /* no lost+found */
    assert_int_equal(fstatfs(fd, &fs), 0);
    assert_true(fs.f_flags & ST_NOSUID && fs.f_flags & ST_NODEV);
    close(steal_fd(&fd));
    remove_volume(both[i], VOLUME);
  }
}

static void a_volume_is_made_once_and_removed_once(void **state)
{
  const struct volume_place *both[] = {&images, &trees};
  for (size_t i = 0; i < ARRAY_LEN(both); i++) {
    struct err err = ERR_NONE;
    create(both[i], VOLUME);
    assert_int_equal(volume_backing_create(both[i], VOLUME, &small, &err), -EEXIST);
    remove_volume(both[i], VOLUME);
    assert_int_equal(volume_backing_remove(both[i], VOLUME, &err), -ENOENT);
    assert_int_equal(volume_backing_open(both[i], VOLUME, &err), -ENOENT);
    assert_non_null(strstr(err.msg, VOLUME));
  }
}

static void names_that_are_no_ids_are_refused(void **state)
{
  static const char *const bad[] = {"", "..", "../0b0c0d0e-1111-4222-8333-44445555",
                                    "0b0c0d0e-1111-4222-8333-44445555666/", "0B0C0D0E-1111-4222-8333-444455556666"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    struct err err = ERR_NONE;
    assert_int_equal(volume_backing_create(&trees, bad[i], &small, &err), -EINVAL);
    assert_int_equal(volume_backing_open(&trees, bad[i], &err), -EINVAL);
    assert_int_equal(volume_backing_remove(&images, bad[i], &err), -EINVAL);
  }
}

static void files_of_an_image_outlive_its_mounts(void **state)
{
  create(&images, VOLUME);
  int fd = open_volume(&images, VOLUME);
  put(fd, "kept", 8192);
  close(fd);
  fd = open_volume(&images, VOLUME);
  assert_int_equal(faccessat(fd, "kept", F_OK, 0), 0);
  close(fd);
  remove_volume(&images, VOLUME);
}

static void all_mounts_of_an_image_are_one_filesystem(void **state)
{
  struct stat a, b;
  create(&images, VOLUME);
  cleanup_fd int one = open_volume(&images, VOLUME), two = open_volume(&images, VOLUME);
  put(one, "seen", 4096);
  assert_int_equal(fstatat(two, "seen", &b, 0), 0);
  assert_int_equal(fstatat(one, "seen", &a, 0), 0);
  assert_int_equal(a.st_dev, b.st_dev);
  assert_int_equal(a.st_ino, b.st_ino);
  close(steal_fd(&one));
  close(steal_fd(&two));
  remove_volume(&images, VOLUME);
}

static void usage_counts_bytes_and_inodes(void **state)
{
  const struct volume_place *both[] = {&images, &trees};
  for (size_t i = 0; i < ARRAY_LEN(both); i++) {
    create(both[i], VOLUME);
    struct volume_usage before = usage_of(both[i], VOLUME);
    cleanup_fd int fd = open_volume(both[i], VOLUME);
    put(fd, "a", 1 << 20);
    assert_int_equal(mkdirat(fd, "d", 0755), 0);
    put(fd, "d/b", 1 << 20);
    assert_int_equal(linkat(fd, "a", fd, "again", 0), 0);
    syncfs(fd);
    struct volume_usage after = usage_of(both[i], VOLUME);
    assert_true(after.whole);
    assert_in_range(after.bytes - before.bytes, 2u << 20, (2u << 20) + 65536);
    if (both[i]->directory)
      assert_in_range(after.inodes, 2, 4);
    else
      assert_int_equal(after.inodes - before.inodes, 3);
    close(steal_fd(&fd));
    remove_volume(both[i], VOLUME);
  }
}

static void a_scan_ends_at_its_bound(void **state)
{
  struct err err = ERR_NONE;
  struct volume_usage u;
  create(&trees, VOLUME);
  cleanup_fd int fd = open_volume(&trees, VOLUME);
  for (int i = 0; i < 50; i++) {
    char name[16];
    snprintf(name, sizeof(name), "%d", i);
    put(fd, name, 0);
  }
  assert_int_equal(volume_backing_usage(&trees, VOLUME, 20, &u, &err), 0);
  assert_false(u.whole);
  assert_int_equal(u.inodes, 20);
  close(steal_fd(&fd));
  remove_volume(&trees, VOLUME);
}

static void an_image_gives_what_was_asked_for_and_no_more(void **state)
{
  struct err err = ERR_NONE;
  create(&images, VOLUME);
  struct volume_usage u = usage_of(&images, VOLUME);
  assert_in_range(u.bytes_max - u.bytes, small.bytes, small.bytes + (4u << 20));
  assert_in_range(u.inodes_max - u.inodes, small.inodes, small.inodes + 512);
  (void)err;
  remove_volume(&images, VOLUME);
}

static void a_damaged_image_is_named_and_hurts_no_other(void **state)
{
  char path[PATH_MAX], noise[8192];
  struct err err = ERR_NONE;
  create(&images, VOLUME);
  create(&images, OTHER);
  snprintf(path, sizeof(path), "%s/" VOLUME "/volume.img", images_dir);
  memset(noise, 0x5a, sizeof(noise));
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  assert_int_equal(pwrite(fd, noise, sizeof(noise), 0), sizeof(noise));
  close(fd);
  assert_int_equal(volume_backing_open(&images, VOLUME, &err), -EUCLEAN);
  assert_non_null(strstr(err.msg, "e2fsck"));
  assert_non_null(strstr(err.msg, VOLUME));
  close(open_volume(&images, OTHER));
  remove_volume(&images, VOLUME);
  remove_volume(&images, OTHER);
}

static void what_a_crash_left_is_swept(void **state)
{
  char left[PATH_MAX], half[PATH_MAX], whole[PATH_MAX];
  create(&trees, VOLUME);
  snprintf(left, sizeof(left), "%s/.removed-" OTHER "/volume-x/deep", trees_dir);
  snprintf(half, sizeof(half), "%s/.made-" OTHER, trees_dir);
  snprintf(whole, sizeof(whole), "%s/" VOLUME, trees_dir);
  assert_int_equal(path_mkdirs(left, 0700), 0);
  assert_int_equal(path_mkdirs(half, 0700), 0);
  volume_backing_sweep(&trees);
  assert_int_not_equal(access(left, F_OK), 0);
  assert_int_not_equal(access(half, F_OK), 0);
  assert_int_equal(access(whole, F_OK), 0);
  remove_volume(&trees, VOLUME);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_new_volume_is_empty_and_belongs_to_no_user_of_the_host),
      cmocka_unit_test(a_volume_is_made_once_and_removed_once),
      cmocka_unit_test(names_that_are_no_ids_are_refused),
      cmocka_unit_test(files_of_an_image_outlive_its_mounts),
      cmocka_unit_test(all_mounts_of_an_image_are_one_filesystem),
      cmocka_unit_test(usage_counts_bytes_and_inodes),
      cmocka_unit_test(a_scan_ends_at_its_bound),
      cmocka_unit_test(an_image_gives_what_was_asked_for_and_no_more),
      cmocka_unit_test(a_damaged_image_is_named_and_hurts_no_other),
      cmocka_unit_test(what_a_crash_left_is_swept),
  };
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s GUEST\n", argv[0]);
    return 2;
  }
  test_host_open(&test_host, argv[1]);
  snprintf(images_dir, sizeof(images_dir), "%s/images", test_host.top);
  snprintf(trees_dir, sizeof(trees_dir), "%s/trees", test_host.top);
  images = (struct volume_place){.dir = images_dir};
  trees = (struct volume_place){.dir = trees_dir, .directory = true};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  test_host_close(&test_host);
  return failed;
}
