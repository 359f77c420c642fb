/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - the server's own view of its connections; for this folder only. */
#ifndef CLOCHE_EXCHANGE_H
#define CLOCHE_EXCHANGE_H

#include "net/conn.h"
#include "net/h1parse.h"
#include "net/http.h"
#include <netinet/in.h>

/* What a connection is waiting for, which decides its deadline. */
struct peer;
enum peer_phase { PEER_IDLE, PEER_HEAD, PEER_BODY, PEER_ANSWER, PEER_DISCARD, PEER_LINGER };

/* How exchanges are answered on a connection that carries many at once; the names are those of http.h. */
struct carrier {
  int (*respond)(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length);
  int (*reply)(struct http_x *x, int status, const struct http_header *headers, size_t n, struct str body);
  int (*send)(struct http_x *x, struct str data);
  int (*file)(struct http_x *x, int fd, uint64_t offset, uint64_t n);
  int (*tunnel)(struct http_x *x, const struct http_header *headers, size_t n);
  bool (*congested)(const struct http_x *x);
  void (*trailers)(struct http_x *x, const struct http_header *trailers, size_t n); /* for the end that follows */
  void (*end)(struct http_x *x);
  void (*abort)(struct http_x *x);
  void (*flow)(struct http_x *x, bool on); /* resume, pause */
  void (*drop)(struct peer *p);
};

struct peer {
  struct conn conn;
  const struct carrier *via; /* NULL: HTTP/1.1, one exchange after another */
  void *session;             /* of `via` */
  bool secure;               /* over TLS */
  struct http_server *server;
  struct http_x *x; /* the request being answered, or NULL */
  struct h1scan scan;
  struct h1_body body; /* of the current request; outlives x when the handler left some unread */
  struct buf kept;     /* lines of its trailers */
  enum peer_phase phase;
  bool restart;      /* the phase's time begins anew */
  bool look;         /* who had the socket found nothing in it: an end or an error, which is read here */
  bool last;         /* no request after this one */
  enum http_end how; /* the argument of `gone` when the connection closes under x */
  uint64_t discarded;
  struct peer *idle_prev, *idle_next; /* while PEER_IDLE: oldest first */
  bool in_idle;
  void *owner;              /* http_server_adopt_tls_for */
  struct address *unproven; /* counted there until a request of it was accepted */
  union {
    struct sockaddr any;
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;
  } address;
};

struct http_x {
  struct peer *peer;
  void *stream;        /* of peer->via */
  struct http_x *next; /* in the server's store of used ones */
  const struct http_x_ops *ops;
  void *data;
  struct arena arena;
  struct http_head head;
  struct h1_frame frame;
  struct http_header *trailers; /* in the arena */
  size_t ntrailers;
  uint64_t body_max, body_seen;
  int64_t out_left; /* of a promised length; HTTP_CHUNKED otherwise */
  bool reading;     /* the handler takes the body */
  bool body_told;
  bool untimed;      /* silence inside the body has no limit */
  bool continue_due; /* the client waits for `100 Continue` */
  bool begun, ended, tunnel;
  bool bare;    /* the answer has no body on the wire: HEAD, 204, 304 */
  bool chunked; /* each send is a chunk */
  bool drain_due;
};

struct http_server {
  struct net *net;
  struct http_limits limits;
  http_request_fn fn;
  void *arg;
  struct listener *listeners;
  uv_timer_t pause; /* accepting stops for a moment when descriptors are out */
  struct peer *idle_first, *idle_last;
  struct map addresses; /* struct address *, with connections that had no request accepted yet */
  struct http_x *store;
  void (*left)(void *owner); /* a connection with an owner has ended; may be NULL */
  size_t nstore;
  size_t nconns;
  unsigned refs;
  bool stopping, freed;
};

/* A call that shares its connection with others; the names are those of http.h. */
struct call_carrier {
  int (*start)(struct http_call *c, struct str method, struct str target, const struct http_header *headers, size_t n,
               int64_t length);
  int (*send)(struct http_call *c, struct str data);
  void (*end)(struct http_call *c, const struct http_header *trailers, size_t n);
  bool (*congested)(const struct http_call *c);
  void (*deadline)(struct http_call *c, unsigned ms);
  void (*flow)(struct http_call *c, bool on); /* resume, pause */
  void (*leave)(struct http_call *c);         /* for good: frees c */
};

/* The client side; all of it is http_call.c's, but for the first four. */
struct http_call {
  struct conn conn;               /* unused by those that have `via` */
  const struct call_carrier *via; /* NULL: HTTP/1.1, a connection of its own */
  void *stream;                   /* of `via` */
  struct http_link *link;         /* whose connection it is, before HTTP/1.1 was chosen, or when it was not */
  struct http_limits limits;
  const struct http_call_ops *ops;
  void *data;
  void (*lost)(struct http_call *c, void *arg);
  void *lost_arg;
  struct arena arena; /* the answer's head and trailers */
  struct buf kept;    /* lines of trailers as they came */
  struct http_header *trailers;
  size_t ntrailers;
  struct http_head head;
  struct h1_frame frame;
  struct h1_body body;
  struct h1scan scan;
  int64_t out_left; /* of a promised length; HTTP_CHUNKED otherwise */
  char upgrade[64]; /* what the request offers to switch to; "" = nothing */
  unsigned interims;
  int broke; /* an error to be reported in the next deferred run */
  const char *why;
  bool started, sent; /* a request was begun, and is complete */
  bool head_seen, ended;
  bool chunked, tunnel, head_request;
  bool paused, drain_due, stray;
  bool failed, freed, released; /* released: the connection's memory is ours alone */
};

extern const struct conn_ops peer_ops;

/* server.c */
typedef int (*admit_fn)(struct http_server *s, int fd, void *arg); /* takes fd in all cases */
int server_listen(struct http_server *s, int fd, admit_fn admit, void *arg);
bool peer_is_near(const struct peer *p); /* it connected from this host */
int server_admit(struct http_server *s, int fd, bool plain,
                 struct peer **out); /* plain: a refusal may be answered in HTTP */
void server_idle_add(struct http_server *s, struct peer *p);
void server_idle_remove(struct http_server *s, struct peer *p);
void server_known(struct http_server *s,
                  struct peer *p); /* a request of it was accepted: no longer counted by address */
void server_left(struct peer *p);  /* its owner is told */
void server_unref(struct http_server *s);

/* http1.c */
struct http_x *exchange_new(struct peer *p);
void exchange_gone(struct http_x *x, enum http_end how); /* the one place that calls `gone`; x is free after it */
void exchange_free(struct http_server *s, struct http_x *x);
void peer_end(struct peer *p, enum http_end how, bool reset); /* closes; x hears `how` */
void peer_drop(struct peer *p);                               /* the same, and x hears it at once */

/* http_call.c */
extern const struct conn_ops call_conn_ops;
struct conn *call_conn(struct http_call *c);
uint64_t call_room(const struct http_call *c); /* body bytes that may be passed to it unframed */
void call_took(struct http_call *c, size_t n); /* that many were */

/* http1_answer.c */
int answer_may_send(struct http_x *x, bool open, uint64_t n); /* 0, and n are counted; -EPIPE, -EINVAL, -EMSGSIZE */
uint64_t answer_room(const struct http_x *x);
void answer_took(struct http_x *x, size_t n);
int answer_error(struct peer *p, int status, const char *why); /* a small JSON answer of our own that says close */

#endif
