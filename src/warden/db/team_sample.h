/* SPDX-License-Identifier: Apache-2.0 */
/* team_sample.h - how many sandboxes a team had running and started, interval by interval. Intervals without either
 * have no row, but for the first of them. */
#ifndef CLOCHE_WARDEN_DB_TEAM_SAMPLE_H
#define CLOCHE_WARDEN_DB_TEAM_SAMPLE_H

#include "warden/db/store.h"

struct team_sample {
  int64_t at_us, span_us; /* the end of the interval and its length */
  uint64_t running;       /* at most, in it */
  uint64_t starts;
};

int team_sample_add(struct store *s, struct str team, const struct team_sample *t, struct err *err);
/* Oldest first, of intervals that end from `from_us` to `to_us`. */
void team_sample_each(struct store *s, struct str team, int64_t from_us, int64_t to_us,
                      void (*fn)(const struct team_sample *t, void *arg), void *arg);
void team_sample_forget(struct store *s, int64_t before_us);

#endif
