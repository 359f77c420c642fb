/* SPDX-License-Identifier: Apache-2.0 */
/* team_sample.c - see team_sample.h. */
#include "warden/db/team_sample.h"

#include "warden/db/store_sql.h"

int team_sample_add(struct store *s, struct str team, const struct team_sample *t, struct err *err)
{
  return sql_change(s, err, "INSERT OR REPLACE INTO team_sample VALUES(?,?,?,?,?)", "siiii", team, t->at_us, t->span_us,
                    (int64_t)t->running, (int64_t)t->starts);
}

void team_sample_each(struct store *s, struct str team, int64_t from_us, int64_t to_us,
                      void (*fn)(const struct team_sample *t, void *arg), void *arg)
{
  sqlite3_stmt *st =
      sql_query(s, "SELECT at,span,running,starts FROM team_sample WHERE team=? AND at>=? AND at<=? ORDER BY at", "sii",
                team, from_us, to_us);
  SQL_EACH_ROW(st)
  {
    struct team_sample t = {sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                            (uint64_t)sqlite3_column_int64(st, 2), (uint64_t)sqlite3_column_int64(st, 3)};
    fn(&t, arg);
  }
  sql_done(st);
}

void team_sample_forget(struct store *s, int64_t before_us)
{
  sql_change(s, NULL, "DELETE FROM team_sample WHERE at<?", "i", before_us);
}
