/* SPDX-License-Identifier: Apache-2.0 */
/* box_logs.h - follows the log rings of boxes and sends what is new in them to the collector. For exporter.c.
 *
 * Each ring is a descriptor that the warden gave (warden/core/telemetry.h); what is in it is a box's own text
 * (log_entry.h), and whose box it is says the warden. All rings get their turn in pieces of one size, and no more is
 * read than the collector takes: what waits, waits in the rings, where the box itself overwrites it, which is told. */
#ifndef CLOCHE_EXPORTER_BOX_LOGS_H
#define CLOCHE_EXPORTER_BOX_LOGS_H

#include "exporter/delivery.h"
#include <uv.h>

struct box_logs;

struct box_logs *box_logs_new(uv_loop_t *loop, struct delivery *d, const char *host, const struct exporter_config *c);
/* WIRE_OTLP_LOG: takes the descriptor; -1: the box is over, its ring is read to its end and given up. */
void box_logs_take(struct box_logs *l, struct str packet, int fd);
/* The warden has gone. The next one gives the rings of those that live again; the others are given up. */
void box_logs_orphaned(struct box_logs *l);
void box_logs_flush(struct box_logs *l); /* what is new, now */

#endif
