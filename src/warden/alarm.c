/* alarm.c - see alarm.h. */
#include "warden/alarm.h"

static void put(struct alarms *s, size_t i, struct alarm *a)
{
  s->heap.p[i] = a;
  a->place = i + 1;
}

static void sift_up(struct alarms *s, size_t i)
{
  struct alarm *a = s->heap.p[i];
  for (; i > 0 && s->heap.p[(i - 1) / 2]->at_us > a->at_us; i = (i - 1) / 2)
    put(s, i, s->heap.p[(i - 1) / 2]);
  put(s, i, a);
}

static void sift_down(struct alarms *s, size_t i)
{
  struct alarm *a = s->heap.p[i];
  for (;;) {
    size_t kid = 2 * i + 1;
    if (kid >= s->heap.n)
      break;
    if (kid + 1 < s->heap.n && s->heap.p[kid + 1]->at_us < s->heap.p[kid]->at_us)
      kid++;
    if (s->heap.p[kid]->at_us >= a->at_us)
      break;
    put(s, i, s->heap.p[kid]);
    i = kid;
  }
  put(s, i, a);
}

void alarm_unset(struct alarms *s, struct alarm *a)
{
  if (!a->place)
    return;
  size_t i = a->place - 1;
  a->place = 0;
  struct alarm *last = s->heap.p[--s->heap.n];
  if (last == a)
    return;
  put(s, i, last);
  sift_up(s, i);
  sift_down(s, last->place - 1);
}

void alarm_set(struct alarms *s, struct alarm *a, int64_t at_us)
{
  alarm_unset(s, a);
  a->at_us = at_us;
  vec_push(&s->heap, a);
  sift_up(s, s->heap.n - 1);
}

struct alarm *alarm_first(const struct alarms *s)
{
  return s->heap.n ? s->heap.p[0] : NULL;
}

struct alarm *alarm_due(struct alarms *s, int64_t now_us)
{
  struct alarm *a = alarm_first(s);
  if (!a || a->at_us > now_us)
    return NULL;
  alarm_unset(s, a);
  return a;
}

void alarms_free(struct alarms *s)
{
  vec_free(&s->heap);
}
