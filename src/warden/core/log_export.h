/* SPDX-License-Identifier: Apache-2.0 */
/* log_export.h - gives the exporter (src/exporter/exporter.h) a descriptor of each box's log ring, for reading, and
 * says when a run is over. The warden reads no line itself. Without a link each of these is one comparison. */
#ifndef CLOCHE_WARDEN_LOG_EXPORT_H
#define CLOCHE_WARDEN_LOG_EXPORT_H

struct box;
struct warden;

void log_export_link(struct warden *w, int fd); /* to the exporter; a former one is given up */
void log_export_begin(struct box *b);           /* its ring was seen; the same again does nothing */
void log_export_end(struct box *b);             /* it ends or is paused to disk: what is in the ring is all there is */

#endif
