/* SPDX-License-Identifier: Apache-2.0 */
/* box_egress_store.c - see box_egress_store.h. A trigger takes the row away with the box's. */
#include "warden/db/box_egress_store.h"
#include "warden/db/store_sql.h"

int store_box_egress_put(struct store *s, const char *box, struct str sealed, struct err *err)
{
  return sql_change(s, err, "INSERT OR REPLACE INTO box_egress VALUES(?,?)", "tb", box, sealed);
}

int store_box_egress_delete(struct store *s, const char *box, struct err *err)
{
  return sql_change(s, err, "DELETE FROM box_egress WHERE box=?", "t", box);
}

int store_box_egress_get(struct store *s, const char *box, struct buf *out)
{
  sqlite3_stmt *st = sql_query(s, "SELECT sealed FROM box_egress WHERE box=?", "t", box);
  int r = st && sqlite3_step(st) == SQLITE_ROW ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}
