/* SPDX-License-Identifier: Apache-2.0 */
/* tracing.h - what a gate tells the exporter (src/exporter/exporter.h): spans of requests, and now and then all metrics
 * of the server. Without an exporter each of these is one comparison. For files below src/gate. */
#ifndef CLOCHE_GATE_TRACING_H
#define CLOCHE_GATE_TRACING_H

#include "gate/gate_state.h"
#include "wire/span.h"

void tracing_attach(struct gate *g, int fd); /* the link to the exporter; a former one is given up */
bool tracing_on(const struct gate *g);
/* The context of a request: that of its `traceparent`, or a new one, of which as many are recorded as the setting says.
 * False: it is not recorded. */
bool tracing_begin(struct gate *g, const struct http_head *h, struct span_context *out);
/* These times and those of the phases are monotonic; turned into wall time here. Gives the span an id. */
void tracing_end(struct gate *g, struct span *s, int64_t from_us, int64_t to_us);
/* On one gate: metrics are told every interval. */
void tracing_metrics_start(struct gate *g);

#endif
