/* SPDX-License-Identifier: Apache-2.0 */
/* http_reply.h - plain HTTP answers of the envd API: CORS on everything, one JSON shape for errors. */
#ifndef CLOCHE_AGENT_ENVD_HTTP_REPLY_H
#define CLOCHE_AGENT_ENVD_HTTP_REPLY_H

#include "net/http.h"

#define ANSWER_CORS_MAX    3
#define ANSWER_HEADERS_MAX 16

/* Headers that every answer to this request carries; static text only. Returns how many. */
size_t answer_cors(const struct http_head *head, struct http_header out[ANSWER_CORS_MAX]);

/* A whole answer: the given headers, then CORS. */
void answer(struct http_x *x, int status, const struct http_header *headers, size_t n, struct str body);
/* The head of a longer one. */
int answer_head(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length);
/* {"code":404,"message":"..."} and a newline. */
void answer_fail(struct http_x *x, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void answer_json(struct http_x *x, int status, bool no_store, struct str body);

/* Reads a small request body whole, then calls fn (on the loop; body borrowed); too large a body is answered by 413. */
typedef void (*answer_body_fn)(struct http_x *x, struct str body, void *arg);
void answer_with_body(struct http_x *x, size_t max, answer_body_fn fn, void *arg);

/* For answers given at once: nothing to watch. */
extern const struct http_x_ops answer_no_ops;

#endif
