/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_json.h - spans and log records as an ExportTraceServiceRequest and an ExportLogsServiceRequest in the JSON
 * encoding of OTLP 1: ids in hexadecimal, 64-bit numbers as texts. */
#ifndef CLOCHE_EXPORTER_OTLP_JSON_H
#define CLOCHE_EXPORTER_OTLP_JSON_H

#include "wire/span.h"

/* Adds a span and its phases, which are its children, to a list that otlp_spans_begin opened. */
void otlp_spans_begin(struct jw *w, const char *host);
void otlp_span_add(struct jw *w, const struct span *s);
void otlp_spans_end(struct jw *w);

struct otlp_log {
  int64_t at_us;
  int level; /* 0 debug to 3 error */
  struct str text, box, team;
  struct str stream, pid; /* as the box has it; empty = none */
};

void otlp_logs_begin(struct jw *w, const char *host);
void otlp_log_add(struct jw *w, const struct otlp_log *l);
void otlp_logs_end(struct jw *w);

#endif
