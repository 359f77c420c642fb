/* SPDX-License-Identifier: Apache-2.0 */
/* warden_policy_check.c - what a box's egress settings name: secrets whose changes concern it, and identity tokens that
 * it must have. */
#include "unit.h"

#include "warden/core/box_egress.h"
#include "warden/egress/policies.h"

static struct box_egress *with_header(struct str value)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct egress_header header = {.name = STR("X-Key")};
  struct egress_host host = {.pattern = STR("api.example.com"), .headers = &header, .nheaders = 1};
  struct egress_secret secrets[] = {{.name = STR("key"), .missing = true}, {.name = STR("other"), .missing = true}};
  struct egress_policy p = {
      .hosts = &host, .nhosts = 1, .secrets = secrets, .nsecrets = 2, .ca_cert = STR("-"), .ca_key = STR("-")};
  struct box_egress *e = NULL;
  assert_int_equal(egress_value_read(&a, value, &header.pieces, &header.npieces, NULL), 0);
  egress_policy_pack(&b, &p);
  assert_int_equal(box_egress_read(buf_str(&b), STR_NONE, &e, NULL), 0);
  return e;
}

static void a_box_knows_the_secrets_that_it_names(void **state)
{
  struct box_egress *e = with_header(STR("${e2b.secrets.key}")), *copy = box_egress_copy(e);
  assert_true(box_egress_names(e, STR("key")));
  assert_true(box_egress_names(copy, STR("other")));
  assert_false(box_egress_names(e, STR("ke")));
  struct box_egress *unread = box_egress_unread();
  assert_true(box_egress_names(unread, STR("any"))); /* so that it is tried again */
  box_egress_free(unread);
  assert_false(box_egress_names(e, STR("key\nother")));
  assert_false(box_egress_names(e, STR("")));
  box_egress_free(copy);
  box_egress_free(e);
}

static void a_token_that_the_box_does_not_have_is_refused(void **state)
{
  struct err err = ERR_NONE;
  char tokens[] = "aws\tsts.example.com\nmine\tx\n", others[] = "awsome\tx\n";
  struct box_egress *e = with_header(STR("${e2b.identity.tokens.mine}-${e2b.identity.tokens.aws}"));
  assert_int_equal(policy_check(e, tokens, &err), 0);
  assert_int_equal(policy_check(e, others, &err), -EINVAL);
  assert_non_null(strstr(err.msg, "'mine'"));
  assert_int_equal(policy_check(e, NULL, &err), -EINVAL);
  box_egress_free(e);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_box_knows_the_secrets_that_it_names),
      cmocka_unit_test(a_token_that_the_box_does_not_have_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
