/* SPDX-License-Identifier: Apache-2.0 */
/* The header traceparent, and spans on their way to the exporter. */
#include "unit.h"
#include "wire/span.h"
#include "wire/wire.h"

static void a_traceparent_is_read_or_refused(void **state)
{
  struct span_context c = {0};
  struct str good = STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  assert_int_equal(span_context_read(good, &c), 0);
  assert_true(c.sampled);
  assert_int_equal(c.trace[0], 0x4b);
  assert_int_equal(c.trace[15], 0x36);
  assert_int_equal(c.parent[7], 0xb7);
  assert_int_equal(span_context_read(STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"), &c), 0);
  assert_false(c.sampled);
  assert_int_equal(span_context_read(STR("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"), &c), 0);
  static const char *const bad[] = {
      "",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
      "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
      "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  };
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(span_context_read(str_of(bad[i]), &c), -EINVAL);
}

static void a_span_arrives_as_it_was_sent(void **state)
{
  struct span s = {.context = {.trace = {1, 2}, .parent = {3}},
                   .id = {9},
                   .name = STR("create"),
                   .box = STR("i1"),
                   .status = 201,
                   .from_us = 10,
                   .to_us = 20},
              back;
  span_phase_add(&s, "gate", 10, 12);
  span_phase_add(&s, "backwards", 12, 11);
  span_phase_add(&s, "never", 0, 11);
  span_phase_add(&s, "agent", 12, 19);
  span_shift(&s, 1000);
  cleanup_buf struct buf b = BUF_INIT(4096);
  span_pack(&b, &s);
  assert_int_equal(span_read(buf_str(&b), &back), 0);
  assert_int_equal(back.nphases, 2);
  assert_int_equal(back.from_us, 1010);
  assert_int_equal(back.phases[0].from_us, 1010); /* a phase begins no sooner than its span */
  assert_true(str_is(back.phases[1].text, "agent"));
  assert_int_equal(back.phases[1].to_us, 1019);
  assert_true(str_is(back.name, "create"));
  assert_memory_equal(back.context.trace, s.context.trace, 16);
  assert_int_equal(back.status, 201);
  buf_clear(&b);
  wire_begin(&b, WIRE_SPAN, 0, 0);
  assert_int_equal(span_read(buf_str(&b), &back), -EINVAL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_traceparent_is_read_or_refused),
      cmocka_unit_test(a_span_arrives_as_it_was_sent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
