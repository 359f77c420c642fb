/* SPDX-License-Identifier: Apache-2.0 */
/* wire_egress_policy.c - policies and packets between warden and egress gateway: read back as written, whole or
 * refused.
 */
#include "unit.h"

#include "wire/egress_policy.h"
#define STR_INIT(lit)                                                                                                  \
  {                                                                                                                    \
    (lit), sizeof(lit) - 1                                                                                             \
  }

static void sample(struct egress_policy *p)
{
  static struct egress_piece pieces[] = {{.kind = EGRESS_LITERAL, .text = STR_INIT("Bearer ")},
                                         {.kind = EGRESS_SECRET, .text = STR_INIT("key")}};
  static struct egress_piece token[] = {{.kind = EGRESS_IDENTITY, .text = STR_INIT("aud")}};
  static struct egress_header headers[] = {{STR_INIT("Authorization"), pieces, 2}, {STR_INIT("X-Token"), token, 1}};
  static struct egress_host hosts[] = {{STR_INIT("*.example.com"), headers, 1},
                                       {STR_INIT("api.example.com"), headers, 2},
                                       {STR_INIT("*.b.example.com"), headers + 1, 1}};
  static struct egress_secret secrets[] = {{STR_INIT("key"), STR_INIT("v4lue"), false},
                                           {STR_INIT("gone"), {NULL, 0}, true}};
  static struct egress_net nets[] = {{0x01020300, 24}};
  *p = (struct egress_policy){
      .box = "ibox",
      .team = "team-1",
      .log = EGRESS_LOG_FULL,
      .hosts = hosts,
      .nhosts = 3,
      .secrets = secrets,
      .nsecrets = 2,
      .proxy = {EGRESS_SOCKS5, STR("proxy.example"), 1080, STR("u"), STR("p"), true, STR("inner.example"), STR("PEM")},
      .ca_cert = STR("CERT"),
      .ca_key = STR("KEY"),
      .restricted = true,
      .allow_names = STR("*.example.com\n"),
      .allow_nets = nets,
      .nallow_nets = 1};
}

static void a_policy_is_read_back_as_written(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(EGRESS_POLICY_MAX), again = BUF_INIT(EGRESS_POLICY_MAX);
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct egress_policy p, q;
  struct err err = ERR_NONE;
  sample(&p);
  egress_policy_pack(&b, &p);
  assert_int_equal(egress_policy_read(&a, buf_str(&b), &q, &err), 0);
  assert_string_equal(q.box, "ibox");
  assert_true(q.secrets[1].missing);
  assert_true(str_is(q.hosts[1].headers[0].pieces[1].text, "key"));
  assert_int_equal(q.hosts[1].headers[0].pieces[1].secret, 0);
  assert_int_equal(q.proxy.port, 1080);
  egress_policy_pack(&again, &q);
  assert_true(str_eq(buf_str(&b), buf_str(&again)));
}

static void the_exact_name_beats_the_longest_wildcard(void **state)
{
  struct egress_policy p;
  sample(&p);
  assert_ptr_equal(egress_host_find(&p, STR("api.example.com")), &p.hosts[1]);
  assert_ptr_equal(egress_host_find(&p, STR("x.example.com")), &p.hosts[0]);
  assert_ptr_equal(egress_host_find(&p, STR("x.b.example.com")), &p.hosts[2]);
  assert_ptr_equal(egress_host_find(&p, STR("b.example.com")), &p.hosts[0]);
  assert_null(egress_host_find(&p, STR("example.com")));
  assert_null(egress_host_find(&p, STR("badexample.com")));
  assert_null(egress_host_find(&p, STR(".example.com")));
}

static int read_changed(void (*change)(struct egress_policy *))
{
  cleanup_buf struct buf b = BUF_INIT(EGRESS_POLICY_MAX);
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct egress_policy p, q;
  struct err err = ERR_NONE;
  sample(&p);
  change(&p);
  egress_policy_pack(&b, &p);
  int r = egress_policy_read(&a, buf_str(&b), &q, &err);
  assert_true(!r || err.msg[0]);
  assert_null(strstr(err.msg, "v4lue"));
  return r;
}

static void no_authority(struct egress_policy *p)
{
  p->ca_key = STR("");
}
static void no_secret(struct egress_policy *p)
{
  p->nsecrets = 0;
}
static void too_many_placeholders(struct egress_policy *p)
{
  static struct egress_piece pieces[EGRESS_FILLED_MAX / 2 + 1];
  static struct egress_header headers[] = {{STR_INIT("x"), pieces, ARRAY_LEN(pieces)},
                                           {STR_INIT("y"), pieces, ARRAY_LEN(pieces)}};
  static struct egress_host host = {STR_INIT("a.example"), headers, 2};
  for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
    pieces[i] = (struct egress_piece){.kind = EGRESS_SECRET, .text = STR("key")};
  p->hosts = &host;
  p->nhosts = 1;
}
static void most_placeholders(struct egress_policy *p)
{
  too_many_placeholders(p);
  p->hosts[0].headers[0].npieces = p->hosts[0].headers[1].npieces = EGRESS_FILLED_MAX / 2;
}
static void line_break(struct egress_policy *p)
{
  static struct egress_piece piece = {.kind = EGRESS_LITERAL, .text = STR_INIT("a\r\nb: c")};
  static struct egress_header header = {STR_INIT("x"), &piece, 1};
  static struct egress_host host = {STR_INIT("a.example"), &header, 1};
  p->hosts = &host;
  p->nhosts = 1;
}
static void upper_case(struct egress_policy *p)
{
  static struct egress_host host = {STR_INIT("A.example"), NULL, 0};
  p->hosts = &host;
  p->nhosts = 1;
}
static void proxy_without_port(struct egress_policy *p)
{
  p->proxy.port = 0;
}
static void password_without_user(struct egress_policy *p)
{
  p->proxy.user = STR("");
}

static void policies_that_could_do_harm_are_refused(void **state)
{
  void (*const changes[])(struct egress_policy *) = {no_authority,         no_secret,          line_break,
                                                     upper_case,           proxy_without_port, password_without_user,
                                                     too_many_placeholders};
  for (size_t i = 0; i < ARRAY_LEN(changes); i++)
    assert_int_equal(read_changed(changes[i]), -EINVAL);
  assert_int_equal(read_changed(most_placeholders), 0);
}

static void cut_and_changed_policies_are_refused_or_read_inside_their_bounds(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(EGRESS_POLICY_MAX);
  struct egress_policy p, q;
  uint64_t dice = 4321;
  sample(&p);
  egress_policy_pack(&b, &p);
  for (size_t cut = 0; cut < b.n; cut++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    cleanup_free char *copy = malloc(cut ? cut : 1);
    memcpy(copy, b.p, cut);
    assert_int_equal(egress_policy_read(&a, str_make(copy, cut), &q, NULL), -EINVAL);
  }
  for (int i = 0; i < 20000; i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    cleanup_free char *copy = malloc(b.n);
    memcpy(copy, b.p, b.n);
    for (int k = 0; k < 2; k++) {
      dice = dice * 6364136223846793005u + 1442695040888963407u;
      copy[(dice >> 33) % b.n] = (char)(dice >> 17);
    }
    if (!egress_policy_read(&a, str_make(copy, b.n), &q, NULL))
      assert_true(q.ca_key.p >= copy && q.ca_key.p + q.ca_key.n <= copy + b.n);
  }
}

static void values_are_taken_apart(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct egress_piece *p;
  size_t n;
  assert_int_equal(egress_value_read(&a, STR("Bearer ${e2b.secrets.my-key}"), &p, &n, NULL), 0);
  assert_int_equal(n, 2);
  assert_int_equal(p[1].kind, EGRESS_SECRET);
  assert_true(str_is(p[1].text, "my-key"));
  assert_int_equal(egress_value_read(&a, STR("${e2b.identity.tokens.a}${e2b.secrets.b}x$y"), &p, &n, NULL), 0);
  assert_int_equal(n, 3);
  assert_int_equal(p[0].kind, EGRESS_IDENTITY);
  assert_true(str_is(p[2].text, "x$y"));
  assert_int_equal(egress_value_read(&a, STR(""), &p, &n, NULL), 0);
  assert_int_equal(n, 0);
  static const char *const bad[] = {
      "${e2b.secrets.",     "${e2b.secrets.}", "${e2b.secrets.${e2b.secrets.a}}", "${e2b.other.a}", "a${",
      "${e2b.secrets.a b}", "${e2b.secrets.a"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(egress_value_read(&a, str_of(bad[i]), &p, &n, NULL), -EINVAL);
}

static void packets_are_whole_or_refused(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(EGRESS_PACKET_MAX);
  union egress_body in = {.record = {.wall_us = 5,
                                     .in = 1,
                                     .out = 2,
                                     .verdict = EGRESS_INSPECTED,
                                     .status = 200,
                                     .name = 3,
                                     .rule = 2,
                                     .method = 3,
                                     .path = 1,
                                     .box = "ibox"}},
                    out;
  enum egress_type type;
  struct str text;
  struct egress_record_text parts;
  egress_packet(&b, EGRESS_RECORD, &in, STR("a.b*.GET/"));
  assert_int_equal(egress_packet_read(buf_str(&b), &type, &out, &text), 0);
  assert_int_equal(type, EGRESS_RECORD);
  egress_record_texts(&out.record, text, &parts);
  assert_true(str_is(parts.name, "a.b") && str_is(parts.rule, "*.") && str_is(parts.method, "GET"));
  assert_true(str_is(parts.path, "/"));
  for (size_t cut = 0; cut < b.n; cut++)
    assert_int_equal(egress_packet_read(str_make(b.p, cut), &type, &out, &text), -EINVAL);
  in.record.path = 2;
  egress_packet(&b, EGRESS_RECORD, &in, STR("a.b*.GET/"));
  assert_int_equal(egress_packet_read(buf_str(&b), &type, &out, &text), -EINVAL);
  in.record.path = 1;
  egress_packet(&b, EGRESS_RECORD, &in, STR("a.b*.GET\n"));
  assert_int_equal(egress_packet_read(buf_str(&b), &type, &out, &text), -EINVAL);
  in = (union egress_body){.set = {.generation = 3, .address = 1, .length = 9}};
  egress_packet(&b, EGRESS_SET, &in, STR_NONE);
  assert_int_equal(egress_packet_read(buf_str(&b), &type, &out, &text), 0);
  memset(in.set.box, 'x', sizeof(in.set.box));
  egress_packet(&b, EGRESS_SET, &in, STR_NONE);
  assert_int_equal(egress_packet_read(buf_str(&b), &type, &out, &text), -EINVAL);
  egress_packet(&b, EGRESS_SYNC, NULL, STR_NONE);
  assert_int_equal(egress_packet_read(buf_str(&b), &type, &out, &text), 0);
  in = (union egress_body){.token = {.id = 1, .status = -ENOENT}};
  egress_packet(&b, EGRESS_TOKEN, &in, STR("not with an error"));
  assert_int_equal(egress_packet_read(buf_str(&b), &type, &out, &text), -EINVAL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_policy_is_read_back_as_written),
      cmocka_unit_test(the_exact_name_beats_the_longest_wildcard),
      cmocka_unit_test(policies_that_could_do_harm_are_refused),
      cmocka_unit_test(cut_and_changed_policies_are_refused_or_read_inside_their_bounds),
      cmocka_unit_test(values_are_taken_apart),
      cmocka_unit_test(packets_are_whole_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
