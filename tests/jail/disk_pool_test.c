/* SPDX-License-Identifier: Apache-2.0 */
/* disk_pool_test.c - disks of boxes that ended serve others, which find nothing of the former. Needs root. */
#include "box.h"
#include "jail/fs/disk_image.h"
#include "jail/fs/disk.h"
#include "jail/fs/disk_pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#include <setjmp.h>
#include <cmocka.h>

#define PATIENCE_MS 20000

static struct test_host test_host;
static const struct jail_limits limits = {.disk = 48u << 20, .inodes = 2000};
static const struct disk_wipe_limits wipes = {.files = 500, .bytes = 8u << 20};

/* --- a disk by itself ----------------------------------------------------------------------------------------- */

struct disk {
  char dir[128];
  int tree;
  struct disk_usage fresh;
};

static void disk_begin(struct disk *d, const char *name)
{
  struct err err = ERR_NONE;
  snprintf(d->dir, sizeof(d->dir), "%s/box-%s", test_host.top, name);
  d->tree = disk_open(d->dir, &limits, &err);
  assert_true(d->tree >= 0);
  disk_pool_forget(d->dir);
  assert_int_equal(disk_usage_read(d->tree, &d->fresh), 0);
}

static void disk_end(struct disk *d)
{
  close(d->tree);
  assert_int_equal(path_remove_tree(AT_FDCWD, d->dir), 0);
}

static void put_file(int tree, const char *path, size_t bytes)
{
  char block[4096];
  memset(block, 's', sizeof(block));
  cleanup_fd int fd = openat(tree, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  for (size_t n = 0; n < bytes; n += sizeof(block))
    assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
}

/* What a box may leave: files, attributes, lists of access, odd names, links, devices, a deep tree, a large directory.
 */
static void make_a_mess(int tree)
{
  static const char acl[] = "\2\0\0\0\1\0\7\0\377\377\377\377\4\0\7\0\377\377\377\377\x20\0\7\0\377\377\377\377";
  char path[600] = "upper/deep";
  put_file(tree, "upper/secret", 1 << 20);
  put_file(tree, "upper/ \n\\..*?\xff", 10);
  put_file(tree, "work/left", 10);
  assert_int_equal(mkdirat(tree, "upper/many", 0700), 0);
  for (int i = 0; i < 300; i++) {
    char name[64];
    snprintf(name, sizeof(name), "upper/many/%d", i);
    put_file(tree, name, 0);
  }
  assert_int_equal(mkdirat(tree, path, 0700), 0);
  for (size_t n = strlen(path); n < 60; n += 2) {
    snprintf(path + n, sizeof(path) - n, "/d");
    assert_int_equal(mkdirat(tree, path, 0000), 0);
  }
  assert_int_equal(symlinkat("/etc", tree, "upper/link"), 0);
  assert_int_equal(linkat(tree, "upper/secret", tree, "upper/same", 0), 0);
  assert_int_equal(mknodat(tree, "upper/pipe", S_IFIFO | 0600, 0), 0);
  assert_int_equal(mknodat(tree, "upper/gone", S_IFCHR, 0), 0);
  cleanup_fd int upper = openat(tree, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal(fsetxattr(upper, "user.secret", "word", 4, 0), 0);
  assert_int_equal(fsetxattr(upper, "trusted.overlay.opaque", "y", 1, 0), 0);
  assert_int_equal(fsetxattr(upper, "system.posix_acl_default", acl, sizeof(acl) - 1, 0), 0);
  assert_int_equal(fchmod(upper, 07777) | fchown(upper, 1000, 1000), 0);
  int flags = 0;
  assert_int_equal(ioctl(upper, FS_IOC_GETFLAGS, &flags), 0);
  flags |= FS_NODUMP_FL | FS_NOATIME_FL;
  assert_int_equal(ioctl(upper, FS_IOC_SETFLAGS, &flags), 0);
}

static size_t entries(int tree, const char *name)
{
  size_t n = 0;
  int fd = openat(tree, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(fd >= 0);
  DIR *d = fdopendir(fd);
  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n - 2;
}

static int flags_of(int fd)
{
  int flags = 0;
  assert_int_equal(ioctl(fd, FS_IOC_GETFLAGS, &flags), 0);
  return flags & ~FS_INDEX_FL;
}

static void assert_new(int tree, const char *room, mode_t mode)
{
  char list[256];
  struct stat st;
  cleanup_fd int fd = openat(tree, room, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_fd int top = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(fd >= 0 && top >= 0);
  assert_int_equal(entries(tree, room), 0);
  assert_int_equal(fstat(fd, &st), 0);
  assert_int_equal(st.st_mode, S_IFDIR | mode);
  assert_int_equal(st.st_uid + st.st_gid, 0);
  assert_int_equal(st.st_nlink, 2);
  assert_int_equal(flistxattr(fd, list, sizeof(list)), 0);
  assert_int_equal(flags_of(fd), flags_of(top));
}

static void assert_as_new(int tree, const struct disk_usage *fresh)
{
  struct disk_usage now;
  assert_int_equal(disk_usage_read(tree, &now), 0);
  assert_memory_equal(&now, fresh, sizeof(now));
  assert_int_equal(entries(tree, "."), 3); /* and lost+found */
  assert_new(tree, "upper", 0755);
  assert_new(tree, "work", 0700);
}

static void a_wiped_disk_has_nothing_of_what_was_on_it(void **state)
{
  struct disk d;
  disk_begin(&d, "mess");
  for (int i = 0; i < 3; i++) {
    make_a_mess(d.tree);
    assert_true(disk_wipe_worth(d.tree, &d.fresh, &wipes));
    assert_int_equal(disk_wipe_disk(d.tree, &d.fresh, &wipes), 0);
    assert_as_new(d.tree, &d.fresh);
  }
  disk_end(&d);
}

static void a_file_that_something_holds_keeps_its_disk_from_others(void **state)
{
  struct disk d;
  disk_begin(&d, "held");
  put_file(d.tree, "upper/held", 4096);
  int fd = openat(d.tree, "upper/held", O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(disk_wipe_disk(d.tree, &d.fresh, &wipes), -EAGAIN);
  close(fd);
  assert_int_equal(disk_wipe_disk(d.tree, &d.fresh, &wipes), 0);
  disk_end(&d);
}

static void what_refuses_to_go_or_is_too_much_ends_a_disk(void **state)
{
  struct disk d;
  int flags;
  disk_begin(&d, "much");
  put_file(d.tree, "upper/fixed", 1);
  cleanup_fd int fd = openat(d.tree, "upper/fixed", O_RDONLY | O_CLOEXEC);
  assert_int_equal(ioctl(fd, FS_IOC_GETFLAGS, &flags), 0);
  flags |= FS_IMMUTABLE_FL;
  assert_int_equal(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
  assert_int_equal(disk_wipe_disk(d.tree, &d.fresh, &wipes), -EPERM);
  flags &= ~FS_IMMUTABLE_FL;
  assert_int_equal(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
  for (int i = 0; i < 600; i++) {
    char name[64];
    snprintf(name, sizeof(name), "upper/%d", i);
    put_file(d.tree, name, 0);
  }
  assert_false(disk_wipe_worth(d.tree, &d.fresh, &wipes));
  assert_int_equal(disk_wipe_disk(d.tree, &d.fresh, &wipes), -E2BIG);
  disk_end(&d);
  disk_begin(&d, "large");
  put_file(d.tree, "upper/large", 9u << 20);
  cleanup_fd int large = openat(d.tree, "upper/large", O_RDONLY | O_CLOEXEC);
  assert_int_equal(fsync(large), 0);
  assert_false(disk_wipe_worth(d.tree, &d.fresh, &wipes));
  disk_end(&d);
  disk_begin(&d, "alien");
  put_file(d.tree, "beside", 1); /* no box can; whatever it is, it is not ours */
  assert_int_equal(disk_wipe_disk(d.tree, &d.fresh, &wipes), -EUCLEAN);
  disk_end(&d);
}

/* --- seeds ---------------------------------------------------------------------------------------------------- */

#define SEEDERS 8

static atomic_bool clock_stands;

/* Stands in for the C library's: with a clock that stands still, a name made of the process and the time is the same
 * for all threads. */
int clock_gettime(clockid_t id, struct timespec *out)
{
  if (!atomic_load(&clock_stands))
    return (int)syscall(SYS_clock_gettime, id, out);
  *out = (struct timespec){.tv_sec = 1000};
  return 0;
}

struct seeder {
  pthread_t thread;
  pthread_barrier_t *begin;
  int result;
  struct err err;
};

static void *seed(void *arg)
{
  struct seeder *s = arg;
  pthread_barrier_wait(s->begin);
  s->result = disk_seed(test_host.top, &(struct jail_limits){.disk = 4u << 20, .inodes = 99}, &s->err);
  return NULL;
}

static void workers_that_make_the_same_seed_at_once_all_succeed_and_leave_one(void **state)
{
  struct seeder all[SEEDERS] = {{0}};
  pthread_barrier_t begin;
  char path[128];
  pthread_barrier_init(&begin, NULL, SEEDERS);
  snprintf(path, sizeof(path), "%s/.seeds", test_host.top);
  size_t before = access(path, F_OK) ? 0 : entries(AT_FDCWD, path);
  atomic_store(&clock_stands, true);
  for (size_t i = 0; i < SEEDERS; i++) {
    all[i].begin = &begin;
    assert_int_equal(pthread_create(&all[i].thread, NULL, seed, &all[i]), 0);
  }
  for (size_t i = 0; i < SEEDERS; i++)
    pthread_join(all[i].thread, NULL);
  atomic_store(&clock_stands, false);
  for (size_t i = 0; i < SEEDERS; i++)
    if (all[i].result)
      fail_msg("%s", all[i].err.msg);
  assert_int_equal(entries(AT_FDCWD, path), before + 1);
  pthread_barrier_destroy(&begin);
}

/* --- boxes, one after the other ------------------------------------------------------------------------------- */

static void start(struct box *b, const char *id)
{
  struct jail_spec spec = test_spec(&test_host, b, id);
  spec.limits =
      (struct jail_limits){.cpus = 1, .memory = 64u << 20, .pids = 64, .disk = limits.disk, .inodes = limits.inodes};
  box_start(b, &spec);
}

static ino_t image_of(const struct box *b)
{
  char path[160];
  struct stat st;
  snprintf(path, sizeof(path), "%s/disk.img", b->dir);
  assert_int_equal(stat(path, &st), 0);
  return st.st_ino;
}

static size_t reused(void)
{
  return disk_pool_count().reused;
}

static bool reused_more_than(size_t before)
{
  for (int i = 0; i < PATIENCE_MS / 5 && reused() <= before; i++)
    usleep(5000);
  return reused() > before;
}

static size_t ready_images(void)
{
  char path[128];
  snprintf(path, sizeof(path), "%s/.ready", test_host.top);
  return access(path, F_OK) ? 0 : entries(AT_FDCWD, path);
}

static void the_next_box_has_the_disk_and_none_of_the_files(void **state)
{
  struct box b;
  start(&b, "first");
  ino_t first = image_of(&b);
  assert_string_equal(box_ask(&b, "mkdir /home/dir"), "ok 0");
  assert_string_equal(box_ask(&b, "write /home/dir/secret word"), "ok 4");
  assert_string_equal(box_ask(&b, "write /etc/note mine"), "ok 4");
  assert_string_equal(box_ask(&b, "unlink /etc/passwd"), "ok 0");
  assert_string_equal(box_ask(&b, "rename /srv /home/srv"), "ok 0");
  assert_string_equal(box_ask(&b, "files /tmp/many 100"), "ok 100 -");
  size_t before = reused();
  box_close(&b);
  assert_true(reused_more_than(before));
  assert_int_equal(access(b.dir, F_OK), -1);
  start(&b, "second");
  assert_int_equal(image_of(&b), first);
  assert_string_equal(box_ask(&b, "list /home"), "ok");
  assert_string_equal(box_ask(&b, "list /tmp"), "ok");
  assert_string_equal(box_ask(&b, "read /etc/note"), "ok from the template\n");
  assert_string_equal(box_ask(&b, "stat /home/dir/secret"), "errno ENOENT");
  assert_int_equal(strncmp(box_ask(&b, "stat /srv"), "ok 40755", 8), 0);
  assert_int_equal(strncmp(box_ask(&b, "stat /etc/passwd"), "ok 100644", 9), 0);
  before = reused();
  box_close(&b);
  assert_true(reused_more_than(before));
}

static void a_disk_that_was_looked_at_stays_its_boxs_own(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  start(&b, "kept");
  ino_t kept = image_of(&b);
  cleanup_fd int upper = disk_upper(b.dir, &err);
  assert_true(upper >= 0);
  size_t before = reused(), ready = disk_pool_count().ready;
  box_close(&b);
  start(&b, "after");
  assert_int_not_equal(image_of(&b), kept);
  assert_int_equal(reused(), before);
  assert_int_equal(disk_pool_count().ready, ready);
  box_close(&b);
  assert_true(reused_more_than(before));
}

static void a_box_that_wrote_much_takes_its_disk_along(void **state)
{
  struct box b;
  start(&b, "heavy");
  assert_int_equal(strncmp(box_ask(&b, "fill /home/big 20000000"), "ok 2", 4), 0);
  size_t before = reused();
  box_close(&b);
  assert_int_equal(disk_pool_count().lent, 0);
  start(&b, "light");
  assert_int_equal(reused(), before);
  box_close(&b);
  assert_true(reused_more_than(before));
}

static void at_the_end_no_disk_image_and_no_mount_is_left(void **state)
{
  struct box b;
  start(&b, "last");
  box_close(&b); /* on its way back */
  disk_pool_close();
  assert_int_equal(disk_pool_count().ready + disk_pool_count().lent, 0);
  assert_int_equal(ready_images(), 0);
}

int main(int argc, char **argv)
{
  if (argc < 2)
    return 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wiped_disk_has_nothing_of_what_was_on_it),
      cmocka_unit_test(a_file_that_something_holds_keeps_its_disk_from_others),
      cmocka_unit_test(what_refuses_to_go_or_is_too_much_ends_a_disk),
      cmocka_unit_test(workers_that_make_the_same_seed_at_once_all_succeed_and_leave_one),
      cmocka_unit_test(the_next_box_has_the_disk_and_none_of_the_files),
      cmocka_unit_test(a_disk_that_was_looked_at_stays_its_boxs_own),
      cmocka_unit_test(a_box_that_wrote_much_takes_its_disk_along),
      cmocka_unit_test(at_the_end_no_disk_image_and_no_mount_is_left),
  };
  test_host_open(&test_host, argv[1]);
  /* None made ahead: the disk that comes back is the one that is taken. */
  disk_pool_set(&(struct disk_pool_rules){.ready = 0, .kept = 4, .wipe = wipes});
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  test_host_close(&test_host);
  return failed;
}
