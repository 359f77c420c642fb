/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - monotonic for deadlines, wall for people. Microseconds since boot / since 1970. */
#ifndef CLOCHE_CLOCK_H
#define CLOCHE_CLOCK_H

#include "base/str.h"

int64_t clock_mono_us(void);
int64_t clock_wall_us(void);

#define CLOCK_TEXT 40
/* RFC 3339, UTC, `Z`, six fraction digits: 2026-01-02T03:04:05.678901Z */
/* As gmtime_r, which reads the time zone's file at its first use although it needs none. */
struct tm;
void clock_utc(int64_t sec, struct tm *tm);
void clock_text(int64_t wall_us, char out[CLOCK_TEXT]);
/* Accepts an offset and 0 to 9 fraction digits; -EINVAL otherwise. */
int clock_parse(struct str text, int64_t *wall_us);

#endif
