/* SPDX-License-Identifier: Apache-2.0 */
/* team_metrics.c - GET /teams/{id}/metrics and /metrics/max: how many sandboxes a team had at once, and how many it
 * started per second. Intervals that are nearer to each other than the asked range needs are joined into one. */
#include "gate/api/api.h"
#include "gate/api/metrics_range.h"

struct point {
  int64_t at_us;
  uint64_t running;
  double starts, seconds;
};

struct team_metrics {
  struct jw w;
  int64_t width_us, bucket;
  struct point joined;
  bool filled;
  /* of /max */
  bool by_rate;
  double most;
  int64_t most_us;
};

static double rate_of(const struct point *p)
{
  return p->seconds > 0 ? p->starts / p->seconds : 0;
}

static void put_when(struct jw *w, int64_t us)
{
  char when[CLOCK_TEXT];
  clock_text(us, when);
  jw_key(w, "timestamp");
  jw_z(w, when);
  jw_key(w, "timestampUnix");
  jw_int(w, us / 1000000);
}

static struct point point_of(const struct warden_reply *reply)
{
  return (struct point){.at_us = (int64_t)wire_u64(reply->packet, W_CREATED, 0),
                        .running = wire_u64(reply->packet, W_COUNT, 0),
                        .starts = (double)wire_u64(reply->packet, W_SPAWNS, 0),
                        .seconds = (double)wire_u64(reply->packet, W_TO, 0) / 1e6};
}

static void flush(struct team_metrics *m)
{
  if (!m->filled)
    return;
  jw_open(&m->w, '{');
  put_when(&m->w, m->joined.at_us);
  jw_key(&m->w, "concurrentSandboxes");
  jw_uint(&m->w, m->joined.running);
  jw_key(&m->w, "sandboxStartRate");
  jw_double(&m->w, rate_of(&m->joined), 6);
  jw_close(&m->w, '}');
  m->filled = false;
}

static void point_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct team_metrics *m = r->state;
  struct point p = point_of(reply);
  int64_t bucket = p.at_us / m->width_us;
  if (bucket != m->bucket)
    flush(m);
  m->bucket = bucket;
  if (m->filled) {
    p.running = MAX(p.running, m->joined.running);
    p.starts += m->joined.starts;
    p.seconds += m->joined.seconds;
  }
  m->joined = p;
  m->filled = true;
}

static bool failed(struct req *r, const struct warden_reply *reply)
{
  r->pending_call = 0;
  if (reply->status)
    api_warden_error(r, reply);
  return reply->status != 0;
}

static void points_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct team_metrics *m = r->state;
  if (failed(r, reply))
    return;
  flush(m);
  jw_close(&m->w, ']');
  api_json(r, 200, buf_str(m->w.b));
}

static void most_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct team_metrics *m = r->state;
  struct point p = point_of(reply);
  double value = m->by_rate ? rate_of(&p) : (double)p.running;
  if (value <= m->most)
    return;
  m->most = value;
  m->most_us = p.at_us;
}

static void most_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct team_metrics *m = r->state;
  if (failed(r, reply))
    return;
  jw_open(&m->w, '{');
  put_when(&m->w, m->most_us);
  jw_key(&m->w, "value");
  jw_double(&m->w, m->most, 6);
  jw_close(&m->w, '}');
  api_json(r, 200, buf_str(m->w.b));
}

static struct team_metrics *begin(struct req *r, struct metrics_range *range)
{
  if (!str_is(r->id, r->team.id)) {
    api_error(r, 403, "team '" STR_FMT "' is not the team of this key", STR_ARG(str_sub(r->id, 0, 100)));
    return NULL;
  }
  if (!metrics_range(r, range))
    return NULL;
  struct team_metrics *m = arena_alloc(r->arena, sizeof(*m));
  *m = (struct team_metrics){
      .w = JW(&r->body), .bucket = -1, .width_us = range->bucket_s * 1000000, .most_us = clock_wall_us()};
  buf_clear(&r->body);
  r->state = m;
  return m;
}

static void ask(struct req *r, const struct metrics_range *range, enum usage_mode mode, warden_reply_fn item,
                warden_reply_fn done)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_TEAM_USAGE, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put_u64(&b, W_FROM, (uint64_t)range->from_s * 1000000);
  wire_put_u64(&b, W_TO, (uint64_t)range->to_s * 1000000);
  wire_put_u64(&b, W_MODE, mode);
  wire_put_u64(&b, W_COUNT, (uint64_t)range->bucket_s * 1000000);
  api_call_warden_list(r, &b, item, done);
}

void team_metrics(struct req *r)
{
  struct metrics_range range;
  struct team_metrics *m = begin(r, &range);
  if (!m)
    return;
  jw_open(&m->w, '[');
  ask(r, &range, USAGE_JOINED, point_item, points_done);
}

void team_metrics_max(struct req *r)
{
  struct metrics_range range;
  struct str metric = api_query(r, "metric");
  if (!str_is(metric, "concurrent_sandboxes") && !str_is(metric, "sandbox_start_rate")) {
    api_error(r, 400, "'metric' must be concurrent_sandboxes or sandbox_start_rate, not '" STR_FMT "'",
              STR_ARG(str_sub(metric, 0, 100)));
    return;
  }
  struct team_metrics *m = begin(r, &range);
  if (!m)
    return;
  m->by_rate = str_is(metric, "sandbox_start_rate");
  ask(r, &range, m->by_rate ? USAGE_MOST_RATE : USAGE_MOST_RUNNING, most_item, most_done);
}
