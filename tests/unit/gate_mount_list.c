/* SPDX-License-Identifier: Apache-2.0 */
/* gate_mount_list.c - 'volumeMounts' of a request: which are taken, and what is said of the others. */
#include "gate/api/volume/mount_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void read_list(const char *text, struct buf *lines, struct buf *faults)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct json *v = json_read(&a, str_of(text), 0, NULL);
  assert_non_null(v);
  mount_list_read(v, lines, faults);
}

static void sound_entries_become_lines_and_back(void **state)
{
  cleanup_buf struct buf lines = BUF_INIT(MOUNT_LINES_MAX), faults = BUF_INIT(4000), again = BUF_INIT(4000);
  read_list("[{\"name\":\"a-B_1\",\"path\":\"/data\"},{\"path\":\"/srv/with blank/\\u00e9\",\"name\":\"b\",\"x\":1}]",
            &lines, &faults);
  assert_string_equal(buf_z(&lines), "a-B_1\t/data\nb\t/srv/with blank/\xc3\xa9\n");
  assert_int_equal(faults.n, 0);
  struct jw w = JW(&again);
  mount_list_put(&w, buf_str(&lines));
  assert_string_equal(buf_z(&again), "[{\"name\":\"a-B_1\",\"path\":\"/data\"},{\"name\":\"b\",\"path\":\"/srv/with "
                                     "blank/\xc3\xa9\"}]");
}

static void nothing_is_nothing(void **state)
{
  cleanup_buf struct buf lines = BUF_INIT(MOUNT_LINES_MAX), faults = BUF_INIT(4000);
  mount_list_read(NULL, &lines, &faults);
  read_list("null", &lines, &faults);
  read_list("[]", &lines, &faults);
  assert_int_equal(lines.n + faults.n, 0);
}

static void every_bad_path_is_named(void **state)
{
  static const char *const bad[] = {"",
                                    "data",
                                    "/",
                                    "//data",
                                    "/data/",
                                    "/a/../b",
                                    "/a/./b",
                                    "/proc",
                                    "/proc/x",
                                    "/sys/fs",
                                    "/dev/shm",
                                    "/usr/lib/cloche",
                                    "/usr/lib/cloche/agent",
                                    "/usr/lib",
                                    "/usr",
                                    "/a[b",
                                    "/a:b",
                                    "/a\\tb",
                                    "/a\\nb",
                                    "/a\\u0000b"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    cleanup_buf struct buf lines = BUF_INIT(MOUNT_LINES_MAX), faults = BUF_INIT(4000), text = BUF_INIT(4000);
    buf_addf(&text, "[{\"name\":\"v\",\"path\":\"%s\"}]", bad[i]);
    read_list(buf_z(&text), &lines, &faults);
    assert_int_equal(lines.n, 0);
    assert_non_null(strstr(buf_z(&faults), "the path '"));
  }
}

static void all_mistakes_are_told_at_once(void **state)
{
  cleanup_buf struct buf lines = BUF_INIT(MOUNT_LINES_MAX), faults = BUF_INIT(4000);
  read_list("[{\"name\":\"ok\",\"path\":\"/data\"},{\"name\":\"v\",\"path\":\"rel\"},{\"name\":\"no "
            "blank\",\"path\":\"/x\"},7,"
            "{\"name\":\"w\",\"path\":\"/data/below\"},{\"name\":\"w\",\"path\":\"/data\"},{\"name\":\"w\",\"path\":\"/"
            "database\"}]",
            &lines, &faults);
  assert_string_equal(buf_z(&lines), "ok\t/data\nw\t/database\n");
  assert_non_null(strstr(buf_z(&faults), "'rel' of entry 1"));
  assert_non_null(strstr(buf_z(&faults), "name of entry 2"));
  assert_non_null(strstr(buf_z(&faults), "entry 3"));
  assert_non_null(strstr(buf_z(&faults), "'/data/below' of entry 4"));
  assert_non_null(strstr(buf_z(&faults), "'/data' of entry 5"));
}

static void what_is_no_list_is_refused(void **state)
{
  static const char *const bad[] = {"{}", "\"x\"", "1", "true"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    cleanup_buf struct buf lines = BUF_INIT(MOUNT_LINES_MAX), faults = BUF_INIT(4000);
    read_list(bad[i], &lines, &faults);
    assert_true(!lines.n && faults.n);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_entries_become_lines_and_back),
      cmocka_unit_test(nothing_is_nothing),
      cmocka_unit_test(every_bad_path_is_named),
      cmocka_unit_test(all_mistakes_are_told_at_once),
      cmocka_unit_test(what_is_no_list_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
