/* SPDX-License-Identifier: Apache-2.0 */
/* http_answer.c - bytes that a server inside a box sends to the gate's HTTP client, and what of them reaches the gate's
 * own client.
 *
 * A small proxy, as edge.c is one: our server takes a request over a socket pair and asks our client, whose other end
 * is the input, in random cuts. The first byte of the input chooses the request: its method, whether it offers to
 * switch protocols, whether it has a body. Whatever the box says, the bytes that come out must be answers of our
 * server, each whole and one per request: they are read again by the strict parser, and a second request on the same
 * connection must get the answer of our own. A 101 may come out only where it was asked for, and nothing is read after
 * it. */
#include "dice.h"
#include "must.h"

#include "net/exchange.h"

#include <fcntl.h>
#include <sys/socket.h>

static uv_loop_t loop;
static struct http_server *server;
static struct http_call *call;
static struct http_x *client;
static int box = -1;
static bool upgrade, began;

/* ---- the proxy ---- */

static bool hop_by_hop(struct str name)
{
  return str_ieq(name, STR("connection")) || str_ieq(name, STR("transfer-encoding")) ||
         str_ieq(name, STR("content-length"));
}

static void call_head(struct http_call *c, const struct http_head *h)
{
  struct http_header out[256]; /* more than http_limits.headers_max: as the edge, none is dropped */
  size_t n = 0;
  uint64_t length;
  struct str given = http_header(h, "content-length");
  MUST(h->status == 101 || (h->status >= 200 && h->status <= 599));
  MUST(h->status != 101 || upgrade);
  for (size_t i = 0; i < h->nheaders && n < ARRAY_LEN(out); i++)
    if (!hop_by_hop(h->headers[i].name))
      out[n++] = h->headers[i];
  int r = h->status == 101 ? http_tunnel(client, 101, out, n)
                           : http_respond(client, h->status, out, n,
                                          given.n && !str_u64(given, &length) ? (int64_t)length : HTTP_CHUNKED);
  MUST(h->status != 101 || r == 0 || r == -EPIPE);
  began = r == 0;
  if (r)
    http_abort(client);
}

static void call_body(struct http_call *c, struct str chunk)
{
  MUST(chunk.n > 0);
  if (client && began)
    http_send(client, chunk);
}

static void call_end(struct http_call *c)
{
  if (client)
    http_end(client);
}

static void call_drain(struct http_call *c)
{
}

static void call_fail(struct http_call *c, int code, const char *why)
{
  MUST(code < 0 && why && *why);
  if (client && began)
    http_abort(client);
  else if (client)
    http_reply(client, 502, "text/plain", STR("broken"));
}

static struct http_x *call_pass(struct http_call *c)
{
  return began ? client : NULL;
}

static void call_passed(struct http_call *c, size_t n)
{
}

static const struct http_call_ops call_ops = {call_head, call_body, call_end,   call_drain,
                                              call_fail, call_pass, call_passed};

static void x_body(struct http_x *x, struct str chunk)
{
  if (call)
    http_call_send(call, chunk);
}

static void x_body_end(struct http_x *x)
{
  if (call)
    http_call_end(call);
}

static void x_gone(struct http_x *x, enum http_end how)
{
  if (client == x)
    client = NULL;
}

static void x_drain(struct http_x *x)
{
}

static const struct http_x_ops x_ops = {.body = x_body, .body_end = x_body_end, .drain = x_drain, .gone = x_gone};

static void on_request(struct http_x *x, void *arg)
{
  const struct http_head *h = http_x_head(x);
  struct http_header offer[] = {{STR("Connection"), STR("Upgrade")}, {STR("Upgrade"), STR("x")}};
  int pair[2];
  http_x_handle(x, &x_ops, NULL);
  if (str_is(h->path, "/own")) {
    http_reply(x, 200, "text/plain", STR("own"));
    return;
  }
  MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  client = x;
  box = pair[0];
  call = http_call_new(&loop, pair[1], NULL);
  http_call_handle(call, &call_ops, NULL);
  MUST(http_call_start(call, h->method, h->target, offer, upgrade ? 2 : 0, http_x_body_length(x)) == 0);
  http_x_resume(x);
}

/* ---- the client ---- */

static void hear(int fd, struct buf *out)
{
  char part[65536];
  ssize_t r;
  uv_run(&loop, UV_RUN_NOWAIT);
  while ((r = recv(fd, part, sizeof(part), 0)) > 0)
    buf_add(out, part, (size_t)r);
}

/* One answer from the front; false when there is no whole one. */
static bool take_answer(struct str *in, bool bodyless, int *status, struct buf *body)
{
  struct http_header hv[256];
  struct http_head head;
  struct h1_frame frame;
  struct h1scan scan = {0};
  struct h1_body b;
  const char *why;
  struct http_limits room = http_limits_default; /* the server adds lines of its own to those of the box */
  room.headers_max += 16;
  room.head_max += 4096;
  ptrdiff_t n = in->n ? h1_scan(&scan, H1_RESPONSE, *in, &room, &why) : 0;
  MUST(n >= 0);
  if (n == 0)
    return false;
  MUST(h1_response(str_sub(*in, 0, (size_t)n), bodyless, &head, hv, ARRAY_LEN(hv), &frame, &why) == 0);
  *in = str_skip(*in, (size_t)n);
  *status = head.status;
  h1_body_start(&b, &frame);
  for (;;) {
    struct str piece;
    int r = h1_body_next(&b, in, &piece);
    MUST(r >= 0);
    if (r == H1_DATA)
      buf_adds(body, piece);
    else
      return r == H1_END;
  }
}

static void look_at(struct str heard, bool bodyless)
{
  cleanup_buf struct buf body = BUF_INIT(4 << 20), own = BUF_INIT(4 << 20);
  int status = 0;
  if (!take_answer(&heard, bodyless, &status, &body))
    return; /* cut off, which a client sees */
  MUST(status != 101 || upgrade);
  if (status == 101 || !heard.n)
    return;
  int next = 0;
  if (take_answer(&heard, false, &next, &own))
    MUST(next == 200 && str_is(buf_str(&own), "own") && heard.n == 0);
}

static void box_says(struct str in, int fd, struct buf *out)
{
  while (in.n && box >= 0) {
    struct str part = str_sub(in, 0, roll(300));
    char sink[4096];
    if (send(box, part.p, part.n, MSG_NOSIGNAL) < 0)
      return;
    in = str_skip(in, part.n);
    hear(fd, out);
    while (recv(box, sink, sizeof(sink), 0) > 0)
      continue;
  }
}

static void setup(void)
{
  uv_loop_init(&loop);
  server = http_server_new(&loop, NULL, on_request, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct str in = str_make(data, size);
  if (!server)
    setup();
  if (in.n < 2 || in.n > 16384)
    return 0;
  dice_set(in);
  unsigned kind = (unsigned char)in.p[0];
  bool head = kind & 1, bodied = kind & 4;
  upgrade = (kind & 2) && !bodied;
  began = false;
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  MUST(http_server_adopt(server, pair[1]) == 0);
  cleanup_buf struct buf out = BUF_INIT(8 << 20), ask = BUF_INIT(4096);
  buf_addf(&ask, "%s /box HTTP/1.1\r\nHost: a\r\n%s%s\r\n%s",
           head     ? "HEAD"
           : bodied ? "POST"
                    : "GET",
           upgrade ? "Connection: upgrade\r\nUpgrade: x\r\n" : "", bodied ? "Content-Length: 4\r\n" : "",
           bodied ? "body" : "");
  MUST(send(pair[0], ask.p, ask.n, MSG_NOSIGNAL) == (ssize_t)ask.n);
  hear(pair[0], &out);
  box_says(str_skip(in, 1), pair[0], &out);
  if (box >= 0)
    close(steal_fd(&box));
  for (int i = 0; i < 4; i++)
    hear(pair[0], &out);
  if (!upgrade)
    send(pair[0], "GET /own HTTP/1.1\r\nHost: a\r\n\r\n", 30, MSG_NOSIGNAL);
  for (int i = 0; i < 4; i++)
    hear(pair[0], &out);
  look_at(buf_str(&out), head);
  close(pair[0]);
  http_call_free(steal(&call));
  for (int i = 0; i < 100 && http_server_conns(server); i++)
    uv_run(&loop, UV_RUN_NOWAIT);
  uv_run(&loop, UV_RUN_NOWAIT);
  MUST(http_server_conns(server) == 0 && !client);
  MUST(server->net->held == 0);
  return 0;
}
