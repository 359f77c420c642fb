/* SPDX-License-Identifier: Apache-2.0 */
/* metric_otlp.h - metrics as an ExportMetricsServiceRequest in the JSON encoding of OTLP 1, by the same description as
 * for Prometheus (metric_sink.h), under the names that OpenTelemetry has for them there: cloche.NAME with dots. */
#ifndef CLOCHE_GATE_METRIC_OTLP_H
#define CLOCHE_GATE_METRIC_OTLP_H

#include "gate/metric_sink.h"

struct otlp_sink {
  struct metric_sink sink;
  struct jw w;
  char started[24], now[24]; /* nanoseconds since 1970 */
  bool open;                 /* a family is under way */
  enum metric_kind kind;
};

/* started_us: when the counters began. */
void otlp_sink_init(struct otlp_sink *s, struct buf *out, const char *host, int64_t started_us, int64_t now_us);
void otlp_sink_end(struct otlp_sink *s);

#endif
