/* SPDX-License-Identifier: Apache-2.0 */
/* log_scan.h - logs that are read in slices. A log is as long as a build or a box liked to make it, so the work of
 * reading is bounded for everyone else: an iteration of the gate's loop gives a slice of time to one log, whoever
 * waits, and only so many are read at once, a part of them for one team (wire/fair_queue.h); the others wait here. */
#ifndef CLOCHE_GATE_API_LOG_SCAN_H
#define CLOCHE_GATE_API_LOG_SCAN_H

#include "gate/api/api.h"
#include "wire/fair_queue.h"

struct log_scan {
  struct fair_queue_item place; /* first: fair_queue_next gives it */
  struct log_scan *next;        /* among those that have their log */
  struct log_scans *of;
};

struct log_scan_ops {
  void (*request)(struct log_scan *s); /* it has a place now: asks for the log, then calls log_scan_read or _end */
  bool (*step)(struct log_scan *s);    /* looks at a piece of the log; false: nothing is left to look at */
  void (*release)(struct log_scan *s); /* the log is not needed any more; may be called again */
  void (*answer)(struct log_scan *s);  /* after release; may be the end of the request, and of s */
};

struct log_scans {
  const struct log_scan_ops *ops;
  struct fair_queue places;
  struct log_scan *first; /* whose turn it is */
  uv_idle_t turns;
};
#define LOG_SCANS_INIT(o)                                                                                              \
  {                                                                                                                    \
    .ops = (o)                                                                                                         \
  }

/* s, zeroed and embedded in what the caller keeps of the request, waits for a place. */
void log_scan_begin(struct log_scans *all, struct log_scan *s, const struct req *r);
void log_scan_read(struct log_scan *s); /* the log is there */
void log_scan_end(struct log_scan *s);  /* it is not read any further; also after the answer, and more than once */

#endif
