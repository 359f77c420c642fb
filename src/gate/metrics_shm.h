/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_shm.h - what the gates count, for Prometheus. One shared page range per server, a slot per gate: each gate
 * writes its own slot only, and whichever is scraped returns the sum. The slots outlive a gate, so counters never go
 * back.
 */
#ifndef CLOCHE_GATE_METRICS_SHM_H
#define CLOCHE_GATE_METRICS_SHM_H

#include "base/base.h"

enum metrics_class {
  CLASS_CREATE,
  CLASS_SANDBOX,
  CLASS_LIST,
  CLASS_TEMPLATE,
  CLASS_ACCOUNT,
  CLASS_OTHER,
  CLASS_AGENT,
  CLASS_INTERPRETER,
  CLASS_PORT,
  CLASSES
};
#define METRICS_BUCKETS  15
#define METRICS_REFUSALS 18

struct histogram {
  uint64_t buckets[METRICS_BUCKETS + 1]; /* the last one: longer than all */
  uint64_t sum_us, count;
};

struct metrics_slot {
  uint64_t requests[CLASSES][5];      /* by the status's hundreds */
  struct histogram latency[CLASSES];  /* to the answer's head */
  uint64_t edge_in, edge_out;         /* bytes to and from boxes */
  uint64_t refused[METRICS_REFUSALS]; /* by enum edge_error */
  uint64_t open, connections,
      calls; /* at the moment: exchanges with boxes, clients, requests to the warden without a reply */
};

void metrics_count(struct metrics_slot *f, enum metrics_class c, int status, int64_t took_us);
/* The text format, summed over n slots. */
void metrics_put_all(struct buf *b, const struct metrics_slot *slots, size_t n);

#endif
