/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_store.c - see webhook_store.h. */
#include "warden/db/webhook_store.h"

#include "warden/db/store_sql.h"
#include <stdio.h>

/* ---- webhooks ---- */

void row_webhook_free(struct row_webhook *r)
{
  free(r->name);
  free(r->url);
  free(r->origin);
  free(r->events);
  if (r->secret.p)
    explicit_bzero(r->secret.p, r->secret.n);
  buf_free(&r->secret);
  r->name = r->url = r->origin = r->events = NULL;
}

int store_webhook_put(struct store *s, const struct row_webhook *r, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO webhook(id,team,name,url,origin,events,enabled,secret,created) "
                    "VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET name=excluded.name, url=excluded.url, "
                    "origin=excluded.origin, events=excluded.events, enabled=excluded.enabled, secret=excluded.secret",
                    "ttttttibi", r->id, r->team, r->name, r->url, r->origin, r->events, (int64_t)r->enabled,
                    buf_str(&r->secret), r->created_us);
}

int store_webhook_delete(struct store *s, const char *id, struct err *err)
{
  int r = store_begin(s, err);
  if (r)
    return r;
  r = sql_change(s, err, "DELETE FROM webhook WHERE id=?", "t", id);
  r = r ? r : sql_change(s, err, "INSERT INTO webhook_gone(id) VALUES(?) ON CONFLICT(id) DO NOTHING", "t", id);
  return store_end(s, r, err);
}

int store_webhooks(struct store *s, int (*fn)(const struct row_webhook *, void *), void *arg)
{
  struct sql_rows *st = sql_query(
      s, "SELECT id,team,name,url,origin,events,enabled,secret,created FROM webhook ORDER BY created, id", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_webhook h = {.name = sql_dup(st, 2),
                            .url = sql_dup(st, 3),
                            .origin = sql_dup(st, 4),
                            .events = sql_dup(st, 5),
                            .enabled = sql_int(st, 6) != 0,
                            .secret = BUF_INIT(1 << 16),
                            .created_us = sql_int(st, 8)};
    sql_z(st, 0, h.id, sizeof(h.id));
    sql_z(st, 1, h.team, sizeof(h.team));
    buf_adds(&h.secret, sql_str(st, 7));
    r = fn(&h, arg);
    row_webhook_free(&h);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

bool webhook_takes(const char *events, const char *type)
{
  struct str rest = str_of(events), one;
  while (rest.n) {
    str_cut(rest, ',', &one, &rest);
    if (str_is(one, type))
      return true;
  }
  return false;
}

/* ---- the queue ---- */

#define OPEN_FIELDS "seq,first,id,webhook,team,event,sandbox,type,number,interrupted,state,due"

static void read_attempt(struct sql_rows *st, struct row_attempt *a)
{
  a->seq = sql_int(st, 0);
  a->first = sql_int(st, 1);
  sql_z(st, 2, a->id, sizeof(a->id));
  sql_z(st, 3, a->webhook, sizeof(a->webhook));
  sql_z(st, 4, a->team, sizeof(a->team));
  sql_z(st, 5, a->event, sizeof(a->event));
  sql_z(st, 6, a->sandbox, sizeof(a->sandbox));
  sql_z(st, 7, a->type, sizeof(a->type));
  a->number = (unsigned)sql_int(st, 8);
  a->interrupted = (unsigned)sql_int(st, 9);
  a->state = (enum attempt_state)sql_int(st, 10);
  a->due_us = sql_int(st, 11);
}

/* Above all that there ever were. */
static int64_t next_seq(struct store *s)
{
  if (sql_postgres(s))
    return sql_number(s, "SELECT nextval('webhook_attempt_order')", "");
  return sql_number(s, "SELECT seq FROM sqlite_sequence WHERE name='webhook_attempt'", "") + 1;
}

/* Sets seq; first is the attempt's own where it is 0. */
static int insert_attempt(struct store *s, struct row_attempt *a, struct err *err)
{
  int r = sql_serialize(s, "webhook_attempt", err);
  if (r)
    return r;
  a->seq = next_seq(s);
  a->first = a->first ? a->first : a->seq;
  sql_counts(s)->attempts++;
  return sql_change(
      s, err,
      "INSERT INTO webhook_attempt(seq,id,webhook,team,event,sandbox,type,first,number,interrupted,state,due,"
      "started,duration_ms,url,headers,class,message,status,answer_headers,answer) "
      "VALUES(?,?,?,?,?,?,?,?,?,?,0,?,0,0,'','',0,'',0,'','')",
      "ittttttiiii", a->seq, a->id, a->webhook, a->team, a->event, a->sandbox, a->type, a->first, (int64_t)a->number,
      (int64_t)a->interrupted, a->due_us);
}

int webhook_targets(struct store *s, const struct webhook_event *e, struct buf *ids)
{
  struct sql_rows *st =
      sql_query(s, "SELECT id,events FROM webhook WHERE team=? AND enabled<>0 ORDER BY created,id", "t", e->team);
  SQL_EACH_ROW(st)
  {
    if (!webhook_takes(sql_text(st, 1), e->type))
      continue;
    buf_addz(ids, ids->n ? "," : "");
    buf_adds(ids, sql_str(st, 0));
  }
  sql_done(st);
  return buf_failed(ids);
}

int webhook_enqueue(struct store *s, const struct webhook_event *e, struct str ids, struct str body, struct err *err)
{
  const struct webhook_rules *rules = &sql_counts(s)->webhooks;
  if (!ids.n || (rules->room && !rules->room(e->team, rules->arg)))
    return 0;
  sql_counts(s)->attempts++;
  int r = sql_change(s, err, "INSERT INTO webhook_body(event,body,team) VALUES(?,?,?) ON CONFLICT(event) DO NOTHING",
                     "tbt", e->id, body, e->team);
  return r ? r
           : sql_change(s, err, "INSERT INTO webhook_fanout(event,team,sandbox,type,at,targets) VALUES(?,?,?,?,?,?)",
                        "ttttis", e->id, e->team, e->sandbox, e->type, e->at_us, ids);
}

int store_fanouts(struct store *s, int64_t above, int (*fn)(const struct row_fanout *, void *), void *arg)
{
  struct sql_rows *st =
      sql_query(s,
                "SELECT seq,event,team,sandbox,type,at,targets,(SELECT length(body) FROM webhook_body b WHERE "
                "b.event=f.event) FROM webhook_fanout f WHERE seq>? ORDER BY seq",
                "i", above);
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_fanout f = {.seq = sql_int(st, 0),
                           .at_us = sql_int(st, 5),
                           .targets = (char *)sql_text(st, 6),
                           .bytes = (size_t)sql_int(st, 7)};
    sql_z(st, 1, f.event, sizeof(f.event));
    sql_z(st, 2, f.team, sizeof(f.team));
    sql_z(st, 3, f.sandbox, sizeof(f.sandbox));
    sql_z(st, 4, f.type, sizeof(f.type));
    if ((r = fn(&f, arg)))
      break;
  }
  sql_done(st);
  return r;
}

static bool hook_exists(struct store *s, struct str id)
{
  struct sql_rows *st = sql_query(s, "SELECT 1 FROM webhook WHERE id=?", "s", id);
  bool yes = sql_next(st);
  sql_done(st);
  return yes;
}

static int fan_to(struct store *s, const struct row_fanout *f, struct str webhook, struct err *err)
{
  struct row_attempt a = {.number = 1, .due_us = f->at_us};
  uuid4(a.id);
  str_copyz(webhook, a.webhook, sizeof(a.webhook));
  memcpy(a.team, f->team, sizeof(a.team));
  memcpy(a.event, f->event, sizeof(a.event));
  memcpy(a.sandbox, f->sandbox, sizeof(a.sandbox));
  memcpy(a.type, f->type, sizeof(a.type));
  return insert_attempt(s, &a, err);
}

static int trim_team(struct store *s, const char *team, struct err *err);

int store_fan_out(struct store *s, const struct row_fanout *f, size_t *made, struct err *err)
{
  struct str rest = str_of(f->targets), one;
  int r = store_begin(s, err);
  *made = 0;
  if (r)
    return r;
  while (!r && rest.n) {
    str_cut(rest, ',', &one, &rest);
    if (!hook_exists(s, one))
      continue;
    r = fan_to(s, f, one, err);
    ++*made;
  }
  if (!r && !*made)
    r = sql_change(s, err, "DELETE FROM webhook_body WHERE event=?", "t", f->event);
  r = r ? r : sql_change(s, err, "DELETE FROM webhook_fanout WHERE seq=?", "i", f->seq);
  r = r ? r : trim_team(s, f->team, err);
  return store_end(s, r, err);
}

void store_webhook_rules(struct store *s, const struct webhook_rules *rules)
{
  sql_counts(s)->webhooks = *rules;
}

int store_attempts_open(struct store *s, int64_t above, int (*fn)(const struct row_attempt *, void *), void *arg)
{
  struct sql_rows *st =
      above ? sql_query(s,
                        "SELECT " OPEN_FIELDS ",(SELECT length(body) FROM webhook_body b WHERE b.event=a.event) FROM "
                        "webhook_attempt a WHERE seq>? AND state<2 ORDER BY seq",
                        "i", above)
            : sql_query(s,
                        "SELECT " OPEN_FIELDS ",(SELECT length(body) FROM webhook_body b WHERE b.event=a.event) FROM "
                        "webhook_attempt a INDEXED BY webhook_attempt_open WHERE state<2 ORDER BY seq",
                        "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_attempt a = {.bytes = (size_t)sql_int(st, 12)};
    read_attempt(st, &a);
    if ((r = fn(&a, arg)))
      break;
  }
  sql_done(st);
  return r;
}

uint64_t store_attempts_added(const struct store *s)
{
  return sql_counts((struct store *)s)->attempts;
}

int store_attempt_body(struct store *s, const char *event, struct buf *out)
{
  struct sql_rows *st = sql_query(s, "SELECT body FROM webhook_body WHERE event=?", "t", event);
  int r = sql_next(st) ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}

int store_attempt_begin(struct store *s, int64_t seq, int64_t when_us, const char *url, const char *headers,
                        struct err *err)
{
  return sql_change(s, err, "UPDATE webhook_attempt SET state=1, started=?, url=?, headers=? WHERE seq=?", "itzi",
                    when_us, url, headers, seq);
}

int store_attempt_again(struct store *s, int64_t seq, struct err *err)
{
  return sql_change(s, err, "UPDATE webhook_attempt SET state=0 WHERE seq=?", "i", seq);
}

static int end_attempt(struct store *s, int64_t seq, const struct attempt_end *e, struct err *err)
{
  return sql_change(s, err,
                    "UPDATE webhook_attempt SET state=?, class=?, duration_ms=?, status=?, answer_headers=?, answer=?, "
                    "message=?, started=CASE started WHEN 0 THEN ? ELSE started END WHERE seq=?",
                    "iiiibbbii", (int64_t)(e->class == DELIVERY_OK ? ATTEMPT_SUCCESS : ATTEMPT_FAILED),
                    (int64_t)e->class, (int64_t)e->duration_ms, (int64_t)e->http_status, e->headers, e->body,
                    e->message, clock_wall_us(), seq);
}

static void team_of_attempt(struct store *s, int64_t seq, char team[UUID_SIZE])
{
  struct sql_rows *st = sql_query(s, "SELECT team FROM webhook_attempt WHERE seq=?", "i", seq);
  team[0] = 0;
  if (sql_next(st))
    sql_z(st, 0, team, UUID_SIZE);
  sql_done(st);
}

int store_attempt_end(struct store *s, int64_t seq, const struct attempt_end *e, struct row_attempt *next,
                      struct err *err)
{
  char team[UUID_SIZE];
  int r = store_begin(s, err);
  if (r)
    return r;
  team_of_attempt(s, seq, team);
  r = end_attempt(s, seq, e, err);
  r = r || !next ? r : insert_attempt(s, next, err);
  r = r ? r : trim_team(s, team, err);
  return store_end(s, r, err);
}

/* ---- reading ---- */

/* Fits: over, of these states and types, in this time. */
static bool type_fits(struct str types, struct str type)
{
  struct str one;
  if (!types.n)
    return true;
  while (types.n) {
    str_cut(types, ',', &one, &types);
    if (str_eq(one, type))
      return true;
  }
  return false;
}

static const char groups_down[] =
    "SELECT first,min(type) FROM webhook_attempt WHERE webhook=? AND +team=? AND first<? AND "
    "state>=2 AND started>=? AND started<? AND "
    "(state=2 AND ?<>0 OR state=3 AND ?<>0) GROUP BY first ORDER BY first DESC";
static const char groups_up[] =
    "SELECT first,min(type) FROM webhook_attempt WHERE webhook=? AND +team=? AND first>? AND "
    "state>=2 AND started>=? AND started<? AND "
    "(state=2 AND ?<>0 OR state=3 AND ?<>0) GROUP BY first ORDER BY first";

struct group_list {
  VEC(int64_t) firsts;
};

/* One group more than asked for tells whether there is another page. */
static void find_groups(struct store *s, const struct delivery_query *q, struct group_list *out)
{
  int64_t from = q->cursor ? q->cursor : q->ascending ? 0 : INT64_MAX;
  struct sql_rows *st = sql_query(s, q->ascending ? groups_up : groups_down, "ttiiiii", q->webhook, q->team, from,
                                  q->from_us, q->to_us, (int64_t)(q->states & 1), (int64_t)(q->states >> 1 & 1));
  SQL_EACH_ROW(st)
  {
    if (!type_fits(q->types, sql_str(st, 1)))
      continue;
    int64_t first = sql_int(st, 0);
    vec_push(&out->firsts, first);
    if (out->firsts.n > q->groups)
      break;
  }
  sql_done(st);
}

static int read_group(struct store *s, const char *webhook, int64_t first,
                      int (*fn)(const struct delivery_view *, void *), void *arg)
{
  struct sql_rows *st =
      sql_query(s,
                "SELECT " OPEN_FIELDS ",started,duration_ms,status,class,url,headers,"
                "(SELECT body FROM webhook_body b WHERE b.event=a.event),answer_headers,answer,message "
                "FROM webhook_attempt a WHERE webhook=? AND first=? AND state>=2 ORDER BY seq",
                "ti", webhook, first);
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_attempt a = {0};
    read_attempt(st, &a);
    struct delivery_view v = {.attempt = &a,
                              .started_us = sql_int(st, 12),
                              .duration_ms = (uint64_t)sql_int(st, 13),
                              .http_status = (uint64_t)sql_int(st, 14),
                              .class = (enum delivery_class)sql_int(st, 15),
                              .url = sql_str(st, 16),
                              .request_headers = sql_str(st, 17),
                              .request_body = sql_str(st, 18),
                              .headers = sql_str(st, 19),
                              .body = sql_str(st, 20),
                              .message = sql_str(st, 21)};
    int k = fn(&v, arg);
    r = r > 0 && k >= 0 ? r : k;
    if (r < 0)
      break;
  }
  sql_done(st);
  return r;
}

int store_deliveries(struct store *s, const struct delivery_query *q, int (*fn)(const struct delivery_view *, void *),
                     void *arg, int64_t *more)
{
  struct group_list list = {0};
  find_groups(s, q, &list);
  *more = 0;
  int r = 0;
  size_t i = 0;
  for (; !r && i < MIN(list.firsts.n, (size_t)q->groups); i++)
    r = read_group(s, q->webhook, list.firsts.p[i], fn, arg);
  if (r >= 0 && i && i < list.firsts.n)
    *more = list.firsts.p[i - 1];
  vec_free(&list.firsts);
  return MIN(r, 0);
}

int store_delivery_stats(struct store *s, const char *team, const char *webhook, int64_t from_us, int64_t to_us,
                         int64_t width_us, int (*fn)(const struct wire_webhook_bucket *, void *), void *arg)
{
  struct sql_rows *st =
      sql_query(s,
                "SELECT started/?1*?1 AS bucket, COUNT(*), SUM(CASE WHEN state=3 THEN 1 ELSE 0 END), MIN(duration_ms), "
                "MAX(duration_ms), CAST(SUM(duration_ms) AS BIGINT) FROM webhook_attempt WHERE webhook=?2 AND +team=?5 "
                "AND started>=?3 "
                "AND started<?4 AND state>=2 GROUP BY bucket ORDER BY bucket",
                "itiit", width_us, webhook, from_us, to_us, team);
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct wire_webhook_bucket b = {.from_us = sql_int(st, 0),
                                    .total = (uint64_t)sql_int(st, 1),
                                    .failed = (uint64_t)sql_int(st, 2),
                                    .least_ms = (uint64_t)sql_int(st, 3),
                                    .most_ms = (uint64_t)sql_int(st, 4),
                                    .sum_ms = (uint64_t)sql_int(st, 5)};
    if ((r = fn(&b, arg)))
      break;
  }
  sql_done(st);
  return r;
}

/* ---- forgetting ---- */

/* A row counts for two KiB beside its texts (store.c), and the largest event for less than TRIM_MOST rows: a step never
 * adds more than it may remove. */
#define TRIM_AT_ONCE 8
#define TRIM_MOST    80

void store_deliveries_usage(struct store *s, const char *team, uint64_t *rows, uint64_t *bytes)
{
  struct sql_rows *st = sql_query(s, "SELECT n,bytes FROM webhook_usage WHERE team=?", "t", team);
  bool any = sql_next(st);
  *rows = any ? (uint64_t)MAX(sql_int(st, 0), 0) : 0;
  *bytes = any ? (uint64_t)MAX(sql_int(st, 1), 0) : 0;
  sql_done(st);
}

static int trim_team(struct store *s, const char *team, struct err *err)
{
  const struct webhook_rules *rules = &sql_counts(s)->webhooks;
  int r = 0;
  for (int gone = 0; !r && gone < TRIM_MOST; gone += TRIM_AT_ONCE) {
    uint64_t rows, bytes;
    store_deliveries_usage(s, team, &rows, &bytes);
    uint64_t over = rules->kept && rows > rules->kept ? rows - rules->kept : 0;
    if (rules->kept_bytes && bytes > rules->kept_bytes)
      over = MAX(over, (uint64_t)TRIM_AT_ONCE);
    if (!over)
      return 0;
    r = sql_change(s, err,
                   "DELETE FROM webhook_attempt WHERE seq IN (SELECT seq FROM webhook_attempt INDEXED BY "
                   "webhook_attempt_over WHERE team=? AND state>=2 ORDER BY seq LIMIT ?)",
                   "ti", team, (int64_t)MIN(over, (uint64_t)TRIM_AT_ONCE));
    if (!sql_changed(s))
      return r;
  }
  return r;
}

static int trim(struct store *s, const char *sql, int64_t most, int64_t before_us, size_t *removed)
{
  int r = sql_change(s, NULL, sql, "ii", most, before_us);
  *removed += r ? 0 : (size_t)sql_changed(s);
  return r;
}

/* Each looks at few rows, whatever there is: the warden's loop waits for it. */
int store_deliveries_trim(struct store *s, int64_t before_us, unsigned most, size_t *removed)
{
  int r = store_begin(s, NULL);
  *removed = 0;
  if (r)
    return r;
  r = trim(s,
           "DELETE FROM webhook_attempt WHERE seq IN (SELECT seq FROM webhook_attempt ORDER BY seq LIMIT ?1) "
           "AND state>=2 AND started<?2",
           most, before_us, removed);
  r = r ? r
        : trim(s,
               "DELETE FROM webhook_attempt WHERE seq IN (SELECT a.seq FROM webhook_gone g CROSS JOIN webhook_attempt "
               "a ON a.webhook=g.id LIMIT ?1) AND ?2 NOTNULL",
               most, before_us, removed);
  r = r ? r
        : trim(s,
               "DELETE FROM webhook_gone WHERE id IN (SELECT id FROM webhook_gone LIMIT ?1) AND NOT EXISTS (SELECT 1 "
               "FROM webhook_attempt WHERE webhook=webhook_gone.id) AND ?2 NOTNULL",
               most, before_us, removed);
  return store_end(s, r, NULL);
}
