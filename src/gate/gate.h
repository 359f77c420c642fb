/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - the unprivileged process that speaks HTTP with clients, one per core. It owns sockets and nothing else: what
 * it knows of boxes, templates and teams it requests from the warden (warden_client.h). No byte of a client reaches the
 * warden unchecked, and a gate that was taken over can do no more than the keys that clients have shown to it.
 *
 * Start reading at gate.c (the loop), then dispatch.c (is a request for the API or for a box?), api/api.h (routes and
 * their answers), edge/edge.h (the proxy into boxes). gate_state.h is what the parts of one gate share. */
#ifndef CLOCHE_GATE_H
#define CLOCHE_GATE_H

#include "gate/gate_config.h"

/* The role's whole life; returns the exit status. fd 3 is the supervisor's control socket. */
int gate_main(const struct gate_config *config);

#endif
