/* SPDX-License-Identifier: Apache-2.0 */
/* id_shift_test.c - layers on a filesystem that can't map ids: ramfs stands for it. In a mount namespace of its own. */
#include "box.h"
#include "jail/fs/id_shift.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct test_host test_host;
static char ram[128], base[160], shifted[128];
static uint32_t range; /* of the first box */

static void path_in(char out[PATH_MAX], const char *dir, const char *name)
{
  snprintf(out, PATH_MAX, "%s/%s", dir, name);
}

static void put(const char *dir, const char *name, mode_t mode, unsigned uid, unsigned gid)
{
  char path[PATH_MAX];
  path_in(path, dir, name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "text\n", 5), 5);
  assert_int_equal(fchown(fd, uid, gid), 0);
  assert_int_equal(fchmod(fd, mode), 0);
  close(fd);
}

static struct stat stat_of(const char *dir, const char *name)
{
  struct stat st;
  char path[PATH_MAX];
  path_in(path, dir, name);
  assert_int_equal(lstat(path, &st), 0);
  return st;
}

static int open_all(void **state)
{
  static const char *const dirs[] = {"", "bin", "dev", "etc", "home", "proc", "sys", "tmp", "var"};
  char path[PATH_MAX];
  snprintf(ram, sizeof(ram), "%s/ram", test_host.top);
  snprintf(base, sizeof(base), "%s/base", ram);
  snprintf(shifted, sizeof(shifted), "%s/shifted", test_host.top);
  if (mkdir(ram, 0700) || mount("ramfs", ram, "ramfs", 0, NULL))
    return -1;
  for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
    path_in(path, base, dirs[i]);
    if (mkdir(path, 0755))
      return -1;
  }
  put(base, "etc/note", 0644, 0, 0);
  put(base, "home/tool", 04755, 1000, 1001);
  return 0;
}

static int close_all(void **state)
{
  return umount2(ram, MNT_DETACH);
}

static struct jail_spec ram_spec(struct box *b, const char *id, const char **lowers)
{
  struct jail_spec spec = test_spec(&test_host, b, id);
  lowers[0] = test_host.extra;
  lowers[1] = base;
  lowers[2] = NULL;
  spec.lowers = lowers;
  spec.shifted = shifted;
  return spec;
}

/* The copy of `base` for a range: the only directory below shifted. */
static void copy_path(char out[PATH_MAX], uint32_t id_base)
{
  char pattern[PATH_MAX];
  snprintf(pattern, sizeof(pattern), "ls -d %s/*/%u", shifted, id_base);
  FILE *f = popen(pattern, "r");
  assert_non_null(f);
  assert_non_null(fgets(out, PATH_MAX, f));
  out[strcspn(out, "\n")] = 0;
  assert_int_equal(pclose(f), 0);
}

static void a_box_lives_on_a_copy_with_its_own_ids(void **state)
{
  const char *lowers[3];
  char copy[PATH_MAX];
  struct box b;
  struct jail_spec spec = ram_spec(&b, "ram", lowers);
  range = spec.id_base;
  box_start(&b, &spec);
  assert_string_equal(box_ask(&b, "read /etc/note"), "ok text\n");
  assert_non_null(strstr(box_ask(&b, "stat /etc/note"), "100644 0:0 "));
  assert_non_null(strstr(box_ask(&b, "stat /home/tool"), "104755 1000:1001 "));
  assert_string_equal(box_ask(&b, "write /etc/note TEXT"), "ok 4");
  assert_string_equal(box_ask(&b, "read /etc/note"), "ok TEXT\n");
  copy_path(copy, spec.id_base);
  struct stat st = stat_of(copy, "home/tool");
  assert_int_equal(st.st_uid, spec.id_base + 1000);
  assert_int_equal(st.st_gid, spec.id_base + 1001);
  assert_int_equal(st.st_mode & 07777, 04755);
  box_close(&b);
}

static void the_copy_is_made_once(void **state)
{
  const char *lowers[3];
  char copy[PATH_MAX];
  struct box b;
  struct jail_spec spec = ram_spec(&b, "again", lowers);
  spec.id_base = range;
  copy_path(copy, range);
  ino_t before = stat_of(copy, "etc/note").st_ino;
  box_start(&b, &spec);
  assert_string_equal(box_ask(&b, "read /etc/note"), "ok text\n");
  box_close(&b);
  assert_int_equal(stat_of(copy, "etc/note").st_ino, before);
}

static void without_a_place_for_copies_the_layer_is_named(void **state)
{
  const char *lowers[3];
  struct err err = ERR_NONE;
  struct jail jail;
  struct box b;
  struct jail_spec spec = ram_spec(&b, "none", lowers);
  spec.shifted = NULL;
  spec.boot_fd = -1;
  assert_true(jail_spawn(&spec, &jail, &err) < 0);
  assert_non_null(strstr(err.msg, base));
  jail_remove(test_host.instance, "none", spec.dir, NULL);
}

static void a_writable_part_is_given_to_the_range(void **state)
{
  char home[PATH_MAX], path[PATH_MAX];
  snprintf(home, sizeof(home), "%s/home", test_host.top);
  const char *const dirs[] = {"", "upper", "work", "upper/etc"};
  for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
    path_in(path, home, dirs[i]);
    assert_int_equal(mkdir(path, 0755), 0);
  }
  put(home, "upper/etc/tool", 06755, 3, 4);
  put(home, "upper/etc/taken", 0644, 70005, 70006);
  path_in(path, home, "upper/link");
  assert_int_equal(symlink("/etc/passwd", path), 0);
  int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal(id_shift_home(fd, 70000), 0);
  assert_int_equal(id_shift_home(fd, 70000), 0);
  close(fd);
  assert_int_equal(stat_of(home, "upper").st_uid, 70000);
  assert_int_equal(stat_of(home, "work").st_gid, 70000);
  assert_int_equal(stat_of(home, "upper/link").st_uid, 70000);
  assert_int_equal(stat_of("/etc", "passwd").st_uid, 0);
  struct stat tool = stat_of(home, "upper/etc/tool");
  assert_int_equal(tool.st_uid, 70003);
  assert_int_equal(tool.st_gid, 70004);
  assert_int_equal(tool.st_mode & 07777, 06755);
  assert_int_equal(stat_of(home, "upper/etc/taken").st_uid, 70005);
}

static void copies_of_layers_that_are_gone_are_swept(void **state)
{
  char copy[PATH_MAX], moved[PATH_MAX];
  copy_path(copy, range);
  id_shift_sweep(shifted);
  assert_int_equal(access(copy, F_OK), 0);
  path_in(moved, ram, "moved");
  assert_int_equal(rename(base, moved), 0);
  id_shift_sweep(shifted);
  assert_int_not_equal(access(copy, F_OK), 0);
  assert_int_equal(rename(moved, base), 0);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_box_lives_on_a_copy_with_its_own_ids),
      cmocka_unit_test(the_copy_is_made_once),
      cmocka_unit_test(without_a_place_for_copies_the_layer_is_named),
      cmocka_unit_test(a_writable_part_is_given_to_the_range),
      cmocka_unit_test(copies_of_layers_that_are_gone_are_swept),
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
  int failed = cmocka_run_group_tests(tests, open_all, close_all);
  test_host_close(&test_host);
  return failed;
}
