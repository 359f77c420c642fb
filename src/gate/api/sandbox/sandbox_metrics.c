/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_metrics.c - what sandboxes used: GET /sandboxes/{id}/metrics and GET /sandboxes/metrics. Samples that are
 * nearer to each other than the asked range needs are joined into one. */
#include "gate/api/metrics_range.h"

#define BATCH_MAX 100

struct metrics {
  struct jw w;
  int64_t width_us; /* of a bucket */
  int64_t bucket;   /* the one being filled, or -1 */
  struct wire_sample joined;
  double cpu_sum;
  unsigned count;
};

static void put_sample(struct jw *w, const struct wire_sample *s)
{
  char when[CLOCK_TEXT];
  clock_text(s->wall_us, when);
  const struct {
    const char *name;
    uint64_t value;
  } bytes[] = {{"memUsed", s->mem_used},
               {"memTotal", s->mem_total},
               {"memCache", s->mem_cache},
               {"diskUsed", s->disk_used},
               {"diskTotal", s->disk_total}};
  jw_open(w, '{');
  jw_key(w, "timestamp");
  jw_z(w, when);
  jw_key(w, "timestampUnix");
  jw_int(w, s->wall_us / 1000000);
  jw_key(w, "cpuCount");
  jw_uint(w, s->cpus);
  jw_key(w, "cpuUsedPct");
  jw_double(w, s->cpu_pct, 6); /* an idle box uses microseconds of a second */
  for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
    jw_key(w, bytes[i].name);
    jw_uint(w, bytes[i].value);
  }
  jw_close(w, '}');
}

static bool sample_of(const struct warden_reply *reply, struct wire_sample *s)
{
  struct str raw = wire_get(reply->packet, W_SAMPLE);
  if (raw.n != sizeof(*s))
    return false;
  memcpy(s, raw.p, sizeof(*s));
  return true;
}

/* ---- one sandbox ---- */

static void flush_bucket(struct metrics *m)
{
  if (!m->count)
    return;
  m->joined.cpu_pct = m->cpu_sum / m->count;
  put_sample(&m->w, &m->joined);
  m->count = 0;
  m->cpu_sum = 0;
}

static void sample_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct metrics *m = r->state;
  struct wire_sample s;
  if (!sample_of(reply, &s))
    return;
  /* Five seconds is how often they are taken: those are told one by one. */
  int64_t bucket = m->width_us <= 5000000 ? m->bucket + 1 : s.wall_us / m->width_us;
  if (bucket != m->bucket)
    flush_bucket(m);
  m->bucket = bucket;
  m->joined = s;
  m->cpu_sum += s.cpu_pct;
  m->count++;
}

static void samples_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct metrics *m = r->state;
  if (sandbox_refused(r, reply))
    return;
  flush_bucket(m);
  jw_close(&m->w, ']');
  api_json(r, 200, buf_str(m->w.b));
}

void sandbox_metrics(struct req *r)
{
  struct metrics_range range;
  struct str id;
  if (!metrics_range(r, &range) || !api_box_id(r, &id))
    return;
  struct metrics *m = arena_alloc(r->arena, sizeof(*m));
  *m = (struct metrics){.w = JW(&r->body), .bucket = -1, .width_us = range.bucket_s * 1000000};
  buf_clear(&r->body);
  jw_open(&m->w, '[');
  r->state = m;
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_BOX_USAGE, 0, 0);
  wire_put(&b, W_ID, id);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put_u64(&b, W_FROM, (uint64_t)range.from_s * 1000000);
  wire_put_u64(&b, W_TO, (uint64_t)range.to_s * 1000000);
  api_call_warden(r, &b, sample_item, samples_done);
}

/* ---- many ---- */

static void latest_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  struct wire_sample s;
  if (!sample_of(reply, &s))
    return;
  jw_keys(w, wire_get(reply->packet, W_ID));
  put_sample(w, &s);
}

static void latest_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  if (sandbox_refused(r, reply))
    return;
  jw_close(w, '}');
  jw_close(w, '}');
  api_json(r, 200, buf_str(w->b));
}

void sandbox_metrics_many(struct req *r)
{
  struct str ids = api_query(r, "sandbox_ids"), rest = ids, one;
  size_t n = 0;
  for (; rest.n; n++)
    str_cut(rest, ',', &one, &rest);
  if (!n || n > BATCH_MAX || ids.n > BATCH_MAX * 64) {
    api_error(r, 400, "'sandbox_ids' must name 1 to %d sandboxes, joined by commas", BATCH_MAX);
    return;
  }
  struct jw *w = api_items_begin(r, '{');
  jw_key(w, "sandboxes");
  jw_open(w, '{');
  cleanup_buf struct buf b = BUF_INIT(16384);
  wire_begin(&b, WIRE_USAGE_LATEST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, ids);
  api_call_warden(r, &b, latest_item, latest_done);
}
