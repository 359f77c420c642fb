/* SPDX-License-Identifier: Apache-2.0 */
/* team_meter.c - see team_meter.h. */
#include "warden/core/team_meter.h"

#include "warden/core/quota.h"
#include "warden/core/warden_state.h"

struct interval {
  struct warden *w;
  int64_t now_us, span_us;
};

static void write_down(struct str team, const struct quota_meter *m, void *arg)
{
  struct interval *i = arg;
  struct err err = ERR_NONE;
  struct team_sample t = {i->now_us, i->span_us, m->peak, m->starts};
  if (team_sample_add(i->w->store, team, &t, &err))
    log_warn("metrics of team " STR_FMT " not kept: %s", STR_ARG(team), err.msg);
}

void team_meter_tick(struct warden *w)
{
  int64_t mono = clock_mono_us();
  if (!w->meters_us)
    w->meters_us = mono;
  if (mono - w->meters_us < TEAM_METER_US)
    return;
  struct interval i = {w, clock_wall_us(), mono - w->meters_us};
  w->meters_us = mono;
  struct err err = ERR_NONE;
  if (store_begin(w->store, &err)) {
    log_warn("metrics of teams not kept: %s", err.msg);
    return;
  }
  quota_meters_take(w, write_down, &i);
  store_end(w->store, 0, NULL);
}

void team_meter_forget(struct warden *w)
{
  team_sample_forget(w->store, clock_wall_us() - (int64_t)w->config->team_metrics_s * 1000000);
}

bool team_meter_now(struct warden *w, struct str team, struct team_sample *out)
{
  struct quota_meter m = quota_meter(w, team);
  int64_t span = w->meters_us ? clock_mono_us() - w->meters_us : 0;
  *out = (struct team_sample){clock_wall_us(), MAX(span, (int64_t)1000000), m.peak, m.starts};
  return m.peak || m.starts;
}
