/* SPDX-License-Identifier: Apache-2.0 */
/* http_floor.c - what our HTTP costs by itself: server and client of src/net over loopback, no box, no routes.
 *
 *   http_floor [--conns N] [--seconds S] [--proxy] [--body BYTES]
 *
 * A child serves; with --proxy a second child stands between and passes each exchange on, as the gate does. The
 * parent keeps N connections busy, one request at a time each. Prints req/s and p50/p95/p99 as one JSON object. */
#include "net/http.h"

#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static struct {
  unsigned conns, seconds;
  size_t body;
  bool proxy;
} opt = {.conns = 32, .seconds = 3, .body = 64};

static char payload[1 << 20];

static struct sockaddr_in loopback(int port)
{
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_on(int *port)
{
  struct sockaddr_in a = loopback(0);
  socklen_t n = sizeof(a);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 4096) < 0 ||
      getsockname(fd, (struct sockaddr *)&a, &n) < 0) {
    perror("listen");
    exit(1);
  }
  *port = ntohs(a.sin_port);
  return fd;
}

static int dial(int port)
{
  struct sockaddr_in a = loopback(port);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
    perror("connect");
    exit(1);
  }
  return fd;
}

/* ---- serving ---- */

static void answer(struct http_x *x, void *arg)
{
  (void)arg;
  http_reply(x, 200, "application/octet-stream", str_make(payload, opt.body));
}

/* ---- passing on ---- */

struct relay {
  struct http_x *x;
  struct http_call *call;
};

static struct http_call *kept[8192];
static size_t nkept;
static int upstream;

static void up_head(struct http_call *c, const struct http_head *head)
{
  struct relay *r = http_call_data(c);
  struct str length = http_header(head, "content-length");
  uint64_t n = 0;
  http_respond(r->x, head->status, head->headers, head->nheaders, str_u64(length, &n) == 0 ? (int64_t)n : HTTP_CHUNKED);
}

static void up_body(struct http_call *c, struct str chunk)
{
  struct relay *r = http_call_data(c);
  http_send(r->x, chunk);
}

static void up_end(struct http_call *c)
{
  struct relay *r = http_call_data(c);
  struct http_x *x = r->x;
  r->call = NULL;
  if (http_call_reusable(c) && nkept < ARRAY_LEN(kept))
    kept[nkept++] = c;
  else
    http_call_free(c);
  http_end(x);
}

static void up_fail(struct http_call *c, int code, const char *why)
{
  struct relay *r = http_call_data(c);
  (void)code;
  fprintf(stderr, "upstream: %s\n", why);
  r->call = NULL;
  http_call_free(c);
  http_abort(r->x);
}

static void down_gone(struct http_x *x, enum http_end how)
{
  struct relay *r = http_x_data(x);
  (void)how;
  http_call_free(r->call);
}

static void pass_on(struct http_x *x, void *arg)
{
  static const struct http_call_ops up = {.head = up_head, .body = up_body, .end = up_end, .fail = up_fail};
  static const struct http_x_ops down = {.gone = down_gone};
  const struct http_head *h = http_x_head(x);
  struct relay *r = arena_alloc(http_x_arena(x), sizeof(*r));
  (void)arg;
  *r = (struct relay){x, nkept ? kept[--nkept] : http_call_new(http_x_loop(x), dial(upstream), NULL)};
  http_x_handle(x, &down, r);
  http_call_handle(r->call, &up, r);
  http_call_start(r->call, h->method, h->target, h->headers, h->nheaders, 0);
}

static pid_t serve(int fd, http_request_fn fn)
{
  pid_t pid = fork();
  if (pid)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  uv_loop_t loop;
  uv_loop_init(&loop);
  http_server_listen(http_server_new(&loop, NULL, fn, NULL), fd);
  uv_run(&loop, UV_RUN_DEFAULT);
  _exit(0);
}

/* ---- asking ---- */

#define SAMPLES_MAX (8u << 20)
static uint32_t *samples;
static size_t nsamples;
static int64_t until;
static int64_t began[16384];

static int64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void ask(struct http_call *c)
{
  struct http_header headers[] = {{STR("Host"), STR("127.0.0.1")}, {STR("E2b-Sandbox-Port"), STR("49983")}};
  size_t i = (size_t)http_call_data(c);
  began[i] = now_ns();
  http_call_start(c, STR("GET"), STR("/health"), headers, 2, 0);
}

static void got_end(struct http_call *c)
{
  size_t i = (size_t)http_call_data(c);
  int64_t now = now_ns();
  if (nsamples < SAMPLES_MAX)
    samples[nsamples++] = (uint32_t)(now - began[i]);
  if (now < until)
    ask(c);
  else
    http_call_free(c);
}

static void got_fail(struct http_call *c, int code, const char *why)
{
  (void)c;
  fprintf(stderr, "call: %s (%d)\n", why, code);
  exit(1);
}

static int by_value(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static double at(double part)
{
  return nsamples ? samples[(size_t)((double)(nsamples - 1) * part)] / 1e6 : 0;
}

static void measure(int port)
{
  static const struct http_call_ops ops = {.end = got_end, .fail = got_fail};
  uv_loop_t loop;
  uv_loop_init(&loop);
  samples = xmalloc(SAMPLES_MAX * sizeof(*samples));
  int64_t start = now_ns();
  until = start + (int64_t)opt.seconds * 1000000000;
  for (size_t i = 0; i < opt.conns; i++) {
    struct http_call *c = http_call_new(&loop, dial(port), NULL);
    http_call_handle(c, &ops, (void *)i);
    ask(c);
  }
  uv_run(&loop, UV_RUN_DEFAULT);
  double seconds = (double)(now_ns() - start) / 1e9;
  qsort(samples, nsamples, sizeof(*samples), by_value);
  printf("{\"what\":\"%s\",\"conns\":%u,\"body\":%zu,\"requests\":%zu,\"per_second\":%.0f,\"p50_ms\":%.4f,"
         "\"p95_ms\":%.4f,\"p99_ms\":%.4f}\n",
         opt.proxy ? "http_proxy_floor" : "http_floor", opt.conns, opt.body, nsamples, (double)nsamples / seconds,
         at(0.5), at(0.95), at(0.99));
}

static int options(int argc, char **argv)
{
  static const struct option known[] = {{"conns", required_argument, NULL, 'c'},
                                        {"seconds", required_argument, NULL, 's'},
                                        {"body", required_argument, NULL, 'b'},
                                        {"proxy", no_argument, NULL, 'p'},
                                        {0}};
  uint64_t n = 0;
  for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    if (o == '?' || (optarg && str_u64(str_of(optarg), &n) < 0))
      return -1;
    if (o == 'c')
      opt.conns = (unsigned)MIN(n, (uint64_t)ARRAY_LEN(began));
    else if (o == 's')
      opt.seconds = (unsigned)MIN(n, (uint64_t)60);
    else if (o == 'b')
      opt.body = (size_t)MIN(n, (uint64_t)sizeof(payload));
    else
      opt.proxy = true;
  }
  return 0;
}

int main(int argc, char **argv)
{
  if (options(argc, argv) < 0) {
    fprintf(stderr, "usage: http_floor [--conns N] [--seconds S] [--body BYTES] [--proxy]\n");
    return 2;
  }
  struct rlimit files = {20000, 20000};
  setrlimit(RLIMIT_NOFILE, &files);
  int port, front;
  pid_t children[2] = {0};
  int fd = listen_on(&port);
  children[0] = serve(fd, answer);
  close(fd);
  front = upstream = port;
  if (opt.proxy) {
    fd = listen_on(&front);
    children[1] = serve(fd, pass_on);
    close(fd);
  }
  measure(front);
  for (int i = 0; i < 2; i++)
    if (children[i] > 0) {
      kill(children[i], SIGTERM);
      waitpid(children[i], NULL, 0);
    }
  return 0;
}
