/* SPDX-License-Identifier: Apache-2.0 */
/* head_write.c - the heads we send.
 *
 * Framing has one author: Content-Length and Transfer-Encoding that a caller passes (a proxy hands on what it got) are
 * left out and written from the length that was promised. The same holds for Connection, which belongs to this
 * hop, except in tunnels, where it is part of the handshake. A byte that could break a line is refused here,
 * so no caller can be made to split an answer. */
#include "net/head_write.h"

#include "net/h1parse.h"

struct seen {
  bool date, host, connection;
};

static bool is_ours(const struct http_header *h, const struct headout *o, bool request)
{
  switch (h->name.n) {
  case 10:
    return !o->tunnel && !request && (str_ieq(h->name, STR("connection")) || str_ieq(h->name, STR("keep-alive")));
  case 14:
    return str_ieq(h->name, STR("content-length"));
  case 17:
    return str_ieq(h->name, STR("transfer-encoding"));
  default:
    return false;
  }
}

static void look(const struct http_header *h, struct seen *seen)
{
  seen->date |= h->name.n == 4 && str_ieq(h->name, STR("date"));
  seen->host |= h->name.n == 4 && str_ieq(h->name, STR("host"));
  seen->connection |= h->name.n == 10 && str_ieq(h->name, STR("connection"));
}

static int put_headers(struct buf *b, const struct headout *o, bool request, struct seen *seen)
{
  for (size_t i = 0; i < o->n; i++) {
    const struct http_header *h = &o->headers[i];
    if (!h1_token(h->name) || !h1_value(h->value))
      return -EINVAL;
    if (is_ours(h, o, request))
      continue;
    look(h, seen);
    buf_adds(b, h->name);
    buf_add(b, ": ", 2);
    buf_adds(b, h->value);
    buf_add(b, "\r\n", 2);
  }
  return 0;
}

static void put_framing(struct buf *b, const struct headout *o)
{
  if (!o->framed)
    return;
  if (o->length < 0) {
    buf_adds(b, STR("Transfer-Encoding: chunked\r\n"));
    return;
  }
  buf_adds(b, STR("Content-Length: "));
  buf_addu(b, (uint64_t)o->length);
  buf_add(b, "\r\n", 2);
}

int head_write_answer(struct buf *b, int status, const struct headout *o)
{
  struct seen seen = {0};
  buf_clear(b);
  buf_adds(b, STR("HTTP/1.1 "));
  buf_addu(b, (uint64_t)status);
  buf_addc(b, ' ');
  buf_addz(b, http_reason(status));
  buf_add(b, "\r\n", 2);
  int rc = put_headers(b, o, false, &seen);
  if (rc < 0)
    return rc;
  if (o->date.n && !seen.date) {
    buf_adds(b, STR("Date: "));
    buf_adds(b, o->date);
    buf_add(b, "\r\n", 2);
  }
  put_framing(b, o);
  if (o->tunnel && status == 101 && !seen.connection)
    buf_adds(b, STR("Connection: Upgrade\r\n"));
  else if (o->close)
    buf_adds(b, STR("Connection: close\r\n"));
  else if (o->keep)
    buf_adds(b, STR("Connection: keep-alive\r\n"));
  buf_add(b, "\r\n", 2);
  return buf_failed(b);
}

int head_write_request(struct buf *b, struct str method, struct str target, const struct headout *o)
{
  struct seen seen = {0};
  buf_clear(b);
  if (!h1_token(method) || !h1_target(target))
    return -EINVAL;
  buf_adds(b, method);
  buf_addc(b, ' ');
  buf_adds(b, target);
  buf_adds(b, STR(" HTTP/1.1\r\n"));
  int rc = put_headers(b, o, true, &seen);
  if (rc < 0)
    return rc;
  if (!seen.host)
    buf_adds(b, STR("Host: localhost\r\n"));
  put_framing(b, o);
  buf_add(b, "\r\n", 2);
  return buf_failed(b);
}

struct str head_write_end(struct buf *b, const struct http_header *trailers, size_t n)
{
  buf_clear(b);
  buf_adds(b, STR("0\r\n"));
  for (size_t i = 0; i < n; i++) {
    if (!h1_token(trailers[i].name) || !h1_value(trailers[i].value))
      continue;
    buf_adds(b, trailers[i].name);
    buf_add(b, ": ", 2);
    buf_adds(b, trailers[i].value);
    buf_add(b, "\r\n", 2);
  }
  buf_add(b, "\r\n", 2);
  return buf_failed(b) ? STR("0\r\n\r\n") : buf_str(b);
}
