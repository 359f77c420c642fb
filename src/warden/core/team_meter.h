/* SPDX-License-Identifier: Apache-2.0 */
/* team_meter.h - what teams have running and start, written down every TEAM_METER_US and kept for as long as the
 * setting team_metrics_hours says. */
#ifndef CLOCHE_WARDEN_TEAM_METER_H
#define CLOCHE_WARDEN_TEAM_METER_H

#include "warden/db/team_sample.h"

struct warden;

#define TEAM_METER_US 30000000

void team_meter_tick(struct warden *w); /* now and then; writes when it is time */
void team_meter_forget(struct warden *w);
/* What is counted at this moment and not written yet; false: nothing is. */
bool team_meter_now(struct warden *w, struct str team, struct team_sample *out);

#endif
