/* SPDX-License-Identifier: Apache-2.0 */
/* sql_engine.h - what an engine of the store does: SQLite here (sql_sqlite.c), PostgreSQL in src/store, a program of
 * its own, because only it is linked with libpq. An engine puts struct store at the head of its own. */
#ifndef CLOCHE_WARDEN_DB_SQL_ENGINE_H
#define CLOCHE_WARDEN_DB_SQL_ENGINE_H

#include "warden/db/store_sql.h"

#define SQL_VALUES_MAX 40

struct sql_value {
  char kind; /* i: number; t: text; b: blob */
  int64_t number;
  struct str bytes; /* borrowed */
};

struct sql_engine {
  int (*run)(struct store *s, const char *sql, struct err *err);
  int (*change)(struct store *s, const char *sql, const struct sql_value *v, size_t n, struct err *err);
  struct sql_rows *(*query)(struct store *s, const char *sql, const struct sql_value *v, size_t n);
  bool (*next)(struct sql_rows *rows);
  void (*done)(struct sql_rows *rows);
  int64_t (*number)(const struct sql_rows *rows, int i);
  struct str (*bytes)(const struct sql_rows *rows, int i); /* NUL-terminated */
  int (*begin)(struct store *s, struct err *err);
  int (*end)(struct store *s, bool commit, struct err *err);
  int (*serialize)(struct store *s, const char *name, struct err *err); /* NULL = a transaction is alone anyway */
  int (*open_other)(const struct store *s, bool reads, struct store **out, struct err *err);
  void (*close)(struct store *s);
  /* of store.h */
  int (*checkpoint)(struct store *s);
  int (*harden)(struct store *s);
  int (*rewrite)(struct store *s, struct err *err);
  void (*bound)(struct store *s);
  uint64_t (*log_size)(const struct store *s);
};

struct store {
  const struct sql_engine *engine;
  unsigned depth;   /* of transactions begun and not ended: the outermost one commits */
  bool spoiled;     /* a part of the outermost one failed: it is rolled back */
  uint64_t changed; /* rows of the last change */
  struct store_counts counts;
  uint64_t log_bytes;
  int64_t read_us;  /* longest read; 0 = no limit */
  int64_t until_us; /* of a reader: its last moment */
  bool reads, late; /* it is a reader; it was stopped */
};

struct sql_rows {
  struct store *store;
  bool failed;
};

#endif
