/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_handlers.c - webhooks of a team, what was delivered to them, and figures of it. No reply holds a secret. */
#include "warden/rpc/handlers.h"

#include "warden/core/context.h"
#include "warden/webhook/webhooks.h"

#define PAGE_BYTES  ((size_t)4 << 20) /* of deliveries: a page ends early behind the group that passes it */
#define GROUPS_MAX  100
#define BUCKETS_MAX 1000

static void put_webhook(struct buf *b, const struct row_webhook *r)
{
  wire_putz(b, W_ID, r->id);
  wire_putz(b, W_TEAM, r->team);
  wire_putz(b, W_NAME, r->name);
  wire_putz(b, W_URL, r->url);
  wire_putz(b, W_EVENTS, r->events);
  wire_put_u64(b, W_ENABLED, r->enabled);
  wire_put_u64(b, W_CREATED, (uint64_t)r->created_us);
}

static void reply_webhook(struct request *q, const struct row_webhook *r)
{
  reply_begin(q, WIRE_REPLY, 0);
  put_webhook(q->out, r);
  reply_send(q);
}

/* The one that W_ID names; NULL: the refusal is sent. */
static const struct row_webhook *wanted(struct request *q)
{
  struct str id = wire_get(q->packet, W_ID);
  const struct row_webhook *r = webhook_find(q->warden, q->team, id);
  struct err err = ERR_NONE;
  if (r)
    return r;
  err_set(&err, -ENOENT, "no webhook with the id " STR_FMT, STR_ARG(str_sub(id, 0, UUID_SIZE)));
  reply_err(q, &err);
  return NULL;
}

static char *text_of(struct request *q, enum wire_tag tag)
{
  struct str s = wire_get(q->packet, tag);
  return xstrndup(s.p ? s.p : "", s.n);
}

/* A gate asks again after the warden was started anew: then the webhook is there already. */
void handle_webhook_create(struct request *q)
{
  struct err err = ERR_NONE;
  struct str id = wire_get(q->packet, W_ID);
  const struct row_webhook *there = webhook_find(q->warden, q->team, id);
  if (there) {
    reply_webhook(q, there);
    return;
  }
  struct row_webhook row = {.name = text_of(q, W_NAME),
                            .url = text_of(q, W_URL),
                            .origin = text_of(q, W_ORIGIN),
                            .events = text_of(q, W_EVENTS),
                            .secret = BUF_INIT(1 << 16),
                            .enabled = wire_u64(q->packet, W_ENABLED, 1) != 0,
                            .created_us = clock_wall_us()};
  buf_adds(&row.secret, wire_get(q->packet, W_SECRET));
  int r = !uuid_valid(id) || str_copyz(id, row.id, sizeof(row.id)) || str_copyz(q->team, row.team, sizeof(row.team))
              ? err_set(&err, -EINVAL, "a webhook's id must be a UUID")
              : webhook_add(q->warden, &row, &err);
  row_webhook_free(&row);
  if (r)
    reply_err(q, &err);
  else
    reply_webhook(q, webhook_find(q->warden, q->team, id));
}

void handle_webhook_list(struct request *q)
{
  const struct row_webhook *r;
  for (size_t i = 0; (r = webhook_at(q->warden, q->team, i)); i++) {
    reply_begin(q, WIRE_ITEM, 0);
    put_webhook(q->out, r);
    reply_send(q);
  }
  reply_ok(q);
}

void handle_webhook_get(struct request *q)
{
  const struct row_webhook *r = wanted(q);
  if (r)
    reply_webhook(q, r);
}

void handle_webhook_change(struct request *q)
{
  struct err err = ERR_NONE;
  struct str id = wire_get(q->packet, W_ID);
  struct webhook_change c = {.name = wire_get(q->packet, W_NAME),
                             .url = wire_get(q->packet, W_URL),
                             .origin = wire_get(q->packet, W_ORIGIN),
                             .events = wire_get(q->packet, W_EVENTS),
                             .secret = wire_get(q->packet, W_SECRET),
                             .enabled = (int)MIN(wire_u64(q->packet, W_ENABLED, 2), (uint64_t)2)};
  c.enabled = c.enabled == 2 ? -1 : c.enabled;
  if (webhook_change(q->warden, q->team, id, &c, &err))
    reply_err(q, &err);
  else
    reply_webhook(q, webhook_find(q->warden, q->team, id));
}

void handle_webhook_delete(struct request *q)
{
  struct err err = ERR_NONE;
  if (webhook_remove(q->warden, q->team, wire_get(q->packet, W_ID), &err))
    reply_err(q, &err);
  else
    reply_ok(q);
}

/* ---- deliveries ---- */

struct page {
  struct request *request;
  size_t bytes;
};

static int put_delivery(const struct delivery_view *v, void *arg)
{
  struct page *page = arg;
  struct request *q = page->request;
  reply_begin(q, WIRE_ITEM, 0);
  wire_putz(q->out, W_ID, v->attempt->id);
  wire_put_u64(q->out, W_CURSOR, (uint64_t)v->attempt->first);
  wire_putz(q->out, W_EVENT_ID, v->attempt->event);
  wire_putz(q->out, W_REF, v->attempt->sandbox);
  wire_putz(q->out, W_TYPE, v->attempt->type);
  wire_put_u64(q->out, W_CLASS, v->class);
  wire_put_u64(q->out, W_STARTED, (uint64_t)v->started_us);
  wire_put_u64(q->out, W_DURATION, v->duration_ms);
  wire_put_u64(q->out, W_HTTP_STATUS, v->http_status);
  wire_put(q->out, W_URL, v->url);
  wire_put(q->out, W_REQUEST, v->request_headers);
  wire_put(q->out, W_HEADERS, v->headers);
  wire_put(q->out, W_BODY, v->body);
  wire_put(q->out, W_MESSAGE, v->message);
  if (v->request_body.n + q->out->n < WIRE_MAX - 64)
    wire_put(q->out, W_SENT, v->request_body);
  page->bytes += q->out->n;
  reply_send(q);
  return page->bytes > PAGE_BYTES;
}

void handle_webhook_deliveries(struct request *q)
{
  const struct row_webhook *r = wanted(q);
  if (!r)
    return;
  struct delivery_query d = {
      .webhook = r->id,
      .cursor = (int64_t)MIN(wire_u64(q->packet, W_CURSOR, 0), (uint64_t)INT64_MAX),
      .ascending = wire_u64(q->packet, W_MODE, 0) == 1,
      .groups = (unsigned)MIN(wire_u64(q->packet, W_COUNT, 25), (uint64_t)GROUPS_MAX),
      .from_us = (int64_t)MIN(wire_u64(q->packet, W_FROM, 0), (uint64_t)INT64_MAX),
      .to_us = (int64_t)MIN(wire_u64(q->packet, W_TO, INT64_MAX), (uint64_t)INT64_MAX),
      .states = (unsigned)wire_u64(q->packet, W_STATE, 3) & 3,
      .types = wire_get(q->packet, W_EVENTS),
  };
  struct page page = {.request = q};
  int64_t more = 0;
  store_deliveries(warden_store(q->warden), &d, put_delivery, &page, &more);
  reply_begin(q, WIRE_REPLY, 0);
  if (more)
    wire_put_u64(q->out, W_CURSOR, (uint64_t)more);
  reply_send(q);
}

static int put_bucket(const struct wire_webhook_bucket *b, void *arg)
{
  struct request *q = arg;
  reply_begin(q, WIRE_ITEM, 0);
  wire_put(q->out, W_SAMPLE, str_make(b, sizeof(*b)));
  reply_send(q);
  return 0;
}

void handle_webhook_stats(struct request *q)
{
  const struct row_webhook *r = wanted(q);
  if (!r)
    return;
  int64_t from = (int64_t)MIN(wire_u64(q->packet, W_FROM, 0), (uint64_t)INT64_MAX),
          to = (int64_t)MIN(wire_u64(q->packet, W_TO, 0), (uint64_t)INT64_MAX),
          width = (int64_t)MIN(wire_u64(q->packet, W_COUNT, 0), (uint64_t)INT64_MAX);
  if (width < 1 || to < from || (to - from) / width > BUCKETS_MAX) {
    reply_error(q, -EINVAL, "the time between 'start' and 'end' is too long");
    return;
  }
  store_delivery_stats(warden_store(q->warden), r->id, from, to, width, put_bucket, q);
  reply_ok(q);
}
