/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_store.h - the SQLite engine of the store, for the two files that are it. */
#ifndef CLOCHE_WARDEN_DB_SQLITE_STORE_H
#define CLOCHE_WARDEN_DB_SQLITE_STORE_H

#include "warden/db/sql_engine.h"
#include <sqlite3.h>

struct sqlite_store {
  struct store base;
  sqlite3 *db;
  struct map statements; /* SQL text -> struct sqlite_rows */
  char *path;
  struct store_readers *readers; /* of this database; borrowed where base.reads is set */
};

static inline struct sqlite_store *sqlite_of(const struct store *s)
{
  return (struct sqlite_store *)s;
}

int sqlite_checkpoint(struct store *s);
int sqlite_harden(struct store *s);
int sqlite_rewrite(struct store *s, struct err *err);
void sqlite_bound(struct store *s);
uint64_t sqlite_log_size(const struct store *s);

#endif
