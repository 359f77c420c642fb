/* SPDX-License-Identifier: Apache-2.0 */
/* audit_tell.h - tells the audit role about answered requests (src/audit/audit.h). For files below src/gate. */
#ifndef CLOCHE_API_AUDIT_TELL_H
#define CLOCHE_API_AUDIT_TELL_H

#include "gate/gate_state.h"

struct req;
void audit_attach(struct gate *g, int fd); /* the link to the role; a former one is given up */
/* An answer of the API. Cheap where the setting leaves it out. */
void audit_tell(const struct req *r, int status);

#endif
