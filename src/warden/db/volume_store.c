/* SPDX-License-Identifier: Apache-2.0 */
/* volume_store.c - see volume_store.h. */
#include "warden/db/volume_store.h"

#include "warden/db/store_sql.h"

#define FIELDS "id,team,name,state,created,attached"

static void read_row(struct sql_rows *st, struct row_volume *r)
{
  sql_z(st, 0, r->id, sizeof(r->id));
  sql_z(st, 1, r->team, sizeof(r->team));
  sql_z(st, 2, r->name, sizeof(r->name));
  r->state = (enum volume_state)sql_int(st, 3);
  r->created_us = sql_int(st, 4);
  r->attached = sql_int(st, 5) != 0;
}

/* The first row of the statement; 0 or -ENOENT. */
static int read_one(struct sql_rows *st, struct row_volume *out)
{
  int r = -ENOENT;
  SQL_EACH_ROW(st)
  {
    read_row(st, out);
    r = 0;
    break;
  }
  sql_done(st);
  return r;
}

int store_volume_put(struct store *s, const struct row_volume *r, struct err *err)
{
  struct row_volume other;
  if (r->state != VOLUME_DELETING &&
      !read_one(sql_query(s, "SELECT " FIELDS " FROM volume WHERE team=? AND name=? AND state<2 AND id<>?", "ttt",
                          r->team, r->name, r->id),
                &other))
    return err_set(err, -EEXIST, "this team has a volume with the name '%s'", r->name);
  return sql_change(s, err,
                    "INSERT INTO volume(id,team,name,state,created,attached) VALUES(?,?,?,?,?,?) "
                    "ON CONFLICT(id) DO UPDATE SET state=excluded.state",
                    "tttiii", r->id, r->team, r->name, (int64_t)r->state, r->created_us, (int64_t)r->attached);
}

int store_volume_delete(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "DELETE FROM volume WHERE id=?", "t", id);
}

int store_volume_get(struct store *s, struct str id, struct row_volume *out)
{
  return read_one(sql_query(s, "SELECT " FIELDS " FROM volume WHERE id=?", "s", id), out);
}

int store_volume_by_name(struct store *s, struct str team, struct str name, struct row_volume *out)
{
  return read_one(sql_query(s, "SELECT " FIELDS " FROM volume WHERE team=? AND name=? AND state=1", "ss", team, name),
                  out);
}

int store_volumes(struct store *s, const char *team, int (*fn)(const struct row_volume *, void *), void *arg)
{
  struct sql_rows *st =
      team ? sql_query(s, "SELECT " FIELDS " FROM volume WHERE team=? AND state=1 ORDER BY created, id", "t", team)
           : sql_query(s, "SELECT " FIELDS " FROM volume ORDER BY created, id", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_volume v;
    read_row(st, &v);
    if ((r = fn(&v, arg)))
      break;
  }
  sql_done(st);
  return r;
}

size_t store_volume_count(struct store *s, const char *team)
{
  return (size_t)sql_number(s, "SELECT count(*) FROM volume WHERE team=?", "t", team);
}
