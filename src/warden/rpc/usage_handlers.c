/* SPDX-License-Identifier: Apache-2.0 */
/* usage_handlers.c - metrics of teams. How many intervals there are is a matter of settings and of time, and how often
 * they are asked for is a client's: they are joined in the database, on a worker, by a connection of its own. */
#include "warden/rpc/handlers.h"

#include "warden/core/context.h"
#include "warden/core/team_meter.h"
#include "warden/core/worker_pool.h"

#define POINTS_MOST 4096 /* of one answer */

struct usage_call {
  uv_work_t work;
  struct warden *warden;
  struct origin origin;
  char team[UUID_SIZE];
  struct team_sample_query query;
  VEC(struct team_sample) found;
  int result;
  struct err err;
};

static void take(const struct team_sample *t, void *arg)
{
  struct usage_call *c = arg;
  vec_push(&c->found, *t);
}

static void read_usage(uv_work_t *work)
{
  struct usage_call *c = work->data;
  struct store *reader;
  if ((c->result = store_open_reader(warden_store(c->warden), &reader, &c->err)))
    return;
  team_sample_each(reader, str_of(c->team), &c->query, take, c);
  c->result = store_read_late(reader, &c->err);
  store_close(reader);
}

static int send_sample(const struct usage_call *c, struct buf *out, const struct team_sample *t)
{
  wire_begin(out, WIRE_ITEM, c->origin.id, 0);
  wire_put_u64(out, W_CREATED, (uint64_t)t->at_us);
  wire_put_u64(out, W_TO, (uint64_t)t->span_us);
  wire_put_u64(out, W_COUNT, t->running);
  wire_put_u64(out, W_SPAWNS, t->starts);
  return ipc_send_bulk(c->origin.ipc, buf_str(out));
}

static void answer(const struct usage_call *c)
{
  cleanup_buf struct buf out = BUF_INIT(4096);
  struct team_sample now;
  int r = c->result;
  for (size_t i = 0; !r && i < c->found.n; i++)
    r = send_sample(c, &out, &c->found.p[i]);
  if (!r && team_meter_now(c->warden, str_of(c->team), &now) && now.at_us >= c->query.from_us &&
      now.at_us <= c->query.to_us)
    r = send_sample(c, &out, &now);
  wire_begin(&out, WIRE_REPLY, c->origin.id, r);
  if (r)
    wire_putz(&out, W_MESSAGE, c->err.msg[0] ? c->err.msg : "the answer is too large; ask for less");
  reply_packet(c->warden, c->origin, &out);
}

static void usage_read(uv_work_t *work, int status)
{
  struct usage_call *c = work->data;
  if (reply_possible(c->warden, c->origin))
    answer(c);
  vec_free(&c->found);
  free(c);
}

void handle_team_usage(struct request *q)
{
  struct usage_call *c = xcalloc(1, sizeof(*c));
  if (str_copyz(q->team, c->team, sizeof(c->team))) {
    free(c);
    reply_error(q, -EINVAL, "the name of the team is too long");
    return;
  }
  c->work.data = c;
  c->warden = q->warden;
  c->origin = request_origin(q);
  c->query = (struct team_sample_query){.from_us = (int64_t)MIN(wire_u64(q->packet, W_FROM, 0), (uint64_t)INT64_MAX),
                                        .to_us = (int64_t)MIN(wire_u64(q->packet, W_TO, 0), (uint64_t)INT64_MAX),
                                        .width_us = (int64_t)MIN(wire_u64(q->packet, W_COUNT, 0), (uint64_t)INT64_MAX),
                                        .mode = (enum usage_mode)MIN(wire_u64(q->packet, W_MODE, 0), USAGE_MOST_RATE),
                                        .points = POINTS_MOST};
  worker_pool_queue(q->warden, c->team, &c->work, read_usage, usage_read);
}
