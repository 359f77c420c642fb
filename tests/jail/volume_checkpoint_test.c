/* SPDX-License-Identifier: Apache-2.0 */
/* volume_checkpoint_test.c - boxes with volumes sleep and wake: open files, working directories, and what others did to
 * the volume meanwhile. Needs root, and a criu. */
#include "checkpoint_box.h"
#include "jail/fs/layer_commit.h"
#include "jail/fs/volume_backing.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <cmocka.h>

#define VOLUME "0b0c0d0e-1111-4222-8333-444455556666"
#define OTHER  "aaaabbbb-1111-4222-8333-444455556666"

static char dir[128];
static struct volume_place place;
static struct jail_volume volumes[] = {{VOLUME, "/srv/vol"}, {OTHER, "/srv/other"}};

static void create(const char *id)
{
  struct err err = ERR_NONE;
  struct volume_limits small = {.bytes = 16u << 20, .inodes = 200};
  snprintf(dir, sizeof(dir), "%s/%s", test_host.top, place.directory ? "trees" : "images");
  place.dir = dir;
  if (volume_backing_create(&place, id, &small, &err))
    fail_msg("%s", err.msg);
}

static void remove_volume(const char *id)
{
  struct err err = ERR_NONE;
  if (volume_backing_remove(&place, id, &err) || volume_backing_clear(&place, id, INT64_MAX, &err))
    fail_msg("%s", err.msg);
}

static void open_box(struct box *b, struct jail_spec *spec, const char *id)
{
  struct err err = ERR_NONE;
  *spec = test_spec(&test_host, b, id);
  spec->limits = (struct jail_limits){.cpus = 1, .memory = 256u << 20, .pids = 64, .open_files = 1024};
  spec->volumes = volumes;
  spec->volumes_n = 1;
  spec->volume_place = &place;
  if (jail_spawn(spec, &b->jail, &err))
    fail_msg("%s", err.msg);
}

/* What another box does. */
static int host_open(const char *name, int flags)
{
  struct err err = ERR_NONE;
  cleanup_fd int root = volume_backing_open(&place, VOLUME, &err);
  assert_true(root >= 0);
  int fd = openat(root, name, flags | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  return fd;
}

static void open_files_and_the_working_directory_survive(void **state)
{
  for (int directory = 0; directory < 2; directory++) {
    struct box b;
    struct jail_spec spec;
    place.directory = directory;
    create(VOLUME);
    open_box(&b, &spec, directory ? "vol-dir" : "vol-img");
    assert_string_equal(ask(&b, "keep /srv/vol/log"), "ok 0");
    assert_string_equal(ask(&b, "keep-write before"), "ok 6");
    assert_string_equal(ask(&b, "cd /srv/vol"), "ok 0");
    sleep_and_wake(&b, &spec);
    assert_string_equal(ask(&b, "where"), "ok /srv/vol");
    assert_string_equal(ask(&b, "keep-write after"), "ok 5");
    assert_string_equal(ask(&b, "read /srv/vol/log"), "ok beforeafter");
    sleep_and_wake(&b, &spec);
    assert_string_equal(ask(&b, "read /srv/vol/log"), "ok beforeafter");
    close_box(&b);
    remove_volume(VOLUME);
  }
}

/* A file that is open may be longer or have other rights when the box comes back: others write to the volume. */
static void a_file_that_others_changed_meanwhile_is_still_open(void **state)
{
  struct box b;
  struct jail_spec spec;
  place.directory = false;
  create(VOLUME);
  open_box(&b, &spec, "vol-changed");
  assert_string_equal(ask(&b, "keep /srv/vol/log"), "ok 0");
  assert_string_equal(ask(&b, "keep-write one"), "ok 3");
  dump(&b, &spec);
  end_box(&b);
  int fd = host_open("log", O_WRONLY | O_APPEND);
  assert_int_equal(write(fd, "TWO", 3), 3);
  assert_int_equal(fchmod(fd, 0600), 0);
  close(fd);
  restore(&b, &spec, checkpoint_of(&b));
  assert_string_equal(ask(&b, "read /srv/vol/log"), "ok oneTWO");
  assert_string_equal(ask(&b, "keep-write x"), "ok 1");
  assert_string_equal(ask(&b, "read /srv/vol/log"), "ok onexWO");
  close_box(&b);
  remove_checkpoint(&b);
  remove_volume(VOLUME);
}

static void a_parent_that_was_renamed_is_where_it_was(void **state)
{
  struct box b;
  struct jail_spec spec;
  place.directory = false;
  create(VOLUME);
  open_box(&b, &spec, "vol-renamed");
  assert_string_equal(ask(&b, "write /srv/vol/x 1"), "ok 1");
  assert_string_equal(ask(&b, "rename /srv /moved"), "ok 0");
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "read /moved/vol/x"), "ok 1");
  close_box(&b);
  remove_volume(VOLUME);
}

static void a_deleted_open_file_and_a_watch_survive(void **state)
{
  struct box b;
  struct jail_spec spec;
  place.directory = false;
  create(VOLUME);
  open_box(&b, &spec, "vol-ghost");
  assert_string_equal(ask(&b, "lose /srv/vol/first /srv/vol/second"), "ok 0");
  assert_string_equal(ask(&b, "watch /srv/vol"), "ok 1");
  dump(&b, &spec);
  end_box(&b);
  restore(&b, &spec, checkpoint_of(&b));
  jail_link_remaps_remove(checkpoint_of(&b), &b.jail, true);
  assert_string_equal(ask(&b, "lose-write more"), "ok 4");
  assert_string_equal(ask(&b, "read /srv/vol/second"), "ok more");
  close_box(&b);
  remove_checkpoint(&b);
  remove_volume(VOLUME);
}

static void a_copy_shares_the_volume_and_may_have_another_one_more(void **state)
{
  struct box b, copy;
  char layer[PATH_MAX], path[PATH_MAX + 32];
  struct jail_spec spec, again;
  struct err err = ERR_NONE;
  place.directory = false;
  create(VOLUME);
  create(OTHER);
  open_box(&b, &spec, "vol-fork");
  assert_string_equal(ask(&b, "keep /srv/vol/log"), "ok 0");
  dump(&b, &spec);
  snprintf(layer, sizeof(layer), "%s/layer", test_host.top);
  assert_int_equal(jail_commit(b.dir, spec.id_base, layer, &err), 0);
  snprintf(path, sizeof(path), "%s/srv/vol/log", layer);
  assert_int_not_equal(access(path, F_OK), 0); /* the volume's files are no part of the copy */
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, &err), 0);
  again = test_spec(&test_host, &copy, "vol-copy");
  const char *lowers[] = {layer, spec.lowers[0], spec.lowers[1], NULL};
  again.lowers = lowers;
  again.limits = spec.limits;
  again.volumes = volumes;
  again.volumes_n = 2;
  again.volume_place = &place;
  restore(&copy, &again, checkpoint_of(&b));
  assert_string_equal(ask(&copy, "write /srv/vol/of-copy 1"), "ok 1");
  assert_string_equal(ask(&b, "read /srv/vol/of-copy"), "ok 1");
  assert_string_equal(ask(&copy, "write /srv/other/x 2"), "ok 1");
  assert_string_equal(ask(&copy, "keep-write y"), "ok 1");
  assert_string_equal(ask(&b, "read /srv/vol/log"), "ok y");
  close_box(&copy);
  close_box(&b);
  remove_checkpoint(&b);
  remove_volume(VOLUME);
  remove_volume(OTHER);
}

static void without_its_volume_a_checkpoint_is_refused(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct err err = ERR_NONE;
  place.directory = false;
  create(VOLUME);
  open_box(&b, &spec, "vol-gone");
  dump(&b, &spec);
  end_box(&b);
  remove_volume(VOLUME);
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &b.jail, &err), -ENOENT);
  assert_non_null(strstr(err.msg, VOLUME));
  spec.volumes_n = 0;
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &b.jail, &err), -ENOENT);
  assert_non_null(strstr(err.msg, "/srv/vol"));
  remove_checkpoint(&b);
  assert_int_equal(jail_remove(test_host.instance, b.id, b.dir, &err), 0);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(open_files_and_the_working_directory_survive),
      cmocka_unit_test(a_file_that_others_changed_meanwhile_is_still_open),
      cmocka_unit_test(a_parent_that_was_renamed_is_where_it_was),
      cmocka_unit_test(a_deleted_open_file_and_a_watch_survive),
      cmocka_unit_test(a_copy_shares_the_volume_and_may_have_another_one_more),
      cmocka_unit_test(without_its_volume_a_checkpoint_is_refused),
  };
  return run_checkpoint_tests(argc, argv, tests, ARRAY_LEN(tests));
}
