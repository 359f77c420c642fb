/* SPDX-License-Identifier: Apache-2.0 */
/* warden_storage.c - what a team's storage counts while it is being written, and what the disk keeps in reserve. */
#include "unit.h"

#include "jail/checkpoint/checkpoint.h"
#include "warden/core/box_state.h"
#include "warden/core/storage_quota.h"
#include "warden/core/warden_state.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define TEAM "11111111-1111-4111-8111-111111111111"
#define MIB  ((uint64_t)1 << 20)

static char dir[] = "/tmp/cloche-unit-storage.XXXXXX";
static struct warden_config config;
static struct warden w = {.config = &config, .checkpoints_on = true};
static struct box box = {.warden = &w};

static int open_all(void **state)
{
  char path[96], first_key[KEY_TEXT];
  struct err err = ERR_NONE;
  if (!mkdtemp(dir))
    return -1;
  config.data = dir;
  snprintf(path, sizeof(path), "%s/db", dir);
  if (store_open(path, &w.store, &err) || catalog_open(w.store, &w.catalog, first_key, &err))
    return -1;
  snprintf(box.row.team, sizeof(box.row.team), "%s", TEAM);
  snprintf(box.row.id, sizeof(box.row.id), "abc");
  snprintf(box.dir, sizeof(box.dir), "%s/box", dir);
  box.row.memory_mb = 64;
  return map_put(&w.boxes, str_of(box.row.id), &box) || mkdir(box.dir, 0700);
}

static int close_all(void **state)
{
  storage_free(&w);
  catalog_close(w.catalog);
  store_close(w.store);
  map_free(&w.boxes);
  return path_remove_tree(AT_FDCWD, dir);
}

static uint64_t reserved(unsigned state, bool snapped)
{
  struct storage_use use;
  box.row.state = state;
  box.snapped = snapped;
  storage_use(&w, STR(TEAM), &use);
  return use.reserved;
}

static void a_dump_under_way_counts_with_all_it_may_come_to(void **state)
{
  static char bytes[MIB];
  char path[160];
  struct stat st;
  memset(bytes, 1, sizeof(bytes));
  snprintf(path, sizeof(path), "%s/disk.img", box.dir);
  cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (int i = 0; i < 8; i++)
    assert_int_equal(fd_write_all(fd, bytes, sizeof(bytes)), 0);
  assert_int_equal(fsync(fd) || fstat(fd, &st), 0);
  uint64_t disk = (uint64_t)st.st_blocks * 512;
  assert_true(disk >= 8 * MIB);
  uint64_t most = 2 * 64 * MIB + disk + JAIL_CHECKPOINT_EXTRA; /* as a dump is allowed to write (checkpoint.h) */
  assert_int_equal(jail_checkpoint_most(64 * MIB, disk), most);
  assert_int_equal(reserved(BOX_RUNNING, false), 0);
  assert_int_equal(reserved(BOX_PAUSING, false), most + disk);
  assert_int_equal(reserved(BOX_COPYING, false), most + disk);
  assert_int_equal(reserved(BOX_RUNNING, true), most + disk);
  w.checkpoints_on = false; /* files only */
  assert_int_equal(reserved(BOX_COPYING, false), disk);
  w.checkpoints_on = true;
}

/* A filesystem of 4 MiB with 100 inodes, in a mount namespace of the test's own. */
static void a_twentieth_of_the_inodes_stays_free(void **state)
{
  char place[128], path[160];
  struct err err = ERR_NONE;
  if (geteuid() != 0 || unshare(CLONE_NEWNS))
    skip();
  assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
  snprintf(place, sizeof(place), "%s/few", dir);
  assert_int_equal(mkdir(place, 0700), 0);
  assert_int_equal(mount("few", place, "tmpfs", 0, "size=4m,nr_inodes=100"), 0);
  config.data = place;
  int made = 0;
  while (!storage_room(&w, ROOM_FOR_PAUSE, &err) && made < 100) {
    snprintf(path, sizeof(path), "%s/%d", place, made++);
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
  }
  assert_in_range(made, 90, 97);
  assert_int_equal(err.code, -ENOSPC);
  assert_non_null(strstr(err.msg, "4 inodes left of 100"));
  assert_int_equal(unlink(path), 0); /* the one that was too many */
  assert_int_equal(storage_room(&w, ROOM_FOR_PAUSE, &err), 0);
  config.data = dir;
  assert_int_equal(umount(place), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dump_under_way_counts_with_all_it_may_come_to),
      cmocka_unit_test(a_twentieth_of_the_inodes_stays_free),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
