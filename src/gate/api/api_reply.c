/* SPDX-License-Identifier: Apache-2.0 */
/* api_reply.c - answers of the API, and which error the client gets for one of the warden's.
 *
 * Newer clients repeat every request, POST included, on 429, 502, 503 and 504, unless the answer says
 * `Should-Retry: false`. So 429 for a limit that only the caller can change, and every failure that may have left
 * something done, say so; 503 is for "nothing was changed, try again" and says when. */
#include "gate/api/api.h"
#include "wire/http_status.h"

#include <stdio.h>

#define TEXT(lit)                                                                                                      \
  {                                                                                                                    \
    lit, sizeof(lit) - 1                                                                                               \
  }
static const struct http_header cors[] = {
    {TEXT("Access-Control-Allow-Origin"), TEXT("*")},
    {TEXT("Access-Control-Expose-Headers"),
     TEXT("X-Next-Token, X-Total-Running, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, "
          "Should-Retry")},
};

void api_json_with(struct req *r, int status, struct str body, const struct http_header *headers, size_t n)
{
  if (r->answered)
    return;
  r->answered = true;
  metrics_api(r, status);
  struct http_header all[9];
  size_t k = 0;
  if (r->entry && (r->entry->flags & NO_STORE))
    all[k++] = (struct http_header){STR("Cache-Control"), STR("no-store")};
  if (body.n)
    all[k++] = (struct http_header){STR("Content-Type"), STR("application/json")};
  if (http_header(http_x_head(r->x), "origin").p)
    for (size_t i = 0; i < ARRAY_LEN(cors); i++)
      all[k++] = cors[i];
  for (size_t i = 0; i < n && k < ARRAY_LEN(all); i++)
    all[k++] = headers[i];
  http_reply_with(r->x, status, all, k, body);
}

void api_json(struct req *r, int status, struct str body)
{
  api_json_with(r, status, body, NULL, 0);
}

void api_answer_begin(struct req *r, int status, const char *content_type, int64_t length)
{
  if (r->answered)
    return;
  r->answered = true;
  metrics_api(r, status);
  struct http_header all[4] = {{STR("Content-Type"), str_of(content_type)}};
  size_t k = 1;
  if (http_header(http_x_head(r->x), "origin").p)
    for (size_t i = 0; i < ARRAY_LEN(cors); i++)
      all[k++] = cors[i];
  http_respond(r->x, status, all, k, length);
}

void api_empty(struct req *r, int status)
{
  api_json(r, status, STR_NONE);
}

static const char *word_of(int status)
{
  static const struct {
    int status;
    const char *word;
  } words[] = {{400, "bad_request"}, {401, "unauthorized"}, {403, "forbidden"},    {404, "not_found"},
               {409, "conflict"},    {413, "too_large"},    {429, "rate_limited"}, {501, "not_available"},
               {503, "unavailable"}, {507, "no_space"}};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (words[i].status == status)
      return words[i].word;
  return "internal_error";
}

static void put_error(struct buf *b, const struct req *r, const struct api_failure *f, struct str message)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  jw_key(&w, "code");
  if (r->entry && (r->entry->flags & TEXT_CODE))
    jw_z(&w, word_of(f->status));
  else
    jw_int(&w, f->status);
  jw_key(&w, "message");
  jw_str(&w, message);
  if (f->code) {
    jw_key(&w, "error_code");
    jw_z(&w, f->code);
  }
  jw_close(&w, '}');
}

void api_fail(struct req *r, const struct api_failure *f, const char *fmt, ...)
{
  char text[1024], seconds[24];
  struct http_header h[2];
  size_t n = 0;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  cleanup_buf struct buf b = BUF_INIT(8192);
  put_error(&b, r, f, str_of(text));
  if (f->again)
    h[n++] = (struct http_header){STR("Should-Retry"), STR("true")};
  else if (f->final)
    h[n++] = (struct http_header){STR("Should-Retry"), STR("false")};
  if (f->retry_after_s) {
    int k = snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)f->retry_after_s);
    h[n++] = (struct http_header){STR("Retry-After"), {seconds, (size_t)k}};
  }
  api_json_with(r, f->status, buf_str(&b), h, n);
}

void api_error(struct req *r, int status, const char *fmt, ...)
{
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  api_fail(r, &(struct api_failure){.status = status}, "%s", text);
}

void api_timeout_error(struct req *r)
{
  unsigned max = r->team.timeout_max_s;
  bool hours = max % 3600 == 0;
  api_error(r, 400, "Timeout cannot be greater than %u %s", hours ? max / 3600 : max, hours ? "hours" : "seconds");
}

void api_too_fast(struct req *r, struct str message, uint64_t seconds)
{
  struct api_failure f = {.status = 429, .retry_after_s = MAX(seconds, (uint64_t)1)};
  api_fail(r, &f, STR_FMT, STR_ARG(message));
}

struct api_failure api_failure_of(int warden_status, uint64_t retry_after_s, bool changes)
{
  struct api_failure f = {.status = wire_http_status(-warden_status)};
  if (warden_status == -EDQUOT)
    f.retry_after_s = MAX(retry_after_s, (uint64_t)1);
  else if (warden_status == -EAGAIN)
    f.final = true;
  else if (f.status == 503)
    f.retry_after_s = 1;
  else if (warden_status == -EINPROGRESS)
    f.again = true, f.retry_after_s = 1;
  else if (f.status >= 500)
    f.final = changes;
  return f;
}

void api_warden_error(struct req *r, const struct warden_reply *reply)
{
  api_warden_error_code(r, reply, NULL);
}

void api_warden_error_code(struct req *r, const struct warden_reply *reply, const char *code)
{
  struct str message = wire_get(reply->packet, W_MESSAGE);
  bool changes = strcmp(r->entry->method, "GET") != 0;
  struct api_failure f = api_failure_of(reply->status, wire_u64(reply->packet, W_RETRY, 1), changes);
  f.code = code;
  if (f.status == 500)
    api_fail(r, &f, "Failed to %s: " STR_FMT, r->entry->action, STR_ARG(message));
  else
    api_fail(r, &f, STR_FMT, STR_ARG(message));
}

bool api_refused(struct req *r, const struct warden_reply *reply)
{
  r->pending_call = 0;
  if (reply->status)
    api_warden_error(r, reply);
  return reply->status != 0;
}

struct jw *api_items_begin(struct req *r, char open)
{
  struct jw *w = arena_alloc(r->arena, sizeof(*w));
  *w = JW(&r->body);
  buf_clear(&r->body);
  jw_open(w, open);
  r->state = w;
  return w;
}

void api_items_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  if (api_refused(r, reply))
    return;
  jw_close(w, w->b->p[0] == '[' ? ']' : '}');
  api_json(r, 200, buf_str(w->b));
}
