/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - the table of events, see event.h. What they say is in event_text.c. */
#include "warden/db/event.h"

#include "warden/db/store_sql.h"
#include "warden/db/webhook_store.h"
#include <stdio.h>

#define BODY_MAX    ((size_t)4 << 20) /* of the event as a webhook gets it */
#define TARGETS_MAX ((size_t)1 << 20) /* ids of webhooks: those of the setting team_webhooks_max, several times */

static int tell_webhooks(struct store *s, const struct event *e, struct err *err)
{
  struct webhook_event told = {
      .id = e->id, .team = e->team, .sandbox = e->sandbox, .type = event_type_name(e->type), .at_us = e->at_us};
  cleanup_buf struct buf body = BUF_INIT(BODY_MAX), targets = BUF_INIT(TARGETS_MAX);
  int r = webhook_targets(s, &told, &targets);
  if (r || !targets.n)
    return r ? err_set(err, r, "team %s has too many webhooks", e->team) : 0;
  event_body_json(&body, e);
  if (!buf_failed(&body))
    return webhook_enqueue(s, &told, buf_str(&targets), buf_str(&body), err);
  log_error("an event of sandbox %s is too large for webhooks", e->sandbox); /* the change itself goes on */
  return 0;
}

/* A large event takes several numbers, so that a distance of numbers bounds bytes as well: the metadata in it is the
 * client's, and may be a hundred times larger than everything else. */
#define NUMBER_BYTES 1024

int event_record(struct store *s, struct event *e, struct err *err)
{
  int r = sql_serialize(s, "event", err); /* who reads on from a seq must not find a lower one later */
  if (r)
    return r;
  e->seq = sql_number(s,
                      "INSERT INTO event(seq, id, at, team, sandbox, execution, template, build, type, data, place)"
                      " VALUES((SELECT coalesce(max(seq),0) FROM event)+?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,"
                      "(SELECT coalesce(max(place),0) FROM event WHERE team=?4)+?1) RETURNING seq",
                      "ititttttit", (int64_t)(1 + strlen(e->data) / NUMBER_BYTES), e->id, e->at_us, e->team, e->sandbox,
                      e->execution, e->template_id, e->build, (int64_t)e->type, e->data);
  if (!e->seq)
    return err_set(err, -EIO, "database: the event of sandbox %s could not be written", e->sandbox);
  sql_counts(s)->events++;
  return tell_webhooks(s, e, err);
}

uint64_t event_count(const struct store *s)
{
  return sql_counts((struct store *)s)->events;
}

static int read_row(struct sql_rows *st, int (*fn)(const struct event *, void *), void *arg)
{
  struct event e = {.seq = sql_int(st, 0), .at_us = sql_int(st, 2), .type = (enum event_type)sql_int(st, 8)};
  cleanup_free char *data = sql_dup(st, 9);
  sql_z(st, 1, e.id, sizeof(e.id));
  sql_z(st, 3, e.team, sizeof(e.team));
  sql_z(st, 4, e.sandbox, sizeof(e.sandbox));
  sql_z(st, 5, e.execution, sizeof(e.execution));
  sql_z(st, 6, e.template_id, sizeof(e.template_id));
  sql_z(st, 7, e.build, sizeof(e.build));
  e.data = data;
  return fn(&e, arg);
}

/* The plus keeps a condition out of the choice of an index. */
static const char *where_of(const struct event_query *q)
{
  if (q->sandbox.n)
    return "sandbox=?1 AND (?2='' OR +team=?2) AND at>=?3 AND +seq>?5";
  if (q->team.n && q->after < 0)
    return "?1='' AND team=?2 AND at>=?3 AND +seq>?5";
  return "?1='' AND (?2='' OR +team=?2) AND +at>=?3 AND seq>?5";
}

int events_read(struct store *s, const struct event_query *q, int (*fn)(const struct event *, void *), void *arg)
{
  char sql[400];
  const char *way = q->ascending ? "ASC" : "DESC";
  snprintf(sql, sizeof(sql),
           "SELECT seq,id,at,team,sandbox,execution,template,build,type,data FROM event WHERE %s AND ((?4>>CAST(type "
           "AS INTEGER))&1)<>0"
           " ORDER BY %s%s%sseq %s LIMIT ?6 OFFSET ?7",
           where_of(q), q->after < 0 ? "at " : "", q->after < 0 ? way : "", q->after < 0 ? "," : "", way);
  struct sql_rows *st =
      sql_query(s, sql, "ssiiiii", q->sandbox, q->team, q->since_us, (int64_t)(q->types ? q->types : EVENT_BITS_ALL),
                q->after, (int64_t)MIN(q->limit, (uint64_t)INT32_MAX), (int64_t)MIN(q->offset, (uint64_t)INT64_MAX));
  int r = st ? 0 : -EIO;
  SQL_EACH_ROW(st)
  if ((r = read_row(st, fn, arg)))
    break;
  if (!r && sql_failed(st))
    r = -EIO;
  sql_done(st);
  return r;
}

static int found(const struct event *e, void *arg)
{
  *(bool *)arg = true;
  return 1;
}

bool events_know(struct store *s, struct str sandbox, struct str team, int64_t since_us)
{
  bool any = false;
  struct event_query q = {.sandbox = sandbox, .team = team, .since_us = since_us, .after = -1, .limit = 1};
  events_read(s, &q, found, &any);
  return any;
}

int64_t events_last(struct store *s)
{
  return sql_number(s, "SELECT max(seq) FROM event", "");
}

#define SLICE_NUMBERS 2048 /* and so at most about two megabytes of large events in one transaction */

/* The last seq of a run of rows at the beginning of the table that are old; 0 = none. */
static int64_t last_old(struct store *s, int64_t before_us, int64_t newest, unsigned most)
{
  struct sql_rows *st =
      sql_query(s, "SELECT seq,at FROM event WHERE seq<? ORDER BY seq LIMIT ?", "ii", newest, (int64_t)most);
  int64_t last = 0, first = 0;
  SQL_EACH_ROW(st)
  {
    int64_t seq = sql_int(st, 0);
    first = first ? first : seq;
    if (sql_int(st, 1) >= before_us || (last && seq - first > SLICE_NUMBERS))
      break;
    last = seq;
  }
  sql_done(st);
  return last;
}

/* What a team has, in numbers: those of its first event and of its last. Events of a team go from its first on. */
struct team_events {
  char team[UUID_SIZE];
  int64_t first, last;
};

static int64_t numbers_of(const struct team_events *t)
{
  return t->last ? t->last - t->first + 1 : 0;
}

struct largest {
  struct store *store;
  struct team_events of;
  int64_t sum;
};

static int look_at_team(const struct row_team *row, void *arg)
{
  struct largest *l = arg;
  struct team_events t = {.first = sql_number(l->store, "SELECT min(place) FROM event WHERE team=?", "t", row->id),
                          .last = sql_number(l->store, "SELECT max(place) FROM event WHERE team=?", "t", row->id)};
  memcpy(t.team, row->id, sizeof(t.team));
  l->sum += numbers_of(&t);
  if (numbers_of(&t) > numbers_of(&l->of))
    l->of = t;
  return 0;
}

static int trim_team(struct store *s, const struct team_events *t, int64_t keep, int64_t newest, unsigned most)
{
  int64_t until = MIN(t->last - keep, t->first + SLICE_NUMBERS);
  return sql_change(s, NULL,
                    "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE team=? AND place<=? AND seq<? ORDER "
                    "BY place LIMIT ?)",
                    "tiii", t->team, until, newest, (int64_t)most);
}

int events_trim(struct store *s, const struct event_bounds *b, unsigned most)
{
  int64_t newest = events_last(s), last = last_old(s, b->before_us, newest, most);
  int r;
  if (last) {
    r = sql_change(s, NULL, "DELETE FROM event WHERE seq<=?", "i", last);
    return r ? r : (int)sql_changed(s);
  }
  struct largest l = {.store = s};
  store_teams(s, look_at_team, &l);
  int64_t have = numbers_of(&l.of), over = MAX(l.sum - (int64_t)b->total, have - (int64_t)b->team);
  if (over <= 0)
    return 0;
  r = trim_team(s, &l.of, MAX(have - over, (int64_t)0), newest, most);
  return r ? r : (int)sql_changed(s);
}
