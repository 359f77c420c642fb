/* SPDX-License-Identifier: Apache-2.0 */
/* edge_trace.h - the span of a cell on its way through the edge (gate/tracing.h). */
#ifndef CLOCHE_EDGE_TRACE_H
#define CLOCHE_EDGE_TRACE_H

#include "gate/tracing.h"

struct cell_trace {
  struct span_context context; /* where `on` */
  unsigned status;
  int64_t asked_us, headed_us; /* it went into the box; the answer's head came */
  bool on;
};

bool cell_is(unsigned port, struct str path); /* a request that runs one */
/* The answer's head is there: its trace where it is recorded, else NULL. */
const uint8_t *cell_trace_headed(struct gate *g, const struct http_head *h, bool cell, int status,
                                 struct cell_trace *t);
/* The stream is over; nothing happens where it is not recorded. */
void cell_trace_end(struct gate *g, const struct cell_trace *t, int64_t began_us, const char *box, const char *team);

#endif
