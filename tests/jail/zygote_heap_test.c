/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_heap_test.c - which file is a zygote's shared memory: the daemon's own, sealed, by identity and not by name.
 * Needs root. */
#include "jail/checkpoint/zygote_heap.h"
#include "jail/checkpoint/checkpoint.h"
#include "jail/jail_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <utime.h>

#include <setjmp.h>
#include <cmocka.h>

#define PAGE  4096
#define BYTES (16 * PAGE)

static char heaps[64], checkpoints[80];

static const char *owner = "";

static struct zygote_heap_file make(void)
{
  struct zygote_heap_file h;
  struct err err = ERR_NONE;
  if (zygote_heap_make(&h, owner, &err))
    fail_msg("%s", err.msg);
  assert_int_equal(ftruncate(h.to, BYTES), 0);
  assert_int_equal(pwrite(h.to, "content", 7, 3 * PAGE), 7);
  return h;
}

static struct zygote_heap_file make_sealed(void)
{
  struct zygote_heap_file h = make();
  struct err err = ERR_NONE;
  if (zygote_heap_seal(heaps, &h, &err))
    fail_msg("%s", err.msg);
  return h;
}

static void keep(const struct zygote_heap_file *h)
{
  struct err err = ERR_NONE;
  if (zygote_heap_keep(heaps, h->name, h->from, &err))
    fail_msg("%s", err.msg);
}

static void kept_path(char out[PATH_MAX], const char *name, const char *tail)
{
  snprintf(out, PATH_MAX, "%s/%s%s", heaps, name, tail);
}

static void only_a_sealed_file_is_known(void **state)
{
  char name[HEAP_NAME];
  struct err err = ERR_NONE;
  struct zygote_heap_file h = make();
  assert_false(zygote_heap_find(h.from, name));
  assert_int_equal(zygote_heap_seal(heaps, &h, &err), 0);
  assert_true(zygote_heap_find(h.from, name));
  assert_string_equal(name, h.name);
  zygote_heap_close(&h);
}

static void a_file_that_somebody_can_write_is_not_sealed(void **state)
{
  char name[HEAP_NAME];
  struct err err = ERR_NONE;
  struct zygote_heap_file h = make();
  int theirs = fcntl(h.to, F_DUPFD_CLOEXEC, 0);
  assert_int_equal(zygote_heap_seal(heaps, &h, &err), -EBUSY);
  assert_false(zygote_heap_find(h.from, name));
  void *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, theirs, 0);
  close(theirs);
  assert_int_equal(zygote_heap_seal(heaps, &h, &err), -EBUSY);
  munmap(shared, PAGE);
  assert_int_equal(zygote_heap_seal(heaps, &h, &err), 0);
  zygote_heap_close(&h);
}

static void nobody_writes_to_a_sealed_file(void **state)
{
  char path[64];
  struct zygote_heap_file h = make_sealed();
  snprintf(path, sizeof(path), "/proc/self/fd/%d", h.from);
  assert_int_equal(open(path, O_RDWR | O_CLOEXEC), -1);
  assert_int_equal(errno, EROFS);
  assert_int_equal(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, h.from, 0) == MAP_FAILED, 1);
  zygote_heap_close(&h);
}

/* A box has files of any name, and the same inode number on a filesystem of its own. */
static void a_name_or_an_inode_number_makes_no_heap(void **state)
{
  char path[PATH_MAX], name[HEAP_NAME];
  struct stat ours, other;
  struct zygote_heap_file h = make_sealed(), unsealed = make();
  assert_int_equal(fstat(h.from, &ours), 0);
  assert_int_equal(fstat(unsealed.from, &other), 0);
  assert_int_equal(ours.st_ino, other.st_ino);
  assert_false(zygote_heap_find(unsealed.from, name));
  snprintf(path, sizeof(path), "%s/cloche-heap-0123456789abcdef", checkpoints);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_false(zygote_heap_find(fd, name));
  close(fd);
  unlink(path);
  snprintf(path, sizeof(path), "%s/%s", checkpoints, h.name);
  fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_false(zygote_heap_find(fd, name));
  close(fd);
  unlink(path);
  zygote_heap_close(&h);
  zygote_heap_close(&unsealed);
}

/* The kernel gives device numbers and first inode numbers again as soon as they are free. */
static void a_filesystem_with_the_numbers_of_a_dead_one_is_another(void **state)
{
  char name[HEAP_NAME];
  struct stat st;
  struct zygote_heap_file h = make_sealed();
  assert_int_equal(fstat(h.from, &st), 0);
  zygote_heap_close(&h);
  bool again = false;
  for (int i = 0; i < 50 && !again; i++) {
    struct stat now;
    struct zygote_heap_file other = make();
    close(steal_fd(&other.to));
    int fs = fspick(other.mount, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC); /* read-only, but not by the daemon's seal */
    assert_int_equal(
        fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) | fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0), 0);
    close(fs);
    assert_int_equal(fstat(other.from, &now), 0);
    again = now.st_dev == st.st_dev && now.st_ino == st.st_ino;
    assert_true(!again || zygote_heap_listed(now.st_dev, now.st_ino));
    assert_false(zygote_heap_find(other.from, name));
    zygote_heap_close(&other);
  }
  if (!again)
    print_message("the device number was not given again\n");
}

static void a_kept_heap_is_whole_and_found_by_its_name_only(void **state)
{
  char bytes[8] = "", path[PATH_MAX];
  struct err err = ERR_NONE;
  struct zygote_heap_file h = make_sealed();
  keep(&h);
  int userns = jail_map_ns(1000000, &err);
  assert_true(userns >= 0);
  int fd = zygote_heap_open(heaps, h.name, userns, &err);
  if (fd < 0)
    fail_msg("%s", err.msg);
  assert_int_equal(pread(fd, bytes, 7, 3 * PAGE), 7);
  assert_string_equal(bytes, "content");
  char name[HEAP_NAME];
  assert_true(zygote_heap_find(fd, name)); /* a box that was restored is dumped again */
  assert_string_equal(name, h.name);
  close(fd);
  static const char *const bad[] = {"", "../../etc/passwd", "cloche-heap-0123456789abcdef",
                                    "0123456789abcdef0123456789abcdeg", "."};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(zygote_heap_open(heaps, bad[i], userns, &err), -EBADMSG);
  kept_path(path, h.name, "");
  unlink(path);
  assert_int_equal(zygote_heap_open(heaps, h.name, userns, &err), -EBADMSG);
  close(userns);
  zygote_heap_close(&h);
}

static void a_damaged_one_is_refused(void **state)
{
  char path[PATH_MAX];
  struct err err = ERR_NONE;
  struct zygote_heap_file h = make_sealed();
  keep(&h);
  kept_path(path, h.name, "");
  int to = open(path, O_RDWR | O_CLOEXEC), userns = jail_map_ns(1000000, &err);
  assert_int_equal(pwrite(to, "C", 1, 3 * PAGE), 1);
  close(to);
  assert_int_equal(zygote_heap_open(heaps, h.name, userns, &err), -EBADMSG);
  close(userns);
  zygote_heap_close(&h);
}

/* A process that knows nothing yet stands for a new daemon. */
static void a_new_daemon_knows_what_boxes_have_mapped(void **state)
{
  char name[HEAP_NAME];
  struct err err = ERR_NONE;
  struct zygote_heap_file h = make();
  int status = 0;
  close(steal_fd(&h.to));
  pid_t child = fork();
  if (child == 0)
    _exit(zygote_heap_seal(heaps, &h, &err) ? 1 : 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_false(zygote_heap_find(h.from, name));
  heaps_load(heaps);
  assert_true(zygote_heap_find(h.from, name));
  assert_string_equal(name, h.name);
  zygote_heap_close(&h);
}

static void age(const char *path)
{
  struct utimbuf old = {time(NULL) - 7200, time(NULL) - 7200};
  assert_int_equal(utime(path, &old), 0);
}

static void what_no_checkpoint_names_is_swept_but_for_identities_of_this_boot(void **state)
{
  char path[PATH_MAX], sum[PATH_MAX], ids[PATH_MAX];
  struct zygote_heap_file h = make_sealed();
  keep(&h);
  kept_path(path, h.name, "");
  kept_path(sum, h.name, ".sum");
  kept_path(ids, h.name, ".ids");
  age(path), age(sum), age(ids);
  jail_heaps_sweep(heaps, checkpoints);
  assert_int_not_equal(access(path, F_OK), 0);
  assert_int_not_equal(access(sum, F_OK), 0);
  assert_int_equal(access(ids, F_OK), 0);
  keep(&h); /* a box still has it mapped */
  assert_int_equal(access(path, F_OK), 0);
  zygote_heap_close(&h);
}

/* The daemon sweeps while boxes are dumped: one that a checkpoint will name is touched first, with its checksum or it
 * is worth nothing. */
static void a_heap_that_is_kept_again_stays_whole(void **state)
{
  char path[PATH_MAX], sum[PATH_MAX];
  struct zygote_heap_file h = make_sealed();
  keep(&h);
  kept_path(path, h.name, "");
  kept_path(sum, h.name, ".sum");
  age(path), age(sum);
  keep(&h);
  jail_heaps_sweep(heaps, checkpoints);
  assert_int_equal(access(path, F_OK), 0);
  assert_int_equal(access(sum, F_OK), 0);
  zygote_heap_close(&h);
}

static void kept_ones_have_a_limit_together(void **state)
{
  struct err err = ERR_NONE;
  struct zygote_heap_file one = make_sealed(), two = make_sealed();
  keep(&one);
  heaps_limit(1, 0, 0);
  assert_int_equal(zygote_heap_keep(heaps, two.name, two.from, &err), -ENOSPC);
  assert_non_null(strstr(err.msg, "heaps_mb"));
  assert_int_equal(zygote_heap_keep(heaps, one.name, one.from, &err), 0); /* it is there */
  heaps_limit(0, 0, 0);
  keep(&two);
  zygote_heap_close(&one);
  zygote_heap_close(&two);
}

static void kept_ones_of_one_team_have_a_limit(void **state)
{
  struct err err = ERR_NONE;
  owner = "team 1";
  struct zygote_heap_file one = make_sealed(), more = make_sealed();
  owner = "team 2";
  struct zygote_heap_file other = make_sealed();
  owner = "";
  struct zygote_heap_file operators = make_sealed();
  struct stat st;
  assert_int_equal(fstat(one.from, &st), 0);
  uint64_t size = (uint64_t)st.st_blocks * 512;
  assert_true(size > 0);
  keep(&one);
  heaps_limit(0, size + size / 2, 0);
  assert_int_equal(zygote_heap_keep(heaps, more.name, more.from, &err), -ENOSPC);
  assert_non_null(strstr(err.msg, "team_heaps_mb"));
  keep(&other); /* another's is not the less */
  keep(&operators);
  heaps_limit(0, 0, 0);
  keep(&more);
  struct zygote_heap_file *const all[] = {&one, &more, &other, &operators};
  for (size_t i = 0; i < ARRAY_LEN(all); i++)
    zygote_heap_close(all[i]);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_a_sealed_file_is_known),
      cmocka_unit_test(a_file_that_somebody_can_write_is_not_sealed),
      cmocka_unit_test(nobody_writes_to_a_sealed_file),
      cmocka_unit_test(a_name_or_an_inode_number_makes_no_heap),
      cmocka_unit_test(a_filesystem_with_the_numbers_of_a_dead_one_is_another),
      cmocka_unit_test(a_kept_heap_is_whole_and_found_by_its_name_only),
      cmocka_unit_test(a_damaged_one_is_refused),
      cmocka_unit_test(a_new_daemon_knows_what_boxes_have_mapped),
      cmocka_unit_test(what_no_checkpoint_names_is_swept_but_for_identities_of_this_boot),
      cmocka_unit_test(a_heap_that_is_kept_again_stays_whole),
      cmocka_unit_test(kept_ones_have_a_limit_together),
      cmocka_unit_test(kept_ones_of_one_team_have_a_limit),
  };
  char top[] = "/var/tmp/cloche-test-XXXXXX";
  if (geteuid() != 0 || !mkdtemp(top)) {
    fprintf(stderr, "usage (as root): %s\n", argv[0]);
    return 2;
  }
  snprintf(heaps, sizeof(heaps), "%s/heaps", top);
  snprintf(checkpoints, sizeof(checkpoints), "%s/checkpoints", top);
  if (mkdir(checkpoints, 0700))
    return 2;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  path_remove_tree(AT_FDCWD, top);
  return failed;
}
