/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim_test.c - the ids of a box that can't be removed are given to nobody until it can. Needs root. */
#include "warden/core/reclaim.h"
#include "box.h"
#include "warden/core/id_slots.h"
#include "warden/core/warden_state.h"

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
