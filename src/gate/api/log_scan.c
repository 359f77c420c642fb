/* SPDX-License-Identifier: Apache-2.0 */
/* log_scan.c - see log_scan.h. */
#include "gate/api/log_scan.h"

#define SLICE_US 1000

static void unlink_scan(struct log_scan *s)
{
  for (struct log_scan **at = &s->of->first; *at; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  if (!s->of->first)
    uv_idle_stop(&s->of->turns);
}

static void admit(struct log_scans *all)
{
  for (struct log_scan *s; (s = (struct log_scan *)fair_queue_next(&all->places));)
    all->ops->request(s);
}

/* One log for a while, then the gate's other work. */
static void on_turn(uv_idle_t *idle)
{
  struct log_scans *all = idle->data;
  struct log_scan *s = all->first;
  int64_t until_us = clock_mono_us() + SLICE_US;
  bool more;
  do
    more = all->ops->step(s);
  while (more && clock_mono_us() < until_us);
  if (more) {
    unlink_scan(s);
    log_scan_read(s);
    return;
  }
  log_scan_end(s);
  all->ops->answer(s);
}

void log_scan_read(struct log_scan *s)
{
  struct log_scan **at = &s->of->first;
  while (*at)
    at = &(*at)->next;
  s->next = NULL;
  *at = s;
  uv_idle_start(&s->of->turns, on_turn);
}

void log_scan_end(struct log_scan *s)
{
  struct log_scans *all = s->of;
  unlink_scan(s);
  all->ops->release(s);
  if (!fair_queue_cancel(&all->places, &s->place) && s->place.team)
    fair_queue_done(&all->places, &s->place);
  admit(all);
}

void log_scan_begin(struct log_scans *all, struct log_scan *s, const struct req *r)
{
  if (!all->turns.loop) {
    uv_idle_init(r->gate->loop, &all->turns);
    all->turns.data = all;
  }
  s->of = all;
  all->places.places = r->gate->config->log_reads_max;
  all->places.share = (all->places.places + 1) / 2;
  fair_queue_push(&all->places, str_of(r->team.id), &s->place);
  admit(all);
}
