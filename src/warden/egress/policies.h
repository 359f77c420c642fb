/* SPDX-License-Identifier: Apache-2.0 */
/* policies.h - the policies of boxes at the egress gateway (wire/egress_policy.h): sent before a box runs, again when
 * its settings or a secret that they name change, all of them when a gateway starts, and taken away when a box ends or
 * sleeps.
 *
 * Start here in this folder. It promises: a box's traffic is turned to the gateway before its first process runs, and
 * until the gateway has its policy what is turned there is reset; so no request of such a box goes out without its
 * rules, whoever is started again meanwhile. Values of secrets are put in for each sending and wiped behind it. All
 * functions run on the loop. */
#ifndef CLOCHE_WARDEN_EGRESS_POLICIES_H
#define CLOCHE_WARDEN_EGRESS_POLICIES_H

#include "base/base.h"

struct box;
struct box_egress;
struct warden;

void policies_open(struct warden *w);
/* A gateway has started: its end of the link. */
void policies_link(struct warden *w, int fd);

/* The box gets the policy of its settings (box.egress, which is not NULL). `done` is called once, later: 0 when the
 * gateway has it, -ESHUTDOWN when it does not within egress_seconds. The box must live until then. */
typedef void policy_fn(void *arg, int result, const struct err *err);
void policy_apply(struct box *b, policy_fn *done, void *arg);
/* It has none any more. Does nothing for a box without one. */
void policy_remove(struct box *b);
/* Of a box found after a restart: the gateway is to have its policy, nobody waits for it. */
/* -EINVAL: its rules name an identity token that the box (row_box.tokens) was not created with. */
int policy_check(const struct box_egress *e, char *tokens, struct err *err);
void policy_want(struct box *b);

#endif
