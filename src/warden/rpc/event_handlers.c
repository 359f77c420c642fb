/* SPDX-License-Identifier: Apache-2.0 */
/* event_handlers.c - reading lifecycle events. How many rows a question passes over is its client's choice, so it is
 * answered on a worker, by a connection of its own; what was committed before the question is always in the answer. */
#include "warden/rpc/handlers.h"

#include "warden/box/box.h"
#include "warden/core/context.h"
#include "warden/core/worker_pool.h"
#include "warden/db/event.h"

#define LIMIT_MOST 1000 /* events in one answer */
#define DAY_US     86400000000LL

struct event_text {
  int64_t seq;
  char *json; /* owned */
};

struct event_call {
  uv_work_t work;
  struct warden *warden;
  struct origin origin;
  struct event_query query;
  char team[UUID_SIZE], sandbox[BOX_ID_SIZE]; /* what the query's texts are slices of */
  bool known;                                 /* the sandbox, even if there is no event of it */
  VEC(struct event_text) found;
  int64_t last; /* what is up to here was looked at */
  int result;
  struct err err;
};

/* ---- on a worker ---- */

static int take(const struct event *e, void *arg)
{
  struct event_call *c = arg;
  cleanup_buf struct buf b = BUF_INIT(2 * WIRE_MAX);
  event_rest_json(&b, e);
  if (buf_failed(&b))
    return buf_failed(&b);
  vec_push(&c->found, ((struct event_text){.seq = e->seq, .json = xstrndup(b.p, b.n)}));
  return 0;
}

static void read_events(uv_work_t *work)
{
  struct event_call *c = work->data;
  struct store *reader;
  const struct event_query *q = &c->query;
  if ((c->result = store_open_reader(warden_store(c->warden), &reader, &c->err)))
    return;
  c->last = events_last(reader);
  if ((c->result = events_read(reader, q, take, c)))
    err_set(&c->err, c->result, "the events could not be read");
  if (!c->result && !c->found.n && q->sandbox.n && !c->known && !events_know(reader, q->sandbox, q->team, q->since_us))
    c->result = -ENOENT;
  if (store_read_late(reader, &c->err))
    c->result = c->err.code;
  store_close(reader);
}

/* ---- on the loop ---- */

/* Nothing up to here has to be looked at again by who asks for what comes after. */
static int64_t seen_until(const struct event_call *c)
{
  int64_t most = 0;
  for (size_t i = 0; i < c->found.n; i++)
    most = MAX(most, c->found.p[i].seq);
  return c->query.ascending && c->found.n == c->query.limit ? most : MAX(most, c->last);
}

static int send_events(const struct event_call *c)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  int r = 0;
  for (size_t i = 0; !r && i < c->found.n; i++) {
    wire_begin(&out, WIRE_ITEM, c->origin.id, 0);
    wire_putz(&out, W_EVENT, c->found.p[i].json);
    r = buf_failed(&out) ? buf_failed(&out) : ipc_send_bulk(c->origin.ipc, buf_str(&out));
  }
  return r;
}

static void answer(const struct event_call *c)
{
  cleanup_buf struct buf out = BUF_INIT(4096);
  if (!reply_possible(c->warden, c->origin))
    return;
  int r = c->result ? c->result : send_events(c);
  wire_begin(&out, WIRE_REPLY, c->origin.id, r);
  if (r && r != -ENOENT)
    wire_putz(&out, W_MESSAGE, c->err.msg[0] ? c->err.msg : "the events are too large for one answer; ask for fewer");
  if (!r)
    wire_put_u64(&out, W_AFTER, (uint64_t)seen_until(c));
  reply_packet(c->warden, c->origin, &out);
}

static void events_told(uv_work_t *work, int status)
{
  struct event_call *c = work->data;
  answer(c);
  for (size_t i = 0; i < c->found.n; i++)
    free(c->found.p[i].json);
  vec_free(&c->found);
  free(c);
}

static bool knows(struct request *q, struct str id)
{
  char cause[256];
  int64_t when;
  return box_find(q->warden, id, q->team) ||
         !store_cause(warden_store(q->warden), id, q->team, cause, sizeof(cause), &when);
}

/* Without a team, the host's root user sees those of all. */
void handle_event_list(struct request *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct event_call *c = xcalloc(1, sizeof(*c));
  if (str_copyz(q->team, c->team, sizeof(c->team)) || str_copyz(id, c->sandbox, sizeof(c->sandbox))) {
    free(c);
    reply_error(q, -EINVAL, "the name of a team or a sandbox is too long");
    return;
  }
  c->work.data = c;
  c->warden = q->warden;
  c->origin = request_origin(q);
  c->query = (struct event_query){
      .team = str_of(c->team),
      .sandbox = str_of(c->sandbox),
      .types = (unsigned)wire_u64(q->packet, W_FLAGS, 0) & EVENT_BITS_ALL,
      .since_us = clock_wall_us() - (int64_t)warden_config(q->warden)->events_days * DAY_US,
      .after = wire_get(q->packet, W_AFTER).p ? (int64_t)MIN(wire_u64(q->packet, W_AFTER, 0), (uint64_t)INT64_MAX) : -1,
      .offset = wire_u64(q->packet, W_OFFSET, 0),
      .limit = MIN(wire_u64(q->packet, W_COUNT, 1), (uint64_t)LIMIT_MOST),
      .ascending = wire_u64(q->packet, W_MODE, 0) != 0,
  };
  c->known = id.n && knows(q, id);
  worker_pool_queue(q->warden, c->team, &c->work, read_events, events_told);
}
