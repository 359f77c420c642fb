/* SPDX-License-Identifier: Apache-2.0 */
/* secret_store.c - see secret_store.h. */
#include "warden/db/secret_store.h"

#include "warden/db/store_sql.h"

#define FIELDS     "id,team,name,version,metadata,created,updated,request,key,sealed"
#define SEALED_MAX (1 << 20)

void row_secret_free(struct row_secret *r)
{
  free(r->metadata);
  r->metadata = NULL;
  buf_free(&r->sealed);
}

static void read_row(struct sql_rows *st, struct row_secret *r)
{
  *r = (struct row_secret){.version = (uint64_t)sql_int(st, 3),
                           .metadata = sql_dup(st, 4),
                           .created_us = sql_int(st, 5),
                           .updated_us = sql_int(st, 6),
                           .sealed = BUF_INIT(SEALED_MAX)};
  sql_z(st, 0, r->id, sizeof(r->id));
  sql_z(st, 1, r->team, sizeof(r->team));
  sql_z(st, 2, r->name, sizeof(r->name));
  sql_z(st, 7, r->request, sizeof(r->request));
  sql_z(st, 8, r->key, sizeof(r->key));
  buf_adds(&r->sealed, sql_str(st, 9));
}

static int read_one(struct sql_rows *st, struct row_secret *out)
{
  int r = sql_next(st) ? 0 : -ENOENT;
  if (!r)
    read_row(st, out);
  sql_done(st);
  return r;
}

static int each(struct sql_rows *st, int (*fn)(const struct row_secret *, void *), void *arg)
{
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_secret row;
    read_row(st, &row);
    r = fn(&row, arg);
    row_secret_free(&row);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

int store_secret_get(struct store *s, const char *team, const char *id, struct row_secret *out)
{
  return read_one(sql_query(s, "SELECT " FIELDS " FROM secret WHERE id=? AND team=?", "tt", id, team), out);
}

int store_secret_find(struct store *s, const char *team, const char *name, struct row_secret *out)
{
  return read_one(sql_query(s, "SELECT " FIELDS " FROM secret WHERE team=? AND name=?", "tt", team, name), out);
}

int store_secret_add(struct store *s, const struct row_secret *r, struct err *err)
{
  return sql_change(s, err, "INSERT INTO secret(" FIELDS ") VALUES(?,?,?,?,?,?,?,?,?,?)", "tttitiittb", r->id, r->team,
                    r->name, (int64_t)r->version, r->metadata, r->created_us, r->updated_us, r->request, r->key,
                    buf_str(&r->sealed));
}

int store_secret_change(struct store *s, const struct row_secret *r, struct err *err)
{
  return sql_change(s, err,
                    "UPDATE secret SET version=?, metadata=?, updated=?, request=?, key=?, sealed=? WHERE id=? AND "
                    "team=?",
                    "itittbtt", (int64_t)r->version, r->metadata, r->updated_us, r->request, r->key,
                    buf_str(&r->sealed), r->id, r->team);
}

int store_secret_delete(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "DELETE FROM secret WHERE id=?", "t", id);
}

uint64_t store_secret_count(struct store *s, const char *team)
{
  return (uint64_t)sql_number(s, "SELECT COUNT(*) FROM secret WHERE team=?", "t", team);
}

int store_secrets(struct store *s, const char *team, int64_t after_us, const char *after_id, unsigned most,
                  int (*fn)(const struct row_secret *, void *), void *arg)
{
  return each(sql_query(s,
                        "SELECT " FIELDS " FROM secret WHERE team=? AND (created,id)>(?,?) ORDER BY created,id "
                        "LIMIT ?",
                        "titi", team, after_us, after_id, (int64_t)most),
              fn, arg);
}

int store_seal_keys(struct store *s, int (*fn)(const char *key, uint64_t count, void *arg), void *arg)
{
  struct sql_rows *st = sql_query(s, "SELECT key,COUNT(*) FROM secret GROUP BY key", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    char key[sizeof(((struct row_secret *)0)->key)];
    sql_z(st, 0, key, sizeof(key));
    if ((r = fn(key, (uint64_t)sql_int(st, 1), arg)))
      break;
  }
  sql_done(st);
  return r;
}

int store_secrets_of_other_keys(struct store *s, const char *key, const char *after, unsigned most,
                                int (*fn)(const struct row_secret *, void *), void *arg)
{
  return each(sql_query(s, "SELECT " FIELDS " FROM secret WHERE id>? AND key<>? ORDER BY id LIMIT ?", "tti", after, key,
                        (int64_t)most),
              fn, arg);
}

int store_secret_reseal(struct store *s, const struct row_secret *r, struct err *err)
{
  return sql_change(s, err, "UPDATE secret SET key=?, sealed=? WHERE id=? AND version=?", "tbti", r->key,
                    buf_str(&r->sealed), r->id, (int64_t)r->version);
}
