/* SPDX-License-Identifier: Apache-2.0 */
/* edge_unknown.h - who asks for boxes that do not exist. Each question about a box that a gate does not know costs the
 * warden a look. One that does not exist counts against the client; one that does is always asked for, however many
 * wrong ones others behind the same address have guessed. */
#ifndef CLOCHE_GATE_EDGE_UNKNOWN_H
#define CLOCHE_GATE_EDGE_UNKNOWN_H

#include "gate/gate_state.h"

/* 0: the warden may be asked for this box; else the seconds after which this client may ask again. `counted`: the
 * question counts, to be given back by unknown_forgive where there is such a box after all. */
unsigned unknown_wait(struct gate *g, const struct http_x *x, const char *box, bool *counted);
void unknown_forgive(struct gate *g, const struct http_x *x);

#endif
