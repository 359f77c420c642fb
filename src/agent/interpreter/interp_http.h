/* SPDX-License-Identifier: Apache-2.0 */
/* interp_http.h - what the HTTP side of the interpreter shares between its files. */
#ifndef CLOCHE_AGENT_INTERPRETER_INTERP_HTTP_H
#define CLOCHE_AGENT_INTERPRETER_INTERP_HTTP_H

#include "agent/interpreter/interp_context.h"
#include "net/http.h"

#define INTERP_BODY_MAX     ((size_t)96 << 20)  /* largest request body */
#define INTERP_PARSED_MAX   ((size_t)256 << 20) /* what it may become when read */
#define INTERP_ORDER_MAX    ((size_t)64 << 10)  /* largest body of an interrupt */
#define INTERP_KEEPALIVE_MS 5000                /* longest silence in a stream */

/* Longest wait of an answer's head for its first event; the loop's first millisecond may be over at once */
#define INTERP_OPEN_MS      2

struct execution;

struct interp {
  struct kernel_host host;
  struct agent *agent;
  struct http_server *server;
  struct kernel_specs *specs;
  struct contexts *contexts; /* made at the first request: interp_http_contexts() */
  struct execution *streams; /* answers that are open */
  uv_timer_t keepalive, opening;
  unsigned unopened; /* streams whose head waits; see interp_execute.c */
};

struct contexts *interp_http_contexts(struct interp *in);

/* Answers with the CORS header where the request has an Origin. */
int interp_http_reply(struct http_x *x, int status, const char *type, struct str body);
int interp_http_text(struct http_x *x, int status, const char *fmt, ...) PRINTF_LIKE(3, 4); /* text/plain */
int interp_http_json(struct http_x *x, int status, struct str body);
/* Begins a chunked answer of the execution with that id. */
int interp_http_stream(struct http_x *x, const char *id);
/* 500 for a language that is not available. */
void interp_http_no_kernel(struct http_x *x, const char *language, const struct err *why);

/* POST /execute, once its body is there. Takes the exchange over; body and arena live until `gone` was called. */
void execute_start(struct interp *in, struct http_x *x, struct str body, struct arena *arena, void (*gone)(void *arg),
                   void *arg);

#endif
