/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - what the supervisor sends for https; both functions take the descriptor. */
#ifndef CLOCHE_GATE_CERTIFICATE_H
#define CLOCHE_GATE_CERTIFICATE_H

#include "gate/gate_state.h"

void gate_take_certificate(struct gate *g, int fd);
void gate_take_tls_listener(struct gate *g, int fd);

#endif
