/* SPDX-License-Identifier: Apache-2.0 */
/* store_sql.h - SQL for the files of this folder that hold a part of the store each, on whichever engine it has
 * (sql_engine.h): statements are prepared once, kept by their text, and bound by a letter per value: t text (const char
 * *), s struct str, i int64_t, b struct str as blob, z const char * as blob. Nobody but this folder and src/store
 * includes it.
 *
 * One text serves both engines: `?` and `?1` are values; INSERT ... ON CONFLICT, coalesce, RETURNING and CASE are
 * spoken by both. What SQLite alone has and may stay in a text, because it only says which way to go: INDEXED BY, CROSS
 * JOIN with ON, and a plus before a column. Text is valid UTF-8 without NUL; bytes of others are blobs. */
#ifndef CLOCHE_WARDEN_DB_STORE_SQL_H
#define CLOCHE_WARDEN_DB_STORE_SQL_H

#include "warden/db/store.h"

struct sql_rows;

int sql_run(struct store *s, const char *sql, struct err *err); /* any number of statements without values */
int sql_change(struct store *s, struct err *err, const char *sql, const char *kinds, ...);
uint64_t sql_changed(const struct store *s); /* how many rows the last change touched */
/* To be walked over, then given to sql_done; NULL when it failed, which all of them take. */
struct sql_rows *sql_query(struct store *s, const char *sql, const char *kinds, ...);
bool sql_next(struct sql_rows *rows);
bool sql_failed(const struct sql_rows *rows); /* the walk ended before the last row */
void sql_done(struct sql_rows *rows);
#define SQL_EACH_ROW(rows) while (sql_next(rows))
/* The number in the first column of the first row; 0 when there is none. */
int64_t sql_number(struct store *s, const char *sql, const char *kinds, ...);
/* Inside a transaction: until its end nobody else is between here and there, whose name is the same. */
int sql_serialize(struct store *s, const char *name, struct err *err);
bool sql_postgres(const struct store *s);

/* A column, counted from 0: borrowed until the next step; copied, "" when it does not fit; owned. */
int64_t sql_int(const struct sql_rows *rows, int i);
const char *sql_text(const struct sql_rows *rows, int i);
struct str sql_str(const struct sql_rows *rows, int i);
void sql_z(const struct sql_rows *rows, int i, char *dst, size_t size);
char *sql_dup(const struct sql_rows *rows, int i);

/* Counters of changes and the rules of webhooks, kept beside the connection. */
struct store_counts {
  uint64_t events;   /* recorded since the store was opened */
  uint64_t attempts; /* of webhooks, added since the store was opened, and events for them */
  struct webhook_rules webhooks;
};
struct store_counts *sql_counts(struct store *s);

#endif
