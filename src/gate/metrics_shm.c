/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_shm.c - see metrics_shm.h. */
#include "gate/metrics_shm.h"

#include "gate/edge/edge_error.h"

/* Upper ends in microseconds; from a warm cell to a very slow start. */
static const uint64_t ends_us[METRICS_BUCKETS] = {250,   500,    1000,   2000,    4000,    8000,     16000,   32000,
                                                  64000, 128000, 256000, 1000000, 4000000, 16000000, 60000000};

static const char *const class_names[CLASSES] = {
    [CLASS_CREATE] = "create",     [CLASS_SANDBOX] = "sandbox",         [CLASS_LIST] = "list",
    [CLASS_TEMPLATE] = "template", [CLASS_ACCOUNT] = "account",         [CLASS_OTHER] = "other",
    [CLASS_AGENT] = "agent",       [CLASS_INTERPRETER] = "interpreter", [CLASS_PORT] = "port",
};

static const char *const refusal_names[METRICS_REFUSALS] = {
    [EDGE_BAD_TARGET] = "bad_target",
    [EDGE_NOT_FOUND] = "not_found",
    [EDGE_PORT_CLOSED] = "port_closed",
    [EDGE_TOKEN_MISSING] = "token_missing",
    [EDGE_TOKEN_WRONG] = "token_wrong",
    [EDGE_INTERNAL] = "internal_route",
    [EDGE_BROKEN] = "broken",
    [EDGE_RESUME_REFUSED] = "resume_refused",
    [EDGE_TRANSITION] = "transition",
    [EDGE_TEAM_LIMIT] = "team_limit",
    [EDGE_TOO_MANY] = "too_many",
    [EDGE_UNSIGNED] = "unsigned",
    [EDGE_TEAM_BUSY] = "team_busy",
    [EDGE_ACCESS_MISSING] = "access_missing",
    [EDGE_ACCESS_WRONG] = "access_wrong",
    [EDGE_PAUSED] = "paused",
    [EDGE_UNKNOWN_MANY] = "unknown_many",
    [EDGE_THROTTLED] = "throttled",
};

void metrics_count(struct metrics_slot *f, enum metrics_class c, int status, int64_t took_us)
{
  struct histogram *h = &f->latency[c];
  uint64_t us = took_us > 0 ? (uint64_t)took_us : 0;
  size_t i = 0;
  while (i < METRICS_BUCKETS && us > ends_us[i])
    i++;
  h->buckets[i]++;
  h->sum_us += us;
  h->count++;
  if (status >= 100 && status < 600)
    f->requests[c][status / 100 - 1]++;
}

static void add_all(struct metrics_slot *sum, const struct metrics_slot *f)
{
  _Static_assert(sizeof(*f) % sizeof(uint64_t) == 0, "counters only");
  const uint64_t *from = (const uint64_t *)f;
  uint64_t *to = (uint64_t *)sum;
  for (size_t i = 0; i < sizeof(*f) / sizeof(uint64_t); i++)
    to[i] += from[i];
}

static void put_head(struct buf *b, const char *name, const char *kind, const char *help)
{
  buf_addf(b, "# HELP cloche_%s %s\n# TYPE cloche_%s %s\n", name, help, name, kind);
}

static void put_latency(struct buf *b, const struct histogram *h, const char *class)
{
  uint64_t below = 0;
  for (size_t i = 0; i < METRICS_BUCKETS; i++) {
    below += h->buckets[i];
    buf_addf(b, "cloche_request_seconds_bucket{class=\"%s\",le=\"%g\"} %llu\n", class, (double)ends_us[i] / 1e6,
             (unsigned long long)below);
  }
  buf_addf(b, "cloche_request_seconds_bucket{class=\"%s\",le=\"+Inf\"} %llu\n", class, (unsigned long long)h->count);
  buf_addf(b, "cloche_request_seconds_sum{class=\"%s\"} %.6f\n", class, (double)h->sum_us / 1e6);
  buf_addf(b, "cloche_request_seconds_count{class=\"%s\"} %llu\n", class, (unsigned long long)h->count);
}

static void put_gauge(struct buf *b, const char *name, const char *help, uint64_t v)
{
  put_head(b, name, "gauge", help);
  buf_addf(b, "cloche_%s %llu\n", name, (unsigned long long)v);
}

void metrics_put_all(struct buf *b, const struct metrics_slot *slots, size_t n)
{
  struct metrics_slot sum = {0};
  for (size_t i = 0; i < n; i++)
    add_all(&sum, &slots[i]);
  put_head(b, "requests_total", "counter", "Requests answered, by class and status.");
  for (int c = 0; c < CLASSES; c++)
    for (int s = 0; s < 5; s++)
      if (sum.requests[c][s])
        buf_addf(b, "cloche_requests_total{class=\"%s\",status=\"%dxx\"} %llu\n", class_names[c], s + 1,
                 (unsigned long long)sum.requests[c][s]);
  put_head(b, "request_seconds", "histogram", "Time to the head of the answer, by class.");
  for (int c = 0; c < CLASSES; c++)
    if (sum.latency[c].count)
      put_latency(b, &sum.latency[c], class_names[c]);
  put_head(b, "edge_bytes_total", "counter", "Body bytes into and out of sandboxes.");
  buf_addf(b, "cloche_edge_bytes_total{direction=\"in\"} %llu\ncloche_edge_bytes_total{direction=\"out\"} %llu\n",
           (unsigned long long)sum.edge_in, (unsigned long long)sum.edge_out);
  put_head(b, "edge_refused_total", "counter", "Requests for sandboxes that were refused, by reason.");
  for (int i = 0; i < METRICS_REFUSALS; i++)
    if (refusal_names[i])
      buf_addf(b, "cloche_edge_refused_total{reason=\"%s\"} %llu\n", refusal_names[i],
               (unsigned long long)sum.refused[i]);
  put_gauge(b, "edge_open", "Exchanges with sandboxes under way.", sum.open);
  put_gauge(b, "connections", "Client connections.", sum.connections);
  put_gauge(b, "warden_requests", "Requests to the warden without a reply yet.", sum.calls);
}
