/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_handlers.c - webhooks of a team, what was delivered to them, and figures of it. No reply holds a secret. */
#include "warden/rpc/handlers.h"

#include "warden/core/context.h"
#include "warden/core/worker_pool.h"
#include "warden/webhook/webhooks.h"

#define PAGE_BYTES  ((size_t)4 << 20) /* of deliveries: a page ends early behind the group that passes it */
#define GROUPS_MAX  100
#define BUCKETS_MAX 1000
#define TYPES_SIZE  512 /* six types, joined by commas */

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

/* ---- deliveries and figures ----
 *
 * How many rows a question passes over is its client's choice, so it is answered on a worker, by a connection of its
 * own; what was recorded before the question is always in the answer. */

struct packet {
  char *p;
  size_t n;
};

struct delivery_call {
  uv_work_t work;
  struct warden *warden;
  struct origin origin;
  char webhook[UUID_SIZE], team[UUID_SIZE];
  struct delivery_query query;
  char types[TYPES_SIZE]; /* what the query's are a slice of */
  int64_t width_us;       /* figures, not deliveries */
  VEC(struct packet) items;
  size_t bytes;
  int64_t more;
  int result;
  struct err err;
};

static int keep_item(struct delivery_call *c, const struct buf *b)
{
  if (buf_failed(b))
    return buf_failed(b);
  struct packet p = {xmalloc(b->n), b->n};
  memcpy(p.p, b->p, b->n);
  vec_push(&c->items, p);
  c->bytes += b->n;
  return 0;
}

static int take_delivery(const struct delivery_view *v, void *arg)
{
  struct delivery_call *c = arg;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_ITEM, c->origin.id, 0);
  wire_putz(&b, W_ID, v->attempt->id);
  wire_put_u64(&b, W_CURSOR, (uint64_t)v->attempt->first);
  wire_putz(&b, W_EVENT_ID, v->attempt->event);
  wire_putz(&b, W_REF, v->attempt->sandbox);
  wire_putz(&b, W_TYPE, v->attempt->type);
  wire_put_u64(&b, W_CLASS, v->class);
  wire_put_u64(&b, W_STARTED, (uint64_t)v->started_us);
  wire_put_u64(&b, W_DURATION, v->duration_ms);
  wire_put_u64(&b, W_HTTP_STATUS, v->http_status);
  wire_put(&b, W_URL, v->url);
  wire_put(&b, W_REQUEST, v->request_headers);
  wire_put(&b, W_HEADERS, v->headers);
  wire_put(&b, W_BODY, v->body);
  wire_put(&b, W_MESSAGE, v->message);
  if (v->request_body.n + b.n < WIRE_MAX - 64)
    wire_put(&b, W_SENT, v->request_body);
  int r = keep_item(c, &b);
  return r ? r : c->bytes > PAGE_BYTES;
}

static int take_bucket(const struct wire_webhook_bucket *v, void *arg)
{
  struct delivery_call *c = arg;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_ITEM, c->origin.id, 0);
  wire_put(&b, W_SAMPLE, str_make(v, sizeof(*v)));
  return keep_item(c, &b);
}

static void read_deliveries(uv_work_t *work)
{
  struct delivery_call *c = work->data;
  struct store *reader;
  const struct delivery_query *q = &c->query;
  if ((c->result = store_open_reader(warden_store(c->warden), &reader, &c->err)))
    return;
  c->result = c->width_us
                  ? store_delivery_stats(reader, c->team, c->webhook, q->from_us, q->to_us, c->width_us, take_bucket, c)
                  : store_deliveries(reader, q, take_delivery, c, &c->more);
  if (c->result)
    err_set(&c->err, c->result, "the deliveries could not be read");
  if (store_read_late(reader, &c->err))
    c->result = c->err.code;
  store_close(reader);
}

static void answer(const struct delivery_call *c)
{
  cleanup_buf struct buf out = BUF_INIT(4096);
  int r = c->result;
  if (!reply_possible(c->warden, c->origin))
    return;
  for (size_t i = 0; !r && i < c->items.n; i++)
    r = ipc_send_bulk(c->origin.ipc, (struct str){c->items.p[i].p, c->items.p[i].n});
  wire_begin(&out, WIRE_REPLY, c->origin.id, r);
  if (r)
    wire_putz(&out, W_MESSAGE, c->err.msg[0] ? c->err.msg : "the answer is too large; ask for less");
  else if (c->more)
    wire_put_u64(&out, W_CURSOR, (uint64_t)c->more);
  reply_packet(c->warden, c->origin, &out);
}

static void deliveries_read(uv_work_t *work, int status)
{
  struct delivery_call *c = work->data;
  answer(c);
  for (size_t i = 0; i < c->items.n; i++)
    free(c->items.p[i].p);
  vec_free(&c->items);
  free(c);
}

static int64_t time_of(const struct request *q, enum wire_tag tag, int64_t otherwise)
{
  return (int64_t)MIN(wire_u64(q->packet, tag, (uint64_t)otherwise), (uint64_t)INT64_MAX);
}

/* NULL: refused, and answered. */
static struct delivery_call *call_about(struct request *q)
{
  const struct row_webhook *r = wanted(q);
  if (!r)
    return NULL;
  struct delivery_call *c = xcalloc(1, sizeof(*c));
  c->work.data = c;
  c->warden = q->warden;
  c->origin = request_origin(q);
  memcpy(c->webhook, r->id, sizeof(c->webhook));
  memcpy(c->team, r->team, sizeof(c->team));
  c->query = (struct delivery_query){
      .webhook = c->webhook, .team = c->team, .from_us = time_of(q, W_FROM, 0), .to_us = time_of(q, W_TO, INT64_MAX)};
  return c;
}

void handle_webhook_deliveries(struct request *q)
{
  struct delivery_call *c = call_about(q);
  struct str types = wire_get(q->packet, W_EVENTS);
  if (!c)
    return;
  if (str_copyz(types.p ? types : STR(""), c->types, sizeof(c->types))) {
    free(c);
    reply_error(q, -EINVAL, "'eventType' is too long; name each type once");
    return;
  }
  c->query.types = str_of(c->types);
  c->query.cursor = time_of(q, W_CURSOR, 0);
  c->query.ascending = wire_u64(q->packet, W_MODE, 0) == 1;
  c->query.groups = (unsigned)MIN(wire_u64(q->packet, W_COUNT, 25), (uint64_t)GROUPS_MAX);
  c->query.states = (unsigned)wire_u64(q->packet, W_STATE, 3) & 3;
  worker_pool_queue(q->warden, c->team, &c->work, read_deliveries, deliveries_read);
}

void handle_webhook_stats(struct request *q)
{
  struct delivery_call *c = call_about(q);
  if (!c)
    return;
  c->width_us = time_of(q, W_COUNT, 0);
  int64_t from = c->query.from_us, to = c->query.to_us;
  if (c->width_us < 1 || to < from || (to - from) / c->width_us > BUCKETS_MAX) {
    free(c);
    reply_error(q, -EINVAL, "the time between 'start' and 'end' is too long");
    return;
  }
  worker_pool_queue(q->warden, c->team, &c->work, read_deliveries, deliveries_read);
}
