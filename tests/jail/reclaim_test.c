/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim_test.c - the ids of a box that can't be removed are given to nobody until it can. Needs root. */
#include "warden/core/reclaim.h"
#include "box.h"
#include "warden/core/id_slots.h"
#include "warden/core/warden_state.h"

#include "warden/core/worker_pool.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct test_host test_host;
static struct warden warden;

/* Until `over`, or for 20 s. */
static void turn(bool (*over)(void))
{
  for (int64_t until = clock_mono_us() + 20000000; !over() && clock_mono_us() < until;)
    if (!uv_run(warden.loop, UV_RUN_NOWAIT))
      usleep(1000);
  assert_true(over());
}

static bool settled(void)
{
  return !warden.removals;
}

static bool gone(void)
{
  return !warden.removals && !warden.kept_back;
}

static bool is_free(unsigned slot)
{
  unsigned next;
  assert_int_equal(slot_take(&warden, &next), 0);
  slot_mark(&warden, next, false);
  return next == slot; /* the lowest free one is taken */
}

static void the_ids_of_a_removed_box_are_free(void **state)
{
  struct box b;
  unsigned slot;
  box_open(&test_host, &b, "removed");
  assert_int_equal(slot_take(&warden, &slot), 0);
  reclaim_jail(&warden, "", b.jail, b.id, b.dir, slot);
  close(b.talk);
  turn(settled);
  assert_int_equal(warden.kept_back, 0);
  assert_true(is_free(slot));
  assert_int_equal(access(b.dir, F_OK), -1);
}

/* A box that can't be removed while something is mounted on `inside`; the slot that it was given. */
static unsigned open_stuck(struct box *b, const char *name, char *inside, size_t size)
{
  unsigned slot;
  box_open(&test_host, b, name);
  assert_int_equal(slot_take(&warden, &slot), 0);
  snprintf(inside, size, "%s/held", b->dir);
  assert_int_equal(mkdir(inside, 0700), 0);
  assert_int_equal(mount("held", inside, "tmpfs", 0, "size=4k"), 0);
  return slot;
}

static void the_ids_of_a_box_that_cannot_be_removed_are_kept_back(void **state)
{
  struct box b;
  char inside[200];
  unsigned slot = open_stuck(&b, "stuck", inside, sizeof(inside));
  reclaim_jail(&warden, "", b.jail, b.id, b.dir, slot);
  close(b.talk);
  turn(settled);
  assert_int_equal(warden.kept_back, 1);
  assert_false(is_free(slot));
  assert_int_equal(umount(inside), 0);
  turn(gone); /* it is tried again */
  assert_true(is_free(slot));
  assert_int_equal(access(b.dir, F_OK), -1);
}

static void a_server_that_stops_waits_for_no_further_try(void **state)
{
  struct box b;
  char inside[200];
  unsigned slot = open_stuck(&b, "stops", inside, sizeof(inside));
  warden.stopping = true;
  reclaim_jail(&warden, "", b.jail, b.id, b.dir, slot);
  close(b.talk);
  turn(gone);
  warden.stopping = false;
  assert_false(is_free(slot));
  assert_int_equal(umount(inside), 0);
  assert_int_equal(path_remove_tree(AT_FDCWD, b.dir), 0);
  slot_mark(&warden, slot, false);
}

/* ---- a box whose processes take their time ---- */

static char groups[16][300]; /* a directory below makes a control group as busy as a process in it */
static size_t groups_n;
static const char *wanted;

static int see_group(const char *path, const struct stat *st, int kind, struct FTW *at)
{
  const char *name = path + at->base;
  if (kind == FTW_D && !strcmp(name, wanted) && groups_n < ARRAY_LEN(groups))
    snprintf(groups[groups_n++], sizeof(groups[0]), "%s/busy", path);
  return at->level > 5 ? FTW_SKIP_SIBLINGS : FTW_CONTINUE;
}

static void work(uv_work_t *w)
{
}

static void worked(uv_work_t *w, int status)
{
  *(bool *)w->data = true;
}

static bool served;

static bool is_served(void)
{
  return served;
}

static void boxes_that_die_slowly_hold_no_worker(void **state)
{
  struct box boxes[WORKERS_TEAM + 1];
  unsigned slots[WORKERS_TEAM + 1];
  uv_work_t next = {.data = &served};
  groups_n = 0;
  for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
    char name[24];
    snprintf(name, sizeof(name), "slow%zu", i);
    box_open(&test_host, &boxes[i], name);
    wanted = boxes[i].id;
    size_t before = groups_n;
    nftw("/sys/fs/cgroup", see_group, 8, FTW_PHYS | FTW_ACTIONRETVAL);
    assert_true(groups_n > before);
    groups_n = before + 1;
    assert_int_equal(mkdir(groups[before], 0755), 0);
    assert_int_equal(slot_take(&warden, &slots[i]), 0);
    reclaim_jail(&warden, "a team", boxes[i].jail, boxes[i].id, boxes[i].dir, slots[i]);
    close(boxes[i].talk);
  }
  int64_t began = clock_mono_us();
  worker_pool_queue(&warden, "a team", &next, work, worked);
  turn(is_served);
  assert_true(clock_mono_us() - began < 2500000); /* five seconds when each waits for its box */
  assert_int_equal(warden.removals, ARRAY_LEN(boxes));
  for (size_t i = 0; i < groups_n; i++)
    assert_int_equal(rmdir(groups[i]), 0);
  turn(gone);
  assert_true(is_free(slots[0]));
}

static void nothing(uv_timer_t *timer)
{
}

int main(int argc, char **argv)
{
  static uv_loop_t loop;
  static uv_timer_t alive; /* a warden's loop always has something to wait for */
  static struct warden_config config = {.checkpoint_jobs = 1};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_ids_of_a_removed_box_are_free),
      cmocka_unit_test(the_ids_of_a_box_that_cannot_be_removed_are_kept_back),
      cmocka_unit_test(a_server_that_stops_waits_for_no_further_try),
      cmocka_unit_test(boxes_that_die_slowly_hold_no_worker),
  };
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s GUEST\n", argv[0]);
    return 2;
  }
  if (getenv("CLOCHE_TEST"))
    cmocka_set_test_filter(getenv("CLOCHE_TEST"));
  uv_loop_init(&loop);
  uv_timer_init(&loop, &alive);
  uv_timer_start(&alive, nothing, 10, 10);
  warden.loop = &loop;
  warden.config = &config;
  test_host_open(&test_host, argv[1]);
  snprintf(warden.instance, sizeof(warden.instance), "%s", test_host.instance);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  test_host_close(&test_host);
  return failed;
}
