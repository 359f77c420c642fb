/* SPDX-License-Identifier: Apache-2.0 */
/* jail_view.c - what a box reads of its memory, processors and load: texts from numbers. */
#include "unit.h"

#include "jail/limit_view.h"

#define MIB ((uint64_t)1 << 20)

static const struct view_numbers small = {
    .usage = {.limit = 1024 * MIB,
              .used = 300 * MIB,
              .file = 80 * MIB,
              .shmem = 10 * MIB,
              .anon = 200 * MIB,
              .active_file = 30 * MIB,
              .inactive_file = 50 * MIB,
              .user_usec = 2500000,
              .system_usec = 500000,
              .tasks = 7},
    .cpus = 2,
    .uptime_usec = 10000000,
    .boot_time = 1700000000,
    .load = {VIEW_LOAD_ONE / 2, VIEW_LOAD_ONE, 12 * VIEW_LOAD_ONE},
};

static bool has(const struct buf *b, const char *line)
{
  return str_search(buf_str(b), str_of(line)) >= 0;
}

static void meminfo_tells_the_limit_and_what_is_left(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(8192);
  view_write_meminfo(&small, &b);
  assert_true(has(&b, "MemTotal:        1048576 kB\n"));
  assert_true(has(&b, "MemFree:          741376 kB\n"));
  assert_true(has(&b, "MemAvailable:     823296 kB\n"));
  assert_true(has(&b, "\nCached:            92160 kB\n"));
  assert_true(has(&b, "SwapTotal:             0 kB\n"));
}

static void meminfo_of_a_box_over_its_limit_has_nothing_free(void **state)
{
  struct view_numbers v = small;
  cleanup_buf struct buf b = BUF_INIT(8192);
  v.usage.used = 2000 * MIB;
  v.usage.inactive_file = 3000 * MIB;
  view_write_meminfo(&v, &b);
  assert_true(has(&b, "MemFree:               0 kB\n"));
  assert_true(has(&b, "MemAvailable:    1048576 kB\n"));
}

static void stat_counts_used_and_idle_time_of_the_boxs_processors(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(8192);
  view_write_stat(&small, &b);
  assert_true(str_starts(buf_str(&b), STR("cpu  250 0 50 1700 0 0 0 0 0 0\ncpu0 125 0 25 850 0 0 0 0 0 0\ncpu1 125 ")));
  assert_false(has(&b, "cpu2"));
  assert_true(has(&b, "\nbtime 1700000000\n"));
}

static void idle_time_is_never_negative(void **state)
{
  struct view_numbers v = small;
  cleanup_buf struct buf b = BUF_INIT(8192);
  v.uptime_usec = 10000;
  view_write_stat(&v, &b);
  assert_true(has(&b, "cpu  250 0 50 0 0 "));
}

/* criu refuses to restore an open file whose size is another. */
static void sizes_do_not_depend_on_the_numbers(void **state)
{
  struct view_numbers zero = {.usage.limit = 128 * MIB, .cpus = 1}, large = small;
  large.usage.user_usec = large.uptime_usec = (uint64_t)1 << 55;
  large.usage.limit = large.usage.used = (uint64_t)900 << 30;
  large.usage.tasks = 4194304;
  large.cpus = 32;
  void (*const writers[])(const struct view_numbers *v, struct buf *out) = {view_write_meminfo, view_write_stat,
                                                                            view_write_loadavg};
  for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
    cleanup_buf struct buf a = BUF_INIT(8192), b = BUF_INIT(8192);
    writers[i](&zero, &a);
    writers[i](&large, &b);
    assert_int_equal(a.n, b.n);
    assert_int_equal(a.p[a.n - 1], '\n');
  }
}

static void loadavg_has_three_numbers_of_two_places(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(256);
  view_write_loadavg(&small, &b);
  assert_true(str_starts(buf_str(&b), STR("0.50 1.00 12.00 1/7 7 ")));
}

static void cpuinfo_ends_after_the_boxs_processors(void **state)
{
  static const char host[] = "processor\t: 0\nflags\t: a\n\nprocessor\t: 1\nflags\t: b\n\nprocessor\t: 2\n\n";
  static const struct {
    unsigned cpus;
    const char *text;
  } table[] = {{1, "processor\t: 0\nflags\t: a\n\n"},
               {2, "processor\t: 0\nflags\t: a\n\nprocessor\t: 1\nflags\t: b\n\n"},
               {3, host},
               {9, host}};
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    cleanup_buf struct buf b = BUF_INIT(1024);
    view_write_cpuinfo(str_of(host), table[i].cpus, &b);
    assert_true(str_is(buf_str(&b), table[i].text));
  }
  cleanup_buf struct buf other = BUF_INIT(1024);
  view_write_cpuinfo(STR("Features : x\n"), 1, &other);
  assert_true(str_is(buf_str(&other), "Features : x\n"));
}

static void processors_of_a_list_are_counted(void **state)
{
  static const struct {
    const char *list;
    unsigned n;
  } table[] = {{"0", 1}, {"0-3", 4}, {"1,3", 2}, {"0-1,8-9\n", 4}, {"", 0}, {"x", 0}, {"0-", 0}};
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    assert_int_equal(view_count_cpus(table[i].list), table[i].n);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(meminfo_tells_the_limit_and_what_is_left),
      cmocka_unit_test(meminfo_of_a_box_over_its_limit_has_nothing_free),
      cmocka_unit_test(stat_counts_used_and_idle_time_of_the_boxs_processors),
      cmocka_unit_test(idle_time_is_never_negative),
      cmocka_unit_test(sizes_do_not_depend_on_the_numbers),
      cmocka_unit_test(loadavg_has_three_numbers_of_two_places),
      cmocka_unit_test(cpuinfo_ends_after_the_boxs_processors),
      cmocka_unit_test(processors_of_a_list_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
