/* SPDX-License-Identifier: Apache-2.0 */
/* wire_guest_frame.c - frames between a guest and warder: whole ones, pieces, and what a hostile guest may send. */
#include "unit.h"

#include "wire/guest_frame.h"
#include <fcntl.h>
#include <unistd.h>

struct lab {
  int fds[2];
  struct guest_reader reader;
};

static int lab_open(void **state)
{
  static struct lab lab;
  lab.reader = (struct guest_reader){.max = 16};
  buf_init(&lab.reader.bytes, 16 + sizeof(struct guest_frame));
  *state = &lab;
  return pipe2(lab.fds, O_CLOEXEC);
}

static int lab_close(void **state)
{
  struct lab *lab = *state;
  close(lab->fds[0]);
  close(lab->fds[1]);
  buf_free(&lab->reader.bytes);
  return 0;
}

static void two_frames_in_one_read_come_apart(void **state)
{
  struct lab *lab = *state;
  struct guest_frame head;
  struct str body;
  assert_int_equal(guest_write(lab->fds[1], GUEST_ASKS, NULL, 0), 0);
  assert_int_equal(guest_write(lab->fds[1], GUEST_ANSWER, "Rxy", 3), 0);
  assert_int_equal(guest_read(&lab->reader, lab->fds[0]), 2 * sizeof(head) + 3);
  assert_int_equal(guest_frame_next(&lab->reader, &head, &body), 1);
  assert_int_equal(head.word, GUEST_ASKS);
  assert_int_equal(body.n, 0);
  guest_frame_done(&lab->reader, &head);
  assert_int_equal(guest_frame_next(&lab->reader, &head, &body), 1);
  assert_true(str_is(body, "Rxy"));
  guest_frame_done(&lab->reader, &head);
  assert_int_equal(guest_frame_next(&lab->reader, &head, &body), 0);
}

static void a_frame_that_comes_byte_by_byte_is_one_frame(void **state)
{
  struct lab *lab = *state;
  struct guest_frame head = {.length = 2, .word = GUEST_ANSWER};
  char bytes[sizeof(head) + 2];
  struct str body;
  memcpy(bytes, &head, sizeof(head));
  memcpy(bytes + sizeof(head), "ok", 2);
  for (size_t i = 0; i < sizeof(bytes); i++) {
    assert_int_equal(guest_frame_next(&lab->reader, &head, &body), 0);
    assert_int_equal(write(lab->fds[1], bytes + i, 1), 1);
    assert_int_equal(guest_read(&lab->reader, lab->fds[0]), 1);
  }
  assert_int_equal(guest_frame_next(&lab->reader, &head, &body), 1);
  assert_true(str_is(body, "ok"));
}

static void a_frame_longer_than_allowed_is_refused_by_its_head(void **state)
{
  struct lab *lab = *state;
  struct guest_frame head = {.length = 17, .word = GUEST_ANSWER}, got;
  struct str body;
  assert_int_equal(write(lab->fds[1], &head, sizeof(head)), sizeof(head));
  guest_read(&lab->reader, lab->fds[0]);
  assert_int_equal(guest_frame_next(&lab->reader, &got, &body), -EPROTO);
}

static void a_largest_frame_fits_and_no_more_is_read_than_fits(void **state)
{
  struct lab *lab = *state;
  struct guest_frame head;
  struct str body;
  assert_int_equal(guest_write(lab->fds[1], GUEST_ANSWER, "0123456789abcdef", 16), 0);
  assert_int_equal(guest_write(lab->fds[1], GUEST_END, NULL, 0), 0);
  assert_int_equal(guest_read(&lab->reader, lab->fds[0]), sizeof(head) + 16);
  assert_int_equal(guest_frame_next(&lab->reader, &head, &body), 1);
  assert_int_equal(body.n, 16);
  guest_frame_done(&lab->reader, &head);
  assert_int_equal(guest_read(&lab->reader, lab->fds[0]), sizeof(head));
  assert_int_equal(guest_frame_next(&lab->reader, &head, &body), 1);
  assert_int_equal(head.word, GUEST_END);
}

static void bytes_that_must_be_zero_are(void **state)
{
  struct lab *lab = *state;
  struct guest_frame head = {.word = GUEST_END, .zero = {0, 1, 0}}, got;
  struct str body;
  assert_int_equal(write(lab->fds[1], &head, sizeof(head)), sizeof(head));
  guest_read(&lab->reader, lab->fds[0]);
  assert_int_equal(guest_frame_next(&lab->reader, &got, &body), -EPROTO);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(two_frames_in_one_read_come_apart, lab_open, lab_close),
      cmocka_unit_test_setup_teardown(a_frame_that_comes_byte_by_byte_is_one_frame, lab_open, lab_close),
      cmocka_unit_test_setup_teardown(a_frame_longer_than_allowed_is_refused_by_its_head, lab_open, lab_close),
      cmocka_unit_test_setup_teardown(a_largest_frame_fits_and_no_more_is_read_than_fits, lab_open, lab_close),
      cmocka_unit_test_setup_teardown(bytes_that_must_be_zero_are, lab_open, lab_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
