/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_range.c - see metrics_range.h. */
#include "gate/api/metrics_range.h"

/* Seconds of a bucket for a range of so many seconds. */
static int64_t bucket_width(int64_t range)
{
  static const struct {
    int64_t below, width;
  } steps[] = {{3600, 5}, {6 * 3600, 30}, {12 * 3600, 60}, {24 * 3600, 120}, {7 * 24 * 3600, 300}};
  for (size_t i = 0; i < ARRAY_LEN(steps); i++)
    if (range < steps[i].below)
      return steps[i].width;
  return 900;
}

static bool unix_seconds(struct req *r, const char *name, int64_t *out)
{
  struct str text = api_query(r, name);
  if (!text.n || (!str_i64(text, out) && *out >= 0 && *out <= INT64_MAX / 1000000))
    return true;
  api_error(r, 400, "'%s' must be whole unix seconds, not '" STR_FMT "'", name, STR_ARG(str_sub(text, 0, 100)));
  return false;
}

bool metrics_range(struct req *r, struct metrics_range *out)
{
  int64_t start = -1, end = -1;
  if (!unix_seconds(r, "start", &start) || !unix_seconds(r, "end", &end))
    return false;
  if (start >= 0 && end >= 0 && start > end) {
    api_error(r, 400, "'start' (%lld) is after 'end' (%lld)", (long long)start, (long long)end);
    return false;
  }
  int64_t now = clock_wall_us() / 1000000, from = MAX(start, (int64_t)0), to = end >= 0 ? end : now + 1;
  *out = (struct metrics_range){from, to, start >= 0 ? bucket_width(MIN(to, now) - from) : 5};
  return true;
}
