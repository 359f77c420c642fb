/* metrics.h - GET /metrics: cpu, memory and disk as the box sees them. */
#ifndef CLOCHE_AGENT_METRICS_H
#define CLOCHE_AGENT_METRICS_H

#include "agent/agent.h"
#include "net/http.h"

void metrics_start(void); /* remembers where the counters stood */
void metrics_request(struct http_x *x, struct agent *a);

#endif
