/* SPDX-License-Identifier: Apache-2.0 */
/* http1_answer.c - what a handler says: heads, chunks, files, tunnels.
 *
 * A head is corked: it leaves together with the first bytes of the body, or at the end of the loop iteration when none
 * come. Everything else leaves at once, one http_send as one chunk in one system call. */
#include "net/exchange.h"

#include "net/head_write.h"
#include <arpa/inet.h>
#include <stdio.h>

#define DISCARD_KNOWN ((uint64_t)256 << 10) /* an unread body longer than this is not worth the connection */

static bool is_open(const struct http_x *x)
{
  return x->peer->x == x && !x->peer->conn.closed;
}

static struct iovec iov_of(struct str s)
{
  return (struct iovec){(char *)s.p, s.n};
}

const struct http_head *http_x_head(const struct http_x *x)
{
  return &x->head;
}

struct arena *http_x_arena(struct http_x *x)
{
  return &x->arena;
}

void http_x_handle(struct http_x *x, const struct http_x_ops *ops, void *data)
{
  x->ops = ops;
  x->data = data;
}

void *http_x_data(const struct http_x *x)
{
  return x->data;
}

uv_loop_t *http_x_loop(const struct http_x *x)
{
  return x->peer->conn.net->loop;
}

void http_x_peer(const struct http_x *x, char *out, size_t size)
{
  const struct peer *p = x->peer;
  char text[INET6_ADDRSTRLEN] = "";
  if (p->address.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &p->address.in4.sin_addr, text, sizeof(text));
    snprintf(out, size, "%s:%u", text, ntohs(p->address.in4.sin_port));
  } else if (p->address.any.sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &p->address.in6.sin6_addr, text, sizeof(text));
    snprintf(out, size, "[%s]:%u", text, ntohs(p->address.in6.sin6_port));
  } else {
    snprintf(out, size, "unix");
  }
}

void http_x_accepted(struct http_x *x)
{
  server_known(x->peer->server, x->peer);
}

void http_x_hold(struct http_x *x, int64_t n)
{
  if (n > 0)
    conn_hold(&x->peer->conn, (uint64_t)n);
  else
    conn_release(&x->peer->conn, (uint64_t)-n);
}

bool http_x_secure(const struct http_x *x)
{
  return x->peer->secure;
}

/* What a call of the handler made possible happens in the next deferred run; inside a step it is looked at anyway. */
static void look_again(struct http_x *x)
{
  if (!x->peer->conn.stepping)
    conn_defer(&x->peer->conn);
}

/* ---- the request body ---- */

void http_x_resume(struct http_x *x)
{
  struct peer *p = x->peer;
  if (p->via) {
    p->via->flow(x, true);
    return;
  }
  if (!is_open(x) || x->reading)
    return;
  x->reading = true;
  bool fits = x->frame.kind != H1_LENGTH || x->frame.length <= x->body_max;
  if (x->continue_due && fits && !x->begun) {
    struct iovec v = iov_of(STR("HTTP/1.1 100 Continue\r\n\r\n"));
    conn_write(&p->conn, &v, 1, false);
  }
  x->continue_due = x->continue_due && !fits;
  look_again(x);
}

void http_x_pause(struct http_x *x)
{
  if (x->peer->via) {
    x->peer->via->flow(x, false);
    return;
  }
  if (!is_open(x))
    return;
  x->reading = false;
  look_again(x);
}

void http_x_body_max(struct http_x *x, uint64_t max)
{
  x->body_max = max;
}

void http_x_body_untimed(struct http_x *x)
{
  x->untimed = true;
  x->peer->restart = true;
  if (!x->peer->via)
    look_again(x);
}

int64_t http_x_body_length(const struct http_x *x)
{
  if (x->frame.kind == H1_CHUNKED)
    return -1;
  return x->frame.kind == H1_LENGTH ? (int64_t)x->frame.length : 0;
}

/* ---- heads ---- */

static bool asks_close(const struct http_header *headers, size_t n)
{
  struct http_head given = {.headers = (struct http_header *)headers, .nheaders = n};
  return n > 0 && http_header_has(&given, "connection", "close");
}

static bool may_keep(const struct http_x *x)
{
  const struct peer *p = x->peer;
  if (!x->frame.keep || p->last || p->server->stopping || p->conn.eof)
    return false;
  if (p->body.done)
    return true;
  if (x->continue_due) /* whether the body will come is the client's choice; what follows is ambiguous */
    return false;
  return x->reading || x->frame.kind != H1_LENGTH || p->body.left <= DISCARD_KNOWN;
}

static bool is_bare(int status)
{
  return status < 200 || status == 204 || status == 304;
}

/* Builds the head in the loop's buffer and notes what it promises. */
static int begin(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length,
                 struct str *head)
{
  struct net *net = x->peer->conn.net;
  bool head_only = str_is(x->head.method, "HEAD");
  bool until_close = length < 0 && x->head.minor == 0;
  bool keep = may_keep(x) && !asks_close(headers, n) && (!until_close || is_bare(status) || head_only);
  struct headout o = {
      .headers = headers,
      .n = n,
      .length = length,
      .framed = !is_bare(status) && !(length < 0 && (head_only || x->head.minor == 0)),
      .close = !keep,
      .keep = keep && x->head.minor == 0,
      .date = net_date(net),
  };
  int rc = head_write_answer(&net->head, status, &o);
  if (rc < 0)
    return rc;
  *head = buf_str(&net->head);
  x->begun = true;
  x->bare = head_only || is_bare(status);
  x->chunked = length < 0 && x->head.minor > 0;
  x->out_left = length < 0 ? HTTP_CHUNKED : length;
  if (!keep)
    x->peer->last = true;
  return 0;
}

static int interim(struct http_x *x, int status, const struct http_header *headers, size_t n)
{
  struct buf *b = &x->peer->conn.net->head;
  if (x->head.minor == 0)
    return 0;
  int rc = head_write_answer(b, status, &(struct headout){.headers = headers, .n = n});
  struct iovec v = iov_of(buf_str(b));
  return rc < 0 ? rc : conn_write(&x->peer->conn, &v, 1, false);
}

static int check_open(const struct http_x *x, int status)
{
  if (!is_open(x))
    return -EPIPE;
  if (x->begun)
    return -EALREADY;
  return status < 100 || status > 599 || status == 101 ? -EINVAL : 0;
}

int http_respond(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length)
{
  struct str head;
  if (x->peer->via)
    return x->peer->via->respond(x, status, headers, n, length);
  int rc = check_open(x, status);
  if (rc < 0)
    return rc;
  if (status < 200)
    return interim(x, status, headers, n);
  rc = begin(x, status, headers, n, length, &head);
  if (rc < 0)
    return rc;
  struct iovec v = iov_of(head);
  return conn_write(&x->peer->conn, &v, 1, true);
}

int http_reply_with(struct http_x *x, int status, const struct http_header *headers, size_t n, struct str body)
{
  struct str head;
  if (x->peer->via)
    return x->peer->via->reply(x, status, headers, n, body);
  int rc = check_open(x, status);
  if (rc == 0 && status < 200)
    rc = -EINVAL;
  if (rc == 0)
    rc = begin(x, status, headers, n, (int64_t)body.n, &head);
  if (rc < 0)
    return rc;
  struct iovec v[] = {iov_of(head), iov_of(body)};
  rc = conn_write(&x->peer->conn, v, x->bare || !body.n ? 1 : 2, false);
  x->out_left = 0;
  x->ended = true;
  look_again(x);
  return rc;
}

int http_reply(struct http_x *x, int status, const char *content_type, struct str body)
{
  struct http_header type = {STR("Content-Type"), str_of(content_type)};
  return http_reply_with(x, status, &type, content_type ? 1 : 0, body);
}

int http_tunnel(struct http_x *x, int status, const struct http_header *headers, size_t n)
{
  struct peer *p = x->peer;
  struct buf *b = &p->conn.net->head;
  if (p->via)
    return status == 101 ? p->via->tunnel(x, headers, n) : -EPROTO;
  if (!is_open(x))
    return -EPIPE;
  if (x->begun || !p->body.done)
    return -EALREADY;
  struct http_head answer = {.headers = (struct http_header *)headers, .nheaders = n};
  if (status != 101 || !http_upgrade_taken(http_upgrade(&x->head, x->frame.kind != H1_NONE), &answer))
    return -EPROTO;
  int rc = head_write_answer(b, status, &(struct headout){.headers = headers, .n = n, .tunnel = true});
  struct iovec v = iov_of(buf_str(b));
  if (rc == 0)
    rc = conn_write(&p->conn, &v, 1, false);
  if (rc < 0)
    return rc;
  x->begun = x->tunnel = x->reading = true;
  x->body_told = x->bare = x->chunked = false;
  x->out_left = HTTP_CHUNKED;
  p->last = true;
  h1_body_start(&p->body, &(struct h1_frame){.kind = H1_UNTIL_EOF});
  look_again(x);
  return 0;
}

/* ---- bodies ---- */

int answer_may_send(struct http_x *x, bool open, uint64_t n)
{
  if (!open || x->ended)
    return -EPIPE;
  if (!x->begun)
    return -EINVAL;
  if (x->bare || x->out_left < 0)
    return 0;
  if (n > (uint64_t)x->out_left)
    return -EMSGSIZE;
  x->out_left -= (int64_t)n;
  return 0;
}

static void note_queue(struct http_x *x)
{
  if (!http_congested(x))
    return;
  x->drain_due = true;
  conn_full(&x->peer->conn);
}

int http_send(struct http_x *x, struct str data)
{
  if (x->peer->via)
    return x->peer->via->send(x, data);
  int rc = answer_may_send(x, is_open(x), data.n);
  if (rc < 0 || x->bare || data.n == 0)
    return rc;
  char size[24];
  int k = x->chunked ? snprintf(size, sizeof(size), "%zx\r\n", data.n) : 0;
  struct iovec chunk[] = {{size, (size_t)k}, iov_of(data), iov_of(STR("\r\n"))};
  rc = x->chunked ? conn_write(&x->peer->conn, chunk, 3, false) : conn_write(&x->peer->conn, &chunk[1], 1, false);
  note_queue(x);
  return rc;
}

uint64_t answer_room(const struct http_x *x)
{
  bool takes =
      !x->peer->via && is_open(x) && x->begun && !x->ended && !x->bare && !x->chunked && !x->tunnel && x->out_left > 0;
  return takes ? (uint64_t)x->out_left : 0;
}

void answer_took(struct http_x *x, size_t n)
{
  x->out_left -= (int64_t)n;
  note_queue(x);
}

int http_send_file(struct http_x *x, int fd, uint64_t offset, uint64_t n)
{
  cleanup_fd int file = fd;
  struct conn *c = &x->peer->conn;
  if (x->peer->via)
    return x->peer->via->file(x, steal_fd(&file), offset, n);
  int rc = answer_may_send(x, is_open(x), n);
  if (rc < 0 || x->bare || n == 0)
    return rc;
  if (x->chunked) {
    char size[24];
    struct iovec v = {size, (size_t)snprintf(size, sizeof(size), "%llx\r\n", (unsigned long long)n)};
    rc = conn_write(c, &v, 1, true);
  }
  if (rc == 0)
    rc = conn_write_file(c, steal_fd(&file), offset, n);
  if (rc == 0 && x->chunked) {
    struct iovec v = iov_of(STR("\r\n"));
    rc = conn_write(c, &v, 1, false);
  }
  note_queue(x);
  return rc;
}

bool http_congested(const struct http_x *x)
{
  if (x->peer->via)
    return x->peer->via->congested(x);
  return is_open(x) && x->peer->conn.queued >= x->peer->server->limits.high_water;
}

size_t http_x_trailers(const struct http_x *x, const struct http_header **out)
{
  *out = x->trailers;
  return x->ntrailers;
}

void http_end(struct http_x *x)
{
  http_end_with(x, NULL, 0);
}

void http_end_with(struct http_x *x, const struct http_header *trailers, size_t n)
{
  struct conn *c = &x->peer->conn;
  if (x->peer->via) {
    if (n)
      x->peer->via->trailers(x, trailers, n);
    x->peer->via->end(x);
    return;
  }
  if (!is_open(x) || x->ended)
    return;
  bool short_of = !x->bare && !x->chunked && x->out_left > 0;
  if (!x->begun || short_of) { /* no whole answer can come of this */
    http_abort(x);
    return;
  }
  if (x->chunked && !x->bare) {
    struct iovec v = iov_of(head_write_end(&c->net->head, trailers, n));
    conn_write(c, &v, 1, false);
  }
  x->ended = true;
  conn_push(c);
  if (x->tunnel)
    conn_shut(c);
  look_again(x);
}

void http_abort(struct http_x *x)
{
  if (x->peer->via)
    x->peer->via->abort(x);
  else if (is_open(x))
    peer_end(x->peer, HTTP_ABORTED, true);
}

int answer_error(struct peer *p, int status, const char *why)
{
  struct net *net = p->conn.net;
  char body[192];
  int n = snprintf(body, sizeof(body), "{\"code\":%d,\"message\":\"%s\"}", status, why);
  struct http_header type = {STR("Content-Type"), STR("application/json")};
  struct headout o = {.headers = &type, .n = 1, .length = n, .framed = true, .close = true, .date = net_date(net)};
  int rc = head_write_answer(&net->head, status, &o);
  if (rc < 0)
    return rc;
  struct iovec v[] = {iov_of(buf_str(&net->head)), {body, (size_t)n}};
  return conn_write(&p->conn, v, 2, false);
}
