/* SPDX-License-Identifier: Apache-2.0 */
/* box_network.h - other network settings for a running box. On the warden's loop. */
#ifndef CLOCHE_WARDEN_BOX_NETWORK_H
#define CLOCHE_WARDEN_BOX_NETWORK_H

#include "warden/core/box_state.h"

struct network_params {
  struct str config, allow, deny, egress, rules;
  unsigned flags;
  struct origin origin;
};

#define NETWORK_CHANGES_MAX 16 /* of one box that wait for each other; more are refused */

/* Replaces all of them, after those that were asked for before. Answers `origin` once they are in force: at once, or
 * when the egress gateway has the box's new rules and its agent knows whom to trust. */
void box_change_network(struct box *b, const struct network_params *params);

#endif
