/* SPDX-License-Identifier: Apache-2.0 */
/* box_egress.h - what the egress gateway does for one box: header rules, a proxy, and the certificate authority that
 * the box trusts. A box without either has none of it. The authority's key is in this process, in the gateway and,
 * sealed, in the store; never in the box. */
#ifndef CLOCHE_WARDEN_BOX_EGRESS_H
#define CLOCHE_WARDEN_BOX_EGRESS_H

#include "jail/net/jail_net.h"
#include "wire/egress_policy.h"

struct box_egress {
  struct buf settings;  /* as the gate packed them (egress_policy.h): names of secrets, no values */
  struct buf told;      /* header rules as the gate tells them back: JSON; empty without */
  struct buf cert, key; /* PEM; empty without header rules */
  bool rules, proxy;
  bool secrets;      /* a header names one */
  struct buf names;  /* of these secrets: lines */
  struct buf tokens; /* names of identity tokens in headers: lines */
  bool unread;       /* it has settings that can't be read now: nothing goes out until they can */
  /* Of the policy that the gateway has, or should have; see warden/egress/policies.h. */
  bool wanted;         /* it should have one: the box runs, or is about to */
  bool queued;         /* to be sent (again) */
  uint64_t generation; /* of the last one sent; 0 = none yet */
};

/* -EINVAL: they are not as egress_policy_pack writes them. The authority is still to be made (egress/prepare.h). */
int box_egress_read(struct str settings, struct str told, struct box_egress **out, struct err *err);
/* The same settings for another box, without an authority. */
struct box_egress *box_egress_copy(const struct box_egress *e);
/* Of a box whose settings can't be read: all of its TCP is turned to the gateway, which has no policy for it. */
struct box_egress *box_egress_unread(void);
void box_egress_free(struct box_egress *e); /* NULL is fine; what is secret is wiped */

bool box_egress_names(const struct box_egress *e, struct str secret); /* does a header name it? */

/* How the box's traffic is turned to the gateway; `e` may be NULL. */
void box_egress_turn(const struct box_egress *e, struct jail_net *net);

#endif
