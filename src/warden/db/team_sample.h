/* SPDX-License-Identifier: Apache-2.0 */
/* team_sample.h - how many sandboxes a team had running and started, interval by interval. Intervals without either
 * have no row, but for the first of them. */
#ifndef CLOCHE_WARDEN_DB_TEAM_SAMPLE_H
#define CLOCHE_WARDEN_DB_TEAM_SAMPLE_H

#include "warden/db/store.h"
#include "wire/wire.h"

struct team_sample {
  int64_t at_us, span_us; /* the end of the interval and its length */
  uint64_t running;       /* at most, in it */
  uint64_t starts;
};

int team_sample_add(struct store *s, struct str team, const struct team_sample *t, struct err *err);
/* Of intervals that end from `from_us` to `to_us`: joined, oldest first, or the one with the most. */
struct team_sample_query {
  int64_t from_us, to_us;
  enum usage_mode mode;
  int64_t
      width_us; /* those that end in the same multiple of it are joined; wider where there were more than `points` */
  unsigned points;
};
void team_sample_each(struct store *s, struct str team, const struct team_sample_query *q,
                      void (*fn)(const struct team_sample *t, void *arg), void *arg);
void team_sample_forget(struct store *s, int64_t before_us);

#endif
