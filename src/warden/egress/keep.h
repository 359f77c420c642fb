/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - the egress settings and the authority of a box in the store, sealed: they hold a private key and perhaps a
 * proxy's password. The key that seals them lies in a file of its own beside the database (<data>/egress.key), so that
 * a copy of the database alone tells nothing. */
#ifndef CLOCHE_WARDEN_EGRESS_KEEP_H
#define CLOCHE_WARDEN_EGRESS_KEEP_H

#include "base/base.h"

struct box;
struct warden;

/* What box.egress is now, nothing included; in the transaction of the box's row where there is one. */
int egress_keep(const struct box *b, struct err *err);
/* Of a box found after a restart; box.egress stays NULL where it has nothing. */
int egress_recall(struct box *b, struct err *err);

#endif
