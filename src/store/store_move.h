/* SPDX-License-Identifier: Apache-2.0 */
/* store_move.h - all rows of a store go into an empty one of either engine, in one transaction, and are compared there
 * with what was read. The source stays as it is. */
#ifndef CLOCHE_STORE_STORE_MOVE_H
#define CLOCHE_STORE_STORE_MOVE_H

#include "warden/db/store.h"

struct store_moved {
  uint64_t tables, rows;
};

/* -ENOTEMPTY: the target has teams already. -EILSEQ: what arrived is not what was read; nothing is kept. */
int store_move(struct store *from, struct store *to, struct store_moved *out, struct err *err);

#endif
