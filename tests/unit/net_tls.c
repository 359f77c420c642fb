/* SPDX-License-Identifier: Apache-2.0 */
/* TLS below the http face: handshakes, keep-alive, back-pressure, ends and reloads, over real sockets. */
#include "net_tls_lab.h"

#define HTTP1 "\x08http/1.1"

static void requests_follow_each_other_on_one_connection(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(1 << 20);
  lab_open_tls(NULL);
  struct client c = client_open(HTTP1);
  for (int i = 0; i < 3; i++) {
    buf_clear(&got);
    client_say(&c, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_int_equal(client_hear_until(&c, &got, "/hello"), HEARD_BYTES);
    assert_true(lab_has(&got, "HTTP/1.1 200 OK"));
  }
  assert_int_equal(lab.requests, 3);
  assert_int_equal(http_server_conns(lab.server), 1);
  client_close(&c);
  lab_close_tls();
}

static void alpn_prefers_h2_and_takes_http1_and_silence(void **state)
{
  static const struct {
    const char *offer, *chosen;
  } cases[] = {{"\x08http/1.1\x02h2", "h2"}, {"\x08http/1.1", "http/1.1"}, {NULL, ""}, {"\x03foo", ""}};
  lab_open_tls(NULL);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    const unsigned char *p;
    unsigned n;
    struct client c = client_open(cases[i].offer);
    SSL_get0_alpn_selected(c.ssl, &p, &n);
    assert_true(str_is(str_make(p, n), cases[i].chosen));
    client_close(&c);
  }
  lab_run_ms(20);
  assert_int_equal(http_server_conns(lab.server), 0);
  lab_close_tls();
}

static void old_versions_and_wrong_names_are_refused(void **state)
{
  lab_open_tls(NULL);
  struct client c = client_dial(NULL, "localhost");
  SSL_set_min_proto_version(c.ssl, TLS1_VERSION);
  SSL_set_max_proto_version(c.ssl, TLS1_1_VERSION);
  SSL_set_cipher_list(c.ssl, "ALL:@SECLEVEL=0");
  assert_int_equal(client_handshake(&c), -EPROTO);
  client_close(&c);
  c = client_dial(NULL, "elsewhere.test");
  assert_int_equal(client_handshake(&c), -EPROTO); /* the client's own check */
  client_close(&c);
  for (int v = TLS1_2_VERSION; v <= TLS1_3_VERSION; v++) {
    c = client_dial(NULL, "127.0.0.1");
    SSL_set_min_proto_version(c.ssl, v);
    SSL_set_max_proto_version(c.ssl, v);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c.ssl), "127.0.0.1");
    SSL_set1_host(c.ssl, NULL);
    assert_int_equal(client_handshake(&c), 0);
    client_close(&c);
  }
  lab_close_tls();
}

static void an_abort_is_seen_as_a_broken_transfer(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(1 << 20);
  lab_open_tls(NULL);
  struct client c = client_open(HTTP1);
  client_say(&c, STR("GET /abort HTTP/1.1\r\nHost: x\r\n\r\n"));
  assert_int_equal(client_hear_until(&c, &got, NULL), HEARD_CUT);
  assert_false(lab_has(&got, "0\r\n\r\n"));
  client_close(&c);
  assert_int_equal(lab.how, HTTP_ABORTED);
  lab_close_tls();
}

static void an_answer_that_closes_ends_with_close_notify(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(1 << 20);
  lab_open_tls(NULL);
  struct client c = client_open(HTTP1);
  client_say(&c, STR("GET /bye HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  assert_int_equal(client_hear_until(&c, &got, NULL), HEARD_CLOSE);
  assert_true(str_ends(buf_str(&got), STR("/bye")));
  client_close(&c);
  lab_close_tls();
}

static void a_client_that_leaves_is_noticed_while_it_waits(void **state)
{
  lab_open_tls(NULL);
  for (int polite = 0; polite < 2; polite++) {
    struct client c = client_open(HTTP1);
    client_say(&c, STR("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
    lab_until(lab.held);
    if (polite)
      SSL_shutdown(c.ssl); /* no FIN yet: the record alone must do */
    else
      shutdown(c.fd, SHUT_WR);
    lab_until(lab.gones == polite + 1);
    assert_int_equal(lab.how, HTTP_PEER_GONE);
    client_close(&c);
  }
  lab_close_tls();
}

static void large_bodies_pass_both_ways_with_back_pressure(void **state)
{
  enum { SIZE = 24 << 20 };
  cleanup_buf struct buf got = BUF_INIT(64 << 20);
  cleanup_free char *body = xmalloc(SIZE);
  for (size_t i = 0; i < SIZE; i++)
    body[i] = (char)(i * 7 + (i >> 12));
  lab_open_tls(NULL);
  struct client c = client_open(HTTP1);
  char head[120];
  int n = snprintf(head, sizeof(head), "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", SIZE);
  client_say(&c, str_make(head, (size_t)n));
  struct str rest = str_make(body, SIZE);
  unsigned turn = 0;
  for (int64_t limit = clock_mono_us() + 30000000;
       !str_ends(buf_str(&got), STR("\r\n0\r\n\r\n")) && clock_mono_us() < limit; lab_turn()) {
    int k = rest.n ? SSL_write(c.ssl, rest.p, (int)MIN(rest.n, (size_t)100000)) : 0;
    rest = str_skip(rest, (size_t)MAX(k, 0));
    if (rest.n == 0 || turn++ % 8 == 0) /* mostly deaf until all is said */
      client_hear(&c, &got);
  }
  assert_int_equal(lab.body_bytes, SIZE);
  assert_true(lab.drains > 0);
  size_t at = (size_t)str_search(buf_str(&got), STR("\r\n\r\n")) + 4, i = 0;
  while (i < SIZE) {
    ptrdiff_t line = str_search(str_skip(buf_str(&got), at), STR("\r\n"));
    size_t chunk = strtoul(got.p + at, NULL, 16);
    assert_true(line > 0 && chunk > 0);
    at += (size_t)line + 2;
    assert_memory_equal(got.p + at, body + i, chunk);
    at += chunk + 2;
    i += chunk;
  }
  client_close(&c);
  lab_close_tls();
}

static void a_slow_reader_never_makes_us_buffer_much(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(64 << 20);
  lab_open_tls(NULL);
  lab.feed_max = 32 << 20;
  struct client c = client_open(HTTP1);
  client_say(&c, STR("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
  lab_run_ms(100);
  assert_in_range(lab.fed, 1, 16 << 20); /* the rest is the kernel's */
  size_t fed = lab.fed;
  lab_run_ms(50);
  assert_int_equal(lab.fed, fed);
  assert_int_equal(client_hear_until(&c, &got, "\r\n0\r\n\r\n"), HEARD_BYTES);
  assert_int_equal(lab.fed, lab.feed_max);
  client_close(&c);
  lab_close_tls();
}

static void a_file_is_sent_through_tls(void **state)
{
  (void)state;
  cleanup_buf struct buf got = BUF_INIT(8 << 20);
  char name[] = "/tmp/cloche-tls-XXXXXX";
  int fd = mkstemp(name);
  unlink(name);
  assert_int_equal(ftruncate(fd, 3 << 20), 0);
  assert_int_equal(pwrite(fd, "the end.", 8, (3 << 20) - 8), 8);
  lab_open_tls(NULL);
  struct client c = client_open(HTTP1);
  client_say(&c, STR("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
  lab_until(lab.held);
  assert_int_equal(http_respond(lab.held, 200, NULL, 0, (3 << 20) - 100), 0);
  assert_int_equal(http_send_file(lab.held, fd, 100, (3 << 20) - 100), 0);
  http_end(lab.held);
  assert_int_equal(client_hear_until(&c, &got, "the end."), HEARD_BYTES);
  assert_int_equal(got.n - (size_t)str_search(buf_str(&got), STR("\r\n\r\n")) - 4, (3 << 20) - 100);
  client_close(&c);
  lab_close_tls();
}

static struct str issuer_serial(struct client *c, char *room, size_t size)
{
  X509 *x = SSL_get1_peer_certificate(c->ssl);
  char *hex = i2s_ASN1_INTEGER(NULL, X509_get_serialNumber(x));
  str_copyz(str_of(hex), room, size);
  OPENSSL_free(hex);
  X509_free(x);
  return str_of(room);
}

static void a_new_certificate_is_used_without_dropping_connections(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(1 << 20);
  struct err err = ERR_NONE;
  char first[80], second[80];
  lab_open_tls(NULL);
  struct client old = client_open(HTTP1);
  cleanup_cert struct cert leaf;
  lab_certificate(&leaf);
  assert_int_equal(tls_server_load(lab_tls, buf_str(&leaf.cert), buf_str(&leaf.key), STR_NONE, &err), 0);
  struct client new = client_open(HTTP1);
  assert_false(str_eq(issuer_serial(&old, first, sizeof(first)), issuer_serial(&new, second, sizeof(second))));
  client_say(&old, STR("GET /still-here HTTP/1.1\r\nHost: x\r\n\r\n"));
  assert_int_equal(client_hear_until(&old, &got, "/still-here"), HEARD_BYTES);
  client_close(&old);
  client_close(&new);
  lab_close_tls();
}

static void a_bad_certificate_or_key_changes_nothing(void **state)
{
  struct err err = ERR_NONE;
  lab_open_tls(NULL);
  cleanup_cert struct cert a, b;
  lab_certificate(&a);
  lab_certificate(&b);
  assert_true(tls_server_load(lab_tls, buf_str(&a.cert), buf_str(&b.key), STR_NONE, &err) < 0);
  assert_true(tls_server_load(lab_tls, STR("nonsense"), buf_str(&b.key), STR_NONE, &err) < 0);
  assert_true(tls_server_load(lab_tls, buf_str(&a.cert), STR(""), STR_NONE, &err) < 0);
  struct client c = client_open(HTTP1);
  client_close(&c);
  lab_close_tls();
}

static void tickets_resume_on_a_sibling_with_the_same_keys(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(1 << 20);
  struct err err = ERR_NONE;
  char keys[TLS_TICKET_KEYS];
  memset(keys, 'k', sizeof(keys));
  lab_open_tls(NULL);
  cleanup_cert struct cert leaf;
  lab_certificate(&leaf);
  struct str shared = str_make(keys, sizeof(keys));
  assert_int_equal(tls_server_load(lab_tls, buf_str(&leaf.cert), buf_str(&leaf.key), shared, &err), 0);
  struct client c = client_open(HTTP1);
  client_say(&c, STR("GET /one HTTP/1.1\r\nHost: x\r\n\r\n"));
  client_hear_until(&c, &got, "/one");
  SSL_SESSION *session = SSL_get1_session(c.ssl);
  /* Another context with the same keys is what another process would be. */
  assert_int_equal(tls_server_load(lab_tls, buf_str(&leaf.cert), buf_str(&leaf.key), shared, &err), 0);
  struct client again = client_dial(HTTP1, "box.test");
  SSL_set_session(again.ssl, session);
  assert_int_equal(client_handshake(&again), 0);
  assert_true(SSL_session_reused(again.ssl));
  SSL_SESSION_free(session);
  client_close(&c);
  client_close(&again);
  lab_close_tls();
}

static void plain_http_is_served_to_whom_it_is_meant_for(void **state)
{
  static const struct {
    enum tls_plain who;
    bool served;
  } cases[] = {{TLS_PLAIN_REFUSE, false}, {TLS_PLAIN_LOOPBACK, true}, {TLS_PLAIN_SERVE, true}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    cleanup_buf struct buf got = BUF_INIT(1 << 20);
    lab_open_tls(NULL);
    tls_server_plain(lab_tls, cases[i].who);
    int fd = lab_dial();
    lab_say(fd, STR("G")); /* a single byte is enough to tell */
    lab_run_ms(20);
    if (cases[i].served) {
      lab_say(fd, STR("ET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
      assert_true(lab_hear_until(fd, &got, "/hello") > 0);
      assert_true(lab_has(&got, "HTTP/1.1 200 OK"));
    } else {
      lab_say(fd, STR("ET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
      assert_true(lab_hear_until(fd, &got, NULL) <= 0);
    }
    assert_int_equal(lab.requests, cases[i].served);
    close(fd);
    struct client c = client_open(HTTP1); /* and TLS as ever */
    client_say(&c, STR("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_int_equal(client_hear_until(&c, &got, "/hello"), HEARD_BYTES);
    client_close(&c);
    lab_close_tls();
  }
}

static void a_handshake_that_stops_is_given_up(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(1 << 20);
  struct http_limits limits = http_limits_default;
  limits.head_ms = 60;
  lab_open_tls(&limits);
  int fd = lab_dial(), plain = lab_dial();
  lab_say(fd, STR("\x16\x03\x01"));
  lab_say(plain, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  lab_until(http_server_conns(lab.server) >= 1);
  lab_until(http_server_conns(lab.server) == 0);
  assert_true(lab_hear_until(fd, &got, NULL) <= 0);
  assert_true(lab_hear_until(plain, &got, NULL) <= 0);
  close(fd);
  close(plain);
  assert_int_equal(lab.requests, 0);
  lab_close_tls();
}

static void a_tunnel_closes_half_by_half(void **state)
{
  cleanup_buf struct buf got = BUF_INIT(1 << 20);
  lab_open_tls(NULL);
  struct client c = client_open(HTTP1);
  client_say(&c, STR("GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"));
  client_hear_until(&c, &got, "\r\n\r\n");
  client_say(&c, STR("ping"));
  assert_int_equal(client_hear_until(&c, &got, "ping"), HEARD_BYTES);
  SSL_shutdown(c.ssl);
  assert_int_equal(client_hear_until(&c, &got, NULL), HEARD_CLOSE);
  client_close(&c);
  lab_until(lab.gones == 1);
  lab_close_tls();
}

/* ---- calls ---- */

static struct {
  struct buf body;
  int status, ends, fails;
} heard;

static void call_head(struct http_call *c, const struct http_head *head)
{
  heard.status = head->status;
}
static void call_body(struct http_call *c, struct str chunk)
{
  buf_adds(&heard.body, chunk);
}
static void call_end(struct http_call *c)
{
  heard.ends++;
}
static void call_fail(struct http_call *c, int code, const char *why)
{
  heard.fails++;
}
static const struct http_call_ops call_ops = {call_head, call_body, call_end, NULL, call_fail, NULL, NULL};

static void a_call_over_tls_asks_twice_and_trusts_anybody(void **state)
{
  memset(&heard, 0, sizeof(heard));
  buf_init(&heard.body, 1 << 20);
  lab_open_tls(NULL);
  struct tls *any = tls_client_new();
  struct http_call *call = http_call_new_tls(&lab.loop, lab_dial(), NULL, any, "box.test");
  assert_non_null(call);
  http_call_handle(call, &call_ops, NULL);
  for (int i = 0; i < 2; i++) {
    buf_clear(&heard.body);
    assert_int_equal(http_call_start(call, STR("POST"), STR("/collect"), NULL, 0, HTTP_CHUNKED), 0);
    http_call_send(call, STR("12345"));
    http_call_end(call);
    lab_until(heard.ends == i + 1);
    assert_int_equal(heard.status, 200);
    assert_true(http_call_reusable(call));
  }
  assert_true(str_is(buf_str(&heard.body), "10"));
  assert_int_equal(heard.fails, 0);
  http_call_free(call);
  tls_free(any);
  lab_close_tls();
  buf_free(&heard.body);
}

static void a_call_to_a_plain_service_fails_before_an_answer(void **state)
{
  memset(&heard, 0, sizeof(heard));
  lab_open(NULL);
  struct tls *any = tls_client_new();
  struct http_call *call = http_call_new_tls(&lab.loop, lab_dial(), NULL, any, NULL);
  http_call_handle(call, &call_ops, NULL);
  assert_int_equal(http_call_start(call, STR("GET"), STR("/"), NULL, 0, 0), 0);
  lab_until(heard.fails == 1);
  assert_int_equal(heard.status, 0);
  http_call_free(call);
  tls_free(any);
  lab_close();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(requests_follow_each_other_on_one_connection),
      cmocka_unit_test(alpn_prefers_h2_and_takes_http1_and_silence),
      cmocka_unit_test(old_versions_and_wrong_names_are_refused),
      cmocka_unit_test(an_abort_is_seen_as_a_broken_transfer),
      cmocka_unit_test(an_answer_that_closes_ends_with_close_notify),
      cmocka_unit_test(a_client_that_leaves_is_noticed_while_it_waits),
      cmocka_unit_test(large_bodies_pass_both_ways_with_back_pressure),
      cmocka_unit_test(a_slow_reader_never_makes_us_buffer_much),
      cmocka_unit_test(a_file_is_sent_through_tls),
      cmocka_unit_test(a_new_certificate_is_used_without_dropping_connections),
      cmocka_unit_test(a_bad_certificate_or_key_changes_nothing),
      cmocka_unit_test(tickets_resume_on_a_sibling_with_the_same_keys),
      cmocka_unit_test(plain_http_is_served_to_whom_it_is_meant_for),
      cmocka_unit_test(a_handshake_that_stops_is_given_up),
      cmocka_unit_test(a_tunnel_closes_half_by_half),
      cmocka_unit_test(a_call_over_tls_asks_twice_and_trusts_anybody),
      cmocka_unit_test(a_call_to_a_plain_service_fails_before_an_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
