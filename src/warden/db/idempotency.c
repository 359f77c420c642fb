/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.c - see idempotency.h. */
#include "warden/db/idempotency.h"

#include "warden/db/store_sql.h"

int idempotency_get(struct store *s, struct str team, struct str key, struct row_idempotency *out)
{
  struct sql_rows *st =
      sql_query(s,
                "SELECT team, key, fingerprint, box, created, answered, status, message, template, alias, "
                "flags FROM idempotency WHERE team=? AND key=?",
                "ss", team, key);
  int r = sql_next(st) ? 0 : -ENOENT;
  if (!r) {
    *out = (struct row_idempotency){.created_us = sql_int(st, 4),
                                    .answered = sql_int(st, 5) != 0,
                                    .status = sql_int(st, 6),
                                    .flags = (unsigned)sql_int(st, 10)};
    struct str print = sql_str(st, 2);
    memcpy(out->fingerprint, print.p, MIN(print.n, sizeof(out->fingerprint)));
    sql_z(st, 0, out->team, sizeof(out->team));
    sql_z(st, 1, out->key, sizeof(out->key));
    sql_z(st, 3, out->box, sizeof(out->box));
    sql_z(st, 7, out->message, sizeof(out->message));
    sql_z(st, 8, out->template_id, sizeof(out->template_id));
    sql_z(st, 9, out->alias, sizeof(out->alias));
  }
  sql_done(st);
  return r;
}

int idempotency_reserve(struct store *s, const struct row_idempotency *r, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO idempotency(team, key, fingerprint, box, created) VALUES(?,?,?,?,?) ON CONFLICT(team, "
                    "key) DO UPDATE SET fingerprint=excluded.fingerprint, box=excluded.box, created=excluded.created, "
                    "answered=0, status=0, message='', template='', alias='', flags=0",
                    "ttbti", r->team, r->key, str_make(r->fingerprint, sizeof(r->fingerprint)), r->box, r->created_us);
}

int idempotency_answer(struct store *s, const struct row_idempotency *r, int status, const char *message,
                       struct err *err)
{
  return sql_change(s, err, "UPDATE idempotency SET answered=1, status=?, message=? WHERE team=? AND key=? AND box=?",
                    "izttt", (int64_t)status, message, r->team, r->key, r->box);
}

int idempotency_delete(struct store *s, const struct row_idempotency *r, struct err *err)
{
  return sql_change(s, err, "DELETE FROM idempotency WHERE team=? AND key=? AND box=?", "ttt", r->team, r->key, r->box);
}

uint64_t idempotency_count(struct store *s, struct str team)
{
  return (uint64_t)sql_number(s, "SELECT count(*) FROM idempotency WHERE team=?", "s", team);
}

int idempotency_forget(struct store *s, int64_t before_us)
{
  return sql_change(s, NULL, "DELETE FROM idempotency WHERE created<=?", "i", before_us);
}

int idempotency_created(struct store *s, const struct row_box *b, const char *key, struct err *err)
{
  return sql_change(s, err,
                    "UPDATE idempotency SET answered=1, status=0, message='', template=?, alias=?, flags=? "
                    "WHERE team=? AND key=? AND box=?",
                    "ttittt", b->template_id, b->alias, (int64_t)b->flags, b->team, key, b->id);
}
