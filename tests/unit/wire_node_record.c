/* SPDX-License-Identifier: Apache-2.0 */
/* wire_node_record.c - what a machine says about itself, and what is refused of it. */
#include "unit.h"

#include "wire/node_record.h"
#include <stdio.h>

static struct node_record make(void)
{
  struct node_record r = {.n = {.epoch = 3, .status = NODE_READY, .left_us = 5, .running = 2}};
  snprintf(r.name, sizeof(r.name), "node-1.a_b");
  snprintf(r.labels, sizeof(r.labels), "zone=a disk=ssd");
  snprintf(r.hardware, sizeof(r.hardware), "6\n85\nSome CPU\nx86_64");
  return r;
}

static int roundtrip(const struct node_record *in, struct node_record *out)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_ITEM, 1, 0);
  node_record_put(&b, in);
  assert_int_equal(wire_check(buf_str(&b)), 0);
  return node_record_read(buf_str(&b), out);
}

static void a_node_arrives_as_it_was_sent(void **state)
{
  struct node_record in = make(), out;
  assert_int_equal(roundtrip(&in, &out), 0);
  assert_memory_equal(&in, &out, sizeof(in));
}

static void a_node_that_is_not_whole_is_refused(void **state)
{
  struct node_record bad[] = {make(), make(), make(), make()}, out;
  bad[0].name[0] = 0;
  snprintf(bad[1].name, sizeof(bad[1].name), "a/b");
  snprintf(bad[2].labels, sizeof(bad[2].labels), "zone=\x1b[31m");
  snprintf(bad[3].address, sizeof(bad[3].address), "h\xc3\xa4:1");
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(roundtrip(&bad[i], &out), -EPROTO);
  struct node_record in = make();
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_ITEM, 1, 0);
  wire_putz(&b, W_ID, in.name);
  assert_int_equal(node_record_read(buf_str(&b), &out), -EPROTO);
  cleanup_buf struct buf longer = BUF_INIT(WIRE_MAX);
  char name[200];
  memset(name, 'a', sizeof(name) - 1);
  name[sizeof(name) - 1] = 0;
  wire_begin(&longer, WIRE_ITEM, 1, 0);
  wire_putz(&longer, W_ID, name);
  node_record_put(&longer, &in);
  assert_int_equal(node_record_read(buf_str(&longer), &out), -EPROTO);
}

static void names_and_labels_are_checked(void **state)
{
  assert_true(node_name_valid(STR("a")));
  assert_false(node_name_valid(STR("")));
  assert_false(node_name_valid(STR("a b")));
  assert_false(node_name_valid(str_make("a\0b", 3)));
  assert_true(node_labels_valid(STR("")));
  assert_true(node_labels_valid(STR("a=b  c=d")));
  assert_false(node_labels_valid(STR("a")));
  assert_false(node_labels_valid(STR("a=b c=")));
}

static void a_status_considers_the_lease(void **state)
{
  struct wire_node n = {.status = NODE_READY, .left_us = 1};
  assert_string_equal(node_status_word(&n), "ready");
  n.status = NODE_DRAINING;
  assert_string_equal(node_status_word(&n), "draining");
  n.left_us = 0;
  assert_string_equal(node_status_word(&n), "unhealthy");
  n.status = NODE_STANDBY;
  assert_string_equal(node_status_word(&n), "standby");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_node_arrives_as_it_was_sent),
      cmocka_unit_test(a_node_that_is_not_whole_is_refused),
      cmocka_unit_test(names_and_labels_are_checked),
      cmocka_unit_test(a_status_considers_the_lease),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
