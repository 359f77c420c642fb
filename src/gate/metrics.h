/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - counts answered requests in this gate's slot of the shared memory, and writes the access log. */
#ifndef CLOCHE_GATE_METRICS_H
#define CLOCHE_GATE_METRICS_H

#include "gate/gate_state.h"
#include "gate/metrics_shm.h"

/* `context`: of a trace that records it, or NULL. */
void metrics_record(struct gate *g, struct http_x *x, const struct metrics_answer *a); /* one answer */
void metrics_note_open(struct gate *g);                                                /* what is open at this moment */

#endif
