/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - two clocks and one way to write a time. */
#include "base/clock.h"
#include "base/core.h"

#include <stdio.h>
#include <time.h>

static int64_t now(clockid_t id)
{
  struct timespec t;
  clock_gettime(id, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
  return now(CLOCK_MONOTONIC);
}

int64_t clock_wall_us(void)
{
  return now(CLOCK_REALTIME);
}

static int64_t year_days(int64_t y)
{
  return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0 ? 366 : 365;
}

void clock_utc(int64_t sec, struct tm *tm)
{
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int64_t day = 86400, cycle = 146097; /* days of 400 years, after which the calendar repeats */
  int64_t in_day = ((sec % day) + day) % day, days = sec / day - (sec % day < 0);
  int64_t weekday = ((days + 4) % 7 + 7) % 7;
  int64_t cycles = (days - ((days % cycle) + cycle) % cycle) / cycle, year = 1970 + 400 * cycles;
  days -= cycles * cycle;
  for (; days >= year_days(year); year++)
    days -= year_days(year);
  *tm = (struct tm){.tm_wday = (int)weekday,
                    .tm_yday = (int)days,
                    .tm_year = (int)MAX(MIN(year - 1900, (int64_t)INT32_MAX), (int64_t)INT32_MIN)};
  for (int length; tm->tm_mon < 12; tm->tm_mon++, days -= length) {
    length = lengths[tm->tm_mon] + (tm->tm_mon == 1 && year_days(year) == 366);
    if (days < length)
      break;
  }
  tm->tm_mday = (int)days + 1;
  tm->tm_hour = (int)(in_day / 3600);
  tm->tm_min = (int)(in_day / 60 % 60);
  tm->tm_sec = (int)(in_day % 60);
}

void clock_text(int64_t wall_us, char out[CLOCK_TEXT])
{
  int64_t sec = wall_us / 1000000, us = wall_us % 1000000;
  if (us < 0) {
    us += 1000000;
    sec--;
  }
  struct tm tm;
  clock_utc(sec, &tm);
  snprintf(out, CLOCK_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
           tm.tm_hour, tm.tm_min, tm.tm_sec, (int)us);
}

/* Reads exactly n digits off the front. */
static int take(struct str *s, size_t n, int *out)
{
  uint64_t v;
  if (s->n < n || str_u64(str_sub(*s, 0, n), &v))
    return -EINVAL;
  *s = str_skip(*s, n);
  *out = (int)v;
  return 0;
}

static int expect(struct str *s, const char *any)
{
  if (!s->n || !strchr(any, s->p[0]))
    return -EINVAL;
  *s = str_skip(*s, 1);
  return 0;
}

static int take_fraction(struct str *s, int64_t *us)
{
  *us = 0;
  if (!s->n || s->p[0] != '.')
    return 0;
  *s = str_skip(*s, 1);
  int64_t scale = 100000;
  size_t n = 0;
  for (; s->n && s->p[0] >= '0' && s->p[0] <= '9'; *s = str_skip(*s, 1), n++, scale /= 10)
    *us += (s->p[0] - '0') * scale;
  return n >= 1 && n <= 9 ? 0 : -EINVAL;
}

static int take_offset(struct str *s, int *minutes)
{
  *minutes = 0;
  if (s->n == 1 && (s->p[0] == 'Z' || s->p[0] == 'z'))
    return 0;
  int sign = s->n && s->p[0] == '-' ? -1 : 1, h, m;
  if (expect(s, "+-") || take(s, 2, &h) || expect(s, ":") || take(s, 2, &m) || s->n || h > 23 || m > 59)
    return -EINVAL;
  *minutes = sign * (h * 60 + m);
  return 0;
}

int clock_parse(struct str s, int64_t *wall_us)
{
  struct tm tm = {0};
  int64_t us;
  int off;
  if (take(&s, 4, &tm.tm_year) || expect(&s, "-") || take(&s, 2, &tm.tm_mon) || expect(&s, "-") ||
      take(&s, 2, &tm.tm_mday) || expect(&s, "Tt ") || take(&s, 2, &tm.tm_hour) || expect(&s, ":") ||
      take(&s, 2, &tm.tm_min) || expect(&s, ":") || take(&s, 2, &tm.tm_sec) || take_fraction(&s, &us) ||
      take_offset(&s, &off))
    return -EINVAL;
  if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 ||
      tm.tm_sec > 60)
    return -EINVAL;
  tm.tm_year -= 1900;
  tm.tm_mon--;
  *wall_us = ((int64_t)timegm(&tm) - (int64_t)off * 60) * 1000000 + us;
  return 0;
}
