/* SPDX-License-Identifier: Apache-2.0 */
/* identity_store.c - see identity_store.h. */
#include "warden/db/identity_store.h"

#include "warden/db/store_sql.h"

#define KEYS_MAX 64

static void read_row(struct sql_rows *st, struct row_identity_key *r)
{
  *r = (struct row_identity_key){.created_us = sql_int(st, 3), .sealed = BUF_INIT(4096)};
  sql_z(st, 0, r->id, sizeof(r->id));
  sql_z(st, 1, r->x, sizeof(r->x));
  sql_z(st, 2, r->y, sizeof(r->y));
  sql_z(st, 4, r->key, sizeof(r->key));
  buf_adds(&r->sealed, sql_str(st, 5));
}

int store_identity_key_current(struct store *s, struct row_identity_key *out)
{
  struct sql_rows *st = sql_query(s, "SELECT id,x,y,created,key,sealed FROM identity_key WHERE until=0", "");
  int r = sql_next(st) ? 0 : -ENOENT;
  if (!r)
    read_row(st, out);
  sql_done(st);
  return r;
}

int store_identity_key_add(struct store *s, const struct row_identity_key *r, int64_t old_until_us, struct err *err)
{
  int e = store_begin(s, err);
  if (e)
    return e;
  e = sql_change(s, err, "UPDATE identity_key SET until=?, key='', sealed='' WHERE until=0", "i", old_until_us);
  e = e ? e
        : sql_change(s, err, "INSERT INTO identity_key(id,x,y,created,until,key,sealed) VALUES(?,?,?,?,0,?,?)",
                     "tttitb", r->id, r->x, r->y, r->created_us, r->key, buf_str(&r->sealed));
  return store_end(s, e, err);
}

/* Collected first: `fn` may change them. */
int store_identity_keys(struct store *s, int (*fn)(const struct row_identity_key *, void *), void *arg)
{
  struct row_identity_key rows[KEYS_MAX];
  size_t n = 0;
  int r = 0;
  struct sql_rows *st =
      sql_query(s, "SELECT id,x,y,created,key,sealed FROM identity_key ORDER BY until>0, created DESC LIMIT ?", "i",
                (int64_t)KEYS_MAX);
  SQL_EACH_ROW(st)
  if (n < KEYS_MAX)
    read_row(st, &rows[n++]);
  sql_done(st);
  for (size_t i = 0; i < n; i++) {
    r = r ? r : fn(&rows[i], arg);
    buf_free(&rows[i].sealed);
  }
  return r;
}

int store_identity_keys_forget(struct store *s, int64_t now_us)
{
  return sql_change(s, NULL, "DELETE FROM identity_key WHERE until>0 AND until<?", "i", now_us);
}

int store_identity_key_reseal(struct store *s, const struct row_identity_key *r, struct err *err)
{
  return sql_change(s, err, "UPDATE identity_key SET key=?, sealed=? WHERE id=?", "tbt", r->key, buf_str(&r->sealed),
                    r->id);
}
