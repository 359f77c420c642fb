/* SPDX-License-Identifier: Apache-2.0 */
/* team_usage.h - how many requests and streams each team has open in this gate. */
#ifndef CLOCHE_GATE_TEAM_USAGE_H
#define CLOCHE_GATE_TEAM_USAGE_H

#include "gate/gate_state.h"

/* Counts an exchange for its team. -EDQUOT: the team has as many as it may. Both take a pointer that is NULL while
 * nothing is counted; entering twice counts once. */
struct usage;
enum usage_kind { USAGE_API, USAGE_BOX, USAGE_KINDS };
int usage_enter(struct gate *g, const char *team, enum usage_kind kind, struct usage **out);
void usage_leave(struct gate *g, enum usage_kind kind, struct usage **held);
unsigned usage_most(const struct gate *g,
                    enum usage_kind kind); /* how many of that kind a team may have; 0 = no limit */

#endif
