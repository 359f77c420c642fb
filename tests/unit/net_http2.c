/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 behind the http face, driven by nghttp2's client over TLS: streams, windows, limits, ends, abuse. */
#include "net_tls_lab.h"

#include "net/http2.h"
#include <nghttp2/nghttp2.h>

struct answer {
  int32_t id;
  int status;
  struct buf body, head; /* head: "name: value\n" lines */
  bool ended, closed;
  uint32_t code;
  struct str upload; /* what is still to be sent */
  bool hold_end;
};

static struct {
  struct client net;
  nghttp2_session *session;
  struct buf out;
  struct answer answers[4000];
  size_t n;
  bool goaway, deaf;
  uint32_t goaway_code, max_streams;
  enum heard last;
} h2c;

static struct answer *answer_of(int32_t id)
{
  for (size_t i = 0; i < h2c.n; i++)
    if (h2c.answers[i].id == id)
      return &h2c.answers[i];
  return NULL;
}

static ssize_t c_send(nghttp2_session *s, const uint8_t *p, size_t n, int flags, void *arg)
{
  if (h2c.out.n > 1 << 20)
    return NGHTTP2_ERR_WOULDBLOCK;
  buf_add(&h2c.out, p, n);
  return (ssize_t)n;
}

static int c_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nn, const uint8_t *value,
                    size_t nv, uint8_t flags, void *arg)
{
  struct answer *a = answer_of(f->hd.stream_id);
  uint64_t status;
  if (a && nn == 7 && !memcmp(name, ":status", 7) && !str_u64(str_make(value, nv), &status) && status >= 200)
    a->status = (int)status;
  if (a)
    buf_addf(&a->head, "%.*s: %.*s\n", (int)nn, name, (int)nv, value);
  return 0;
}

static int c_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
  struct answer *a = answer_of(id);
  if (a)
    buf_add(&a->body, p, n);
  return 0;
}

static int c_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
  struct answer *a = answer_of(f->hd.stream_id);
  if (f->hd.type == NGHTTP2_GOAWAY) {
    h2c.goaway = true;
    h2c.goaway_code = f->goaway.error_code;
  }
  if (f->hd.type == NGHTTP2_SETTINGS)
    for (size_t i = 0; i < f->settings.niv; i++)
      if (f->settings.iv[i].settings_id == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        h2c.max_streams = f->settings.iv[i].value;
  if (a && (f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) && (f->hd.flags & NGHTTP2_FLAG_END_STREAM))
    a->ended = true;
  return 0;
}

static int c_close(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
  struct answer *a = answer_of(id);
  if (a)
    a->closed = true, a->code = code;
  return 0;
}

static ssize_t c_upload(nghttp2_session *s, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                        nghttp2_data_source *source, void *arg)
{
  struct answer *a = answer_of(id);
  size_t k = MIN(n, a->upload.n);
  if (k == 0 && a->hold_end)
    return NGHTTP2_ERR_DEFERRED;
  memcpy(p, a->upload.p, k);
  a->upload = str_skip(a->upload, k);
  if (!a->upload.n && !a->hold_end)
    *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)k;
}

static void h2_open(const struct http_limits *limits)
{
  nghttp2_session_callbacks *on;
  const nghttp2_settings_entry ours[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
  memset(&h2c, 0, sizeof(h2c));
  buf_init(&h2c.out, 64 << 20);
  lab_open_tls(limits);
  h2c.net = client_open("\x02h2");
  nghttp2_session_callbacks_new(&on);
  nghttp2_session_callbacks_set_send_callback(on, c_send);
  nghttp2_session_callbacks_set_on_header_callback(on, c_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, c_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(on, c_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(on, c_close);
  nghttp2_session_client_new(&h2c.session, on, NULL);
  nghttp2_session_callbacks_del(on);
  nghttp2_submit_settings(h2c.session, NGHTTP2_FLAG_NONE, ours, ARRAY_LEN(ours));
}

static void h2_close(void)
{
  nghttp2_session_del(h2c.session);
  client_close(&h2c.net);
  for (size_t i = 0; i < h2c.n; i++) {
    buf_free(&h2c.answers[i].body);
    buf_free(&h2c.answers[i].head);
  }
  buf_free(&h2c.out);
  lab_run_ms(20);
  assert_int_equal(http_server_conns(lab.server), 0);
  lab_close_tls();
}

/* A little of everything: send, let the server work, listen. */
static void h2_turn(void)
{
  cleanup_buf struct buf in = BUF_INIT(4 << 20);
  nghttp2_session_send(h2c.session);
  if (h2c.out.n) {
    int r = SSL_write(h2c.net.ssl, h2c.out.p, (int)MIN(h2c.out.n, (size_t)65536));
    if (r > 0)
      buf_drop(&h2c.out, (size_t)r);
  }
  lab_turn();
  if (h2c.deaf)
    return;
  h2c.last = client_hear(&h2c.net, &in);
  if (in.n)
    nghttp2_session_mem_recv(h2c.session, (const uint8_t *)in.p, in.n);
}

#define h2_until(condition)                                                                                            \
  do {                                                                                                                 \
    int64_t h2_limit = clock_mono_us() + 20000000;                                                                     \
    while (!(condition) && clock_mono_us() < h2_limit)                                                                 \
      h2_turn();                                                                                                       \
    assert_true(condition);                                                                                            \
  } while (0)

static void h2_run_ms(int ms)
{
  for (int64_t until = clock_mono_us() + ms * 1000; clock_mono_us() < until;)
    h2_turn();
}

static nghttp2_nv nv(const char *name, const char *value)
{
  return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static struct answer *ask_with(const char *method, const char *path, struct str body, bool hold_end,
                               const nghttp2_nv *more, size_t nmore)
{
  struct answer *a = &h2c.answers[h2c.n++];
  nghttp2_nv fields[400] = {nv(":method", method), nv(":scheme", "https"), nv(":authority", "api.box.test"),
                            nv(":path", path)};
  nghttp2_data_provider from = {.read_callback = c_upload};
  bool bodied = body.n || hold_end;
  assert_true(h2c.n <= ARRAY_LEN(h2c.answers));
  if (nmore)
    memcpy(fields + 4, more, nmore * sizeof(*more));
  buf_init(&a->body, 128 << 20);
  buf_init(&a->head, 1 << 20);
  a->upload = body;
  a->hold_end = hold_end;
  a->id = nghttp2_submit_request(h2c.session, NULL, fields, 4 + nmore, bodied ? &from : NULL, NULL);
  assert_true(a->id > 0);
  return a;
}

static struct answer *ask(const char *method, const char *path, struct str body)
{
  return ask_with(method, path, body, false, NULL, 0);
}

/* ---- answers ---- */

static void many_requests_share_one_connection(void **state)
{
  struct answer *a[200];
  h2_open(NULL);
  for (size_t i = 0; i < ARRAY_LEN(a); i++)
    a[i] = ask("GET", i % 2 ? "/odd?x=1" : "/even", STR_NONE);
  for (size_t i = 0; i < ARRAY_LEN(a); i++) {
    h2_until(a[i]->closed);
    assert_int_equal(a[i]->status, 200);
    assert_true(a[i]->ended);
    assert_true(str_is(buf_str(&a[i]->body), i % 2 ? "/odd" : "/even"));
    assert_int_equal(a[i]->code, NGHTTP2_NO_ERROR);
  }
  assert_true(lab_has(&a[0]->head, "content-length: 5\n"));
  assert_true(lab_has(&a[0]->head, "date: "));
  assert_int_equal(lab.requests, 200);
  assert_int_equal(http_server_conns(lab.server), 1);
  assert_int_equal(lab.how, HTTP_DONE);
  assert_int_equal(h2c.max_streams, 250);
  h2_close();
}

static void the_head_reads_like_one_of_http1(void **state)
{
  const nghttp2_nv more[] = {nv("x-api-key", "e2b_1"), nv("lang_version", "3"), nv("cookie", "a=1"),
                             nv("cookie", "b=2"), nv("host", "other")};
  h2_open(NULL);
  ask_with("POST", "/hold?q=%20a", STR("body"), false, more, ARRAY_LEN(more));
  h2_until(lab.held);
  const struct http_head *h = http_x_head(lab.held);
  assert_true(str_is(h->method, "POST"));
  assert_true(str_is(h->target, "/hold?q=%20a"));
  assert_true(str_is(h->path, "/hold"));
  assert_true(str_is(h->query, "q=%20a"));
  assert_int_equal(h->minor, 1);
  assert_true(str_is(http_header(h, "Host"), "api.box.test"));
  assert_true(str_is(http_header(h, "X-API-KEY"), "e2b_1"));
  assert_true(str_is(http_header(h, "lang_version"), "3"));
  assert_true(str_is(http_header(h, "cookie"), "a=1; b=2"));
  assert_int_equal(http_x_body_length(lab.held), -1);
  assert_true(http_x_secure(lab.held));
  struct http_header out[] = {
      {STR("X-Mixed-Case"), STR(" v ")}, {STR("Connection"), STR("close")}, {STR("Transfer-Encoding"), STR("chunked")}};
  assert_int_equal(http_reply_with(lab.held, 404, out, 3, STR("{}")), 0);
  assert_int_equal(http_reply(lab.held, 200, NULL, STR("twice")), -EALREADY);
  h2_until(h2c.answers[0].closed);
  assert_int_equal(h2c.answers[0].status, 404);
  assert_true(lab_has(&h2c.answers[0].head, "x-mixed-case: v\n"));
  assert_false(lab_has(&h2c.answers[0].head, "connection"));
  assert_false(lab_has(&h2c.answers[0].head, "transfer-encoding"));
  h2_close();
}

static void each_send_leaves_at_once(void **state)
{
  h2_open(NULL);
  struct answer *a = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  assert_int_equal(http_respond(lab.held, 200, NULL, 0, HTTP_CHUNKED), 0);
  h2_until(a->status == 200);
  assert_false(lab_has(&a->head, "content-length"));
  for (int i = 1; i <= 5; i++) {
    assert_int_equal(http_send(lab.held, STR("tick ")), 0);
    h2_until(a->body.n == (size_t)i * 5);
    assert_false(a->ended);
  }
  http_end(lab.held);
  h2_until(a->closed);
  assert_true(a->ended);
  assert_int_equal(lab.how, HTTP_DONE);
  h2_close();
}

static void bodiless_answers_end_with_their_head(void **state)
{
  h2_open(NULL);
  struct answer *head = ask("HEAD", "/something", STR_NONE);
  h2_until(head->closed);
  assert_true(lab_has(&head->head, "content-length: 10\n"));
  assert_int_equal(head->body.n, 0);
  struct answer *a = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  http_respond(lab.held, 204, NULL, 0, 0);
  http_end(lab.held);
  h2_until(a->closed);
  assert_int_equal(a->status, 204);
  assert_false(lab_has(&a->head, "content-length"));
  struct answer *b = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  assert_int_equal(http_reply(lab.held, 202, NULL, STR_NONE), 0);
  h2_until(b->closed);
  assert_true(lab_has(&b->head, "content-length: 0\n"));
  h2_close();
}

/* ---- bodies ---- */

static void an_upload_and_its_echo_arrive_whole(void **state)
{
  enum { SIZE = 20 << 20 };
  cleanup_free char *body = xmalloc(SIZE);
  for (size_t i = 0; i < SIZE; i++)
    body[i] = (char)(i * 11 + (i >> 13));
  h2_open(NULL);
  struct answer *a = ask("POST", "/echo", str_make(body, SIZE));
  h2_until(a->closed);
  assert_int_equal(a->body.n, SIZE);
  assert_memory_equal(a->body.p, body, SIZE);
  assert_int_equal(lab.body_ends, 1);
  h2_close();
}

static void body_bytes_wait_until_the_handler_takes_them(void **state)
{
  enum { SIZE = 8 << 20 };
  cleanup_free char *body = xcalloc(1, SIZE);
  h2_open(NULL);
  struct answer *a = ask("POST", "/hold", str_make(body, SIZE));
  h2_run_ms(100);
  assert_int_equal(lab.body_bytes, 0);
  assert_in_range(SIZE - a->upload.n, 1 << 16, 2 << 20); /* no more than its window, and what the client has in hand */
  struct answer *other = ask("GET", "/other", STR_NONE);
  h2_until(other->closed);
  http_x_resume(lab.held);
  h2_until(lab.body_ends == 1);
  assert_int_equal(lab.body_bytes, SIZE);
  http_reply(lab.held, 200, NULL, STR_NONE);
  h2_until(a->closed);
  h2_close();
}

static void a_slow_reader_never_makes_us_buffer_much(void **state)
{
  h2_open(NULL);
  lab.feed_max = 32 << 20;
  struct answer *a = ask("GET", "/stream", STR_NONE);
  h2_until(a->status);
  h2c.deaf = true;
  h2_run_ms(100);
  size_t fed = lab.fed;
  assert_in_range(fed, 1, 16 << 20);
  h2_run_ms(50);
  assert_int_equal(lab.fed, fed);
  h2c.deaf = false;
  h2_until(a->closed);
  assert_int_equal(a->body.n, lab.feed_max);
  assert_true(lab.drains > 0);
  h2_close();
}

static void bodies_over_the_limit_are_413(void **state)
{
  struct http_limits limits = http_limits_default;
  limits.body_max = 100000;
  cleanup_free char *body = xcalloc(1, 300000);
  h2_open(&limits);
  struct answer *a = ask("POST", "/collect", str_make(body, 300000));
  h2_until(a->closed);
  assert_int_equal(a->status, 413);
  assert_true(lab_has(&a->body, "\"code\":413"));
  const nghttp2_nv length = nv("content-length", "300000");
  struct answer *b = ask_with("POST", "/collect", str_make(body, 300000), false, &length, 1);
  h2_until(b->closed);
  assert_int_equal(b->status, 413);
  struct answer *c = ask("POST", "/collect", str_make(body, 100000));
  h2_until(c->closed);
  assert_int_equal(c->status, 200);
  assert_int_equal(lab.gones, 3);
  h2_close();
}

static void an_unread_upload_is_stopped_once_the_answer_is_out(void **state)
{
  enum { SIZE = 32 << 20 };
  cleanup_free char *body = xcalloc(1, SIZE);
  h2_open(NULL);
  struct answer *a = ask("POST", "/no-reader", str_make(body, SIZE));
  h2_until(a->closed);
  assert_int_equal(a->status, 200);
  assert_true(a->ended);
  assert_int_equal(a->code, NGHTTP2_NO_ERROR);
  assert_true(a->upload.n > SIZE / 2);
  struct answer *b = ask("POST", "/echo", str_make(body, 1 << 20)); /* the connection's window was given back */
  h2_until(b->closed);
  assert_int_equal(b->body.n, 1 << 20);
  h2_close();
}

static void expect_continue_is_answered_when_the_body_is_wanted(void **state)
{
  const nghttp2_nv expect = nv("expect", "100-continue");
  h2_open(NULL);
  struct answer *a = ask_with("POST", "/hold", STR_NONE, true, &expect, 1);
  h2_until(lab.held);
  h2_run_ms(20);
  assert_false(lab_has(&a->head, "100"));
  http_x_resume(lab.held);
  h2_until(lab_has(&a->head, ":status: 100\n"));
  a->upload = STR("late");
  a->hold_end = false;
  nghttp2_session_resume_data(h2c.session, a->id);
  h2_until(lab.body_ends == 1);
  assert_true(str_is(buf_str(&lab.body), "late"));
  http_reply(lab.held, 200, NULL, STR("ok"));
  h2_until(a->closed && a->status == 200);
  h2_close();
}

static void files_are_sent_and_a_shrunken_one_is_an_abort(void **state)
{
  for (int shrunk = 0; shrunk < 2; shrunk++) {
    char name[] = "/tmp/cloche-h2-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(pwrite(fd, "the end.", 8, (1 << 20) - 8), 8);
    h2_open(NULL);
    struct answer *a = ask("GET", "/hold", STR_NONE);
    h2_until(lab.held);
    size_t promised = shrunk ? 2 << 20 : (1 << 20) - 100;
    http_respond(lab.held, 200, NULL, 0, (int64_t)promised);
    assert_int_equal(http_send_file(lab.held, fd, 100, promised), 0);
    http_end(lab.held);
    h2_until(a->closed);
    assert_int_equal(a->ended, !shrunk);
    assert_int_equal(a->code, shrunk ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_NO_ERROR);
    assert_int_equal(lab.how, shrunk ? HTTP_ABORTED : HTTP_DONE);
    if (!shrunk)
      assert_true(a->body.n == promised && str_ends(buf_str(&a->body), STR("the end.")));
    h2_close();
  }
}

/* ---- ends ---- */

static void an_abort_cuts_one_stream_and_no_other(void **state)
{
  h2_open(NULL);
  struct answer *held = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  struct http_x *x = lab.held;
  struct answer *a = ask("GET", "/abort", STR_NONE);
  h2_until(a->closed);
  assert_false(a->ended);
  assert_int_equal(a->code, NGHTTP2_INTERNAL_ERROR);
  assert_int_equal(lab.how, HTTP_ABORTED);
  http_reply(x, 200, NULL, STR("fine"));
  h2_until(held->closed);
  assert_true(str_is(buf_str(&held->body), "fine"));
  h2_close();
}

static void an_abort_under_a_full_socket_drops_what_waits(void **state)
{
  h2_open(NULL);
  lab.feed_max = 64 << 20;
  struct answer *a = ask("GET", "/stream", STR_NONE);
  h2_until(a->status);
  h2c.deaf = true;
  h2_run_ms(100);
  http_abort(lab.held);
  h2c.deaf = false;
  h2_until(a->closed);
  assert_int_equal(a->code, NGHTTP2_INTERNAL_ERROR);
  assert_false(a->ended);
  struct answer *b = ask("GET", "/after", STR_NONE);
  h2_until(b->closed);
  assert_true(b->ended);
  h2_close();
}

static void an_answer_shorter_than_promised_is_an_abort(void **state)
{
  h2_open(NULL);
  struct answer *a = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  http_respond(lab.held, 200, NULL, 0, 10);
  http_send(lab.held, STR("short"));
  assert_int_equal(http_send(lab.held, STR("too much")), -EMSGSIZE);
  http_end(lab.held);
  h2_until(a->closed);
  assert_int_equal(a->code, NGHTTP2_INTERNAL_ERROR);
  h2_close();
}

static void a_client_that_resets_or_leaves_is_noticed_at_once(void **state)
{
  h2_open(NULL);
  struct answer *a = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  nghttp2_submit_rst_stream(h2c.session, NGHTTP2_FLAG_NONE, a->id, NGHTTP2_CANCEL);
  h2_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_PEER_GONE);
  ask("GET", "/hold", STR_NONE);
  ask("GET", "/hold", STR_NONE);
  h2_until(lab.requests == 3);
  shutdown(h2c.net.fd, SHUT_RDWR);
  lab_until(lab.gones == 3);
  assert_int_equal(lab.how, HTTP_PEER_GONE);
  h2_close();
}

static void freeing_the_server_ends_every_exchange(void **state)
{
  h2_open(NULL);
  for (int i = 0; i < 20; i++)
    ask("POST", i % 2 ? "/hold" : "/echo", STR("some"));
  h2_until(lab.requests == 20);
  nghttp2_session_del(h2c.session);
  lab_close_tls();
  assert_int_equal(lab.gones, 20);
  client_close(&h2c.net);
  for (size_t i = 0; i < h2c.n; i++) {
    buf_free(&h2c.answers[i].body);
    buf_free(&h2c.answers[i].head);
  }
  buf_free(&h2c.out);
}

/* ---- limits ---- */

static void heads_over_the_limits_are_refused_and_the_rest_goes_on(void **state)
{
  struct http_limits limits = http_limits_default;
  limits.head_max = 20000;
  limits.headers_max = 50;
  nghttp2_nv many[80];
  char big[15000], path[19000];
  memset(big, 'b', sizeof(big));
  big[sizeof(big) - 1] = 0;
  memset(path, 'p', sizeof(path));
  path[0] = '/';
  path[sizeof(path) - 1] = 0;
  for (size_t i = 0; i < ARRAY_LEN(many); i++)
    many[i] = nv("x-many", "1");
  const nghttp2_nv two[] = {nv("x-a", big), nv("x-b", big)};
  h2_open(&limits);
  struct answer *a = ask_with("GET", "/", STR_NONE, false, many, ARRAY_LEN(many));
  h2_until(a->closed);
  assert_int_equal(a->status, 431);
  struct answer *b = ask_with("GET", "/", STR_NONE, false, two, 2);
  h2_until(b->closed);
  assert_int_equal(b->status, 431);
  const nghttp2_nv fill = nv("x-fill", "11111111111111111111111111111111111111111111111111111111111111111111111");
  nghttp2_nv fills[12];
  for (size_t i = 0; i < ARRAY_LEN(fills); i++)
    fills[i] = fill;
  struct answer *c = ask_with("GET", path, STR_NONE, false, fills, ARRAY_LEN(fills));
  h2_until(c->closed);
  assert_int_equal(c->status, 431);
  struct answer *d = ask("GET", "/fine", STR_NONE);
  h2_until(d->closed);
  assert_int_equal(d->status, 200);
  assert_int_equal(lab.requests, 1);
  h2_close();
}

/* A field of nearly the whole table, then a byte for each time it is meant: kilobytes of head per byte. */
static void say_bomb(int32_t stream, bool trailers)
{
  uint8_t block[16384], *at = block;
  uint8_t head[9] = {sizeof(block) >> 16, (uint8_t)(sizeof(block) >> 8), 0, NGHTTP2_HEADERS,
                     NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM};
  head[8] = (uint8_t)stream;
  if (!trailers)
    memcpy(at,
           "\x82\x87\x84\x01\x01"
           "a",
           6),
        at += 6;
  memcpy(at, "\x40\x01x\x7f\xa1\x1e", 6); /* 4,000 bytes of value */
  memset(at + 6, 'v', 4000);
  memset(at + 4006, 0xbe, (size_t)(block + sizeof(block) - at) - 4006);
  buf_add(&h2c.out, head, sizeof(head));
  buf_add(&h2c.out, block, sizeof(block));
}

static void a_header_bomb_ends_the_connection(void **state)
{
  for (int trailers = 0; trailers < 2; trailers++) {
    int32_t stream = 1;
    h2_open(NULL);
    if (trailers) {
      stream = ask_with("POST", "/hold", STR_NONE, true, NULL, 0)->id;
      h2_until(lab.held);
    } else {
      h2_run_ms(20);
    }
    say_bomb(stream, trailers);
    h2_until(h2c.goaway);
    assert_int_equal(h2c.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(lab.requests, trailers);
    h2_close();
  }
}

static void heads_that_are_too_large_again_and_again_end_the_connection(void **state)
{
  struct http_limits limits = http_limits_default;
  limits.headers_max = 50;
  nghttp2_nv many[80];
  for (size_t i = 0; i < ARRAY_LEN(many); i++)
    many[i] = nv("x-many", "1");
  h2_open(&limits);
  for (int i = 0; i < 20 && !h2c.goaway; i++) {
    struct answer *a = ask_with("GET", "/", STR_NONE, false, many, ARRAY_LEN(many));
    h2_until(a->closed || h2c.goaway);
  }
  assert_true(h2c.goaway);
  assert_int_equal(h2c.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
  h2_close();
}

static void cookies_in_many_fields_become_one(void **state)
{
  nghttp2_nv crumbs[150];
  for (size_t i = 0; i < ARRAY_LEN(crumbs); i++)
    crumbs[i] = i == 75 ? nv("x-between", "1") : nv("cookie", "name=value");
  h2_open(NULL);
  ask_with("GET", "/hold", STR_NONE, false, crumbs, ARRAY_LEN(crumbs));
  h2_until(lab.held);
  const struct http_head *h = http_x_head(lab.held);
  struct str all = http_header(h, "cookie");
  assert_int_equal(all.n, 149 * 12 - 2);
  assert_true(str_starts(all, STR("name=value; name=value; ")) && str_ends(all, STR("; name=value")));
  assert_true(str_is(http_header(h, "x-between"), "1"));
  assert_int_equal(h->nheaders, 3);
  h2_close();
}

/* Large heads cost more than a turn's share: nghttp2 is paused inside them and goes on. */
static void many_large_heads_are_read_in_turns(void **state)
{
  static char big[15000];
  struct answer *a[60];
  memset(big, 'b', sizeof(big) - 1);
  const nghttp2_nv more[] = {nv("x-a", big), nv("x-b", big), nv("x-c", big), nv("x-d", "end")};
  h2_open(NULL);
  for (size_t i = 0; i < ARRAY_LEN(a); i++)
    a[i] = ask_with("GET", "/a", STR_NONE, false, more, ARRAY_LEN(more));
  for (size_t i = 0; i < ARRAY_LEN(a); i++) {
    h2_until(a[i]->closed);
    assert_int_equal(a[i]->status, 200);
  }
  assert_int_equal(lab.requests, 60);
  h2_close();
}

static void connect_is_not_served(void **state)
{
  struct answer *a = &h2c.answers[0];
  const nghttp2_nv fields[] = {nv(":method", "CONNECT"), nv(":authority", "example.test:443")};
  h2_open(NULL);
  buf_init(&a->body, 1 << 20);
  buf_init(&a->head, 1 << 20);
  h2c.n = 1;
  a->hold_end = true;
  nghttp2_data_provider from = {.read_callback = c_upload};
  a->id = nghttp2_submit_request(h2c.session, NULL, fields, 2, &from, NULL);
  h2_until(a->closed);
  assert_int_equal(a->status, 501);
  assert_int_equal(lab.requests, 0);
  assert_int_equal(nghttp2_session_get_remote_settings(h2c.session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL), 0);
  h2_close();
}

static void a_client_that_resets_too_fast_is_sent_away(void **state)
{
  h2_open(NULL);
  h2_until(h2c.max_streams);
  for (int i = 0; i < 3900 && !h2c.goaway; i++) {
    struct answer *a = ask("GET", "/hold", STR_NONE);
    nghttp2_session_send(h2c.session);
    nghttp2_submit_rst_stream(h2c.session, NGHTTP2_FLAG_NONE, a->id, NGHTTP2_CANCEL);
    h2_turn();
  }
  h2_until(h2c.goaway);
  assert_int_equal(h2c.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
  h2_until(h2c.last == HEARD_CLOSE);
  assert_true(lab.requests >= 400);
  h2_close();
}

static void a_flood_of_control_frames_is_sent_away(void **state)
{
  static const struct {
    uint8_t type;
  } kinds[] = {{NGHTTP2_PING}, {NGHTTP2_SETTINGS}};
  for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
    h2_open(NULL);
    h2_until(h2c.max_streams);
    for (int i = 0; i < 20000 && !h2c.goaway; i++) {
      if (kinds[k].type == NGHTTP2_PING)
        nghttp2_submit_ping(h2c.session, NGHTTP2_FLAG_NONE, NULL);
      else
        nghttp2_submit_settings(h2c.session, NGHTTP2_FLAG_NONE, NULL, 0);
      if (i % 10 == 9)
        h2_turn();
    }
    h2_until(h2c.goaway);
    assert_int_equal(h2c.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    h2_close();
  }
}

static void too_many_streams_are_refused_one_by_one(void **state)
{
  /* Settings are not waited for: the first flight may go over the limit and must be refused cleanly. */
  h2_open(NULL);
  size_t refused = 0;
  for (int i = 0; i < 300; i++)
    ask("GET", "/hold", STR_NONE);
  h2_until(lab.requests >= 100);
  h2_run_ms(100);
  for (size_t i = 0; i < h2c.n; i++)
    refused += h2c.answers[i].closed && h2c.answers[i].code == NGHTTP2_REFUSED_STREAM;
  assert_in_range(lab.requests, 100, 250);
  assert_true(lab.requests + (int)refused <= 300);
  h2_close();
}

static void times_run_out_where_they_should(void **state)
{
  struct http_limits limits = http_limits_default;
  limits.body_ms = 100;
  limits.idle_ms = 300;
  limits.head_ms = 200;
  h2_open(&limits);
  struct answer *a = ask_with("POST", "/collect", STR("some"), true, NULL, 0);
  h2_until(a->closed);
  assert_int_equal(a->status, 408);
  assert_int_equal(lab.how, HTTP_PEER_GONE);
  struct answer *b = ask("GET", "/hold", STR_NONE); /* an answer may take longer than any of these */
  h2_run_ms(500);
  assert_false(b->closed);
  http_reply(lab.held, 200, NULL, STR("late"));
  h2_until(b->closed);
  assert_int_equal(b->status, 200);
  h2_until(h2c.goaway); /* idle */
  assert_int_equal(h2c.goaway_code, NGHTTP2_NO_ERROR);
  h2_until(h2c.last == HEARD_CLOSE);
  h2_close();
}

static void an_untimed_body_may_be_silent(void **state)
{
  struct http_limits limits = http_limits_default;
  limits.body_ms = 100;
  h2_open(&limits);
  struct answer *a = ask_with("POST", "/untimed", STR("some"), true, NULL, 0);
  struct answer *b = ask_with("POST", "/collect", STR("some"), true, NULL, 0);
  h2_until(b->closed);
  assert_int_equal(b->status, 408);
  h2_run_ms(300);
  assert_false(a->closed);
  assert_int_equal(a->status, 0);
  h2_close();
}

static void a_stream_whose_window_stays_shut_is_cut(void **state)
{
  struct http_limits limits = http_limits_default;
  limits.linger_ms = 150;
  h2_open(&limits);
  lab.feed_max = 8 << 20;
  nghttp2_session_set_local_window_size(h2c.session, NGHTTP2_FLAG_NONE, 0, 4 << 20);
  const nghttp2_settings_entry shut = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(h2c.session, NGHTTP2_FLAG_NONE, &shut, 1);
  h2_until(h2c.max_streams);
  h2_run_ms(20);
  struct answer *a = ask("GET", "/stream", STR_NONE);
  h2_until(a->status == 200);
  assert_false(a->closed);
  h2_until(a->closed);
  assert_int_equal(a->code, NGHTTP2_ENHANCE_YOUR_CALM);
  assert_int_equal(lab.how, HTTP_PEER_GONE);
  struct answer *b = ask("HEAD", "/fine", STR_NONE);
  h2_until(b->closed);
  assert_int_equal(b->status, 200);
  h2_close();
}

static void bytes_said_one_by_one_take_little_more_than_their_number(void **state)
{
  enum { COUNT = 100000 };
  const nghttp2_settings_entry shut = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
  size_t real = 0;
  h2_open(NULL);
  nghttp2_session_set_local_window_size(h2c.session, NGHTTP2_FLAG_NONE, 0, 4 << 20);
  nghttp2_submit_settings(h2c.session, NGHTTP2_FLAG_NONE, &shut, 1);
  h2_until(h2c.max_streams);
  h2_run_ms(20);
  struct answer *a = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  assert_int_equal(http_respond(lab.held, 200, NULL, 0, HTTP_CHUNKED), 0);
  for (int i = 0; i < COUNT; i++)
    assert_int_equal(http_send(lab.held, str_make(&(char){(char)(i % 251)}, 1)), 0);
  const struct stream *s = lab.held->stream;
  for (const struct piece *p = s->out; p; p = p->next)
    real += sizeof(*p) + p->cap;
  assert_in_range(real, COUNT, 2 * COUNT);
  http_end(lab.held);
  nghttp2_submit_settings(h2c.session, NGHTTP2_FLAG_NONE, &wide, 1);
  h2_until(a->closed);
  assert_int_equal(a->body.n, COUNT);
  for (int i = 0; i < COUNT; i++)
    assert_int_equal(a->body.p[i], (char)(i % 251));
  h2_close();
}

static void nonsense_ends_the_connection(void **state)
{
  h2_open(NULL);
  nghttp2_session_send(h2c.session);
  buf_clear(&h2c.out);
  client_say(&h2c.net, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  h2_until(h2c.last == HEARD_CLOSE);
  assert_int_equal(lab.requests, 0);
  h2_close();
}

static void after_it_stops_listening_an_idle_connection_is_told_to_leave(void **state)
{
  h2_open(NULL);
  struct answer *a = ask("GET", "/hold", STR_NONE);
  h2_until(lab.held);
  http_server_stop_listening(lab.server);
  http_reply(lab.held, 200, NULL, STR("last"));
  h2_until(a->closed && h2c.goaway);
  assert_int_equal(a->status, 200);
  assert_int_equal(h2c.goaway_code, NGHTTP2_NO_ERROR);
  h2_until(h2c.last == HEARD_CLOSE);
  h2_close();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_requests_share_one_connection),
      cmocka_unit_test(the_head_reads_like_one_of_http1),
      cmocka_unit_test(each_send_leaves_at_once),
      cmocka_unit_test(bodiless_answers_end_with_their_head),
      cmocka_unit_test(an_upload_and_its_echo_arrive_whole),
      cmocka_unit_test(body_bytes_wait_until_the_handler_takes_them),
      cmocka_unit_test(a_slow_reader_never_makes_us_buffer_much),
      cmocka_unit_test(bodies_over_the_limit_are_413),
      cmocka_unit_test(an_unread_upload_is_stopped_once_the_answer_is_out),
      cmocka_unit_test(expect_continue_is_answered_when_the_body_is_wanted),
      cmocka_unit_test(files_are_sent_and_a_shrunken_one_is_an_abort),
      cmocka_unit_test(an_abort_cuts_one_stream_and_no_other),
      cmocka_unit_test(an_abort_under_a_full_socket_drops_what_waits),
      cmocka_unit_test(an_answer_shorter_than_promised_is_an_abort),
      cmocka_unit_test(a_client_that_resets_or_leaves_is_noticed_at_once),
      cmocka_unit_test(freeing_the_server_ends_every_exchange),
      cmocka_unit_test(heads_over_the_limits_are_refused_and_the_rest_goes_on),
      cmocka_unit_test(connect_is_not_served),
      cmocka_unit_test(a_client_that_resets_too_fast_is_sent_away),
      cmocka_unit_test(a_flood_of_control_frames_is_sent_away),
      cmocka_unit_test(too_many_streams_are_refused_one_by_one),
      cmocka_unit_test(a_header_bomb_ends_the_connection),
      cmocka_unit_test(heads_that_are_too_large_again_and_again_end_the_connection),
      cmocka_unit_test(cookies_in_many_fields_become_one),
      cmocka_unit_test(many_large_heads_are_read_in_turns),
      cmocka_unit_test(times_run_out_where_they_should),
      cmocka_unit_test(an_untimed_body_may_be_silent),
      cmocka_unit_test(a_stream_whose_window_stays_shut_is_cut),
      cmocka_unit_test(bytes_said_one_by_one_take_little_more_than_their_number),
      cmocka_unit_test(nonsense_ends_the_connection),
      cmocka_unit_test(after_it_stops_listening_an_idle_connection_is_told_to_leave),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
