/* SPDX-License-Identifier: Apache-2.0 */
/* box_metrics.h - GET /metrics: cpu, memory and disk as the box sees them. */
#ifndef CLOCHE_AGENT_ENVD_BOX_METRICS_H
#define CLOCHE_AGENT_ENVD_BOX_METRICS_H

#include "agent/agent.h"
#include "net/http.h"

void metrics_start(void); /* remembers where the counters stood */
void metrics_request(struct http_x *x, struct agent *a);

#endif
