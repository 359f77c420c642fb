/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - what the warden tells the exporter (src/exporter/exporter.h): spans of what no request lasts for, and a
 * descriptor of each box's log ring, for reading, with a word when a run is over. The warden reads no line itself.
 * Without a link each of these is one comparison. */
#ifndef CLOCHE_WARDEN_TELEMETRY_H
#define CLOCHE_WARDEN_TELEMETRY_H

#include "wire/span.h"

struct box;
struct warden;

void telemetry_link(struct warden *w, int fd); /* to the exporter; a former one is given up */
void telemetry_log_begin(struct box *b);       /* its ring was seen; the same again does nothing */
void telemetry_log_end(struct box *b);         /* it ends or is paused to disk: what is in the ring is all there is */
/* A trace of its own, as many of them as the setting says. All times monotonic. */
void telemetry_span(struct warden *w, struct span *s);

#endif
