/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_api.c - the state of the server: GET /metrics for Prometheus, /health and /readyz (requests are answered) and
 * /livez (this gate lives). */
#include "gate/api/api.h"
#include "gate/metrics.h"

/* ---- counting ---- */

static enum metrics_class class_of(const struct req *r)
{
  if (!r->entry)
    return CLASS_OTHER;
  struct str path = str_of(r->entry->path), method = str_of(r->entry->method);
  if (str_starts(path, STR("v2/")))
    path = str_skip(path, 3);
  if (str_is(path, "sandboxes"))
    return str_is(method, "POST") ? CLASS_CREATE : CLASS_LIST;
  if (str_starts(path, STR("sandboxes/")))
    return CLASS_SANDBOX;
  if (str_starts(path, STR("templates")))
    return CLASS_TEMPLATE;
  return str_starts(path, STR("api-keys")) || str_starts(path, STR("teams")) ? CLASS_ACCOUNT : CLASS_OTHER;
}

void metrics_api(struct req *r, int status)
{
  metrics_record(r->gate, r->x, class_of(r), NULL, status, clock_mono_us() - r->began_us);
}

/* ---- telling ---- */

static void put_warden(struct buf *b, const struct wire_status *s)
{
  const struct {
    const char *name, *kind, *help;
    uint64_t value;
  } rows[] = {
      {"launches_total", "counter", "Sandboxes made.", s->launches_total},
      {"launches_failed_total", "counter", "Sandboxes that could not be made.", s->launches_failed},
      {"pauses_total", "counter", "Sandboxes paused.", s->pauses_total},
      {"resumes_total", "counter", "Sandboxes resumed.", s->resumes_total},
      {"ends_total", "counter", "Sandboxes that ended.", s->ends_total},
      {"events_total", "counter", "Lifecycle events recorded.", s->events_total},
      {"removals", "gauge", "Ended sandboxes being reclaimed.", s->removals},
      {"checkpoint_ready", "gauge", "1: paused sandboxes go to disk; 0: they stay in memory (tier frozen).",
       s->checkpoint_ready},
      {"checkpoints", "gauge", "Paused sandboxes whose memory is on disk.", s->checkpoints},
      {"checkpoint_bytes", "gauge", "Bytes of their memory on disk.", s->checkpoint_bytes},
      {"webhook_waiting", "gauge", "Deliveries to webhooks that wait or are under way.", s->webhooks_waiting},
      {"warm_boxes", "gauge", "Warm sandboxes in the pool.", s->warm_boxes},
  };
  buf_addf(b,
           "# HELP cloche_boxes Sandboxes by state.\n# TYPE cloche_boxes gauge\ncloche_boxes{state=\"running\"} %llu\n"
           "cloche_boxes{state=\"paused\"} %llu\ncloche_boxes{state=\"starting\"} %llu\n",
           (unsigned long long)s->running, (unsigned long long)s->paused, (unsigned long long)s->starting);
  buf_addf(b,
           "# HELP cloche_webhook_attempts_total Attempts to deliver an event to a webhook, by result.\n"
           "# TYPE cloche_webhook_attempts_total counter\n"
           "cloche_webhook_attempts_total{result=\"success\"} %llu\n"
           "cloche_webhook_attempts_total{result=\"failed\"} %llu\n",
           (unsigned long long)s->webhooks_delivered, (unsigned long long)s->webhooks_failed);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    buf_addf(b, "# HELP cloche_%s %s\n# TYPE cloche_%s %s\ncloche_%s %llu\n", rows[i].name, rows[i].help, rows[i].name,
             rows[i].kind, rows[i].name, (unsigned long long)rows[i].value);
}

static void status_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct gate *g = r->gate;
  struct wire_status s;
  if (!api_status(r, reply, &s))
    return;
  metrics_note_open(g);
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  metrics_put_all(&b, g->slots, g->nslots);
  put_warden(&b, &s);
  buf_addf(&b,
           "# HELP cloche_start_time_seconds When the warden started.\n# TYPE cloche_start_time_seconds "
           "gauge\ncloche_start_time_seconds %lld\n",
           (long long)(s.started_us / 1000000));
  r->answered = true;
  http_reply(r->x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&b));
}

static void request_status(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_STATUS, 0, 0);
  api_call_warden(r, &b, NULL, status_told);
}

/* The administrator's token, or the listener made for it: figures are of all teams together. */
void metrics(struct req *r)
{
  request_status(r);
}

static void told_alive(struct req *r, const char *text)
{
  r->answered = true;
  http_reply(r->x, 200, "text/plain; charset=utf-8", str_of(text));
}

void health(struct req *r)
{
  if (r->gate->greeted)
    told_alive(r, "Health check successful");
  else
    api_error(r, 503, "the warden is not connected");
}

void alive(struct req *r)
{
  told_alive(r, "alive");
}
