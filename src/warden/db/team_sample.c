/* SPDX-License-Identifier: Apache-2.0 */
/* team_sample.c - see team_sample.h. */
#include "warden/db/team_sample.h"

#include "warden/db/store_sql.h"

int team_sample_add(struct store *s, struct str team, const struct team_sample *t, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO team_sample(team,at,span,running,starts) VALUES(?,?,?,?,?) ON CONFLICT(team,at) DO "
                    "UPDATE SET span=excluded.span, running=excluded.running, starts=excluded.starts",
                    "siiii", team, t->at_us, t->span_us, (int64_t)t->running, (int64_t)t->starts);
}

static int64_t number(struct store *s, const char *sql, struct str team, const struct team_sample_query *q)
{
  return sql_number(s, sql, "sii", team, q->from_us, q->to_us);
}

static int64_t width_of(struct store *s, struct str team, const struct team_sample_query *q)
{
  int64_t first = number(s, "SELECT min(at) FROM team_sample WHERE team=? AND at>=? AND at<=?", team, q);
  int64_t last = number(s, "SELECT max(at) FROM team_sample WHERE team=? AND at>=? AND at<=?", team, q);
  int64_t width = MAX(q->width_us, (int64_t)1), least = (last - first) / (q->points ? q->points : 1) + 1;
  return MAX(width, least);
}

static const char joined[] = "SELECT max(at),CAST(sum(span) AS BIGINT),max(running),CAST(sum(starts) AS BIGINT) FROM "
                             "team_sample WHERE team=?1 AND "
                             "at>=?2 AND at<=?3 GROUP BY at/?4 ORDER BY at/?4 LIMIT ?5";
static const char most_running[] = "SELECT at,span,running,starts FROM team_sample WHERE team=?1 AND at>=?2 AND "
                                   "at<=?3 AND ?4 NOTNULL ORDER BY running DESC, at LIMIT ?5";
static const char most_rate[] =
    "SELECT at,span,running,starts FROM team_sample WHERE team=?1 AND at>=?2 AND at<=?3 "
    "AND ?4 NOTNULL ORDER BY starts*1.0/CASE WHEN span>1 THEN span ELSE 1 END DESC, at LIMIT ?5";

void team_sample_each(struct store *s, struct str team, const struct team_sample_query *q,
                      void (*fn)(const struct team_sample *t, void *arg), void *arg)
{
  bool one = q->mode != USAGE_JOINED;
  struct sql_rows *st = sql_query(s,
                                  !one                            ? joined
                                  : q->mode == USAGE_MOST_RUNNING ? most_running
                                                                  : most_rate,
                                  "siiii", team, q->from_us, q->to_us, one ? (int64_t)0 : width_of(s, team, q),
                                  one ? (int64_t)1 : (int64_t)q->points + 1);
  SQL_EACH_ROW(st)
  {
    struct team_sample t = {sql_int(st, 0), sql_int(st, 1), (uint64_t)sql_int(st, 2), (uint64_t)sql_int(st, 3)};
    fn(&t, arg);
  }
  sql_done(st);
}

void team_sample_forget(struct store *s, int64_t before_us)
{
  sql_change(s, NULL, "DELETE FROM team_sample WHERE at<?", "i", before_us);
}
