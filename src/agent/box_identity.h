/* SPDX-License-Identifier: Apache-2.0 */
/* box_identity.h - writes who the box is to where its processes look: environment variables, /run/e2b and /.e2b, and
 * the machine id. */
#ifndef CLOCHE_AGENT_BOX_IDENTITY_H
#define CLOCHE_AGENT_BOX_IDENTITY_H

#include "agent/agent.h"

void identity_variables(struct agent *a);
void identity_markers(const struct agent *a);
void identity_publish(struct agent *a); /* both, and the machine id where the box has none */

#endif
