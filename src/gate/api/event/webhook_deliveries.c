/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_deliveries.c - what was delivered to a webhook, and figures of it. */
#include "gate/api/api.h"
#include "wire/event_type.h"

#define LIMIT_MOST    100
#define LIMIT_DEFAULT 25
#define MINUTE_US     60000000ll
#define DAY_US        (24 * 60 * MINUTE_US)
#define RANGE_MOST    (7 * DAY_US)

static const char *const classes[DELIVERY_CLASSES] = {
    [DELIVERY_HTTP] = "http_error",       [DELIVERY_DNS] = "dns_error",
    [DELIVERY_TIMEOUT] = "timeout",       [DELIVERY_TRANSPORT] = "transport_error",
    [DELIVERY_REQUEST] = "request_error", [DELIVERY_SIGNATURE] = "signature_error",
    [DELIVERY_CANCELED] = "canceled",
};

/* ---- questions; each answers 400 itself ---- */

static bool want_limit(struct req *r, struct buf *b)
{
  struct str text = api_query(r, "limit");
  uint64_t limit = LIMIT_DEFAULT;
  if (text.p && (str_u64(text, &limit) || limit < 1 || limit > LIMIT_MOST)) {
    api_error(r, 400, "'limit' must be from 1 to %d, not '" STR_FMT "'", LIMIT_MOST, STR_ARG(str_sub(text, 0, 100)));
    return false;
  }
  wire_put_u64(b, W_COUNT, limit);
  return true;
}

static bool want_order(struct req *r, struct buf *b, bool *ascending)
{
  struct str text = api_query(r, "orderAsc");
  if (text.p && !str_is(text, "true") && !str_is(text, "false")) {
    api_error(r, 400, "'orderAsc' must be true or false, not '" STR_FMT "'", STR_ARG(str_sub(text, 0, 100)));
    return false;
  }
  *ascending = str_is(text, "true");
  wire_put_u64(b, W_MODE, *ascending);
  return true;
}

/* The order and the number of the last group, as the page before it told. */
static bool want_cursor(struct req *r, struct buf *b, bool ascending)
{
  struct str text = api_query(r, "cursor");
  cleanup_buf struct buf plain = BUF_INIT(256);
  uint64_t at = 0;
  if (!text.n)
    return true;
  if (base64_decode(text, &plain) || !str_starts(buf_str(&plain), ascending ? STR("up:") : STR("down:")) ||
      str_u64(str_skip(buf_str(&plain), ascending ? 3 : 5), &at) || !at || at > INT64_MAX) {
    api_error(r, 400, "'cursor' is not one of this list in this order; give back a nextCursor, or leave it out");
    return false;
  }
  wire_put_u64(b, W_CURSOR, at);
  return true;
}

static bool want_time(struct req *r, const char *name, int64_t *out)
{
  struct str text = api_query(r, name);
  if (text.p && (clock_parse(text, out) || *out < 0)) {
    api_error(r, 400, "'%s' must be a time as RFC 3339 has it, such as 2026-01-02T03:04:05Z, not '" STR_FMT "'", name,
              STR_ARG(str_sub(text, 0, 100)));
    return false;
  }
  return true;
}

static bool want_times(struct req *r, struct buf *b)
{
  int64_t from = 0, to = INT64_MAX;
  if (!want_time(r, "start", &from) || !want_time(r, "end", &to))
    return false;
  wire_put_u64(b, W_FROM, (uint64_t)from);
  wire_put_u64(b, W_TO, (uint64_t)to);
  return true;
}

static bool want_states(struct req *r, struct buf *b)
{
  struct str rest = api_query(r, "deliveryStatus"), one;
  unsigned states = 0;
  while (rest.n) {
    str_cut(rest, ',', &one, &rest);
    unsigned bit = str_is(one, "success") ? 1 : str_is(one, "failed") ? 2 : 0;
    if (!bit) {
      api_error(r, 400, "'deliveryStatus' must be success, failed or both by a comma, not '" STR_FMT "'",
                STR_ARG(str_sub(one, 0, 100)));
      return false;
    }
    states |= bit;
  }
  wire_put_u64(b, W_STATE, states ? states : 3);
  return true;
}

static bool want_types(struct req *r, struct buf *b)
{
  struct str all = api_query(r, "eventType"), rest = all, one;
  while (rest.n) {
    str_cut(rest, ',', &one, &rest);
    if (!event_type_of(one)) {
      webhook_type_error(r, "eventType", one);
      return false;
    }
  }
  if (all.n)
    wire_put(b, W_EVENTS, all);
  return true;
}

/* ---- deliveries ---- */

struct delivery_list {
  struct jw w;
  uint64_t group; /* that is open; 0 = none */
  bool ascending;
};

static void put_text(struct jw *w, const char *key, struct str value)
{
  jw_key(w, key);
  jw_str(w, value);
}

static void put_or_null(struct jw *w, const char *key, struct str value, bool there)
{
  jw_key(w, key);
  if (there)
    jw_str(w, value);
  else
    jw_null(w);
}

static void put_delivery(struct jw *w, const struct req *r, struct str p)
{
  char when[CLOCK_TEXT];
  uint64_t class = wire_u64(p, W_CLASS, 0), status = wire_u64(p, W_HTTP_STATUS, 0);
  const char *name = class < DELIVERY_CLASSES ? classes[class] : NULL;
  struct str message = wire_get(p, W_MESSAGE);
  clock_text((int64_t)wire_u64(p, W_STARTED, 0), when);
  jw_open(w, '{');
  put_text(w, "id", wire_get(p, W_ID));
  put_text(w, "teamId", str_of(r->team.id));
  put_text(w, "webhookId", r->id);
  put_text(w, "eventId", wire_get(p, W_EVENT_ID));
  put_text(w, "sandboxId", wire_get(p, W_REF));
  put_text(w, "eventType", wire_get(p, W_TYPE));
  put_text(w, "status", class == DELIVERY_OK ? STR("success") : STR("failed"));
  jw_key(w, "durationMs");
  jw_uint(w, wire_u64(p, W_DURATION, 0));
  put_text(w, "requestBody", wire_get(p, W_SENT));
  put_text(w, "requestHeaders", wire_get(p, W_REQUEST).n ? wire_get(p, W_REQUEST) : STR("{}"));
  put_text(w, "requestUrl", wire_get(p, W_URL));
  put_or_null(w, "errorClass", str_of(name), name);
  put_text(w, "timestamp", str_of(when));
  put_or_null(w, "responseBody", wire_get(p, W_BODY), status);
  put_or_null(w, "responseHeaders", wire_get(p, W_HEADERS), status);
  jw_key(w, "responseHttpStatusCode");
  if (status)
    jw_uint(w, status);
  else
    jw_null(w);
  put_or_null(w, "errorMessage", message, message.n);
  jw_close(w, '}');
}

static void close_group(struct delivery_list *l)
{
  if (!l->group)
    return;
  jw_close(&l->w, ']');
  jw_close(&l->w, '}');
}

static void delivery_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct delivery_list *l = r->state;
  uint64_t group = wire_u64(reply->packet, W_CURSOR, 1);
  if (group != l->group) {
    close_group(l);
    l->group = group;
    jw_open(&l->w, '{');
    put_text(&l->w, "eventId", wire_get(reply->packet, W_EVENT_ID));
    put_text(&l->w, "eventType", wire_get(reply->packet, W_TYPE));
    put_text(&l->w, "sandboxId", wire_get(reply->packet, W_REF));
    jw_key(&l->w, "attempts");
    jw_open(&l->w, '[');
  }
  put_delivery(&l->w, r, reply->packet);
}

static void put_cursor(struct jw *w, const struct delivery_list *l, uint64_t more)
{
  cleanup_buf struct buf plain = BUF_INIT(64), token = BUF_INIT(128);
  jw_key(w, "nextCursor");
  if (!more) {
    jw_null(w);
    return;
  }
  buf_addf(&plain, "%s%llu", l->ascending ? "up:" : "down:", (unsigned long long)more);
  api_token_add(&token, buf_str(&plain));
  jw_str(w, buf_str(&token));
}

static void deliveries_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct delivery_list *l = r->state;
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  close_group(l);
  jw_close(&l->w, ']');
  put_cursor(&l->w, l, wire_u64(reply->packet, W_CURSOR, 0));
  jw_close(&l->w, '}');
  if (buf_failed(&r->body))
    api_error(r, 503, "the deliveries take more than %zu bytes; ask for fewer with 'limit'", r->body.max);
  else
    api_json(r, 200, buf_str(&r->body));
}

void webhook_deliveries(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct delivery_list *l = arena_alloc(r->arena, sizeof(*l));
  if (!webhook_begin(r, &b, WIRE_WEBHOOK_DELIVERIES) || !want_limit(r, &b) || !want_order(r, &b, &l->ascending) ||
      !want_cursor(r, &b, l->ascending) || !want_times(r, &b) || !want_states(r, &b) || !want_types(r, &b))
    return;
  buf_clear(&r->body);
  l->w = JW(&r->body);
  r->state = l;
  jw_open(&l->w, '{');
  jw_key(&l->w, "data");
  jw_open(&l->w, '[');
  api_call_warden_list(r, &b, delivery_item, deliveries_done);
}

/* ---- figures ---- */

struct stats {
  int64_t from_us, to_us, width_us, next_us; /* next: the first bucket that is not written yet */
  struct jw w;
  struct wire_webhook_bucket all;
};

static void put_figures(struct jw *w, const struct wire_webhook_bucket *b)
{
  jw_key(w, "total");
  jw_uint(w, b->total);
  jw_key(w, "failed");
  jw_uint(w, b->failed);
  jw_key(w, "durationMs");
  jw_open(w, '{');
  jw_key(w, "minimum");
  jw_uint(w, b->least_ms);
  jw_key(w, "average");
  jw_double(w, b->total ? (double)b->sum_ms / (double)b->total : 0, 2);
  jw_key(w, "maximum");
  jw_uint(w, b->most_ms);
  jw_close(w, '}');
}

static void put_bucket(struct jw *w, const struct wire_webhook_bucket *b)
{
  char when[CLOCK_TEXT];
  clock_text(b->from_us, when);
  jw_open(w, '{');
  put_text(w, "timestamp", str_of(when));
  put_figures(w, b);
  jw_close(w, '}');
}

static void put_empty_until(struct stats *s, int64_t until_us)
{
  for (; s->next_us < until_us; s->next_us += s->width_us)
    put_bucket(&s->w, &(struct wire_webhook_bucket){.from_us = s->next_us});
}

static void add_bucket(struct wire_webhook_bucket *all, const struct wire_webhook_bucket *b)
{
  all->least_ms = all->total ? MIN(all->least_ms, b->least_ms) : b->least_ms;
  all->most_ms = MAX(all->most_ms, b->most_ms);
  all->total += b->total;
  all->failed += b->failed;
  all->sum_ms += b->sum_ms;
}

static void stats_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct stats *s = r->state;
  struct wire_webhook_bucket b;
  struct str raw = wire_get(reply->packet, W_SAMPLE);
  if (raw.n != sizeof(b))
    return;
  memcpy(&b, raw.p, sizeof(b));
  put_empty_until(s, MIN(b.from_us, s->to_us));
  put_bucket(&s->w, &b);
  s->next_us = b.from_us + s->width_us;
  add_bucket(&s->all, &b);
}

static void stats_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct stats *s = r->state;
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  put_empty_until(s, s->to_us);
  jw_close(&s->w, ']');
  put_figures(&s->w, &s->all);
  jw_close(&s->w, '}');
  api_json(r, 200, buf_str(&r->body));
}

static bool want_range(struct req *r, struct stats *s)
{
  s->to_us = clock_wall_us();
  if (!want_time(r, "end", &s->to_us))
    return false;
  s->from_us = s->to_us - DAY_US;
  if (!want_time(r, "start", &s->from_us))
    return false;
  if (s->from_us <= s->to_us && s->to_us - s->from_us <= RANGE_MOST)
    return true;
  api_error(r, 400, "'start' must be before 'end', by 7 days at most");
  return false;
}

void webhook_stats(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct stats *s = arena_alloc(r->arena, sizeof(*s));
  if (!webhook_begin(r, &b, WIRE_WEBHOOK_STATS) || !want_range(r, s))
    return;
  s->width_us = (s->to_us - s->from_us < DAY_US ? 5 : 60) * MINUTE_US;
  s->next_us = s->from_us / s->width_us * s->width_us;
  buf_clear(&r->body);
  s->w = JW(&r->body);
  r->state = s;
  jw_open(&s->w, '{');
  jw_key(&s->w, "buckets");
  jw_open(&s->w, '[');
  wire_put_u64(&b, W_FROM, (uint64_t)MAX(s->from_us, (int64_t)0));
  wire_put_u64(&b, W_TO, (uint64_t)s->to_us);
  wire_put_u64(&b, W_COUNT, (uint64_t)s->width_us);
  api_call_warden_list(r, &b, stats_item, stats_done);
}
