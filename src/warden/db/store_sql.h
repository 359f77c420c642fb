/* SPDX-License-Identifier: Apache-2.0 */
/* store_sql.h - SQL for the files of this folder that hold a part of the store each: statements are prepared once, kept
 * by their text, and bound by a letter per value: t text (const char *), s struct str, i int64_t, b struct str as blob.
 * Nobody outside this folder includes it. */
#ifndef CLOCHE_WARDEN_DB_STORE_SQL_H
#define CLOCHE_WARDEN_DB_STORE_SQL_H

#include "warden/db/store.h"
#include <sqlite3.h>

struct store {
  sqlite3 *db;
  struct map statements; /* SQL text -> sqlite3_stmt */
  char *path;
  unsigned depth;    /* of transactions begun and not ended: the outermost one commits */
  bool spoiled;      /* a part of the outermost one failed: it is rolled back */
  uint64_t events;   /* recorded since the store was opened */
  uint64_t attempts; /* of webhooks, added since the store was opened, and events for them */
  struct webhook_rules webhooks;
  struct store_readers *readers; /* of this database; borrowed where reads is set */
  uint64_t log_bytes;
  int64_t read_us;  /* longest read; 0 = no limit */
  int64_t until_us; /* of a reader: its last moment */
  bool reads, late; /* it is a reader; it was stopped */
};

int sql_run(struct store *s, const char *sql, struct err *err); /* any number of statements without values */
int sql_change(struct store *s, struct err *err, const char *sql, const char *kinds, ...);
/* To be stepped, then given to sql_done; NULL when the statement is wrong, which both take. */
sqlite3_stmt *sql_query(struct store *s, const char *sql, const char *kinds, ...);
void sql_done(sqlite3_stmt *st);
#define SQL_EACH_ROW(st) for (; (st) && sqlite3_step(st) == SQLITE_ROW;)

/* A column, counted from 0: borrowed until the next step; copied, "" when it does not fit; owned. */
struct str sql_str(sqlite3_stmt *st, int i);
void sql_z(sqlite3_stmt *st, int i, char *dst, size_t size);
char *sql_dup(sqlite3_stmt *st, int i);

#endif
