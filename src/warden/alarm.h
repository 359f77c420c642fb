/* alarm.h - many deadlines, one timer: a binary heap over monotonic microseconds. */
#ifndef CLOCHE_ALARM_H
#define CLOCHE_ALARM_H

#include "base/base.h"

struct alarm {
  int64_t at_us;
  size_t place; /* 1-based place in the heap; 0 = not set */
};

struct alarms {
  VEC(struct alarm *) heap;
};

void alarm_set(struct alarms *s, struct alarm *a, int64_t at_us); /* sets or moves */
void alarm_unset(struct alarms *s, struct alarm *a);
struct alarm *alarm_first(const struct alarms *s);         /* NULL when none */
struct alarm *alarm_due(struct alarms *s, int64_t now_us); /* takes the first one that is due, or NULL */
void alarms_free(struct alarms *s);

#endif
