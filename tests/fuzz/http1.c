/* SPDX-License-Identifier: Apache-2.0 */
/* http1.c - bytes from outside against the HTTP reader, the server and the client.
 *
 * The first byte of the input chooses what the rest is given to: q a request head, a an answer's head, c a
 * chunked body, s the server, r the client as an answer. q, a and c are differential: read whole and read in random
 * cuts, the result must be the same. s and r run the real connection code over a socket pair, in random cuts too; every
 * request must end in exactly one `gone`, every call in at most one `end` or `fail`, and nothing may stay behind. */
#include "dice.h"
#include "must.h"

#include "net/h1parse.h"
#include "net/http.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

/* ---- differential ---- */

static const struct http_limits limits = {.head_max = 2048, .headers_max = 16};

struct head_result {
  int code;
  size_t used, nheaders;
  struct h1_frame frame;
  struct str method, path;
};

static struct head_result read_head(struct str in, enum h1_side side, bool cut)
{
  struct h1scan scan = {0};
  struct http_header hv[32];
  struct http_head head = {0};
  struct head_result r = {.code = 1};
  const char *why = NULL;
  for (size_t n = cut ? 0 : in.n;;) {
    ptrdiff_t used = h1_scan(&scan, side, str_sub(in, 0, n), &limits, &why);
    if (used < 0) {
      r.code = (int)used;
      return r;
    }
    if (used > 0) {
      struct str text = str_sub(in, 0, (size_t)used);
      MUST(scan.lines <= ARRAY_LEN(hv));
      r.code = side == H1_REQUEST ? h1_request(text, &head, hv, scan.lines, &r.frame, &why)
                                  : h1_response(text, false, &head, hv, scan.lines, &r.frame, &why);
      r.used = (size_t)used;
      r.nheaders = head.nheaders;
      r.method = head.method;
      r.path = head.path;
      return r;
    }
    if (n == in.n)
      return r;
    n = MIN(in.n, n + roll(16));
  }
}

static void fuzz_head(struct str in, enum h1_side side)
{
  struct head_result whole = read_head(in, side, false), cut = read_head(in, side, true);
  MUST(whole.code == cut.code && whole.used == cut.used && whole.nheaders == cut.nheaders);
  if (whole.code != 0)
    return;
  MUST(whole.frame.kind == cut.frame.kind && whole.frame.length == cut.frame.length);
  MUST(whole.frame.keep == cut.frame.keep && whole.frame.expect == cut.frame.expect);
  MUST(str_eq(whole.method, cut.method) && str_eq(whole.path, cut.path));
}

static int read_chunks(struct str in, bool cut, struct buf *out, size_t *left)
{
  struct h1_body body;
  int rc = H1_MORE;
  h1_body_start(&body, &(struct h1_frame){.kind = H1_CHUNKED});
  while (in.n && rc == H1_MORE) {
    struct str part = cut ? str_sub(in, 0, roll(8)) : in, piece;
    size_t had = part.n;
    while ((rc = h1_body_next(&body, &part, &piece)) == H1_DATA) {
      MUST(piece.n > 0);
      buf_adds(out, piece);
    }
    MUST(rc != H1_MORE || part.n == 0);
    in = str_skip(in, had - part.n);
  }
  *left = in.n;
  return rc;
}

static void fuzz_chunks(struct str in)
{
  cleanup_buf struct buf a = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);
  size_t left_a, left_b;
  int whole = read_chunks(in, false, &a, &left_a), cut = read_chunks(in, true, &b, &left_b);
  MUST(whole == cut && str_eq(buf_str(&a), buf_str(&b)) && left_a == left_b);
}

/* ---- the server ---- */

static uv_loop_t loop;
static struct http_server *server;
static struct http_x *held;
static int requests, gones;

static void on_gone(struct http_x *x, enum http_end how)
{
  (void)how;
  gones++;
  if (held == x)
    held = NULL;
}

static void on_body(struct http_x *x, struct str chunk)
{
  MUST(chunk.n > 0);
  http_send(x, chunk);
  if (roll(4) == 1) {
    http_x_pause(x);
    held = x;
  }
}

static void on_body_end(struct http_x *x)
{
  if (http_respond(x, 204, NULL, 0, 0) == -EALREADY)
    http_send(x, STR("end"));
  http_end(x);
}

static const struct http_x_ops x_ops = {.body = on_body, .body_end = on_body_end, .gone = on_gone};

static void on_request(struct http_x *x, void *arg)
{
  (void)arg;
  requests++;
  http_x_handle(x, &x_ops, NULL);
  switch (http_x_head(x)->path.n % 8) {
  case 0:
    http_x_resume(x);
    http_respond(x, 200, NULL, 0, HTTP_CHUNKED);
    break;
  case 1:
    http_reply(x, 200, "text/plain", http_x_head(x)->target);
    break;
  case 2:
    http_tunnel(x, 101, &(struct http_header){STR("Upgrade"), STR("x")}, 1);
    break;
  case 3:
    http_x_resume(x); /* no answer yet: an oversized or broken body is refused by the server */
    break;
  case 4:
    http_respond(x, 200, NULL, 0, 5);
    http_send(x, STR("short"));
    http_end(x);
    break;
  case 5:
    http_abort(x);
    break;
  default:
    held = x;
  }
}

static void let_go(void)
{
  struct http_x *x = held;
  held = NULL;
  if (!x)
    return;
  http_x_resume(x);
  if (roll(2) == 1)
    http_reply(x, 200, NULL, STR("late"));
}

static int open_pair(int *ours)
{
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  *ours = pair[0];
  return pair[1];
}

static void listen_a_little(int fd)
{
  char sink[4096];
  uv_run(&loop, UV_RUN_NOWAIT);
  while (recv(fd, sink, sizeof(sink), 0) > 0)
    continue;
}

static void say(int fd, struct str in, void (*between)(void))
{
  while (in.n) {
    struct str part = str_sub(in, 0, roll(64));
    if (send(fd, part.p, part.n, MSG_NOSIGNAL) < 0)
      return;
    in = str_skip(in, part.n);
    listen_a_little(fd);
    between();
  }
}

static void fuzz_server(struct str in)
{
  int fd;
  int before = requests - gones;
  MUST(before == 0);
  MUST(http_server_adopt(server, open_pair(&fd)) == 0);
  say(fd, in, let_go);
  listen_a_little(fd);
  close(fd);
  for (int i = 0; i < 100 && http_server_conns(server); i++) {
    uv_run(&loop, UV_RUN_NOWAIT);
    let_go(); /* a paused tunnel has its last bytes still to come */
  }
  uv_run(&loop, UV_RUN_NOWAIT);
  MUST(http_server_conns(server) == 0);
  MUST(requests == gones);
}

/* ---- the client ---- */

static struct http_call *call;
static int finals;

static void c_head(struct http_call *c, const struct http_head *head)
{
  MUST(head->status == 101 || head->status >= 200);
  if (roll(4) == 1)
    http_call_pause(c);
}

static void c_body(struct http_call *c, struct str chunk)
{
  MUST(chunk.n > 0);
  if (roll(8) == 1)
    http_call_pause(c);
  if (roll(64) == 1) {
    http_call_free(c);
    call = NULL;
  }
}

static void c_end(struct http_call *c)
{
  finals++;
  if (http_call_reusable(c) && roll(2) == 1) {
    finals--;
    MUST(http_call_start(c, STR("GET"), STR("/again"), NULL, 0, 0) == 0);
  }
}

static void c_fail(struct http_call *c, int code, const char *why)
{
  (void)c;
  MUST(code < 0 && why);
  finals++;
}

static const struct http_call_ops c_ops = {.head = c_head, .body = c_body, .end = c_end, .fail = c_fail};

static void c_wake(void)
{
  if (call)
    http_call_resume(call);
}

static void fuzz_client(struct str in)
{
  int fd;
  finals = 0;
  call = http_call_new(&loop, open_pair(&fd), NULL);
  MUST(call);
  http_call_handle(call, &c_ops, NULL);
  MUST(http_call_start(call, STR("POST"), STR("/"), NULL, 0, HTTP_CHUNKED) == 0);
  http_call_send(call, STR("body"));
  http_call_end(call);
  say(fd, in, c_wake);
  close(fd);
  for (int i = 0; i < 100 && call && !finals; i++) {
    uv_run(&loop, UV_RUN_NOWAIT);
    c_wake();
  }
  MUST(!call || finals == 1);
  if (call)
    http_call_free(call);
  call = NULL;
  uv_run(&loop, UV_RUN_NOWAIT);
}

static void setup(void)
{
  struct http_limits l = http_limits_default;
  l.body_max = 512;
  l.head_max = 2048;
  l.headers_max = 16;
  l.high_water = 1024;
  uv_loop_init(&loop);
  server = http_server_new(&loop, &l, on_request, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct str in = str_make(data, size);
  if (!server)
    setup();
  if (in.n < 2 || in.n > 8192)
    return 0;
  dice_set(in);
  char what = in.p[0];
  in = str_skip(in, 1);
  if (what == 'q')
    fuzz_head(in, H1_REQUEST);
  else if (what == 'a')
    fuzz_head(in, H1_RESPONSE);
  else if (what == 'c')
    fuzz_chunks(in);
  else if (what == 's')
    fuzz_server(in);
  else if (what == 'r')
    fuzz_client(in);
  return 0;
}
