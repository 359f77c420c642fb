/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_call.h - start here: one RPC of the Connect protocol on one HTTP exchange.
 *
 * connect.c knows the protocol without a transport, schema.h describes messages as tables that json_codec.c and
 * proto_codec.c share. The room promises that a malformed request is answered by the protocol's own error and never
 * reaches a handler, that every call gets exactly one end, and that lengths and nesting are bounded.
 *
 * rpc_accept() takes an exchange whose path belongs to a method, checks what Connect wants checked, reads and decodes
 * the request and calls the method's handler on the loop. The handler answers now or later: rpc_reply() or rpc_fail()
 * for a unary or client-stream call, rpc_send() as often as it likes and then rpc_finish() or rpc_fail() for a server
 * stream. A call is counted: it stays while somebody holds it, also after the peer has left (sending is then a no-op),
 * so a worker thread or a process may keep a pointer to it. */
#ifndef CLOCHE_RPC_RPC_CALL_H
#define CLOCHE_RPC_RPC_CALL_H

#include "net/http.h"
#include "rpc/connect.h"

enum rpc_kind { RPC_UNARY, RPC_SERVER_STREAM, RPC_CLIENT_STREAM };

struct rpc_call;

struct rpc_method {
  const char *path; /* "/process.Process/Start" */
  enum rpc_kind kind;
  const struct schema *request, *response;
  void (*handle)(struct rpc_call *c, const void *request); /* client stream: once per message */
  void (*finish)(struct rpc_call *c);                      /* client stream: all messages have come */
};

struct rpc_ops {
  void (*drain)(struct rpc_call *c); /* no longer congested */
  void (*gone)(struct rpc_call *c);  /* the peer left before we were done; the last call */
};

struct rpc_setup {
  void *context;                     /* what handlers get from rpc_context() */
  struct str user;                   /* name from Basic authentication; p NULL = none given */
  const struct http_header *headers; /* added to every answer; must live in the exchange's arena */
  size_t nheaders;
  enum rpc_code refuse;       /* not RPC_OK: answer this once the request has been read */
  const char *refuse_message; /* in the exchange's arena */
};

void rpc_accept(struct http_x *x, const struct rpc_method *m, const struct rpc_setup *setup);

void *rpc_context(const struct rpc_call *c);
struct str rpc_user(const struct rpc_call *c);
struct str rpc_header(const struct rpc_call *c, const char *name); /* of the request; none once the peer is gone */
struct arena *rpc_arena(struct rpc_call *c);                       /* lives as long as the call */
uv_loop_t *rpc_loop(const struct rpc_call *c);
void rpc_watch(struct rpc_call *c, const struct rpc_ops *ops, void *data);
void *rpc_data(const struct rpc_call *c);

void rpc_hold(struct rpc_call *c);
void rpc_release(struct rpc_call *c);
bool rpc_open(const struct rpc_call *c); /* an answer can still be given */

void rpc_reply(struct rpc_call *c, const void *msg);
void rpc_fail(struct rpc_call *c, enum rpc_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void rpc_send(struct rpc_call *c, const void *msg);
void rpc_send_frame(struct rpc_call *c, struct str frame); /* a frame made by frame_message() with rpc_codec_of() */
void rpc_finish(struct rpc_call *c);
enum rpc_codec rpc_codec_of(const struct rpc_call *c);
bool rpc_congested(const struct rpc_call *c);

/* Sends `msg` (static) after each interval of silence that Keepalive-Ping-Interval asks for (90 s by default). */
void rpc_keepalive(struct rpc_call *c, const void *msg);

/* Client streams: no further message is handled until rpc_more(). */
void rpc_wait(struct rpc_call *c);
void rpc_more(struct rpc_call *c);

/* Connect-Timeout-Ms, 0 = none. Left alone, the call fails with deadline_exceeded at that time; one who takes the
 * deadline over gets the milliseconds that remain and must see to it. */
uint64_t rpc_deadline_take(struct rpc_call *c);

#endif
