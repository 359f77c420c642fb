/* SPDX-License-Identifier: Apache-2.0 */
/* ZMTP frames, Jupyter messages and the silent cells of foreign kernels. */
#include "agent/interpreter/jupyter_message.h"
#include "agent/interpreter/jupyter_lang.h"
#include "agent/interpreter/jupyter_zmtp.h"
#include "unit.h"

static struct buf seen = {.max = 1 << 20};

static void on_message(void *arg, const struct str *frames, size_t n)
{
  (void)arg;
  for (size_t i = 0; i < n; i++) {
    buf_adds(&seen, frames[i]);
    buf_addc(&seen, i + 1 < n ? '|' : '\n');
  }
}

/* A peer's greeting and READY as libzmq 4.3 sends them. */
static void peer_hello(struct buf *b)
{
  char greeting[64] = {[0] = '\xff', [8] = 1, [9] = 0x7f, [10] = 3, [11] = 1, [12] = 'N', 'U', 'L', 'L'};
  buf_add(b, greeting, sizeof(greeting));
  static const char ready[] = "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB";
  buf_add(b, ready, sizeof(ready) - 1);
}

static void a_subscriber_greets_and_subscribes(void **state)
{
  (void)state;
  struct zmtp z;
  struct buf cleanup_buf peer = BUF_INIT(4096);
  zmtp_init(&z, true, NULL, on_message, NULL);
  assert_int_equal(z.out.n, 64);
  buf_clear(&z.out);
  peer_hello(&peer);
  assert_int_equal(zmtp_feed(&z, buf_str(&peer)), 0);
  assert_int_equal(z.state, ZMTP_OPEN);
  static const char want[] = "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB\x00\x01\x01";
  assert_int_equal(z.out.n, sizeof(want) - 1);
  assert_memory_equal(z.out.p, want, z.out.n);
  zmtp_free(&z);
}

static void a_dealer_names_itself(void **state)
{
  (void)state;
  struct zmtp z;
  struct buf cleanup_buf peer = BUF_INIT(4096);
  zmtp_init(&z, false, "me", on_message, NULL);
  buf_clear(&z.out);
  peer_hello(&peer);
  assert_int_equal(zmtp_feed(&z, buf_str(&peer)), 0);
  assert_true(str_search(buf_str(&z.out), str_make("\x08Identity\x00\x00\x00\x02me", 15)) > 0);
  struct str frames[2] = {STR("a"), {NULL, 0}};
  char big[300];
  memset(big, 'b', sizeof(big));
  frames[1] = str_make(big, sizeof(big));
  buf_clear(&z.out);
  assert_int_equal(zmtp_send(&z, frames, 2), 0);
  assert_int_equal(z.out.n, 3 + 9 + 300);
  assert_memory_equal(z.out.p,
                      "\x01\x01"
                      "a\x02\x00\x00\x00\x00\x00\x00\x01\x2c",
                      12);
  zmtp_free(&z);
}

static void messages_come_whole_however_the_bytes_come(void **state)
{
  (void)state;
  struct buf cleanup_buf peer = BUF_INIT(4096);
  peer_hello(&peer);
  static const char tail[] = "\x01\x03one\x02\x00\x00\x00\x00\x00\x00\x00\x03two\x04\x06\x04PING\x00\x00\x02"
                             "ab\x01\x00\x00\x01"
                             "c";
  buf_add(&peer, tail, sizeof(tail) - 1);
  for (size_t step = 1; step <= peer.n; step++) {
    struct zmtp z;
    zmtp_init(&z, false, "me", on_message, NULL);
    buf_clear(&seen);
    for (size_t i = 0; i < peer.n; i += step)
      assert_int_equal(zmtp_feed(&z, str_sub(buf_str(&peer), i, step)), 0);
    assert_string_equal(buf_z(&seen), "one|two\nab\n|c\n");
    zmtp_free(&z);
  }
}

static void a_peer_that_breaks_the_rules_is_dropped(void **state)
{
  (void)state;
  static const struct {
    const char *bytes;
    size_t n;
  } bad[] = {
      {"\x08\x00", 2},                             /* unknown flag */
      {"\x05\x00", 2},                             /* a command with more to come */
      {"\x02\x7f\xff\xff\xff\xff\xff\xff\xff", 9}, /* a frame that never ends */
      {"\x01\x01"
       "a\x04\x06\x04PING\x00",
       11}, /* a command inside a message */
      {"\x04\x08\x05"
       "ERROR\x01x",
       10}, /* the peer's own refusal */
  };
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    struct zmtp z;
    struct buf cleanup_buf peer = BUF_INIT(4096);
    zmtp_init(&z, false, "me", on_message, NULL);
    peer_hello(&peer);
    buf_add(&peer, bad[i].bytes, bad[i].n);
    assert_true(zmtp_feed(&z, buf_str(&peer)) < 0);
    assert_int_equal(z.state, ZMTP_BROKEN);
    zmtp_free(&z);
  }
}

static void another_protocol_is_refused(void **state)
{
  (void)state;
  struct zmtp z;
  char greeting[64] = "HTTP/1.1 400 Bad Request\r\n";
  zmtp_init(&z, true, NULL, on_message, NULL);
  assert_true(zmtp_feed(&z, str_make(greeting, sizeof(greeting))) < 0);
  zmtp_free(&z);
}

static void a_signed_message_is_read_and_a_forged_one_is_not(void **state)
{
  (void)state;
  struct jupyter_session s;
  struct arena cleanup_arena a = ARENA_INIT(1 << 16);
  struct str frames[JUPYTER_FRAMES + 1];
  struct jupyter_message m;
  char id[JUPYTER_ID];
  jupyter_session_init(&s);
  assert_int_equal(jupyter_message_write(&s, &a, "status", STR("{\"execution_state\":\"idle\"}"), frames + 1, id), 0);
  frames[0] = STR("topic");
  assert_int_equal(jupyter_message_read(&s, frames, JUPYTER_FRAMES + 1, &m), 0);
  assert_true(str_is(m.type, "status"));
  assert_true(str_is(jupyter_member(m.content, "execution_state"), "\"idle\""));
  frames[6] = STR("{\"execution_state\":\"busy\"}");
  assert_int_equal(jupyter_message_read(&s, frames, JUPYTER_FRAMES + 1, &m), -EACCES);
  assert_int_equal(jupyter_message_read(&s, frames, 4, &m), -EINVAL);
}

/* The same bytes as a one-piece HMAC. */
static void the_signature_is_hmac_sha256(void **state)
{
  (void)state;
  struct jupyter_session s;
  struct arena cleanup_arena a = ARENA_INIT(1 << 16);
  struct str frames[JUPYTER_FRAMES];
  struct buf cleanup_buf all = BUF_INIT(1 << 16);
  char id[JUPYTER_ID], hex[2 * SHA256_LEN + 1];
  uint8_t sum[SHA256_LEN];
  jupyter_session_init(&s);
  assert_int_equal(jupyter_message_write(&s, &a, "x", STR("{}"), frames, id), 0);
  for (int i = 2; i < JUPYTER_FRAMES; i++)
    buf_adds(&all, frames[i]);
  hmac_sha256(str_of(s.key), buf_str(&all), sum);
  hex_encode(sum, sizeof(sum), hex);
  assert_true(str_is(frames[1], hex));
}

static void silent_cells_escape_their_values(void **state)
{
  (void)state;
  struct buf cleanup_buf b = BUF_INIT(4096);
  lang_set(LANG_PYTHON, &b, STR("K"), STR("a'\\\n\xc3\xa9"));
  assert_string_equal(buf_z(&b), "__import__('os').environb[b'K'] = b'a\\047\\134\\012\\303\\251'\n");
  buf_clear(&b);
  lang_set(LANG_BASH, &b, STR("not a name"), STR("x"));
  lang_set(LANG_BASH, &b, STR("K_1"), STR("$(x)"));
  lang_unset(LANG_BASH, &b, STR("K_1"));
  assert_string_equal(buf_z(&b), "export K_1=$'\\044\\050x\\051'\nunset K_1\n");
  buf_clear(&b);
  assert_int_equal(lang_cd(LANG_R, &b, "/it's"), 0);
  assert_string_equal(buf_z(&b), "setwd(\"/it\\047s\")\n");
  assert_true(lang_cd(LANG_NONE, &b, "/") < 0);
}

static int free_seen(void **state)
{
  (void)state;
  buf_free(&seen);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_subscriber_greets_and_subscribes),
      cmocka_unit_test(a_dealer_names_itself),
      cmocka_unit_test(messages_come_whole_however_the_bytes_come),
      cmocka_unit_test(a_peer_that_breaks_the_rules_is_dropped),
      cmocka_unit_test(another_protocol_is_refused),
      cmocka_unit_test(a_signed_message_is_read_and_a_forged_one_is_not),
      cmocka_unit_test(the_signature_is_hmac_sha256),
      cmocka_unit_test(silent_cells_escape_their_values),
  };
  return cmocka_run_group_tests(tests, NULL, free_seen);
}
