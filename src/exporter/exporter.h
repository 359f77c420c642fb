/* SPDX-License-Identifier: Apache-2.0 */
/* exporter.h - the exporter: the role that sends traces and metrics to an OpenTelemetry collector (OTLP over HTTP, in
 * its JSON encoding), and where that is wanted what boxes print.
 *
 * Start here in this folder. The operator names the collector; gates send spans and finished metrics, the warden gives
 * descriptors of log rings. The exporter has no rights, no files and no secret but the headers that the operator gave
 * it for the collector. It promises that nobody waits for the collector: what does not fit its queue is dropped and
 * counted; that a request which failed is repeated with growing pauses, and given up after some; and that it holds no
 * more than its limits. exporter.c has the loop, otlp_json.c the encoding, box_logs.c follows logs of boxes, delivery.c
 * is the thread that talks to the collector, exporter_role.h the rights. */
#ifndef CLOCHE_EXPORTER_EXPORTER_H
#define CLOCHE_EXPORTER_EXPORTER_H

#include "exporter/exporter_config.h"

int exporter_main(const struct exporter_config *config);

#endif
