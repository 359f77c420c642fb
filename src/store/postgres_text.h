/* SPDX-License-Identifier: Apache-2.0 */
/* postgres_text.h - the store's statements as PostgreSQL has them. */
#ifndef CLOCHE_STORE_POSTGRES_TEXT_H
#define CLOCHE_STORE_POSTGRES_TEXT_H

#include "base/base.h"

/* `?` and `?7` become `$1` and `$7`; what only tells SQLite which way to go is left out: INDEXED BY, CROSS before JOIN,
 * a plus before a column. What is in quotes stays. */
void postgres_text(const char *sql, struct buf *out);

#endif
