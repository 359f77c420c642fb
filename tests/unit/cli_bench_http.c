/* SPDX-License-Identifier: Apache-2.0 */
/* cli_bench_http.c - connections that the server closes: a request is repeated only where it can't have been carried
 * out, and a repeated one that succeeds is no error. */
#include "unit.h"

#include "cli/bench/bench_http.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* What the server does with a connection, one letter per request: 'a'nswers, closes 'b'efore the request comes, reads
 * it and 'c'loses, answers 'h'alf a head and closes, 'r'esets before the request comes. The end of the text closes. */
struct script {
  pthread_t thread;
  int listener;
  unsigned nconns;
  const char *const *conns;
  unsigned requests;
  pthread_barrier_t closed; /* a connection that is closed before a request: the test waits for it */
};

static bool take_request(int fd)
{
  char in[4096];
  size_t n = 0;
  while (n < sizeof(in) && str_search(str_make(in, n), STR("\r\n\r\n")) < 0) {
    ssize_t k = recv(fd, in + n, sizeof(in) - n, 0);
    if (k <= 0)
      return false;
    n += (size_t)k;
  }
  return true;
}

static void close_early(struct script *s, int fd, bool reset)
{
  if (reset)
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
  close(fd);
  pthread_barrier_wait(&s->closed);
}

static void serve_one(struct script *s, int fd, const char *plan)
{
  for (; *plan; plan++) {
    if (*plan == 'b' || *plan == 'r') {
      close_early(s, fd, *plan == 'r');
      return;
    }
    if (!take_request(fd))
      break;
    s->requests++;
    const char *say = *plan == 'a' ? ANSWER : *plan == 'h' ? "HTTP/1.1 20" : "";
    send(fd, say, strlen(say), MSG_NOSIGNAL);
    if (*plan != 'a')
      break;
  }
  close(fd);
}

static void *script_main(void *arg)
{
  struct script *s = arg;
  for (unsigned i = 0; i < s->nconns; i++) {
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
      break;
    serve_one(s, fd, s->conns[i]);
  }
  return NULL;
}

static void script_start(struct script *s, struct origin *o)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof(a);
  s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(s->listener, (struct sockaddr *)&a, n), 0);
  assert_int_equal(listen(s->listener, 8), 0);
  assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &n), 0);
  *o = (struct origin){.host = "127.0.0.1"};
  snprintf(o->port, sizeof(o->port), "%u", ntohs(a.sin_port));
  assert_int_equal(pthread_barrier_init(&s->closed, NULL, 2), 0);
  assert_int_equal(pthread_create(&s->thread, NULL, script_main, s), 0);
}

static void script_end(struct script *s)
{
  shutdown(s->listener, SHUT_RDWR);
  pthread_join(s->thread, NULL);
  close(s->listener);
  pthread_barrier_destroy(&s->closed);
}

/* Two requests on one client against what the server does; the second one's result, and how many requests came. */
struct outcome {
  int r;
  struct err err;
  unsigned requests;
};

static struct outcome second_request(const char *method, const char *const conns[], unsigned nconns)
{
  struct script s = {.conns = conns, .nconns = nconns};
  struct outcome out = {0};
  struct origin o;
  script_start(&s, &o);
  cleanup_caller struct bench_http *c = bench_http_new(&o);
  cleanup_call struct call k = {.method = method, .path = "/"};
  assert_int_equal(bench_http_request(c, &k, &out.err), 0);
  if (conns[0][1] == 'b' || conns[0][1] == 'r')
    pthread_barrier_wait(&s.closed);
  out.r = bench_http_request(c, &k, &out.err);
  if (!out.r)
    assert_true(str_is(buf_str(&k.answer), "ok"));
  bench_http_free(steal(&c));
  script_end(&s);
  out.requests = s.requests;
  return out;
}

static void a_connection_closed_between_requests_is_replaced(void **state)
{
  static const char *const methods[] = {"GET", "POST"}, *const ends[] = {"ab", "ar"};
  for (size_t i = 0; i < 4; i++) {
    const char *conns[] = {ends[i / 2], "a"};
    struct outcome out = second_request(methods[i % 2], conns, 2);
    assert_int_equal(out.r, 0);
    assert_int_equal(out.err.code, 0);
    assert_int_equal(out.requests, 2);
  }
}

static void an_open_connection_is_used_again(void **state)
{
  const char *conns[] = {"aa"};
  struct outcome out = second_request("POST", conns, 1);
  assert_int_equal(out.r, 0);
  assert_int_equal(out.requests, 2);
}

static void a_request_that_may_have_been_carried_out_is_repeated_only_when_idempotent(void **state)
{
  const char *conns[] = {"ac", "a"};
  struct outcome out = second_request("GET", conns, 2);
  assert_int_equal(out.r, 0);
  assert_int_equal(out.err.code, 0);
  assert_int_equal(out.requests, 3);
  out = second_request("POST", conns, 2);
  assert_int_equal(out.r, -ECONNRESET);
  assert_int_equal(out.err.code, -ECONNRESET);
  assert_non_null(strstr(out.err.msg, "POST /"));
  assert_int_equal(out.requests, 2);
}

static void a_request_whose_answer_began_is_not_repeated(void **state)
{
  const char *conns[] = {"ah", "a"};
  struct outcome out = second_request("GET", conns, 2);
  assert_int_equal(out.r, -ECONNRESET);
  assert_int_equal(out.requests, 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_connection_closed_between_requests_is_replaced),
      cmocka_unit_test(an_open_connection_is_used_again),
      cmocka_unit_test(a_request_that_may_have_been_carried_out_is_repeated_only_when_idempotent),
      cmocka_unit_test(a_request_whose_answer_began_is_not_repeated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
