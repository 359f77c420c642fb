/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_api.c - how the server is: GET /metrics for Prometheus, /health and /readyz (requests are answered), /livez
 * (this gate lives), and the structured access log. */
#include "gate/api/api.h"
#include "gate/edge/edge.h"
#include "gate/metrics_shm.h"

#include <stdio.h>

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

/* One line per n-th request; the query is left out, it may hold a signature. */
static void access_log(struct gate *g, struct http_x *x, const char *box, int status, int64_t took_us)
{
  unsigned every = g->config->access_log_every;
  if (!every || g->logged++ % every)
    return;
  const struct http_head *h = http_x_head(x);
  char peer[80], method[16], path[256], code[16], took[24];
  http_x_peer(x, peer, sizeof(peer));
  snprintf(method, sizeof(method), STR_FMT, STR_ARG(h->method));
  snprintf(path, sizeof(path), STR_FMT, STR_ARG(h->path));
  snprintf(code, sizeof(code), "%d", status);
  snprintf(took, sizeof(took), "%lld", (long long)took_us);
  log_with(LOG_INFO,
           (const char *[]){"client", peer, "method", method, "path", path, "status", code, "took_us", took,
                            box ? "box" : NULL, box, NULL},
           "request");
}

static void note_moment(struct gate *g)
{
  g->metrics_slot->connections = http_server_conns(g->server);
  g->metrics_slot->calls = g->calls.n;
}

void metrics_api(struct req *r, int status)
{
  struct gate *g = r->gate;
  note_moment(g);
  int64_t took = clock_mono_us() - r->began_us;
  metrics_count(g->metrics_slot, class_of(r), status, took);
  access_log(g, r->x, NULL, status, took);
}

void metrics_edge(struct gate *g, struct http_x *x, const struct edge_target *t, int status, int64_t took_us)
{
  enum metrics_class c = t->port == ENVD_PORT          ? CLASS_AGENT
                         : t->port == INTERPRETER_PORT ? CLASS_INTERPRETER
                                                       : CLASS_PORT;
  note_moment(g);
  metrics_count(g->metrics_slot, c, status, took_us);
  access_log(g, x, t->box, status, took_us);
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
      {"resumes_total", "counter", "Sandboxes woken up.", s->resumes_total},
      {"ends_total", "counter", "Sandboxes that ended.", s->ends_total},
      {"removals", "gauge", "Ended sandboxes being reclaimed.", s->removals},
      {"checkpoint_ready", "gauge", "1: paused sandboxes go to disk; 0: they stay in memory (tier frozen).",
       s->checkpoint_ready},
      {"checkpoints", "gauge", "Paused sandboxes whose memory is on disk.", s->checkpoints},
      {"checkpoint_bytes", "gauge", "Bytes of their memory on disk.", s->checkpoint_bytes},
      {"shelf", "gauge", "Warm sandboxes in the pool.", s->warm_boxes},
  };
  buf_addf(b,
           "# HELP cloche_boxes Sandboxes by state.\n# TYPE cloche_boxes gauge\ncloche_boxes{state=\"running\"} %llu\n"
           "cloche_boxes{state=\"paused\"} %llu\ncloche_boxes{state=\"starting\"} %llu\n",
           (unsigned long long)s->running, (unsigned long long)s->paused, (unsigned long long)s->starting);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    buf_addf(b, "# HELP cloche_%s %s\n# TYPE cloche_%s %s\ncloche_%s %llu\n", rows[i].name, rows[i].help, rows[i].name,
             rows[i].kind, rows[i].name, (unsigned long long)rows[i].value);
}

static void status_told(const struct answer *a, void *arg)
{
  struct req *r = arg;
  struct gate *g = r->gate;
  struct wire_status s;
  if (!api_status(r, a, &s))
    return;
  note_moment(g);
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

static void tell(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_STATUS, 0, 0);
  api_call_warden(r, &b, NULL, status_told);
}

/* A key of any team, the administrator's token, or the listener made for it. */
void metrics(struct req *r)
{
  tell(r);
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
