/* SPDX-License-Identifier: Apache-2.0 */
/* http_reply.c - see http_reply.h. */
#include "agent/envd/http_reply.h"

const struct http_x_ops answer_no_ops = {0};

size_t answer_cors(const struct http_head *head, struct http_header out[ANSWER_CORS_MAX])
{
  size_t n = 0;
  out[n++] = (struct http_header){STR("Vary"), STR("Origin")};
  if (!http_header(head, "Origin").p)
    return n;
  out[n++] = (struct http_header){STR("Access-Control-Allow-Origin"), STR("*")};
  out[n++] = (struct http_header){STR("Access-Control-Expose-Headers"),
                                  STR("Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, Cache-Control, "
                                      "X-Content-Type-Options")};
  return n;
}

static size_t head_fill(struct http_x *x, const struct http_header *headers, size_t n,
                        struct http_header all[ANSWER_HEADERS_MAX])
{
  size_t have = 0;
  for (size_t i = 0; i < n && have < ANSWER_HEADERS_MAX - ANSWER_CORS_MAX; i++)
    all[have++] = headers[i];
  return have + answer_cors(http_x_head(x), all + have);
}

int answer_head(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length)
{
  struct http_header all[ANSWER_HEADERS_MAX];
  size_t have = head_fill(x, headers, n, all);
  return http_respond(x, status, all, have, length);
}

void answer(struct http_x *x, int status, const struct http_header *headers, size_t n, struct str body)
{
  struct http_header all[ANSWER_HEADERS_MAX];
  size_t have = head_fill(x, headers, n, all);
  http_reply_with(x, status, all, have, body);
}

void answer_fail(struct http_x *x, int status, const char *fmt, ...)
{
  cleanup_buf struct buf message = BUF_INIT(64 << 10);
  cleanup_buf struct buf body = BUF_INIT(256 << 10);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&message, fmt, ap);
  va_end(ap);
  struct jw w = JW(&body);
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_int(&w, status);
  jw_key(&w, "message");
  jw_str(&w, buf_str(&message));
  jw_close(&w, '}');
  buf_addc(&body, '\n');
  static const struct http_header headers[] = {
      {STR("Content-Type"), STR("application/json; charset=utf-8")},
      {STR("X-Content-Type-Options"), STR("nosniff")},
  };
  answer(x, status, headers, ARRAY_LEN(headers), buf_str(&body));
}

void answer_json(struct http_x *x, int status, bool no_store, struct str body)
{
  static const struct http_header headers[] = {
      {STR("Content-Type"), STR("application/json")},
      {STR("Cache-Control"), STR("no-store")},
  };
  answer(x, status, headers, no_store ? 2 : 1, body);
}

/* ---- small bodies ---- */

struct reader {
  struct buf body;
  answer_body_fn fn;
  void *arg;
};

static void on_body(struct http_x *x, struct str chunk)
{
  struct reader *r = http_x_data(x);
  buf_adds(&r->body, chunk);
}

static void on_body_end(struct http_x *x)
{
  struct reader *r = http_x_data(x);
  if (buf_failed(&r->body))
    answer_fail(x, 413, "request body is too large");
  else
    r->fn(x, buf_str(&r->body), r->arg);
}

static void on_gone(struct http_x *x, enum http_end how UNUSED)
{
  struct reader *r = http_x_data(x);
  buf_free(&r->body);
  free(r);
}

static const struct http_x_ops reader_ops = {.body = on_body, .body_end = on_body_end, .gone = on_gone};

void answer_with_body(struct http_x *x, size_t max, answer_body_fn fn, void *arg)
{
  struct reader *r = xcalloc(1, sizeof(*r));
  r->body = BUF_INIT(max);
  r->fn = fn;
  r->arg = arg;
  http_x_handle(x, &reader_ops, r);
  http_x_body_max(x, max);
  http_x_resume(x);
}
