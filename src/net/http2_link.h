/* SPDX-License-Identifier: Apache-2.0 */
/* http2_link.h - the inside of a connection to a server of HTTP/2; shared by http2_link.c (the connection, and what
 * comes by it) and http2_call.c (the calls on it). */
#ifndef CLOCHE_HTTP2_LINK_H
#define CLOCHE_HTTP2_LINK_H

#include "net/exchange.h"
#include "net/tls.h"
#include <nghttp2/nghttp2.h>

#define STREAM_WINDOW (512 << 10)
#define BACKLOG_MAX   (2 * STREAM_WINDOW + 65536)
#define LOOK_MS       1000 /* how often deadlines are looked at */

/* One call: a stream. */
struct lane {
  struct http_link *link; /* NULL: it was cut off */
  struct http_call *call;
  struct lane *prev, *next, *todo_next;
  int32_t id; /* 0: not begun */
  /* the answer */
  VEC(struct http_header) headers;
  int status;
  size_t section;
  const char *bad; /* why it can't be taken */
  struct buf backlog;
  size_t backlog_off;
  bool head_due, in_end;
  /* the request */
  struct buf out;
  size_t out_off;
  nghttp2_nv *trailers;
  size_t ntrailers;
  uint64_t due, moved_at; /* loop time; due 0 = none */
  bool all_said, deferred;
  bool closed;                 /* nothing more comes */
  uint32_t error;              /* with closed */
  bool in_todo, dead, telling; /* telling: its handler is being called */
};

struct http_link {
  struct http_call *trunk; /* owns the connection */
  struct conn *conn;
  nghttp2_session *session; /* NULL while the protocol is not chosen */
  http_link_opened opened;
  void (*closed)(struct http_link *l, void *arg);
  void *arg;
  struct lane *lanes, *todo, **todo_tail;
  size_t nlanes, streams_max;
  size_t block_bytes, block_fields; /* of the header section that is being read */
  uint64_t chatter_at;
  double chatter;
  int code; /* with lame */
  const char *why;
  bool ready, inside, send_due;
  bool going; /* no new calls */
  bool http1; /* the server said that it wants HTTP/1.1 */
  bool lame;  /* the connection is of no more use */
};

/* http2_link.c */
struct http_link *link_new(uv_loop_t *loop, int fd, const struct http_link_plan *plan);
int link_begin(struct http_link *l); /* HTTP/2 was chosen */
uint64_t link_now(const struct http_link *l);
void link_send(struct http_link *l); /* what was submitted goes out, now or when nghttp2 is left */

/* http2_call.c */
extern const struct call_carrier lane_carrier;
struct lane *lane_of(nghttp2_session *session, int32_t id);
size_t lane_queued(const struct lane *s);       /* bytes of its request */
void lane_todo(struct lane *s);                 /* there is an event for its handler */
void lane_bad(struct lane *s, const char *why); /* its answer can't be taken; told by link_notify */
void lane_unlink(struct lane *s);               /* the link knows it no longer */
void lane_fail(struct lane *s, int code, const char *why);
void link_notify(struct http_link *l); /* tells all handlers that there is something for */

#endif
