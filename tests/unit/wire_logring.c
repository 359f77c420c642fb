/* SPDX-License-Identifier: Apache-2.0 */
/* A log ring that is followed: every line once, what was overwritten counted. */
#include "unit.h"
#include "wire/logring.h"

#include <sys/mman.h>

static int make_ring(uint64_t size, struct logring_head *h)
{
  int fd = memfd_create("ring", MFD_CLOEXEC);
  assert_int_equal(logring_make(fd, size), 0);
  assert_int_equal(logring_open(fd, h), 0);
  return fd;
}

static void lines_are_read_once_and_in_pieces(void **state)
{
  struct logring_head h;
  cleanup_fd int fd = make_ring(1000, &h);
  cleanup_buf struct buf out = BUF_INIT(1000);
  uint64_t at = 0, lost = 0;
  assert_int_equal(logring_append(fd, &h, STR("one\ntwo\nthree\n")), 0);
  assert_int_equal(logring_follow(fd, &at, 9, &out, &lost), 0);
  assert_true(str_is(buf_str(&out), "one\ntwo\n"));
  assert_int_equal(logring_follow(fd, &at, 9, &out, &lost), 0);
  assert_true(str_is(buf_str(&out), "one\ntwo\nthree\n"));
  assert_int_equal(logring_follow(fd, &at, 9, &out, &lost), 0);
  assert_int_equal(out.n, 14);
  assert_int_equal(lost, 0);
}

static void what_was_overwritten_is_counted_and_no_line_is_cut(void **state)
{
  struct logring_head h;
  cleanup_fd int fd = make_ring(20, &h);
  cleanup_buf struct buf out = BUF_INIT(1000);
  uint64_t at = 0, lost = 0;
  for (int i = 0; i < 5; i++)
    assert_int_equal(logring_append(fd, &h, STR("seven.\n")), 0);
  assert_int_equal(logring_follow(fd, &at, 100, &out, &lost), 0);
  assert_true(str_is(buf_str(&out), "seven.\nseven.\n"));
  assert_int_equal(lost, 21);
  assert_int_equal(at, 35);
}

static void a_ring_that_began_anew_is_read_from_its_beginning(void **state)
{
  struct logring_head h;
  cleanup_fd int fd = make_ring(1000, &h);
  cleanup_buf struct buf out = BUF_INIT(1000);
  uint64_t at = 5000, lost = 0;
  assert_int_equal(logring_append(fd, &h, STR("again\n")), 0);
  assert_int_equal(logring_follow(fd, &at, 100, &out, &lost), 0);
  assert_true(str_is(buf_str(&out), "again\n"));
  assert_int_equal(lost, 0);
  assert_int_equal(at, 6);
}

/* What root of a box may write there. */
static void nonsense_is_skipped_and_never_waited_for(void **state)
{
  struct logring_head h;
  cleanup_fd int fd = make_ring(1000, &h);
  cleanup_buf struct buf out = BUF_INIT(1000);
  uint64_t at = 0, lost = 0;
  h.written = UINT64_MAX; /* of a file that has nothing */
  assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
  assert_int_equal(logring_follow(fd, &at, 100, &out, &lost), 0);
  assert_int_equal(out.n, 0);
  assert_true(at > 0);
  h.size = 0;
  assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
  assert_int_equal(logring_follow(fd, &at, 100, &out, &lost), -EINVAL);
  char line[200];
  memset(line, 'x', sizeof(line)); /* a line without an end */
  cleanup_fd int other = make_ring(1000, &h);
  assert_int_equal(logring_append(other, &h, str_make(line, sizeof(line))), 0);
  assert_int_equal(logring_append(other, &h, STR("\nwhole\n")), 0);
  at = lost = 0;
  for (int i = 0; i < 4; i++)
    assert_int_equal(logring_follow(other, &at, 100, &out, &lost), 0);
  assert_true(str_ends(buf_str(&out), STR("whole\n")));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_are_read_once_and_in_pieces),
      cmocka_unit_test(what_was_overwritten_is_counted_and_no_line_is_cut),
      cmocka_unit_test(a_ring_that_began_anew_is_read_from_its_beginning),
      cmocka_unit_test(nonsense_is_skipped_and_never_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
