/* SPDX-License-Identifier: Apache-2.0 */
/* sql.c - see store_sql.h: values, transactions and columns on whichever engine the store has. */
#include "warden/db/sql_engine.h"

#include <assert.h>

static size_t values_of(struct sql_value *v, const char *kinds, va_list ap)
{
  size_t n = 0;
  for (; kinds[n]; n++) {
    assert(n < SQL_VALUES_MAX);
    v[n] = (struct sql_value){.kind = kinds[n] == 's' ? 't' : kinds[n] == 'z' ? 'b' : kinds[n]};
    if (kinds[n] == 'i')
      v[n].number = va_arg(ap, int64_t);
    else
      v[n].bytes = strchr("tz", kinds[n]) ? str_of(va_arg(ap, const char *)) : va_arg(ap, struct str);
    if (kinds[n] != 'i' && !v[n].bytes.p)
      v[n].bytes.p = "";
  }
  return n;
}

int sql_run(struct store *s, const char *sql, struct err *err)
{
  return s->engine->run(s, sql, err);
}

int sql_change(struct store *s, struct err *err, const char *sql, const char *kinds, ...)
{
  struct sql_value v[SQL_VALUES_MAX];
  va_list ap;
  va_start(ap, kinds);
  size_t n = values_of(v, kinds, ap);
  va_end(ap);
  s->changed = 0;
  return s->engine->change(s, sql, v, n, err);
}

uint64_t sql_changed(const struct store *s)
{
  return s->changed;
}

struct sql_rows *sql_query(struct store *s, const char *sql, const char *kinds, ...)
{
  struct sql_value v[SQL_VALUES_MAX];
  va_list ap;
  va_start(ap, kinds);
  size_t n = values_of(v, kinds, ap);
  va_end(ap);
  return s->engine->query(s, sql, v, n);
}

int64_t sql_number(struct store *s, const char *sql, const char *kinds, ...)
{
  struct sql_value v[SQL_VALUES_MAX];
  va_list ap;
  va_start(ap, kinds);
  size_t n = values_of(v, kinds, ap);
  va_end(ap);
  struct sql_rows *rows = s->engine->query(s, sql, v, n);
  int64_t number = sql_next(rows) ? sql_int(rows, 0) : 0;
  sql_done(rows);
  return number;
}

bool sql_next(struct sql_rows *rows)
{
  return rows && rows->store->engine->next(rows);
}

bool sql_failed(const struct sql_rows *rows)
{
  return !rows || rows->failed;
}

void sql_done(struct sql_rows *rows)
{
  if (rows)
    rows->store->engine->done(rows);
}

int sql_serialize(struct store *s, const char *name, struct err *err)
{
  return s->engine->serialize ? s->engine->serialize(s, name, err) : 0;
}

bool sql_postgres(const struct store *s)
{
  return s->engine->serialize;
}

struct store_counts *sql_counts(struct store *s)
{
  return &s->counts;
}

/* ---- columns ---- */

int64_t sql_int(const struct sql_rows *rows, int i)
{
  return rows->store->engine->number(rows, i);
}

struct str sql_str(const struct sql_rows *rows, int i)
{
  return rows->store->engine->bytes(rows, i);
}

const char *sql_text(const struct sql_rows *rows, int i)
{
  struct str s = sql_str(rows, i);
  return s.p ? s.p : "";
}

void sql_z(const struct sql_rows *rows, int i, char *dst, size_t size)
{
  if (str_copyz(sql_str(rows, i), dst, size))
    dst[0] = 0;
}

char *sql_dup(const struct sql_rows *rows, int i)
{
  struct str s = sql_str(rows, i);
  return xstrndup(s.n ? s.p : "", s.n);
}

/* ---- transactions, other connections and upkeep: store.h ---- */

int store_begin(struct store *s, struct err *err)
{
  int r = s->depth ? 0 : s->engine->begin(s, err);
  s->depth += !r;
  return r;
}

int store_end(struct store *s, int r, struct err *err)
{
  s->spoiled |= r != 0;
  if (--s->depth)
    return r;
  bool spoiled = s->spoiled;
  s->spoiled = false;
  int ended = s->engine->end(s, !spoiled, spoiled ? NULL : err);
  if (!spoiled)
    return ended;
  return r ? r : err_set(err, -EIO, "database: a part of the change failed");
}

int store_open_reader(const struct store *s, struct store **out, struct err *err)
{
  return s->engine->open_other(s, true, out, err);
}

int store_open_writer(const struct store *s, struct store **out, struct err *err)
{
  return s->engine->open_other(s, false, out, err);
}

void store_close(struct store *s)
{
  if (s)
    s->engine->close(s);
}

int store_checkpoint(struct store *s)
{
  return s->engine->checkpoint(s);
}

int store_harden(struct store *s)
{
  return s->engine->harden(s);
}

int store_rewrite(struct store *s, struct err *err)
{
  return s->engine->rewrite(s, err);
}

uint64_t store_log_size(const struct store *s)
{
  return s->engine->log_size(s);
}

void store_bound(struct store *s, uint64_t log_bytes, int64_t read_us)
{
  s->log_bytes = log_bytes;
  s->read_us = read_us;
  s->engine->bound(s);
}

int store_read_late(const struct store *reader, struct err *err)
{
  if (!reader->late)
    return 0;
  return err_set(err, -ENOBUFS, "reading took longer than %lld s (setting store_read_seconds); ask for less at once",
                 (long long)reader->read_us / 1000000);
}
