/* SPDX-License-Identifier: Apache-2.0 */
/* box_egress_store.h - what the egress gateway does for a box, as a sealed row that goes with the box's. */
#ifndef CLOCHE_WARDEN_DB_BOX_EGRESS_STORE_H
#define CLOCHE_WARDEN_DB_BOX_EGRESS_STORE_H

#include "warden/db/store.h"

struct row_box_egress {
  char box[BOX_ID_SIZE];
  char key[SEAL_KEY_SIZE]; /* id of the master key that it is sealed by */
  struct str sealed;       /* of a row that was read: as long as its function says */
};

int store_box_egress_put(struct store *s, const struct row_box_egress *r, struct err *err);
int store_box_egress_delete(struct store *s, const char *box, struct err *err);
/* `out` gets what is sealed, key its key's id. -ENOENT */
int store_box_egress_get(struct store *s, const char *box, char key[SEAL_KEY_SIZE], struct buf *out);
bool store_box_egress_any(struct store *s); /* something is sealed */
/* The first row behind this box that another key sealed, as in store_box_egress_get. */
int store_box_egress_of_other_key(struct store *s, const char *key, const char *after, struct row_box_egress *row,
                                  struct buf *out);

#endif
