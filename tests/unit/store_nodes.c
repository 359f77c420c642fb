/* SPDX-License-Identifier: Apache-2.0 */
/* store_nodes.c - names, leases and epochs of machines, in PostgreSQL (the suite store_on_postgres runs it). */
#include "store_lab.h"

#include "store/node_rows.h"
#include "warden/db/store_sql.h"
#include <unistd.h>

static const struct node_lease lease = {.us = 60000000, .keep_us = 3600000000},
                               short_lease = {.us = 1000, .keep_us = 3600000000};

static struct node_record make(const char *name, const char *machine)
{
  struct node_record r = {.n = {.status = NODE_READY, .cpus = 4, .running = 2, .since_us = 1}};
  snprintf(r.name, sizeof(r.name), "%s", name);
  snprintf(r.machine, sizeof(r.machine), "%s", machine);
  snprintf(r.address, sizeof(r.address), "10.0.0.1:3000");
  snprintf(r.labels, sizeof(r.labels), "zone=a");
  return r;
}

static void begins(struct store *s, struct node_record *r, const struct node_lease *l, uint64_t epoch)
{
  uint64_t wanted = 9;
  struct err err = ERR_NONE;
  if (node_begin(s, r, l, &wanted, &err))
    fail_msg("%s", err.msg);
  assert_int_equal(r->n.epoch, epoch);
}

static void keep(const struct node_record *r, void *arg)
{
  *(struct node_record *)arg = *r;
}

static struct node_record look(struct store *s, const char *name)
{
  struct node_record r = {0};
  struct err err = ERR_NONE;
  assert_int_equal(node_each(s, str_of(name), keep, &r, &err), 0);
  return r;
}

static void a_machine_keeps_its_name_over_a_restart(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("restart");
  struct node_record a = make("a", "m1"), seen;
  uint64_t wanted;
  struct err err = ERR_NONE;
  begins(s, &a, &lease, 1);
  a.n.running = 7;
  assert_int_equal(node_renew(s, &a, &lease, &wanted, &err), 0);
  seen = look(s, "a");
  assert_int_equal(seen.n.running, 7);
  assert_int_equal(seen.n.cpus, 4);
  assert_string_equal(seen.labels, "zone=a");
  assert_true(seen.n.left_us > 50000000 && seen.n.left_us <= 60000000);
  begins(s, &a, &lease, 2); /* the process has started again and knows its epoch */
  store_close(s);
}

static void a_name_is_of_one_machine_until_its_lease_ends(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("taken");
  struct node_record a = make("a", "m1"), b = make("a", "m2");
  uint64_t wanted;
  struct err err = ERR_NONE;
  begins(s, &a, &lease, 1);
  assert_int_equal(node_begin(s, &b, &lease, &wanted, &err), -EEXIST);
  assert_non_null(strstr(err.msg, "node_name"));
  assert_non_null(strstr(err.msg, "10.0.0.1:3000"));
  assert_int_equal(node_renew(s, &a, &short_lease, &wanted, &err), 0);
  usleep(20000);
  assert_true(look(s, "a").n.left_us < 0);
  begins(s, &b, &lease, 2);
  /* Whoever was away meanwhile must not go on under the old epoch, nor take the name back. */
  assert_int_equal(node_renew(s, &a, &lease, &wanted, &err), -ESTALE);
  assert_int_equal(node_begin(s, &a, &lease, &wanted, &err), -EEXIST);
  store_close(s);
}

static void two_copies_of_a_machine_never_hold_the_name_at_once(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("copies");
  struct node_record a = make("a", "m1"), copy;
  uint64_t wanted;
  struct err err = ERR_NONE;
  begins(s, &a, &lease, 1);
  copy = a;
  begins(s, &copy, &lease, 2);
  assert_int_equal(node_renew(s, &a, &lease, &wanted, &err), -ESTALE);
  assert_int_equal(node_begin(s, &a, &lease, &wanted, &err), -EEXIST);
  assert_int_equal(node_renew(s, &copy, &lease, &wanted, &err), 0);
  store_close(s);
}

static void one_that_leaves_frees_its_name_at_once(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("leave");
  struct node_record a = make("a", "m1"), b = make("a", "m2");
  struct err err = ERR_NONE;
  begins(s, &a, &lease, 1);
  assert_int_equal(node_leave(s, "a", 7, &err), 0); /* another epoch's: nothing */
  assert_true(look(s, "a").n.left_us > 0);
  assert_int_equal(node_leave(s, "a", 1, &err), 0);
  struct node_record left = look(s, "a");
  assert_string_equal(node_status_word(&left.n), "standby");
  begins(s, &b, &lease, 2);
  store_close(s);
}

static void an_order_is_heard_until_it_is_followed(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("order");
  struct node_record a = make("a", "m1");
  uint64_t wanted = 0;
  struct err err = ERR_NONE;
  begins(s, &a, &lease, 1);
  assert_int_equal(node_order(s, STR("ghost"), NODE_DRAINING, &err), -ENOENT);
  assert_int_equal(node_order(s, STR("a"), NODE_DRAINING, &err), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(node_renew(s, &a, &lease, &wanted, &err), 0);
    assert_int_equal(wanted, NODE_DRAINING);
  }
  a.n.status = NODE_DRAINING;
  assert_int_equal(node_renew(s, &a, &lease, &wanted, &err), 0);
  assert_int_equal(wanted, 0);
  store_close(s);
}

static void one_that_is_gone_for_long_is_forgotten(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("forget");
  struct node_record a = make("a", "m1"), b = make("b", "m2");
  const struct node_lease brief = {.us = 60000000, .keep_us = 1000};
  begins(s, &a, &short_lease, 1);
  usleep(20000);
  begins(s, &b, &brief, 1);
  assert_string_equal(look(s, "a").name, "");
  assert_string_equal(look(s, "b").name, "b");
  store_close(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_machine_keeps_its_name_over_a_restart),
      cmocka_unit_test(a_name_is_of_one_machine_until_its_lease_ends),
      cmocka_unit_test(two_copies_of_a_machine_never_hold_the_name_at_once),
      cmocka_unit_test(one_that_leaves_frees_its_name_at_once),
      cmocka_unit_test(an_order_is_heard_until_it_is_followed),
      cmocka_unit_test(one_that_is_gone_for_long_is_forgotten),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
