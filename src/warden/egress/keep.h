/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - the egress settings and the authority of a box in the store, sealed by the master key of secrets: they hold
 * a private key and perhaps a proxy's password. */
#ifndef CLOCHE_WARDEN_EGRESS_KEEP_H
#define CLOCHE_WARDEN_EGRESS_KEEP_H

#include "base/base.h"

struct box;
struct warden;

/* What box.egress is now, nothing included; in the transaction of the box's row where there is one. */
int egress_keep(const struct box *b, struct err *err);
/* Of a box found after a restart, or whose settings could not be read then; box.egress stays NULL where it has nothing,
 * and is box_egress_unread() where what it has can't be read: -ESHUTDOWN, to be tried again. */
int egress_recall(struct box *b, struct err *err);
/* After boxes were found again: rules that an older server kept in their open rows are sealed, and the database is
 * written anew without the pages that held them. Where the master key is missing they stay for the next start. */
void egress_seal_rules(struct warden *w);

#endif
