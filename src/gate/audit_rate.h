/* SPDX-License-Identifier: Apache-2.0 */
/* audit_rate.h - how many records of one team, and of nobody, are told a second; more are counted. Without it whoever
 * asks often enough fills the log, and the oldest files go. */
#ifndef CLOCHE_GATE_AUDIT_RATE_H
#define CLOCHE_GATE_AUDIT_RATE_H

#include "base/base.h"

#define AUDIT_BURST_S 10 /* a burst is what so many seconds allow */

struct audit_rate {
  struct bucket bucket;
  uint64_t left_out;
};

struct audit_rates {
  struct audit_rate nobody;
  struct map teams; /* id -> struct audit_rate *, of teams since the last telling */
};

/* `team`: empty = nobody. False: it is counted instead. */
bool audit_rates_take(struct audit_rates *a, struct str team, uint64_t now_ms, unsigned a_second);
/* Calls `fn` for each that something was left out of, and begins to count again. Teams that have been quiet for a burst
 * are forgotten. */
void audit_rates_tell(struct audit_rates *a, uint64_t now_ms, void (*fn)(struct str team, uint64_t n, void *arg),
                      void *arg);

#endif
