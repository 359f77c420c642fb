/* SPDX-License-Identifier: Apache-2.0 */
/* event_keep.h - lifecycle events are kept for a while: the settings events_keep_days, events_team_max and events_max.
 */
#ifndef CLOCHE_WARDEN_CORE_EVENT_KEEP_H
#define CLOCHE_WARDEN_CORE_EVENT_KEEP_H

struct warden;

/* Deletes what is too old or too much, on a worker, in slices so small that a write of the loop hardly waits for one;
 * the rest of a large backlog at the next call. */
void events_keep(struct warden *w);

#endif
