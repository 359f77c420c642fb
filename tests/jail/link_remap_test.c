/* SPDX-License-Identifier: Apache-2.0 */
/* link_remap_test.c - open files whose name is gone while another name of them is left, across a sleep. Needs root, and
 * a criu. */
#include "jail/checkpoint/link_remap.h"
#include "checkpoint_box.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <cmocka.h>

/* Names in /srv of the box, as the host sees them. */
static const char *listing(struct box *b)
{
  static char text[8192];
  snprintf(text, sizeof(text), "%s", ask(b, "list /srv"));
  return text;
}

static void an_open_file_keeps_its_other_name(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "links");
  assert_string_equal(ask(&b, "lose /srv/first /srv/second"), "ok 0");
  dump(&b, &spec);
  end_box(&b);
  restore(&b, &spec, checkpoint_of(&b));
  assert_non_null(strstr(listing(&b), "link_remap.")); /* until nobody needs the checkpoint any more */
  jail_link_remaps_remove(checkpoint_of(&b), &b.jail, true);
  assert_string_equal(listing(&b), "ok second");
  assert_string_equal(ask(&b, "lose-write more"), "ok 4");
  assert_string_equal(ask(&b, "read /srv/second"), "ok more");
  close_box(&b);
  remove_checkpoint(&b);
}

/* A restore that was cut short can be repeated. */
static void a_checkpoint_serves_more_than_once(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "links-twice");
  assert_string_equal(ask(&b, "lose /srv/first /srv/second"), "ok 0");
  dump(&b, &spec);
  end_box(&b);
  for (int i = 0; i < 2; i++) {
    restore(&b, &spec, checkpoint_of(&b));
    assert_string_equal(ask(&b, "count"), "ok 1");
    end_box(&b);
  }
  remove_checkpoint(&b);
  struct err err = ERR_NONE;
  assert_int_equal(jail_remove(test_host.instance, b.id, b.dir, &err), 0);
}

static void a_box_that_goes_on_has_no_name_too_many(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "links-stay");
  assert_string_equal(ask(&b, "lose /srv/first /srv/second"), "ok 0");
  dump(&b, &spec);
  jail_link_remaps_remove(checkpoint_of(&b), &b.jail, false);
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, NULL), 0);
  assert_string_equal(listing(&b), "ok second");
  assert_string_equal(ask(&b, "lose-write more"), "ok 4");
  assert_string_equal(ask(&b, "read /srv/second"), "ok more");
  close_box(&b);
  remove_checkpoint(&b);
}

static void write_record(const char *checkpoint, unsigned long inode, const char *path)
{
  char name[PATH_MAX];
  snprintf(name, sizeof(name), "%s/" LINK_REMAPS_FILE, checkpoint);
  FILE *f = fopen(name, "a");
  assert_non_null(f);
  fprintf(f, "%lu %s%c", inode, path, 0);
  fclose(f);
}

/* A killed dump wrote down what it was about to make. What is not that, or was never made, is left alone. */
static void what_a_killed_dump_left_goes_and_nothing_else(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct stat st;
  char path[PATH_MAX];
  open_checkpoint_guest(&b, &spec, "links-killed");
  assert_string_equal(ask(&b, "lose /srv/first /srv/second"), "ok 0");
  assert_string_equal(ask(&b, "write /srv/link_remap.7 mine"), "ok 4");
  assert_string_equal(ask(&b, "write /srv/note mine"), "ok 4");
  assert_string_equal(ask(&b, "name /srv/second /srv/link_remap.8"), "ok 0");
  snprintf(path, sizeof(path), "/proc/%d/root/srv/second", b.jail.init.pid);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(mkdir(checkpoint_of(&b), 0700), 0);
  write_record(checkpoint_of(&b), st.st_ino, "./srv/link_remap.7"); /* of that name, but another file */
  write_record(checkpoint_of(&b), st.st_ino, "./srv/link_remap.8");
  write_record(checkpoint_of(&b), st.st_ino, "./srv/link_remap.9"); /* never made */
  write_record(checkpoint_of(&b), st.st_ino, "./srv/second");       /* no name that criu gives */
  jail_rescue(checkpoint_of(&b), test_host.instance, b.id);
  const char *left = listing(&b);
  assert_null(strstr(left, "link_remap.8"));
  assert_non_null(strstr(left, "link_remap.7"));
  assert_non_null(strstr(left, "second"));
  assert_non_null(strstr(left, "note"));
  remove_checkpoint(&b);
  close_box(&b);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_open_file_keeps_its_other_name),
      cmocka_unit_test(a_checkpoint_serves_more_than_once),
      cmocka_unit_test(a_box_that_goes_on_has_no_name_too_many),
      cmocka_unit_test(what_a_killed_dump_left_goes_and_nothing_else),
  };
  return run_checkpoint_tests(argc, argv, tests, ARRAY_LEN(tests));
}
