/* SPDX-License-Identifier: Apache-2.0 */
/* sql_sqlite.c - the embedded engine of the store: SQLite in WAL mode. Statements are prepared once and kept by their
 * text. */
#include "warden/db/sqlite_schema.h"
#include "warden/db/sqlite_store.h"
#include "warden/db/store_readers.h"

#include <stdio.h>

#define BUSY_MS    5000 /* longest wait for another connection's write */
#define LATE_STEPS 2000 /* of SQLite's machine, between two looks at the clock */
/* A commit writes to the page cache and no further. */
#define COMMITS    "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0"

struct sqlite_rows {
  struct sql_rows base;
  sqlite3_stmt *st;
};

static int sql_err(const struct store *s, struct err *err, const char *what)
{
  return err_set(err, -EIO, "database %s: %s: %s", sqlite_of(s)->path, what, sqlite3_errmsg(sqlite_of(s)->db));
}

static int sqlite_run(struct store *s, const char *sql, struct err *err)
{
  return sqlite3_exec(sqlite_of(s)->db, sql, NULL, NULL, NULL) ? sql_err(s, err, "statement") : 0;
}

/* ---- statements ---- */

static struct sqlite_rows *prepared(struct store *s, const char *sql)
{
  struct sqlite_store *q = sqlite_of(s);
  struct sqlite_rows *rows = map_get(&q->statements, str_of(sql));
  if (rows)
    return rows;
  sqlite3_stmt *st;
  if (sqlite3_prepare_v3(q->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL)) {
    log_error("database %s: %s", q->path, sqlite3_errmsg(q->db));
    return NULL;
  }
  rows = xcalloc(1, sizeof(*rows));
  *rows = (struct sqlite_rows){{.store = s}, st};
  map_put(&q->statements, str_of(sql), rows);
  return rows;
}

static struct sqlite_rows *bind(struct store *s, const char *sql, const struct sql_value *v, size_t n)
{
  struct sqlite_rows *rows = prepared(s, sql);
  for (size_t k = 0; rows && k < n; k++) {
    int i = (int)k + 1;
    if (v[k].kind == 'i')
      sqlite3_bind_int64(rows->st, i, v[k].number);
    else if (v[k].kind == 't')
      sqlite3_bind_text(rows->st, i, v[k].bytes.p, (int)v[k].bytes.n, SQLITE_TRANSIENT);
    else
      sqlite3_bind_blob(rows->st, i, v[k].bytes.p, (int)v[k].bytes.n, SQLITE_TRANSIENT);
  }
  return rows;
}

static void rows_done(struct sql_rows *rows)
{
  sqlite3_stmt *st = ((struct sqlite_rows *)rows)->st;
  sqlite3_reset(st);
  sqlite3_clear_bindings(st);
}

static int sqlite_change(struct store *s, const char *sql, const struct sql_value *v, size_t n, struct err *err)
{
  struct sqlite_rows *rows = bind(s, sql, v, n);
  if (!rows)
    return err_set(err, -EIO, "database %s: bad statement", sqlite_of(s)->path);
  int r = sqlite3_step(rows->st) == SQLITE_DONE ? 0 : sql_err(s, err, "write");
  s->changed = r ? 0 : (uint64_t)sqlite3_changes(sqlite_of(s)->db);
  rows_done(&rows->base);
  return r;
}

static struct sql_rows *sqlite_query(struct store *s, const char *sql, const struct sql_value *v, size_t n)
{
  struct sqlite_rows *rows = bind(s, sql, v, n);
  if (!rows)
    return NULL;
  rows->base.failed = false;
  return &rows->base;
}

static bool rows_next(struct sql_rows *rows)
{
  int r = sqlite3_step(((struct sqlite_rows *)rows)->st);
  rows->failed = r != SQLITE_ROW && r != SQLITE_DONE;
  return r == SQLITE_ROW;
}

static int64_t rows_number(const struct sql_rows *rows, int i)
{
  return sqlite3_column_int64(((const struct sqlite_rows *)rows)->st, i);
}

/* Asked for as text, a column is NUL-terminated; its bytes are the same. */
static struct str rows_bytes(const struct sql_rows *rows, int i)
{
  sqlite3_stmt *st = ((const struct sqlite_rows *)rows)->st;
  const void *p =
      sqlite3_column_type(st, i) == SQLITE_BLOB ? sqlite3_column_blob(st, i) : (const void *)sqlite3_column_text(st, i);
  return (struct str){p, (size_t)sqlite3_column_bytes(st, i)};
}

static int sqlite_begin(struct store *s, struct err *err)
{
  return sqlite_change(s, "BEGIN IMMEDIATE", NULL, 0, err);
}

static int sqlite_end(struct store *s, bool commit, struct err *err)
{
  int r = commit ? sqlite_change(s, "COMMIT", NULL, 0, err) : -ECANCELED;
  if (r)
    sqlite_change(s, "ROLLBACK", NULL, 0, NULL);
  return r;
}

/* ---- opening ---- */

static int user_version(struct sqlite_store *q)
{
  sqlite3_stmt *st;
  if (sqlite3_prepare_v2(q->db, "PRAGMA user_version", -1, &st, NULL))
    return -1;
  int v = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int(st, 0) : -1;
  sqlite3_finalize(st);
  return v;
}

static int migrate(struct sqlite_store *q, struct err *err)
{
  struct store *s = &q->base;
  int have = user_version(q), want = STORE_SCHEMA;
  if (have < 0)
    return sql_err(s, err, "version");
  if (have > want)
    return err_set(err, -ENOTSUP,
                   "database %s was written by a newer cloche (schema %d, this one knows %d); run that version or "
                   "another data directory",
                   q->path, have, want);
  for (int v = have; v < want; v++) {
    char set[64];
    snprintf(set, sizeof(set), "PRAGMA user_version=%d; COMMIT", v + 1);
    int r = sqlite_run(s, "BEGIN IMMEDIATE", err);
    r = r ? r : sqlite_run(s, sqlite_migrations[v], err);
    r = r ? r : sqlite_run(s, set, err);
    if (r) {
      sqlite_run(s, "ROLLBACK", NULL);
      return r;
    }
  }
  if (have < want) /* the file itself says its version, not the log alone: packages look there before a downgrade */
    sqlite3_wal_checkpoint_v2(q->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
  return 0;
}

static void sqlite_close(struct store *s)
{
  struct sqlite_store *q = sqlite_of(s);
  void *rows;
  for (size_t i = 0; map_next(&q->statements, &i, NULL, &rows);) {
    sqlite3_finalize(((struct sqlite_rows *)rows)->st);
    free(rows);
  }
  map_free(&q->statements);
  sqlite3_close(q->db);
  if (s->reads)
    readers_leave(q->readers);
  else
    readers_free(q->readers);
  free(q->path);
  free(q);
}

static const struct sql_engine sqlite_engine;

static int connect_to(const char *path, int flags, const char *how, struct sqlite_store **out, struct err *err)
{
  struct sqlite_store *q = xcalloc(1, sizeof(*q));
  q->base.engine = &sqlite_engine;
  q->path = xstrdup(path);
  int r = sqlite3_open_v2(path, &q->db, flags | SQLITE_OPEN_NOMUTEX, NULL) ? sql_err(&q->base, err, "open") : 0;
  if (!r)
    sqlite3_busy_timeout(q->db, BUSY_MS);
  r = r ? r : sqlite_run(&q->base, how, err);
  if (r)
    sqlite_close(&q->base);
  *out = r ? NULL : q;
  return r;
}

int store_open(const char *path, struct store **out, struct err *err)
{
  struct sqlite_store *q;
  int r = connect_to(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                     "PRAGMA journal_mode=WAL; " COMMITS "; PRAGMA foreign_keys=ON", &q, err);
  if (r)
    return r;
  q->readers = readers_new();
  r = migrate(q, err);
  if (r)
    sqlite_close(&q->base);
  else
    *out = &q->base;
  return r;
}

/* SQLite asks now and then, inside a statement. */
static int is_late(void *arg)
{
  struct store *reader = arg;
  reader->late = reader->late || clock_mono_us() > reader->until_us;
  return reader->late;
}

static int open_reader(const struct store *s, struct store **out, struct err *err)
{
  struct sqlite_store *q;
  struct store_readers *readers = sqlite_of(s)->readers;
  readers_enter(readers);
  int r = connect_to(sqlite_of(s)->path, SQLITE_OPEN_READONLY, "", &q, err);
  if (r) {
    readers_leave(readers);
    return r;
  }
  q->readers = readers;
  q->base.reads = true;
  q->base.read_us = s->read_us;
  q->base.until_us = clock_mono_us() + s->read_us;
  if (s->read_us)
    sqlite3_progress_handler(q->db, LATE_STEPS, is_late, q);
  *out = &q->base;
  return 0;
}

static int open_other(const struct store *s, bool reads, struct store **out, struct err *err)
{
  struct sqlite_store *q;
  if (reads)
    return open_reader(s, out, err);
  int r = connect_to(sqlite_of(s)->path, SQLITE_OPEN_READWRITE, COMMITS, &q, err);
  *out = r ? NULL : &q->base;
  return r;
}

static const struct sql_engine sqlite_engine = {
    .run = sqlite_run,
    .change = sqlite_change,
    .query = sqlite_query,
    .next = rows_next,
    .done = rows_done,
    .number = rows_number,
    .bytes = rows_bytes,
    .begin = sqlite_begin,
    .end = sqlite_end,
    .open_other = open_other,
    .close = sqlite_close,
    .checkpoint = sqlite_checkpoint,
    .harden = sqlite_harden,
    .rewrite = sqlite_rewrite,
    .bound = sqlite_bound,
    .log_size = sqlite_log_size,
};
