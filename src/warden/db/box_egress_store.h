/* SPDX-License-Identifier: Apache-2.0 */
/* box_egress_store.h - what the egress gateway does for a box, as a sealed row that goes with the box's. */
#ifndef CLOCHE_WARDEN_DB_BOX_EGRESS_STORE_H
#define CLOCHE_WARDEN_DB_BOX_EGRESS_STORE_H

#include "warden/db/store.h"

int store_box_egress_put(struct store *s, const char *box, struct str sealed, struct err *err);
int store_box_egress_delete(struct store *s, const char *box, struct err *err);
int store_box_egress_get(struct store *s, const char *box, struct buf *out); /* -ENOENT */

#endif
