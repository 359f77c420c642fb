/* SPDX-License-Identifier: Apache-2.0 */
/* tracing.c - see tracing.h. */
#include "gate/tracing.h"

#include "gate/metric_otlp.h"
#include "gate/metrics.h"
#include "gate/warden_client.h"

#define WAITING_MAX ((size_t)4 << 20) /* bytes for an exporter that does not read; more are dropped */
#define PART        ((size_t)128 << 10)

static void exporter_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
}

static void exporter_closed(struct ipc *l, void *arg)
{
  struct gate *g = arg;
  if (g->exporter == l)
    g->exporter = NULL;
  ipc_free(l);
}

static const struct ipc_ops exporter_ops = {exporter_packet, exporter_closed};

void tracing_attach(struct gate *g, int fd)
{
  ipc_free(g->exporter);
  g->exporter = ipc_new(g->loop, fd, &exporter_ops, g);
}

bool tracing_on(const struct gate *g)
{
  return g->exporter && g->config->otlp_traces;
}

/* ---- spans ---- */

bool tracing_begin(struct gate *g, const struct http_head *h, struct span_context *out)
{
  uint8_t dice;
  if (!tracing_on(g))
    return false;
  if (!span_context_read(http_header(h, "traceparent"), out))
    return out->sampled;
  *out = (struct span_context){0};
  random_bytes(&dice, sizeof(dice));
  if (dice * 100u >= g->config->otlp_sample_percent * 256u)
    return false;
  random_bytes(out->trace, sizeof(out->trace));
  return out->sampled = true;
}

void tracing_end(struct gate *g, struct span *s, int64_t from_us, int64_t to_us)
{
  if (!g->exporter || ipc_queued(g->exporter) > WAITING_MAX)
    return;
  random_bytes(s->id, sizeof(s->id));
  s->from_us = from_us;
  s->to_us = to_us;
  span_shift(s, clock_wall_us() - clock_mono_us());
  cleanup_buf struct buf b = BUF_INIT(4096);
  span_pack(&b, s);
  if (!buf_failed(&b))
    ipc_send(g->exporter, buf_str(&b), -1);
}

/* ---- metrics ---- */

struct telling {
  struct gate *gate;
  struct metrics_told *told;
};

static void send_parts(struct gate *g, struct str body)
{
  while (g->exporter && body.n) {
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, WIRE_OTLP_METRICS, 0, 0);
    wire_put(&b, W_BODY, str_sub(body, 0, PART));
    body = str_skip(body, MIN(PART, body.n));
    wire_put_u64(&b, W_LAST, !body.n);
    ipc_send(g->exporter, buf_str(&b), -1);
  }
}

static void item_told(const struct warden_reply *reply, void *arg)
{
  struct telling *t = arg;
  metrics_told_item(t->told, reply->packet);
}

static void all_told(const struct warden_reply *reply, void *arg)
{
  struct telling *t = arg;
  struct gate *g = t->gate;
  cleanup_buf struct buf b = BUF_INIT((size_t)64 << 20);
  if (!reply->status && !metrics_told_end(t->told, reply->packet) && g->exporter &&
      ipc_queued(g->exporter) < WAITING_MAX) {
    struct otlp_sink sink;
    metrics_note_open(g);
    otlp_sink_init(&sink, &b, g->machine.host, g->started_us, clock_wall_us());
    metrics_tell(&sink.sink, g->slots, g->nslots, g->metrics_teams, g->config->metrics_teams_max, t->told);
    otlp_sink_end(&sink);
    if (!buf_failed(&b))
      send_parts(g, buf_str(&b));
  }
  metrics_told_free(t->told);
  free(t);
}

static void time_to_tell(uv_timer_t *timer)
{
  struct gate *g = timer->data;
  if (!g->exporter || !g->config->otlp_metrics || !g->greeted)
    return;
  struct telling *t = xcalloc(1, sizeof(*t));
  t->gate = g;
  t->told = metrics_told_new();
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  metrics_ask(&b, g->metrics_teams, g->config->metrics_teams_max);
  warden_call(g, &b, item_told, all_told, t);
}

void tracing_metrics_start(struct gate *g)
{
  static uv_timer_t timer;
  uint64_t every = (uint64_t)g->config->otlp_metrics_s * 1000;
  if (timer.data)
    return;
  uv_timer_init(g->loop, &timer);
  timer.data = g;
  uv_timer_start(&timer, time_to_tell, MIN(every, (uint64_t)2000), every);
}
