/* SPDX-License-Identifier: Apache-2.0 */
/* layer_commit_test.c - what a box wrote becomes a layer that another box stands on. Needs root. */
#include "box.h"
#include "jail/fs/layer_commit.h"
#include "jail/fs/disk_pool.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct test_host test_host;

static void open_limited(struct box *b, const char *id, const char *layer)
{
  struct jail_spec spec = test_spec(&test_host, b, id);
  const char *const lowers[] = {layer ? layer : test_host.extra, layer ? test_host.extra : test_host.base,
                                layer ? test_host.base : NULL, NULL};
  spec.lowers = lowers;
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 64u << 20, .pids = 64, .disk = 48u << 20, .inodes = 2000};
  box_start(b, &spec);
}

static const char *layer_path(const char *name)
{
  static char path[160];
  snprintf(path, sizeof(path), "%s/layer-%s", test_host.top, name);
  return path;
}

static struct stat look(const char *layer, const char *name)
{
  char path[320];
  struct stat st;
  snprintf(path, sizeof(path), "%s/%s", layer, name);
  if (lstat(path, &st))
    fail_msg("%s: %s", path, strerror(errno));
  return st;
}

static bool there(const char *layer, const char *name)
{
  char path[320];
  struct stat st;
  snprintf(path, sizeof(path), "%s/%s", layer, name);
  return lstat(path, &st) == 0;
}

static void commit(const struct box *b, uint32_t base, const char *layer)
{
  struct err err = ERR_NONE;
  if (jail_commit(b->dir, base, layer, &err))
    fail_msg("%s", err.msg);
}

static void a_frozen_boxs_files_serve_another_box(void **state)
{
  struct box b, next;
  char layer[160];
  snprintf(layer, sizeof(layer), "%s", layer_path("frozen"));
  open_limited(&b, "writer", NULL);
  assert_string_equal(box_ask(&b, "write /home/word first"), "ok 5");
  assert_string_equal(box_ask(&b, "chown /home/word 1000 1001"), "ok 0");
  assert_string_equal(box_ask(&b, "xattr /home/word user.colour blue"), "ok 0");
  assert_string_equal(box_ask(&b, "write /etc/note FROM"), "ok 4");
  assert_string_equal(box_ask(&b, "unlink /etc/passwd"), "ok 0");
  assert_string_equal(box_ask(&b, "rename /var /variable"), "ok 0");
  assert_int_equal(jail_freeze(test_host.instance, b.id, true, NULL), 0);
  commit(&b, 0, layer);
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, NULL), 0);
  assert_string_equal(box_ask(&b, "read /home/word"), "ok first"); /* the first box goes on */
  assert_string_equal(box_ask(&b, "write /home/word OTHER"), "ok 5");

  open_limited(&next, "reader", layer);
  assert_string_equal(box_ask(&next, "read /home/word"), "ok first");
  assert_string_equal(box_ask(&next, "stat /home/word"), "ok 100644 1000:1001 5");
  assert_string_equal(box_ask(&next, "read /etc/note"), "ok FROM the template\n");
  assert_string_equal(box_ask(&next, "read /etc/passwd"), "errno ENOENT");
  assert_string_equal(box_ask(&next, "stat /var"), "errno ENOENT");
  assert_int_equal(strncmp(box_ask(&next, "stat /variable"), "ok 40755", 8), 0);
  box_close(&b);
  box_close(&next);
  char value[16];
  char word[200];
  snprintf(word, sizeof(word), "%s/home/word", layer);
  assert_int_equal(lgetxattr(word, "user.colour", value, sizeof(value)), 4);
}

static void a_dead_boxs_files_are_found_on_its_disk(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  int status;
  char layer[160];
  snprintf(layer, sizeof(layer), "%s", layer_path("dead"));
  open_limited(&b, "dead", NULL);
  assert_string_equal(box_ask(&b, "write /home/last breath"), "ok 6");
  assert_int_equal(jail_kill(test_host.instance, b.id, &b.jail, &err), 0);
  assert_int_equal(jail_wait(&b.jail, 5000, &status), 0);
  jail_close(&b.jail);
  close(b.talk);
  commit(&b, 0, layer);
  assert_int_equal(look(layer, "home/last").st_size, 6);
  assert_int_equal(jail_commit(b.dir, 0, layer, &err), -EEXIST);
  assert_int_equal(jail_remove(test_host.instance, b.id, b.dir, &err), 0);
}

/* A box's directory without a limit, written by hand: what no guest can be told to make. */
static int make_upper(struct box *b, const char *id)
{
  char path[200];
  *b = (struct box){.test_host = &test_host};
  snprintf(b->dir, sizeof(b->dir), "%s/box-%s", test_host.top, id);
  snprintf(path, sizeof(path), "%s/upper", b->dir);
  assert_int_equal(path_mkdirs(path, 0755), 0);
  int fd = open(path, O_RDONLY | O_DIRECTORY);
  assert_true(fd >= 0);
  return fd;
}

static void put(int dir, const char *name, const char *text, unsigned mode)
{
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  assert_int_equal(fchmod(fd, mode), 0);
  close(fd);
}

static void ids_modes_times_links_holes_and_capabilities_are_kept(void **state)
{
  enum { BASE = 700000 };
  struct box b;
  char layer[160], path[320];
  snprintf(layer, sizeof(layer), "%s", layer_path("marks"));
  int top = make_upper(&b, "marks");
  put(top, "setuid", "x", 0755);
  assert_int_equal(fchownat(top, "setuid", BASE + 1000, BASE + 7, 0), 0);
  assert_int_equal(fchmodat(top, "setuid", 04755, 0), 0);
  put(top, "one", "same", 0640);
  assert_int_equal(mkdirat(top, "sub", 01770), 0);
  assert_int_equal(fchmodat(top, "sub", 01770, 0), 0);
  assert_int_equal(linkat(top, "one", top, "sub/two", 0), 0);
  int holed = openat(top, "holed", O_WRONLY | O_CREAT, 0644);
  assert_int_equal(pwrite(holed, "end", 3, 64 << 20), 3);
  close(holed);
  struct vfs_cap_data caps = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                              .data[0].permitted = 1u << CAP_NET_RAW};
  snprintf(path, sizeof(path), "%s/upper/one", b.dir);
  assert_int_equal(setxattr(path, "security.capability", &caps, sizeof(caps.magic_etc) + sizeof(caps.data), 0), 0);
  const struct timespec then[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1234567890, .tv_nsec = 5}};
  assert_int_equal(utimensat(top, "one", then, 0), 0);
  assert_int_equal(utimensat(top, "sub", then, 0), 0);
  commit(&b, BASE, layer);
  close(top);

  struct stat st = look(layer, "setuid");
  assert_int_equal(st.st_uid, 1000);
  assert_int_equal(st.st_gid, 7);
  assert_int_equal(st.st_mode, S_IFREG | 04755);
  assert_int_equal(look(layer, "one").st_ino, look(layer, "sub/two").st_ino);
  assert_int_equal(look(layer, "one").st_mtim.tv_sec, 1234567890);
  assert_int_equal(look(layer, "one").st_mtim.tv_nsec, 5);
  assert_int_equal(look(layer, "sub").st_mtim.tv_sec, 1234567890);
  assert_int_equal(look(layer, "sub").st_mode, S_IFDIR | 01770);
  st = look(layer, "holed");
  assert_int_equal(st.st_size, (64 << 20) + 3);
  assert_true(st.st_blocks * 512 < 1 << 20);
  snprintf(path, sizeof(path), "%s/one", layer);
  struct vfs_ns_cap_data got;
  assert_true(getxattr(path, "security.capability", &got, sizeof(got)) > 0);
  assert_int_equal(got.data[0].permitted, 1u << CAP_NET_RAW);
}

static void overlay_marks_that_speak_of_the_old_mount_are_dropped(void **state)
{
  struct box b;
  char layer[160], path[320], value[64];
  snprintf(layer, sizeof(layer), "%s", layer_path("overlay"));
  int top = make_upper(&b, "overlay");
  assert_int_equal(mkdirat(top, "new", 0755), 0);
  snprintf(path, sizeof(path), "%s/upper/new", b.dir);
  assert_int_equal(setxattr(path, "trusted.overlay.opaque", "y", 1, 0), 0);
  assert_int_equal(setxattr(path, "trusted.overlay.redirect", "/old", 4, 0), 0);
  assert_int_equal(setxattr(path, "trusted.overlay.origin", "handle", 6, 0), 0);
  assert_int_equal(setxattr(path, "trusted.overlay.impure", "y", 1, 0), 0);
  assert_int_equal(mknodat(top, "gone", S_IFCHR, makedev(0, 0)), 0);
  commit(&b, 0, layer);
  close(top);
  snprintf(path, sizeof(path), "%s/new", layer);
  assert_int_equal(getxattr(path, "trusted.overlay.opaque", value, sizeof(value)), 1);
  assert_int_equal(getxattr(path, "trusted.overlay.redirect", value, sizeof(value)), 4);
  assert_int_equal(getxattr(path, "trusted.overlay.origin", value, sizeof(value)), -1);
  assert_int_equal(getxattr(path, "trusted.overlay.impure", value, sizeof(value)), -1);
  struct stat st = look(layer, "gone");
  assert_true(S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0));
}

static void devices_stay_out_and_links_are_not_followed(void **state)
{
  struct box b;
  char layer[160], target[64];
  snprintf(layer, sizeof(layer), "%s", layer_path("astray"));
  int top = make_upper(&b, "astray");
  assert_int_equal(mknodat(top, "memory", S_IFCHR | 0666, makedev(1, 1)), 0);
  assert_int_equal(mknodat(top, "disk", S_IFBLK | 0666, makedev(7, 0)), 0);
  assert_int_equal(mknodat(top, "pipe", S_IFIFO | 0600, 0), 0);
  assert_int_equal(symlinkat("/etc/shadow", top, "shadow"), 0);
  assert_int_equal(symlinkat("/etc", top, "etc"), 0);
  commit(&b, 0, layer);
  close(top);
  assert_false(there(layer, "memory"));
  assert_false(there(layer, "disk"));
  assert_true(S_ISFIFO(look(layer, "pipe").st_mode));
  assert_true(S_ISLNK(look(layer, "shadow").st_mode));
  assert_true(S_ISLNK(look(layer, "etc").st_mode));
  int fd = open(layer, O_RDONLY | O_DIRECTORY);
  assert_int_equal(readlinkat(fd, "shadow", target, sizeof(target)), 11);
  close(fd);
}

static void a_tree_without_end_is_refused_and_leaves_nothing(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  int at = make_upper(&b, "deep");
  for (int i = 0; i < 600; i++) {
    assert_int_equal(mkdirat(at, "d", 0755), 0);
    int below = openat(at, "d", O_RDONLY | O_DIRECTORY);
    close(at);
    at = below;
  }
  close(at);
  assert_int_equal(jail_commit(b.dir, 0, layer_path("deep"), &err), -ELOOP);
  assert_false(there(test_host.top, "layer-deep"));
  assert_int_equal(path_remove_tree(AT_FDCWD, b.dir), 0);
}

/* Names too long for one call: each would become a file of its own, as large as the first. */
static void a_file_with_many_long_names_does_not_grow(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  char name[NAME_MAX + 1], bytes[4096];
  int at = make_upper(&b, "names");
  memset(name, 'n', NAME_MAX);
  name[NAME_MAX] = 0;
  memset(bytes, 'x', sizeof(bytes));
  for (int i = 0; i < 20; i++) {
    assert_int_equal(mkdirat(at, name, 0755), 0);
    int below = openat(at, name, O_RDONLY | O_DIRECTORY);
    close(at);
    at = below;
  }
  int fd = openat(at, "first", O_WRONLY | O_CREAT, 0600);
  for (int i = 0; i < 256; i++)
    assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
  close(fd);
  for (int i = 0; i < 50; i++) {
    snprintf(bytes, sizeof(bytes), "more-%d", i);
    assert_int_equal(linkat(at, "first", at, bytes, 0), 0);
  }
  close(at);
  assert_int_equal(jail_commit(b.dir, 0, layer_path("names"), &err), -ENAMETOOLONG);
  assert_false(there(test_host.top, "layer-names"));
  assert_int_equal(path_remove_tree(AT_FDCWD, b.dir), 0);
}

static void the_size_of_a_layer_counts_a_file_once(void **state)
{
  struct box b;
  char layer[160];
  static char bytes[1 << 20];
  snprintf(layer, sizeof(layer), "%s", layer_path("size"));
  int top = make_upper(&b, "size");
  memset(bytes, 'x', sizeof(bytes));
  int fd = openat(top, "first", O_WRONLY | O_CREAT, 0600);
  assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
  close(fd);
  assert_int_equal(mkdirat(top, "below", 0755), 0);
  for (int i = 0; i < 9; i++) {
    char name[32];
    snprintf(name, sizeof(name), "below/more-%d", i);
    assert_int_equal(linkat(top, "first", top, name, 0), 0);
  }
  commit(&b, 0, layer);
  close(top);
  uint64_t size = jail_layer_bytes(layer);
  assert_in_range(size, (1 << 20) - 4096, (1 << 20) + 65536);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_frozen_boxs_files_serve_another_box),
      cmocka_unit_test(a_dead_boxs_files_are_found_on_its_disk),
      cmocka_unit_test(ids_modes_times_links_holes_and_capabilities_are_kept),
      cmocka_unit_test(overlay_marks_that_speak_of_the_old_mount_are_dropped),
      cmocka_unit_test(devices_stay_out_and_links_are_not_followed),
      cmocka_unit_test(a_tree_without_end_is_refused_and_leaves_nothing),
      cmocka_unit_test(a_file_with_many_long_names_does_not_grow),
      cmocka_unit_test(the_size_of_a_layer_counts_a_file_once),
  };
  test_host_open(&test_host, argc > 1 ? argv[1] : "guest");
  int failed = cmocka_run_group_tests_name("commit", tests, NULL, NULL);
  disk_pool_close();
  test_host_close(&test_host);
  return failed;
}
