/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that cross a proxy without being looked at: every byte arrives, in order, however slow the far side is, and
 * whoever leaves midway. */
#include "net_lab.h"

#include "net/conn.h"
#include <dirent.h>

#define TOTAL ((size_t)12 << 20)

static struct {
  struct http_server *server;
  int port;
  struct http_x *x;
  struct http_call *call;
  size_t up, down; /* bytes passed unseen */
  size_t seen;     /* and those that were shown */
  int gones;
} proxy;

static char *pattern;

static void call_head(struct http_call *c, const struct http_head *head)
{
  uint64_t length = 0;
  assert_int_equal(str_u64(http_header(head, "content-length"), &length), 0);
  http_respond(proxy.x, head->status, NULL, 0, (int64_t)length);
}

static void call_body(struct http_call *c, struct str chunk)
{
  proxy.seen += chunk.n;
  http_send(proxy.x, chunk);
  if (http_congested(proxy.x))
    http_call_pause(c);
}

static void call_end(struct http_call *c)
{
  http_end(proxy.x);
}

static void call_drain(struct http_call *c)
{
  http_x_resume(proxy.x);
}

static void call_fail(struct http_call *c, int code, const char *why)
{
  http_call_free(steal(&proxy.call));
  http_abort(proxy.x);
}

static struct http_x *call_pass(struct http_call *c)
{
  return proxy.x;
}

static void call_passed(struct http_call *c, size_t n)
{
  proxy.down += n;
  if (http_congested(proxy.x))
    http_call_pause(c);
}

static const struct http_call_ops call_ops = {call_head, call_body, call_end,   call_drain,
                                              call_fail, call_pass, call_passed};

static void x_body(struct http_x *x, struct str chunk)
{
  proxy.seen += chunk.n;
  http_call_send(proxy.call, chunk);
  if (http_call_congested(proxy.call))
    http_x_pause(x);
}

static void x_body_end(struct http_x *x)
{
  http_call_end(proxy.call);
}

static void x_drain(struct http_x *x)
{
  if (proxy.call)
    http_call_resume(proxy.call);
}

static void x_gone(struct http_x *x, enum http_end how)
{
  proxy.gones++;
  proxy.x = NULL;
  if (proxy.call)
    http_call_free(steal(&proxy.call));
}

static struct http_call *x_pass(struct http_x *x)
{
  return proxy.call;
}

static void x_passed(struct http_x *x, size_t n)
{
  proxy.up += n;
  if (http_call_congested(proxy.call))
    http_x_pause(x);
}

static const struct http_x_ops x_ops = {x_body, x_body_end, x_drain, x_gone, x_pass, x_passed, NULL};

static void proxy_request(struct http_x *x, void *arg)
{
  const struct http_head *h = http_x_head(x);
  proxy.x = x;
  http_x_handle(x, &x_ops, NULL);
  http_x_body_max(x, UINT64_MAX);
  proxy.call = http_call_new(&lab.loop, lab_dial(), NULL);
  http_call_handle(proxy.call, &call_ops, NULL);
  assert_int_equal(http_call_start(proxy.call, h->method, h->target, NULL, 0, http_x_body_length(x)), 0);
  http_x_resume(x);
}

static void begin(void)
{
  lab_open(NULL);
  memset(&proxy, 0, sizeof(proxy));
  proxy.server = http_server_new(&lab.loop, NULL, proxy_request, NULL);
  assert_int_equal(http_server_listen(proxy.server, lab_listener(&proxy.port)), 0);
  pattern = xmalloc(TOTAL);
  for (size_t i = 0; i < TOTAL; i += 4)
    memcpy(pattern + i, &(uint32_t){(uint32_t)i * 2654435761u}, 4);
}

static void end(void)
{
  http_server_free(proxy.server);
  lab_close();
  free(pattern);
}

static int dial_proxy(void)
{
  int origin = lab.port;
  lab.port = proxy.port;
  int fd = lab_dial();
  lab.port = origin;
  return fd;
}

static void put_head(int fd, const char *method, size_t length)
{
  char head[128];
  int n = snprintf(head, sizeof(head), "%s /%s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", method,
                   length ? "collect" : "hold", length);
  lab_say(fd, str_make(head, (size_t)n));
}

static void an_upload_arrives_whole_and_the_connection_goes_on(void **state)
{
  begin();
  int fd = dial_proxy();
  for (int round = 1; round <= 2; round++) {
    cleanup_buf struct buf answer = BUF_INIT(1 << 20);
    lab.body_bytes = 0;
    buf_clear(&lab.body);
    put_head(fd, "POST", TOTAL);
    lab_say(fd, str_make(pattern, TOTAL));
    lab_hear_until(fd, &answer, "12582912");
    assert_int_equal(lab.body.n, TOTAL);
    assert_memory_equal(lab.body.p, pattern, TOTAL);
    lab_until(proxy.gones == round);
  }
  assert_true(proxy.up > TOTAL);
  assert_int_equal(proxy.up + proxy.seen, 2 * TOTAL + 2 * 8); /* the answers are short */
  close(fd);
  end();
}

/* The origin of /hold sends as fast as it may. */
static void feed(size_t *fed, size_t most)
{
  while (*fed < most && lab.held && !http_congested(lab.held)) {
    size_t n = MIN((size_t)70000, most - *fed);
    assert_int_equal(http_send(lab.held, str_make(pattern + *fed, n)), 0);
    *fed += n;
  }
  if (*fed == TOTAL && lab.held)
    http_end(lab.held);
}

static void a_download_arrives_whole_though_the_reader_sleeps(void **state)
{
  cleanup_buf struct buf got = BUF_INIT((size_t)64 << 20);
  size_t fed = 0;
  begin();
  int fd = dial_proxy();
  put_head(fd, "GET", 0);
  lab_until(lab.held);
  assert_int_equal(http_respond(lab.held, 200, NULL, 0, (int64_t)TOTAL), 0);
  for (int i = 0; i < 200; i++) { /* nobody reads: it must stop somewhere */
    feed(&fed, TOTAL);
    lab_turn();
  }
  assert_true(proxy.down > 0);
  ptrdiff_t body = -1;
  for (int64_t limit = clock_mono_us() + 10000000;
       clock_mono_us() < limit && (body < 0 || got.n < (size_t)body + TOTAL);) {
    feed(&fed, TOTAL);
    lab_turn();
    lab_hear(fd, &got);
    if (body < 0 && str_search(buf_str(&got), STR("\r\n\r\n")) >= 0)
      body = str_search(buf_str(&got), STR("\r\n\r\n")) + 4;
  }
  assert_int_equal(got.n, (size_t)body + TOTAL);
  assert_memory_equal(got.p + body, pattern, TOTAL);
  assert_int_equal(proxy.down + proxy.seen, TOTAL);
  lab_until(proxy.gones == 1);
  close(fd);
  end();
}

static void a_client_that_leaves_midway_is_told_on(void **state)
{
  begin();
  int fd = dial_proxy();
  put_head(fd, "POST", TOTAL);
  lab_say(fd, str_make(pattern, TOTAL / 3));
  lab_until(proxy.up + proxy.seen == TOTAL / 3);
  close(fd);
  lab_until(lab.gones == 1 && proxy.gones == 1);
  assert_int_equal(lab.body_ends, 0);
  end();
}

static void an_origin_that_dies_midway_cuts_the_answer(void **state)
{
  cleanup_buf struct buf got = BUF_INIT((size_t)64 << 20);
  size_t fed = 0;
  begin();
  int fd = dial_proxy();
  put_head(fd, "GET", 0);
  lab_until(lab.held);
  assert_int_equal(http_respond(lab.held, 200, NULL, 0, (int64_t)TOTAL), 0);
  feed(&fed, 100000);
  lab_until(proxy.down + proxy.seen > 0);
  http_abort(lab.held);
  lab_hear_until(fd, &got, NULL);
  assert_true(got.n < TOTAL);
  lab_until(proxy.gones == 1);
  close(fd);
  end();
}

static int open_fds(void)
{
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n;
}

static void a_dripped_body_takes_few_descriptors(void **state)
{
  begin();
  struct net *net = net_of(&lab.loop);
  cleanup_fd int fd = dial_proxy();
  size_t said = 0;
  char head[128];
  int n = snprintf(head, sizeof(head), "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", TOTAL);
  lab_say(fd, str_make(head, (size_t)n));
  lab_until(lab.held);
  for (; said < TOTAL / 2 && net->held < UNSENT_MAX; said += 4096) { /* nobody reads: the far socket is full */
    lab_say(fd, str_make(pattern + said, 4096));
    lab_until(proxy.up + proxy.seen == said + 4096);
  }
  assert_true(net->held >= UNSENT_MAX);
  int before = open_fds();
  for (int i = 0; i < 400; i++, said++) {
    lab_say(fd, str_make(pattern + said, 1));
    lab_until(proxy.up + proxy.seen == said + 1);
  }
  assert_in_range(open_fds(), 1, before + 8);
  assert_true(net->held >= UNSENT_MAX + 4 * ((uint64_t)64 << 10)); /* a pipe counts as what it takes */
  http_x_resume(lab.held);
  lab_say(fd, str_make(pattern + said, TOTAL - said));
  lab_until(lab.body_ends == 1);
  assert_int_equal(lab.body.n, TOTAL);
  assert_memory_equal(lab.body.p, pattern, TOTAL);
  lab_until(net->held == 0);
  assert_in_range(open_fds(), 1, before + 2);
  http_abort(lab.held);
  lab_until(proxy.gones == 1);
  net_unref(net);
  end();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_upload_arrives_whole_and_the_connection_goes_on),
      cmocka_unit_test(a_download_arrives_whole_though_the_reader_sleeps),
      cmocka_unit_test(a_client_that_leaves_midway_is_told_on),
      cmocka_unit_test(an_origin_that_dies_midway_cuts_the_answer),
      cmocka_unit_test(a_dripped_body_takes_few_descriptors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
