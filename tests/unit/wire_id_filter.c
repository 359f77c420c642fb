/* SPDX-License-Identifier: Apache-2.0 */
/* wire_id_filter.c - which sandbox IDs exist, in memory of the warden and the gates. */
#include "unit.h"

#include "wire/id_filter.h"
#include <stdio.h>
#include <sys/mman.h>

#define MANY 5000

static struct str name(char out[32], int i)
{
  return (struct str){out, (size_t)snprintf(out, 32, "i%019d", i)};
}

static void what_was_added_is_found_by_readers_until_it_is_removed(void **state)
{
  struct err err = ERR_NONE;
  char text[32];
  struct id_filter *w = id_filter_new(&err);
  assert_non_null(w);
  for (int i = 0; i < MANY; i++)
    id_filter_add(w, name(text, i));
  struct id_filter *r = id_filter_attach(id_filter_fd(w));
  assert_non_null(r);
  int wrong = 0;
  for (int i = 0; i < MANY; i++) {
    assert_true(id_filter_has(r, name(text, i)));
    wrong += id_filter_has(r, name(text, MANY + i));
  }
  assert_in_range(wrong, 0, 2);
  for (int i = 0; i < MANY; i += 2)
    id_filter_remove(w, name(text, i));
  for (int i = 0; i < MANY; i++)
    assert_true(i % 2 == 0 || id_filter_has(r, name(text, i)));
  for (int i = 1; i < MANY; i += 2)
    id_filter_remove(w, name(text, i));
  for (int i = 0; i < MANY; i++)
    assert_false(id_filter_has(r, name(text, i)));
  id_filter_free(r);
  id_filter_free(w);
}

static void an_id_that_was_added_more_often_than_counts_go_stays(void **state)
{
  struct err err = ERR_NONE;
  struct id_filter *w = id_filter_new(&err);
  for (int i = 0; i < 1000; i++)
    id_filter_add(w, STR("ione"));
  for (int i = 0; i < 999; i++)
    id_filter_remove(w, STR("ione"));
  assert_true(id_filter_has(w, STR("ione")));
  id_filter_free(w);
}

static void a_reader_can_not_write_it_or_make_it_shorter(void **state)
{
  struct err err = ERR_NONE;
  struct id_filter *w = id_filter_new(&err);
  int fd = id_filter_fd(w);
  assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  assert_true(pwrite(fd, "x", 1, 100) < 0);
  assert_true(ftruncate(fd, 0) < 0);
  id_filter_free(w);
}

static void memory_of_another_size_is_refused(void **state)
{
  int fd = memfd_create("short", MFD_CLOEXEC);
  assert_int_equal(ftruncate(fd, 4096), 0);
  assert_null(id_filter_attach(fd));
  close(fd);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_added_is_found_by_readers_until_it_is_removed),
      cmocka_unit_test(an_id_that_was_added_more_often_than_counts_go_stays),
      cmocka_unit_test(a_reader_can_not_write_it_or_make_it_shorter),
      cmocka_unit_test(memory_of_another_size_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
