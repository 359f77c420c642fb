/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - start here: HTTP exchanges, whatever carries them.
 *
 * A server hands each request to its handler as an exchange (struct http_x) once the head is complete. Bodies stream
 * both ways with back-pressure: the request body arrives only while the exchange is not paused, and output is
 * queued up to a high-water mark after which the handler waits for `drain`. Nothing is buffered without a limit.
 * A client call (struct http_call) is the mirror image on a connected socket. Everything runs on one libuv loop;
 * no call here blocks. HTTP/1.1 lives in http1.c, the strict parser in h1parse.c; TLS (tls.c) and HTTP/2 (http2.c) fit
 * in below the same interface and are a library of their own, entered through tls.h.
 *
 * The room promises: a head that a strict parser does not accept reaches no handler; every byte that waits has a limit
 * and every silence a deadline; a slow or hostile peer delays its own connection only; callbacks never come from inside
 * a call of the handler. Below the exchanges: conn.h (one socket), netloop.h (what connections of a loop share). */
#ifndef CLOCHE_HTTP_H
#define CLOCHE_HTTP_H

#include "base/base.h"
#include <uv.h>

struct http_header {
  struct str name, value; /* names as received; compare without case */
};

struct http_head {
  struct str method, target, path, query; /* requests: path and query are raw slices of target, query without '?' */
  int status;                             /* responses */
  struct str reason;
  int minor; /* HTTP/1.minor */
  struct http_header *headers;
  size_t nheaders;
};

/* First value of that name (ASCII case ignored); p is NULL when absent. */
struct str http_header(const struct http_head *head, const char *name);
/* What `Authorization: Bearer` holds, trimmed; p is NULL when there is none. */
struct str http_bearer(const struct http_head *head);
/* True when a comma-separated header holds that token. */
bool http_header_has(const struct http_head *head, const char *name, const char *token);
/* What a request offers to switch to by `Connection: upgrade`; none when it has a body to come (bodied) or is HTTP/1.0.
 * Protocols that are HTTP again (h2c, TLS/1.0) are no offer: a client that got its way would send requests to others
 * over the tunnel. */
struct str http_upgrade(const struct http_head *head, bool bodied);
/* True when `answer` switches to one of the protocols that were offered. */
bool http_upgrade_taken(struct str offer, const struct http_head *answer);
const char *http_reason(int status);

struct http_limits {
  size_t head_max;    /* bytes of request or status line plus headers; 64 KiB */
  size_t headers_max; /* number of header lines; 200 */
  size_t body_max;    /* default largest request body; 16 MiB; http_x_body_max changes it per exchange */
  size_t high_water;  /* queued output bytes at which http_congested() is true; 256 KiB; drain at a quarter of it */
  unsigned head_ms;   /* time for a complete head once its first byte came; 30 s */
  unsigned idle_ms;   /* time between requests on a kept connection; 640 s */
  unsigned body_ms;   /* longest silence inside a request body that is being read (not paused); 300 s; 0 = none;
                         http_x_body_untimed lifts it */
  unsigned linger_ms; /* longest time a peer may accept no byte of queued output before it is cut; 0 = none */
  size_t address_max; /* open connections from one address on which no request was accepted yet (http_x_accepted); 0 =
                         no limit */
  uint64_t held_max;  /* bytes that wait on all connections of the server's loop; over it those that stand still longest
                         are cut; 0 = no limit */
  bool far; /* of calls: the way may be long, so the kernel chooses how much it receives ahead; false: it stays in this
               machine */
  bool connect;     /* WebSockets by HTTP/2 (RFC 8441) are taken; handlers see requests to upgrade, answered by
                       http_tunnel; false: clients use HTTP/1.1 for them */
  bool trailers;    /* those of bodies are kept for the handler; false: they are dropped */
  size_t conns_max; /* open connections per server; 10,000; over it: the oldest idle one is closed, else 503 */
};
extern const struct http_limits http_limits_default;

/* ---- server ---- */

struct http_server;
struct http_x;
struct net;

/* How an exchange ended. PEER_GONE: the peer left, in order. PEER_CUT: its connection was reset, as it is by one that
 * was cut off itself (http_call_cut), or is found dead, as in a box that was asleep. */
enum http_end { HTTP_DONE, HTTP_PEER_GONE, HTTP_PEER_CUT, HTTP_ABORTED };

/* What becomes of a socket that is offered (http_x_ops.lend). */
enum http_lend { HTTP_LEND_NOT, HTTP_LEND_TAKEN, HTTP_LEND_WAIT };

struct http_call;
struct http_x_ops {
  void (*body)(struct http_x *x, struct str chunk); /* never empty */
  void (*body_end)(struct http_x *x);               /* all of the body has come (also when there was none) */
  void (*drain)(struct http_x *x);                  /* queued output fell below the low-water mark */
  /* The last call for x, exactly once, in every case; x and its arena are gone after it returns. While a handler
   * works on an answer the connection is watched, so a peer that leaves is noticed at once. */
  void (*gone)(struct http_x *x, enum http_end how);
  /* For a proxy; may be NULL. The call that takes the body as it comes, or NULL: large bodies of a known length then go
   * there without `body` seeing them, and `passed` counts them. */
  struct http_call *(*pass)(struct http_x *x);
  void (*passed)(struct http_x *x, size_t n);
  /* The handler may take the next bytes of such a body, `most` at most, from the socket itself, on a thread. TAKEN: fd
   * is its to close, and nobody else reads from the socket until http_x_lent. WAIT: it has paused the body. */
  enum http_lend (*lend)(struct http_x *x, int fd, uint64_t most);
};
void http_x_lent(struct http_x *x, uint64_t n); /* so many were taken; `passed` counts them. From the loop */

/* Called with a complete head. The handler calls http_x_handle() and answers now or later. The body stays unread
 * until http_x_resume(). */
typedef void (*http_request_fn)(struct http_x *x, void *arg);

struct http_server *http_server_new(uv_loop_t *loop, const struct http_limits *limits, http_request_fn fn, void *arg);
/* Other limits from now on; what waits keeps the time that it was given. */
void http_server_limits(struct http_server *s, const struct http_limits *limits);
int http_server_listen(struct http_server *s, int fd); /* a bound, listening socket; owned; may be called repeatedly */
int http_server_adopt(struct http_server *s, int fd);  /* a connected socket; owned */
/* Connections of http_server_adopt_tls_for: whose it is, and a call after its last exchange has gone. */
void http_server_owned(struct http_server *s, void (*left)(void *owner));
void *http_x_owner(const struct http_x *x);
size_t http_server_conns(const struct http_server *s);
void http_server_stop_listening(struct http_server *s);
void http_server_free(struct http_server *s); /* aborts what is open; `gone` is called for each exchange */

const struct http_head *http_x_head(const struct http_x *x);
struct arena *http_x_arena(struct http_x *x); /* dies with the exchange */
void http_x_handle(struct http_x *x, const struct http_x_ops *ops, void *data);
void *http_x_data(const struct http_x *x);
uv_loop_t *http_x_loop(const struct http_x *x);
void http_x_peer(const struct http_x *x, char *out, size_t size); /* "127.0.0.1:4711" */
void http_x_accepted(struct http_x *x);     /* the request showed a right to be here: its connection counts as a known
                                               client's from now on */
bool http_x_secure(const struct http_x *x); /* it came over TLS */
void http_x_hold(
    struct http_x *x,
    int64_t n); /* the handler keeps n more bytes of the body, or fewer: they count as waiting (held_max) */

void http_x_resume(struct http_x *x); /* body flows (answers Expect: 100-continue at first use) */
void http_x_pause(struct http_x *x);
/* No limit on silence inside this exchange's request body (http_limits.body_ms); for bodies that are a stream of
 * events. The peer's disconnect, and whatever the handler waits for, end it. */
void http_x_body_untimed(struct http_x *x);
void http_x_body_max(struct http_x *x, uint64_t max); /* UINT64_MAX = none; more than it: 413, then closed */
int64_t http_x_body_length(const struct http_x *x);   /* -1 = chunked, 0 = none */
/* Those behind the body, from body_end on (http_limits.trailers); in the exchange's arena. */
size_t http_x_trailers(const struct http_x *x, const struct http_header **out);

#define HTTP_CHUNKED (-1)
/* Sends the head. length: bytes to come, or HTTP_CHUNKED. Date, Connection, Content-Length and Transfer-Encoding are
 * added here (not for 1xx, 204, 304); those that are passed in are left out, but `Connection: close` is obeyed. An
 * answer begun while a body of more than 256 KiB is neither read nor resumed says close. 0, or negative when an answer
 * was begun already (-EALREADY), a header can't be written (-EINVAL) or the peer is gone (-EPIPE). */
int http_respond(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length);
int http_send(struct http_x *x, struct str data); /* copied; one call = one chunk; leaves when this step ends */
int http_send_file(struct http_x *x, int fd, uint64_t offset,
                   uint64_t n); /* fd owned; sendfile(2); after what is queued */
bool http_congested(const struct http_x *x);
void http_end(struct http_x *x); /* finishes the answer; the connection is kept when it can be */
/* The same with trailers behind the body, where its framing has a place for them; one that can't be written is left
 * out. */
void http_end_with(struct http_x *x, const struct http_header *trailers, size_t n);
void http_abort(
    struct http_x *x); /* cuts the connection with no final chunk; `gone` follows (not from inside this call) */
/* A whole answer at once. */
int http_reply(struct http_x *x, int status, const char *content_type, struct str body);
int http_reply_with(struct http_x *x, int status, const struct http_header *headers, size_t n, struct str body);
/* Switches protocols (101): bytes flow raw from here. `body` gets them, http_send sends them, http_end closes our
 * direction, body_end reports that the peer closed its own. The connection ends with it. -EPROTO: the client did not
 * ask for what `headers` say. */
int http_tunnel(struct http_x *x, int status, const struct http_header *headers, size_t n);

/* For who answers from callbacks of its own (a process was read, a timer fired): what is said between the two leaves
 * together at the end. Pairs may be nested. Calls of the ops here are such pairs already. */
struct net *http_gather(uv_loop_t *loop);
void http_let_go(struct net *net);

/* ---- client ---- */

struct http_call_ops {
  /* The final status. 1xx are skipped, up to a number; 101 begins a tunnel, and fails where the request did not ask for
   * it. */
  void (*head)(struct http_call *c, const struct http_head *head);
  void (*body)(struct http_call *c, struct str chunk);
  void (*end)(struct http_call *c); /* the answer is complete */
  void (*drain)(struct http_call *c);
  /* Broken transfer; no further calls but http_call_free. -ECONNRESET: it ended before any byte of an answer, as a kept
   * connection does when the peer has just closed it; -ECONNABORTED: the server did not look at the request, which may
   * be sent again; -EPROTONOSUPPORT: nor here, and wants it by HTTP/1.1; -EPROTO: inside the answer, or the answer is
   * malformed. */
  void (*fail)(struct http_call *c, int code, const char *why);
  struct http_x *(*pass)(struct http_call *c); /* the same for the answer's body */
  void (*passed)(struct http_call *c, size_t n);
};

/* Takes a connected (or connecting) socket. The same call object may carry one request after another while
 * http_call_reusable() says so. */
struct http_call *http_call_new(uv_loop_t *loop, int fd, const struct http_limits *limits);
void http_call_handle(struct http_call *c, const struct http_call_ops *ops, void *data);
void *http_call_data(const struct http_call *c);
/* length: HTTP_CHUNKED, or the number of body bytes to come (0 = none). Adds Content-Length / Transfer-Encoding, and a
 * Host where none is given. Negative: nothing was begun and no callback follows; 0: `end` or `fail` will. */
int http_call_start(struct http_call *c, struct str method, struct str target, const struct http_header *headers,
                    size_t n, int64_t length);
int http_call_send(struct http_call *c, struct str data);
void http_call_end(struct http_call *c);
void http_call_end_with(struct http_call *c, const struct http_header *trailers, size_t n);
/* Inside `end`: those behind the answer's body (http_limits.trailers). */
size_t http_call_trailers(const struct http_call *c, const struct http_header **out);
bool http_call_congested(const struct http_call *c);
/* The answer's head must have come within that time; anew with each call. 0 = whenever it comes. */
void http_call_deadline(struct http_call *c, unsigned ms);
void http_call_pause(struct http_call *c); /* stop reading the answer */
void http_call_resume(struct http_call *c);
/* Called when a kept connection ends or sends bytes between requests; then only http_call_free is left. */
void http_call_lost(struct http_call *c, void (*lost)(struct http_call *c, void *arg), void *arg);
bool http_call_shared(const struct http_call *c); /* by HTTP/2, on a connection that others may use as well */
bool http_call_alive(const struct http_call *c);  /* looks at the socket itself: the peer has not closed it */
bool http_call_reusable(
    const struct http_call *c);           /* answer complete, request complete, peer keeps alive, no stray bytes */
void http_call_free(struct http_call *c); /* leaves in order; no callback comes after it; allowed inside callbacks */
void http_call_cut_by_exit(struct http_call *c); /* the end of this process cuts it, too, instead of leaving in order */
void http_call_cut(struct http_call *c); /* the same by a reset: the far side knows that nobody chose to leave */

#endif
