/* SPDX-License-Identifier: Apache-2.0 */
/* head_write.h - writing heads: what callers may choose and what only this folder may say. See head_write.c. */
#ifndef CLOCHE_NET_HEAD_WRITE_H
#define CLOCHE_NET_HEAD_WRITE_H

#include "net/http.h"

struct headout {
  const struct http_header *headers;
  size_t n;
  int64_t length;   /* HTTP_CHUNKED, or bytes to come */
  bool framed;      /* say the length (not for 1xx, 204, 304, tunnels) */
  bool tunnel;      /* the caller's Connection and Upgrade stay as they are */
  bool close, keep; /* say `Connection: close` / `Connection: keep-alive` */
  struct str date;  /* added unless the caller has one; empty = none */
};

/* Put together in b, which is cleared first. 0, -EINVAL when a name or value can't be written, -ENOBUFS. */
/* The end of a chunked body. */
struct str head_write_end(struct buf *b, const struct http_header *trailers, size_t n);
int head_write_answer(struct buf *b, int status, const struct headout *h);
int head_write_request(struct buf *b, struct str method, struct str target, const struct headout *h);

#endif
