/* SPDX-License-Identifier: Apache-2.0 */
/* http2.h - the inside of an HTTP/2 connection; shared by http2.c (streams), http2_head.c (requests' heads),
 * http2_answer.c (what goes) and tls.c. */
#ifndef CLOCHE_HTTP2_H
#define CLOCHE_HTTP2_H

#include "net/exchange.h"
#include <nghttp2/nghttp2.h>

struct h2 {
  struct peer *peer;
  nghttp2_session *session;
  struct stream *streams, *todo, **todo_tail;
  struct bucket resets, chatter, oversized; /* who empties one is sent away */
  size_t block_bytes, block_fields;         /* of the header section that is being read */
  uint64_t queued;                          /* output of all streams */
  size_t nlive;                             /* streams with an exchange, or with a head on its way */
  unsigned inside;                          /* within a call of nghttp2, which must not be entered again */
  bool send_due;                            /* something was submitted meanwhile */
  bool over;                                /* GOAWAY was said; what still comes is thrown away */
  bool fatal;                               /* nothing can be said any more */
  bool telling, idle, leaving;
  bool paused;          /* nghttp2 stopped inside a header section */
  const char *why_over; /* for the log */
};

/* Output of a stream that waits for its window or the connection: bytes, or a part of a file. */
struct piece {
  struct piece *next;
  int fd; /* -1: memory */
  uint64_t offset, left;
  size_t from, to, cap;
  char data[];
};

struct stream {
  struct h2 *h2;
  struct http_x *x; /* NULL before the head is complete, and after `gone` */
  struct stream *prev, *next, *todo_next;
  int32_t id;
  uint64_t active_at; /* last time the request went forward */
  /* the request */
  VEC(struct http_header) headers;
  struct str method, path, authority, protocol;
  size_t head_bytes;
  int refuse; /* status of a head that can't be taken; 0 = fine */
  struct buf backlog;
  size_t backlog_off;
  bool head_done, live, in_end;
  bool connect; /* it asks for a tunnel: data belongs to that, and waits until there is one */
  /* the answer */
  struct piece *out, *out_last;
  uint64_t queued, moved_at; /* moved_at: when some of it left, or the first of it came */
  nghttp2_nv *held;          /* a head that may yet be the whole answer */
  size_t nheld;
  nghttp2_nv *trailers; /* behind the last byte; in the exchange's arena */
  size_t ntrailers;
  bool submitted, ended, end_sent, deferred;
  bool aborted, cut, closed, in_todo; /* cut: the client's fault */
};

/* tls.c: the handshake chose h2. */
void http2_begin(struct peer *p);

/* http2.c */
void h2_todo(struct stream *s);                 /* there is an event for its handler */
void h2_send(struct h2 *h);                     /* what was submitted goes out, now or when nghttp2 is left */
void h2_send_soon(struct h2 *h);                /* at the end of this loop iteration */
void h2_reset(struct stream *s, uint32_t code); /* RST_STREAM */
void h2_end_session(struct h2 *h, uint32_t code, const char *why);
void h2_oversized(struct h2 *h); /* a header section passed the limits */
void http2_drop(struct peer *p);
bool stream_open(const struct stream *s); /* the handler may still answer */

struct stream *stream_of(nghttp2_session *session, int32_t id);
/* In the handler's place; where its own answer has begun, only cutting is left. */
void stream_refuse(struct stream *s, int status, const char *why, enum http_end how);

/* http2_head.c */
#define FIELD_COST 128 /* of conn_spend; each byte is looked at several times */
#define BYTE_COST  4
int head_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t nname,
               const uint8_t *value, size_t nvalue, uint8_t flags, void *arg);
int head_invalid(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t nname,
                 const uint8_t *value, size_t nvalue, uint8_t flags, void *arg);
void trailers_done(struct stream *s);
void head_done(struct stream *s, bool ends); /* it is complete: the handler is called, or it is refused */

/* http2_connect.c */
#define CONNECT_FIELDS 3                                              /* that connect_head may add */
bool connect_is_known(struct str protocol);                           /* of :protocol */
int connect_head(struct arena *a, struct http_header *hv, size_t *n); /* as by HTTP/1.1; 0, or a status */
/* The fields of 200 in place of 101. -EPROTO: the server did not take up what was asked for. */
int connect_answer(struct http_x *x, const struct http_header *headers, size_t n, struct http_header **out,
                   size_t *nout);

/* http2_answer.c */
extern const struct carrier http2_carrier;
void answer_refuse(struct stream *s, int status, const char *why); /* our own small answer, once no handler is left */
uint64_t answer_mark(const struct stream *s);                      /* queued bytes at which it is congested */
void answer_drop(struct stream *s);                                /* queued output is lost */
void answer_submit_held(struct stream *s);
ssize_t answer_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                    nghttp2_data_source *source, void *arg);
int answer_write(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                 nghttp2_data_source *source, void *arg);

#endif
