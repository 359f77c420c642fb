/* SPDX-License-Identifier: Apache-2.0 */
/* metric_sink.h - where metrics are told to: one description of all metrics (metrics_tell.c), several formats
 * (metric_text.c for Prometheus and OpenMetrics, src/exporter for OTLP). Names have no prefix and counters no "_total":
 * the format adds both. A family is followed by its points. */
#ifndef CLOCHE_GATE_METRIC_SINK_H
#define CLOCHE_GATE_METRIC_SINK_H

#include "base/base.h"

#define METRICS_BUCKETS 15
extern const uint64_t metric_ends_us[METRICS_BUCKETS]; /* upper ends */

struct histogram {
  uint64_t buckets[METRICS_BUCKETS + 1]; /* the last one: longer than all */
  uint64_t sum_us, count;
};

/* A request of a bucket whose trace is recorded. Written by one process and read by others: seq is odd meanwhile. */
struct exemplar {
  uint64_t seq;
  uint8_t trace[16];
  uint64_t value_us, wall_us; /* wall_us 0: there is none */
};
void exemplar_put(struct exemplar *e, const uint8_t trace[16], uint64_t value_us);
bool exemplar_get(const struct exemplar *e, struct exemplar *out);

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct metric_label {
  const char *name;
  struct str value;
};

struct metric_sink {
  /* unit: in the words of UCUM ("By", "s"), "" = none. The texts are borrowed until the next family. */
  void (*family)(struct metric_sink *s, const char *name, enum metric_kind kind, const char *unit, const char *help);
  void (*value)(struct metric_sink *s, const struct metric_label *labels, size_t n, double v);
  void (*histogram)(struct metric_sink *s, const struct metric_label *labels, size_t n, const struct histogram *h,
                    const struct exemplar *exemplars);
};

/* The text format 0.0.4; `open`: OpenMetrics 1.0, with exemplars. */
struct text_sink {
  struct metric_sink sink;
  struct buf *out;
  bool open;
  const char *name, *total;
};
void text_sink_init(struct text_sink *t, struct buf *out, bool open);
void text_sink_end(struct text_sink *t);
/* Whether the Accept header prefers OpenMetrics to the text format. */
bool text_sink_wanted(struct str accept);

#endif
