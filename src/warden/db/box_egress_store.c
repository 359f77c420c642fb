/* SPDX-License-Identifier: Apache-2.0 */
/* box_egress_store.c - see box_egress_store.h. A trigger takes the row away with the box's. */
#include "warden/db/box_egress_store.h"
#include "warden/db/store_sql.h"

int store_box_egress_put(struct store *s, const struct row_box_egress *r, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO box_egress(box,key,sealed) VALUES(?,?,?) ON CONFLICT(box) DO UPDATE SET "
                    "key=excluded.key, sealed=excluded.sealed",
                    "ttb", r->box, r->key, r->sealed);
}

int store_box_egress_delete(struct store *s, const char *box, struct err *err)
{
  return sql_change(s, err, "DELETE FROM box_egress WHERE box=?", "t", box);
}

static int read_row(struct sql_rows *st, struct row_box_egress *row, struct buf *out)
{
  int r = sql_next(st) ? 0 : -ENOENT;
  if (!r) {
    sql_z(st, 0, row->box, sizeof(row->box));
    sql_z(st, 1, row->key, sizeof(row->key));
    r = buf_adds(out, sql_str(st, 2));
    row->sealed = buf_str(out);
  }
  sql_done(st);
  return r;
}

int store_box_egress_get(struct store *s, const char *box, char key[SEAL_KEY_SIZE], struct buf *out)
{
  struct row_box_egress row;
  int r = read_row(sql_query(s, "SELECT box,key,sealed FROM box_egress WHERE box=?", "t", box), &row, out);
  if (!r)
    memcpy(key, row.key, sizeof(row.key));
  return r;
}

bool store_box_egress_any(struct store *s)
{
  struct sql_rows *st = sql_query(s, "SELECT 1 FROM box_egress WHERE key<>'' LIMIT 1", "");
  bool any = sql_next(st);
  sql_done(st);
  return any;
}

int store_box_egress_of_other_key(struct store *s, const char *key, const char *after, struct row_box_egress *row,
                                  struct buf *out)
{
  return read_row(sql_query(s, "SELECT box,key,sealed FROM box_egress WHERE box>? AND key<>? ORDER BY box LIMIT 1",
                            "tt", after, key),
                  row, out);
}
