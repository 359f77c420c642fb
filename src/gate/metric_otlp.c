/* SPDX-License-Identifier: Apache-2.0 */
/* metric_otlp.c - see metric_otlp.h. */
#include "gate/metric_otlp.h"

#include <math.h>
#include <stdio.h>

enum { CUMULATIVE = 2 };

static void put_attribute(struct jw *w, const char *key, struct str value)
{
  jw_open(w, '{');
  jw_key(w, "key");
  jw_z(w, key);
  jw_key(w, "value");
  jw_open(w, '{');
  jw_key(w, "stringValue");
  jw_str(w, value);
  jw_close(w, '}');
  jw_close(w, '}');
}

static void put_count(struct jw *w, const char *key, uint64_t n)
{
  char text[U64_TEXT];
  snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
  jw_key(w, key);
  jw_z(w, text);
}

static void family_close(struct otlp_sink *s)
{
  if (!s->open)
    return;
  s->open = false;
  jw_close(&s->w, ']');
  if (s->kind != METRIC_GAUGE) {
    jw_key(&s->w, "aggregationTemporality");
    jw_int(&s->w, CUMULATIVE);
  }
  if (s->kind == METRIC_COUNTER) {
    jw_key(&s->w, "isMonotonic");
    jw_bool(&s->w, true);
  }
  jw_close(&s->w, '}');
  jw_close(&s->w, '}');
}

static void family(struct metric_sink *sink, const char *name, enum metric_kind kind, const char *unit,
                   const char *help)
{
  static const char *const kinds[] = {
      [METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "sum", [METRIC_HISTOGRAM] = "histogram"};
  struct otlp_sink *s = (struct otlp_sink *)sink;
  char full[128];
  family_close(s);
  snprintf(full, sizeof(full), "cloche.%s", name);
  jw_open(&s->w, '{');
  jw_key(&s->w, "name");
  jw_z(&s->w, full);
  jw_key(&s->w, "description");
  jw_z(&s->w, help);
  jw_key(&s->w, "unit");
  jw_z(&s->w, unit[0] ? unit : "1");
  jw_key(&s->w, kinds[kind]);
  jw_open(&s->w, '{');
  jw_key(&s->w, "dataPoints");
  jw_open(&s->w, '[');
  s->open = true;
  s->kind = kind;
}

static void point_open(struct otlp_sink *s, const struct metric_label *labels, size_t n)
{
  jw_open(&s->w, '{');
  jw_key(&s->w, "attributes");
  jw_open(&s->w, '[');
  for (size_t i = 0; i < n; i++)
    put_attribute(&s->w, labels[i].name, labels[i].value);
  jw_close(&s->w, ']');
  if (s->kind != METRIC_GAUGE) {
    jw_key(&s->w, "startTimeUnixNano");
    jw_z(&s->w, s->started);
  }
  jw_key(&s->w, "timeUnixNano");
  jw_z(&s->w, s->now);
}

static void value(struct metric_sink *sink, const struct metric_label *labels, size_t n, double v)
{
  struct otlp_sink *s = (struct otlp_sink *)sink;
  point_open(s, labels, n);
  if (v >= 0 && v < 9e15 && v == floor(v)) {
    put_count(&s->w, "asInt", (uint64_t)v);
  } else {
    jw_key(&s->w, "asDouble");
    jw_double(&s->w, v, 9);
  }
  jw_close(&s->w, '}');
}

static void put_exemplars(struct otlp_sink *s, const struct exemplar *exemplars)
{
  jw_key(&s->w, "exemplars");
  jw_open(&s->w, '[');
  for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
    struct exemplar e;
    char id[40], when[32];
    if (!exemplar_get(&exemplars[i], &e))
      continue;
    hex_encode(e.trace, sizeof(e.trace), id);
    snprintf(when, sizeof(when), "%llu000", (unsigned long long)e.wall_us);
    jw_open(&s->w, '{');
    jw_key(&s->w, "timeUnixNano");
    jw_z(&s->w, when);
    jw_key(&s->w, "asDouble");
    jw_double(&s->w, (double)e.value_us / 1e6, 6);
    jw_key(&s->w, "traceId");
    jw_z(&s->w, id);
    jw_close(&s->w, '}');
  }
  jw_close(&s->w, ']');
}

static void histogram(struct metric_sink *sink, const struct metric_label *labels, size_t n, const struct histogram *h,
                      const struct exemplar *exemplars)
{
  struct otlp_sink *s = (struct otlp_sink *)sink;
  point_open(s, labels, n);
  put_count(&s->w, "count", h->count);
  jw_key(&s->w, "sum");
  jw_double(&s->w, (double)h->sum_us / 1e6, 6);
  jw_key(&s->w, "bucketCounts");
  jw_open(&s->w, '[');
  for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
    char text[U64_TEXT];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)h->buckets[i]);
    jw_z(&s->w, text);
  }
  jw_close(&s->w, ']');
  jw_key(&s->w, "explicitBounds");
  jw_open(&s->w, '[');
  for (size_t i = 0; i < METRICS_BUCKETS; i++)
    jw_double(&s->w, (double)metric_ends_us[i] / 1e6, 6);
  jw_close(&s->w, ']');
  if (exemplars)
    put_exemplars(s, exemplars);
  jw_close(&s->w, '}');
}

void otlp_sink_init(struct otlp_sink *s, struct buf *out, const char *host, int64_t started_us, int64_t now_us)
{
  *s = (struct otlp_sink){.sink = {family, value, histogram}, .w = JW(out)};
  snprintf(s->started, sizeof(s->started), "%lld000", (long long)started_us);
  snprintf(s->now, sizeof(s->now), "%lld000", (long long)now_us);
  jw_open(&s->w, '{');
  jw_key(&s->w, "resourceMetrics");
  jw_open(&s->w, '[');
  jw_open(&s->w, '{');
  jw_key(&s->w, "resource");
  jw_open(&s->w, '{');
  jw_key(&s->w, "attributes");
  jw_open(&s->w, '[');
  put_attribute(&s->w, "service.name", STR("cloche"));
  put_attribute(&s->w, "service.version", STR(CLOCHE_VERSION));
  put_attribute(&s->w, "host.name", str_of(host));
  jw_close(&s->w, ']');
  jw_close(&s->w, '}');
  jw_key(&s->w, "scopeMetrics");
  jw_open(&s->w, '[');
  jw_open(&s->w, '{');
  jw_key(&s->w, "scope");
  jw_open(&s->w, '{');
  jw_key(&s->w, "name");
  jw_z(&s->w, "cloche");
  jw_close(&s->w, '}');
  jw_key(&s->w, "metrics");
  jw_open(&s->w, '[');
}

void otlp_sink_end(struct otlp_sink *s)
{
  family_close(s);
  for (const char *c = "]}]}]}"; *c; c++)
    jw_close(&s->w, *c);
}
