/* SPDX-License-Identifier: Apache-2.0 */
/* jail_cpus.c - which processors boxes are bound to, and the lists of them. */
#include "unit.h"

#include "jail/cgroup.h"
#include "jail/cpu_share.h"
#include <stdio.h>

static cpu_set_t range(unsigned from, unsigned to)
{
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned i = from; i <= to; i++)
    CPU_SET(i, &set);
  return set;
}

static void assert_list(const cpu_set_t *set, const char *want)
{
  char list[CPU_LIST_TEXT];
  cpu_set_t back;
  assert_int_equal(cpu_list_write(set, list, sizeof(list)), 0);
  assert_string_equal(list, want);
  assert_int_equal(cpu_list_read(list, &back), 0);
  assert_true(CPU_EQUAL(set, &back));
}

static void lists_are_written_as_ranges_and_fit_on_any_machine(void **state)
{
  cpu_set_t set = range(0, 399);
  assert_list(&set, "0-399");
  CPU_CLR(7, &set);
  CPU_SET(500, &set);
  assert_list(&set, "0-6,8-399,500");
  set = range(0, CPU_SETSIZE - 1);
  for (unsigned i = 0; i < CPU_SETSIZE; i += 2)
    CPU_CLR(i, &set);
  char list[CPU_LIST_TEXT];
  assert_int_equal(cpu_list_write(&set, list, sizeof(list)), 0); /* the longest that there is */
  assert_int_equal(cpu_list_write(&set, list, 16), -E2BIG);
}

static void lists_that_make_no_sense_are_refused(void **state)
{
  cpu_set_t set;
  const char *const bad[] = {"x", "1-", "-1", "3-1", "1,,2", "1024", "0-99999999999"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(cpu_list_read(bad[i], &set), -EINVAL);
  assert_int_equal(cpu_list_read("", &set), 0);
  assert_int_equal(CPU_COUNT(&set), 0);
}

static void the_least_used_are_chosen(void **state)
{
  unsigned load[CPU_SETSIZE] = {5, 0, 2, 1, 9, 9, 9, 9};
  cpu_set_t allowed = range(0, 7), set;
  cpu_share_pick(load, &allowed, 1, 0, &set);
  assert_list(&set, "1");
  cpu_share_pick(load, &allowed, 3, 6, &set);
  assert_list(&set, "1-3");
  CPU_CLR(1, &allowed);
  cpu_share_pick(load, &allowed, 2, 0, &set);
  assert_list(&set, "2-3");
  memset(load, 0, sizeof(load));
  cpu_share_pick(load, &allowed, 2, 4, &set); /* among equals the search goes round */
  assert_list(&set, "4-5");
  cpu_share_pick(load, &allowed, 99, 0, &set);
  assert_true(CPU_EQUAL(&set, &allowed));
}

/* Whoever ends every other box of its own finds the next ones where there is room, not beside its first ones. */
static void boxes_can_not_be_gathered_on_one_processor(void **state)
{
  char list[CPU_LIST_TEXT], id[16], first[CPU_LIST_TEXT] = "";
  cpu_set_t mine;
  sched_getaffinity(0, sizeof(mine), &mine);
  int cpus = CPU_COUNT(&mine), there = 0;
  if (cpus < 2)
    skip();
  for (int i = 0; i < 20 * cpus; i++) {
    snprintf(id, sizeof(id), "b%d", i);
    assert_int_equal(cpu_share_take("one", id, 1, list), 0);
    if (!i)
      snprintf(first, sizeof(first), "%s", list);
    if (strcmp(first, list) != 0)
      cpu_share_release("one", id);
    else
      there++;
  }
  assert_int_equal(there, 1); /* each time another processor was free */
  cpu_share_release("one", "b0");
  cpu_share_release("one", "b0"); /* twice is harmless */
}

static void what_was_there_before_this_process_counts(void **state)
{
  char list[CPU_LIST_TEXT], taken[CPU_LIST_TEXT], id[16];
  cpu_set_t mine;
  sched_getaffinity(0, sizeof(mine), &mine);
  if (CPU_COUNT(&mine) < 2)
    skip();
  assert_int_equal(cpu_share_take("two", "probe", 1, taken), 0);
  cpu_share_release("two", "probe");
  for (int i = 0; i < 9; i++) {
    snprintf(id, sizeof(id), "old%d", i);
    cpu_share_adopt("two", id, taken);
    cpu_share_adopt("two", id, taken); /* once for each hierarchy */
  }
  for (int i = 0; i < 9 * (CPU_COUNT(&mine) - 1); i++) {
    snprintf(id, sizeof(id), "new%d", i);
    assert_int_equal(cpu_share_take("two", id, 1, list), 0);
    assert_string_not_equal(list, taken);
  }
}

static void memory_is_read_alike_from_both_generations(void **state)
{
  struct cgroup_usage one = {0}, two = {0};
  cgroup_memory_in("cache 1\ntotal_cache 700\ntotal_shmem 200\ntotal_rss 30\ntotal_active_file 4\ntotal_mapped_file 5\n"
                   "total_dirty 6\ntotal_writeback 7\n",
                   false, &one);
  cgroup_memory_in("file 700\nshmem 200\nanon 30\nactive_file 4\nfile_mapped 5\nfile_dirty 6\nfile_writeback 7\n", true,
                   &two);
  assert_memory_equal(&one, &two, sizeof(one));
  assert_int_equal(one.file, 500);
  assert_int_equal(one.writeback, 7);
  cgroup_memory_in("pagetables 8\nkernel_stack 9\nslab_reclaimable 10\nslab_unreclaimable 11\n", true, &two);
  assert_int_equal(two.page_tables, 8);
  assert_int_equal(two.slab_unreclaimable, 11);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_are_written_as_ranges_and_fit_on_any_machine),
      cmocka_unit_test(lists_that_make_no_sense_are_refused),
      cmocka_unit_test(the_least_used_are_chosen),
      cmocka_unit_test(boxes_can_not_be_gathered_on_one_processor),
      cmocka_unit_test(what_was_there_before_this_process_counts),
      cmocka_unit_test(memory_is_read_alike_from_both_generations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
