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
#include <time.h>

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
  int64_t until = clock_mono_us() + 10000000; /* the kernel lets go of mounts a moment after their last user */
  int r;
  while ((r = volume_backing_remove(p, id, &err)) == -EBUSY && clock_mono_us() < until)
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  if (r || volume_backing_clear(p, id, INT64_MAX, &err))
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
    assert_int_equal(st.st_mode & 07777, 0777);
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
  char left[PATH_MAX], old[PATH_MAX], now[PATH_MAX], whole[PATH_MAX];
  const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  create(&trees, VOLUME);
  snprintf(left, sizeof(left), "%s/.removed-" OTHER "/volume-x/deep", trees_dir);
  snprintf(old, sizeof(old), "%s/.made-" OTHER, trees_dir);
  snprintf(now, sizeof(now), "%s/.made-" VOLUME, trees_dir);
  snprintf(whole, sizeof(whole), "%s/" VOLUME, trees_dir);
  assert_int_equal(path_mkdirs(left, 0700), 0);
  assert_int_equal(path_mkdirs(old, 0700), 0);
  assert_int_equal(path_mkdirs(now, 0700), 0);
  assert_int_equal(utimensat(AT_FDCWD, old, long_ago, 0), 0);
  assert_int_equal(volume_backing_sweep(&trees, INT64_MAX), 0);
  assert_int_not_equal(access(left, F_OK), 0);
  assert_int_not_equal(access(old, F_OK), 0);
  assert_int_equal(access(now, F_OK), 0); /* another server that shares the directory may be making it */
  assert_int_equal(access(whole, F_OK), 0);
  remove_volume(&trees, VOLUME);
  create(&trees, VOLUME); /* what was begun under its own name is in nobody's way */
  assert_int_not_equal(access(now, F_OK), 0);
  remove_volume(&trees, VOLUME);
}

static void a_tree_goes_in_slices_of_time(void **state)
{
  struct err err = ERR_NONE;
  int slices = 1;
  create(&trees, VOLUME);
  int root = open_volume(&trees, VOLUME);
  for (int i = 0; i < 50; i++) {
    char name[16];
    snprintf(name, sizeof(name), "%d", i);
    close(openat(root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  close(root);
  assert_int_equal(volume_backing_remove(&trees, VOLUME, &err), 0);
  assert_int_equal(volume_backing_open(&trees, VOLUME, &err), -ENOENT);
  assert_int_equal(volume_backing_remove(&trees, VOLUME, &err), 0); /* asked again after a crash: files are left */
  while (volume_backing_clear(&trees, VOLUME, 0, &err) == -EAGAIN) {
    assert_true(slices++ < 100); /* each removes something */
  }
  assert_true(slices > 40);
  assert_int_equal(volume_backing_remove(&trees, VOLUME, &err), -ENOENT);
}

/* --- in boxes -------------------------------------------------------------------------------------------------- */

/* A box that has volume `id` at `path`. */
static void open_box(struct box *b, const char *name, const struct volume_place *p, const char *id, const char *path)
{
  struct jail_volume volume = {id, path};
  struct jail_spec spec = test_spec(&test_host, b, name);
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 64u << 20, .disk = 32u << 20, .pids = 64, .open_files = 1024};
  spec.volumes = &volume;
  spec.volumes_n = 1;
  spec.volume_place = p;
  box_start(b, &spec);
}

static void two_boxes_see_the_same_files_and_owners(void **state)
{
  const struct volume_place *both[] = {&images, &trees};
  for (size_t i = 0; i < ARRAY_LEN(both); i++) {
    struct box a, b;
    struct stat st;
    create(both[i], VOLUME);
    open_box(&a, "share-a", both[i], VOLUME, "/data");
    open_box(&b, "share-b", both[i], VOLUME, "/srv/deep/er");
    assert_string_equal(box_ask(&a, "write /data/x hello"), "ok 5");
    assert_string_equal(box_ask(&a, "chown /data/x 1000 1001"), "ok 0");
    assert_string_equal(box_ask(&b, "read /srv/deep/er/x"), "ok hello");
    assert_string_equal(box_ask(&b, "stat /srv/deep/er/x"), "ok 100644 1000:1001 5");
    assert_string_equal(box_ask(&b, "write /srv/deep/er/y 1"), "ok 1");
    assert_string_equal(box_ask(&a, "stat /data/y"), "ok 100644 0:0 1");
    assert_string_equal(box_ask(&a, "stat /data"), "ok 40777 0:0 4096");
    cleanup_fd int fd = open_volume(both[i], VOLUME);
    assert_int_equal(fstatat(fd, "x", &st, 0), 0);
    assert_int_equal(st.st_uid, VOLUME_ID_BASE + 1000);
    assert_int_equal(st.st_gid, VOLUME_ID_BASE + 1001);
    box_close(&a);
    assert_string_equal(box_ask(&b, "read /srv/deep/er/x"), "ok hello");
    box_close(&b);
    close(steal_fd(&fd));
    remove_volume(both[i], VOLUME);
  }
}

static void a_full_volume_fails_in_itself_only(void **state)
{
  struct box a, b;
  unsigned long long n = 0;
  create(&images, VOLUME);
  open_box(&a, "full-a", &images, VOLUME, "/data");
  open_box(&b, "full-b", &images, VOLUME, "/data");
  const char *told = box_ask(&a, "fill /data/big 1000000000");
  assert_non_null(strstr(told, "ENOSPC"));
  n = strtoull(told + 3, NULL, 10);
  assert_in_range(n, small.bytes - (1u << 20), small.bytes + (4u << 20));
  assert_string_equal(box_ask(&a, "space /"), box_ask(&b, "space /"));
  assert_string_equal(box_ask(&b, "fill /own 4000000"), "ok 4194304 -");
  assert_non_null(strstr(box_ask(&b, "fill /data/more 4000000"), "ENOSPC"));
  assert_string_equal(box_ask(&a, "unlink /data/big"), "ok 0");
  assert_string_equal(box_ask(&b, "fill /data/more 4000000"), "ok 4194304 -");
  box_close(&a);
  box_close(&b);
  remove_volume(&images, VOLUME);
}

static void inodes_of_a_volume_end_before_the_hosts(void **state)
{
  struct box b;
  create(&images, VOLUME);
  open_box(&b, "inodes", &images, VOLUME, "/data");
  const char *told = box_ask(&b, "files /data/d 100000");
  assert_non_null(strstr(told, "ENOSPC"));
  assert_in_range(strtoull(told + 3, NULL, 10), small.inodes - 2, small.inodes + 512);
  assert_string_equal(box_ask(&b, "write /srv/own 1"), "ok 1");
  box_close(&b);
  remove_volume(&images, VOLUME);
}

static void a_box_sees_the_volumes_own_size_and_no_devices_or_setuid(void **state)
{
  struct box b;
  unsigned long mib, flags;
  create(&images, VOLUME);
  open_box(&b, "tricks", &images, VOLUME, "/data");
  const char *told = box_ask(&b, "space /data");
  char *end;
  mib = strtoul(told + 3, &end, 10);
  flags = strtoul(end, NULL, 16);
  assert_in_range(mib, 15, 24);
  assert_true(flags & ST_NOSUID && flags & ST_NODEV);
  assert_string_equal(box_ask(&b, "mknod /data/null"), "errno EPERM");
  assert_string_equal(box_ask(&b, "rename /data /other"), "errno EBUSY");
  assert_string_equal(box_ask(&b, "rmdir /data"), "errno EBUSY");
  assert_string_equal(box_ask(&b, "link /etc/passwd /data/p"), "errno EXDEV");
  assert_string_equal(box_ask(&b, "symlink /etc/note /data/out"), "ok 0");
  assert_non_null(strstr(box_ask(&b, "read /data/out"), "from the template")); /* its own file, no one else's */
  assert_string_equal(box_ask(&b, "read /data/../etc/note"), "ok from the template\n");
  box_close(&b);
  remove_volume(&images, VOLUME);
}

static void a_parent_of_the_mount_point_may_be_renamed(void **state)
{
  struct box b;
  create(&images, VOLUME);
  open_box(&b, "renamed", &images, VOLUME, "/srv/a/b");
  assert_string_equal(box_ask(&b, "write /srv/a/b/x 1"), "ok 1");
  assert_string_equal(box_ask(&b, "rename /srv/a /srv/c"), "ok 0");
  assert_string_equal(box_ask(&b, "read /srv/c/b/x"), "ok 1");
  box_close(&b);
  remove_volume(&images, VOLUME);
}

/* Into a living box whose root arranged the way. */
static void no_link_leads_a_mount_elsewhere(void **state)
{
  static const char *const paths[] = {"/proc",      "/to-proc/sys", "/to-dev",       "/up/up/up/to-proc",
                                      "/nowhere/x", "/etc/note",    "/self/root/tmp"};
  struct box b;
  struct err err = ERR_NONE;
  create(&images, VOLUME);
  box_open(&test_host, &b, "links");
  assert_string_equal(box_ask(&b, "symlink /proc /to-proc"), "ok 0");
  assert_string_equal(box_ask(&b, "symlink ../../../../dev /to-dev"), "ok 0");
  assert_string_equal(box_ask(&b, "symlink ../../../.. /up"), "ok 0");
  assert_string_equal(box_ask(&b, "symlink /not/there /nowhere"), "ok 0");
  assert_string_equal(box_ask(&b, "symlink /proc/1 /self"), "ok 0");
  assert_string_equal(box_ask(&b, "symlink /srv /to-srv"), "ok 0");
  for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
    struct jail_volume volume = {VOLUME, paths[i]};
    struct jail_spec spec = {.volumes = &volume, .volumes_n = 1, .volume_place = &images, .id_base = 1500000000};
    err = ERR_NONE;
    assert_int_equal(jail_mount_volumes(&spec, &b.jail, &err), -EINVAL);
    assert_non_null(strstr(err.msg, paths[i]));
  }
  struct jail_volume volume = {VOLUME, "/to-srv/new"};
  struct jail_spec spec = {.volumes = &volume, .volumes_n = 1, .volume_place = &images, .id_base = 1500000000};
  assert_int_equal(jail_mount_volumes(&spec, &b.jail, &err), 0);
  assert_non_null(strstr(box_ask(&b, "read /proc/self/mountinfo"), " /srv/new "));
  box_close(&b);
  remove_volume(&images, VOLUME);
}

static void a_missing_volume_fails_the_launch_by_name(void **state)
{
  struct box b;
  struct jail jail;
  struct err err = ERR_NONE;
  struct jail_volume volume = {OTHER, "/data"};
  struct jail_spec spec = test_spec(&test_host, &b, "missing");
  spec.volumes = &volume;
  spec.volumes_n = 1;
  spec.volume_place = &images;
  assert_int_equal(jail_spawn(&spec, &jail, &err), -ENOENT);
  assert_non_null(strstr(err.msg, OTHER));
}

static void a_volume_in_use_is_not_removed(void **state)
{
  struct box b;
  char path[PATH_MAX];
  create(&images, VOLUME);
  open_box(&b, "used", &images, VOLUME, "/data");
  snprintf(path, sizeof(path), "%s/" VOLUME "/volume.img", images_dir);
  assert_string_equal(box_ask(&b, "write /data/x 1"), "ok 1");
  close(open_volume(&images, VOLUME)); /* our own mount ends, the box's stays */
  struct err err = ERR_NONE;
  int64_t before = clock_mono_us();
  assert_int_equal(volume_backing_remove(&images, VOLUME, &err), -EBUSY);
  assert_true(clock_mono_us() - before < 5000000); /* a look, no wait */
  assert_int_equal(access(path, F_OK), 0);
  assert_string_equal(box_ask(&b, "write /data/y 1"), "ok 1");
  box_close(&b);
  remove_volume(&images, VOLUME);
  assert_int_not_equal(access(path, F_OK), 0);
}

static void a_volume_over_its_limit_is_read_only_until_it_is_under(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  create(&trees, VOLUME);
  open_box(&b, "over", &trees, VOLUME, "/srv/with blank/v");
  assert_string_equal(box_ask(&b, "mkdir /srv/t"), "ok 0");
  assert_int_equal(jail_volume_readonly(&trees, VOLUME, b.jail.init, true, &err), 1);
  assert_int_equal(jail_volume_readonly(&trees, VOLUME, b.jail.init, true, &err), 0);
  assert_non_null(strstr(box_ask(&b, "read /proc/self/mountinfo"), "/srv/with\\040blank/v ro,"));
  assert_int_equal(jail_volume_readonly(&trees, VOLUME, b.jail.init, false, &err), 1);
  assert_non_null(strstr(box_ask(&b, "read /proc/self/mountinfo"), "/srv/with\\040blank/v rw,"));
  box_close(&b);
  assert_int_equal(volume_backing_set_full(&trees, VOLUME, true, &err), 0);
  assert_true(volume_backing_full(&trees, VOLUME));
  open_box(&b, "over-new", &trees, VOLUME, "/data");
  assert_string_equal(box_ask(&b, "write /data/x 1"), "errno EROFS");
  assert_int_equal(volume_backing_set_full(&trees, VOLUME, false, &err), 0);
  assert_int_equal(jail_volume_readonly(&trees, VOLUME, b.jail.init, false, &err), 1);
  assert_string_equal(box_ask(&b, "write /data/x 1"), "ok 1");
  box_close(&b);
  remove_volume(&trees, VOLUME);
}

/* ramfs stands for a network filesystem without idmapped mounts. */
static void a_filesystem_that_cant_map_ids_is_told_with_the_remedy(void **state)
{
  char ram[PATH_MAX];
  struct err err = ERR_NONE;
  snprintf(ram, sizeof(ram), "%s/ram", test_host.top);
  assert_int_equal(mkdir(ram, 0755), 0);
  assert_int_equal(mount("ram", ram, "ramfs", 0, NULL), 0);
  struct volume_place p = {.dir = ram, .directory = true};
  create(&p, VOLUME);
  assert_int_equal(volume_backing_mount(&p, VOLUME, 1500000000, &err), -EOPNOTSUPP);
  assert_non_null(strstr(err.msg, "volumes_dir"));
  remove_volume(&p, VOLUME);
  assert_int_equal(umount(ram), 0);
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
      cmocka_unit_test(a_tree_goes_in_slices_of_time),
      cmocka_unit_test(two_boxes_see_the_same_files_and_owners),
      cmocka_unit_test(a_full_volume_fails_in_itself_only),
      cmocka_unit_test(inodes_of_a_volume_end_before_the_hosts),
      cmocka_unit_test(a_box_sees_the_volumes_own_size_and_no_devices_or_setuid),
      cmocka_unit_test(a_parent_of_the_mount_point_may_be_renamed),
      cmocka_unit_test(no_link_leads_a_mount_elsewhere),
      cmocka_unit_test(a_missing_volume_fails_the_launch_by_name),
      cmocka_unit_test(a_volume_in_use_is_not_removed),
      cmocka_unit_test(a_volume_over_its_limit_is_read_only_until_it_is_under),
      cmocka_unit_test(a_filesystem_that_cant_map_ids_is_told_with_the_remedy),
  };
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s GUEST\n", argv[0]);
    return 2;
  }
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
    perror("a mount namespace");
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
