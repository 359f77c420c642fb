/* SPDX-License-Identifier: Apache-2.0 */
/* store_postgres.c - see store_postgres.h: the engine of sql_engine.h on libpq. Statements are prepared once per
 * connection; values and columns travel in binary. */
#include "store/store_postgres.h"

#include "store/postgres_connect.h"
#include "store/postgres_schema.h"
#include "store/postgres_text.h"
#include "warden/db/sql_engine.h"
#include <endian.h>
#include <poll.h>
#include <stdio.h>

#define WAIT_FIRST_US 250000
#define WAIT_MOST_US  15000000
#define SQL_MAX       ((size_t)16 << 10) /* of one statement */
#define LAST_WORDS    8                  /* packets between two statements */
#define OID_BYTEA     17
#define OID_INT8      20
#define OID_TEXT      25

struct postgres_store {
  struct store base;
  PGconn *conn;          /* NULL: away */
  struct map statements; /* SQL text -> its name there */
  unsigned named;
  char *url, place[256];
  bool begun;               /* a transaction is open, or was when the connection broke */
  int64_t wait_us, next_us; /* of attempts to connect again */
};

struct postgres_rows {
  struct sql_rows base;
  PGresult *result;
  int at;
};

static struct postgres_store *of(const struct store *s)
{
  return (struct postgres_store *)s;
}

/* ---- the connection ---- */

static void forget_statements(struct postgres_store *p)
{
  void *name;
  for (size_t i = 0; map_next(&p->statements, &i, NULL, &name);)
    free(name);
  map_free(&p->statements);
  p->statements = (struct map){0};
}

static void drop(struct postgres_store *p)
{
  forget_statements(p);
  PQfinish(p->conn);
  p->conn = NULL;
}

static int reader_session(struct postgres_store *p, struct err *err)
{
  char sql[160];
  snprintf(sql, sizeof(sql), "SET default_transaction_read_only=on; SET statement_timeout=%lld",
           (long long)p->base.read_us / 1000);
  PGresult *r = PQexec(p->conn, sql);
  bool ok = PQresultStatus(r) == PGRES_COMMAND_OK;
  PQclear(r);
  return ok ? 0 : err_set(err, -EIO, "%s: a reader's session was refused", p->place);
}

static int connect_now(struct postgres_store *p, struct err *err)
{
  p->conn = postgres_connect(p->url, err);
  int r = p->conn ? 0 : err && err->code ? err->code : -ENOTCONN;
  if (!r && p->base.reads)
    r = reader_session(p, err);
  if (!r) {
    p->wait_us = 0;
    return 0;
  }
  if (p->conn)
    drop(p);
  p->wait_us = p->wait_us ? MIN(p->wait_us * 2, (int64_t)WAIT_MOST_US) : WAIT_FIRST_US;
  p->next_us = clock_mono_us() + p->wait_us;
  return r;
}

static int away(const struct postgres_store *p, struct err *err)
{
  return err_set(err, -ENOTCONN, "%s is away", p->place);
}

/* Nothing is to be read between two statements but a server's last words, and then its end: both are looked at before
 * a statement goes to it. */
static bool alive(PGconn *conn)
{
  for (int i = 0; i < LAST_WORDS; i++) {
    struct pollfd readable = {.fd = PQsocket(conn), .events = POLLIN};
    if (PQstatus(conn) != CONNECTION_OK)
      return false;
    if (poll(&readable, 1, 0) <= 0)
      return true;
    PQconsumeInput(conn);
    PQfreemem(PQnotifies(conn)); /* reads what came; there is none */
  }
  return false;
}

static int ready(struct postgres_store *p, struct err *err)
{
  if (p->base.reads && p->base.read_us && clock_mono_us() > p->base.until_us) {
    p->base.late = true;
    return err_set(err, -ETIMEDOUT, "%s: this reader's time is over", p->place);
  }
  if (p->conn && alive(p->conn))
    return 0;
  if (p->conn)
    drop(p);
  if (p->begun || clock_mono_us() < p->next_us)
    return away(p, err);
  return connect_now(p, err);
}

/* ---- statements ---- */

static int failed(struct postgres_store *p, const PGresult *r, struct err *err)
{
  char reason[300];
  const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
  postgres_reason(p->conn, r, reason, sizeof(reason));
  if (p->base.reads && state && !strcmp(state, "57014"))
    p->base.late = true;
  if (PQstatus(p->conn) != CONNECTION_OK) {
    drop(p);
    return err_set(err, -ENOTCONN, "%s: %s", p->place, reason);
  }
  return err_set(err, -EIO, "%s: %s", p->place, reason);
}

static const char *prepared(struct postgres_store *p, const char *sql, const struct sql_value *v, size_t n,
                            struct err *err)
{
  const char *have = map_get(&p->statements, str_of(sql));
  if (have)
    return have;
  Oid types[SQL_VALUES_MAX];
  for (size_t i = 0; i < n; i++)
    types[i] = v[i].kind == 'i' ? OID_INT8 : v[i].kind == 't' ? OID_TEXT : OID_BYTEA;
  cleanup_buf struct buf text = BUF_INIT(SQL_MAX);
  postgres_text(sql, &text);
  char *name = xasprintf("cloche%u", ++p->named);
  PGresult *r = PQprepare(p->conn, name, buf_z(&text), (int)n, types);
  bool ok = !buf_failed(&text) && PQresultStatus(r) == PGRES_COMMAND_OK;
  if (ok)
    map_put(&p->statements, str_of(sql), name);
  else
    failed(p, r, err);
  PQclear(r);
  if (ok)
    return name;
  free(name);
  return NULL;
}

/* NULL: err says why. */
static PGresult *execute(struct postgres_store *p, const char *sql, const struct sql_value *v, size_t n,
                         struct err *err)
{
  const char *name = ready(p, err) ? NULL : prepared(p, sql, v, n, err), *values[SQL_VALUES_MAX];
  int lengths[SQL_VALUES_MAX], binary[SQL_VALUES_MAX];
  uint64_t numbers[SQL_VALUES_MAX];
  if (!name)
    return NULL;
  for (size_t i = 0; i < n; i++) {
    numbers[i] = htobe64((uint64_t)v[i].number);
    values[i] = v[i].kind == 'i' ? (const char *)&numbers[i] : v[i].bytes.p;
    lengths[i] = v[i].kind == 'i' ? (int)sizeof(numbers[i]) : (int)v[i].bytes.n;
    binary[i] = 1;
  }
  PGresult *r = PQexecPrepared(p->conn, name, (int)n, values, lengths, binary, 1);
  if (PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK)
    return r;
  failed(p, r, err);
  PQclear(r);
  return NULL;
}

static int postgres_run(struct store *s, const char *sql, struct err *err)
{
  int e = ready(of(s), err);
  if (e)
    return e;
  PGresult *r = PQexec(of(s)->conn, sql);
  bool ok = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
  e = ok ? 0 : failed(of(s), r, err);
  PQclear(r);
  return e;
}

static int postgres_change(struct store *s, const char *sql, const struct sql_value *v, size_t n, struct err *err)
{
  struct err own = ERR_NONE;
  PGresult *r = execute(of(s), sql, v, n, &own);
  if (!r)
    return err_set(err, own.code ? own.code : -EIO, "%s", own.msg);
  if (str_u64(str_of(PQcmdTuples(r)), &s->changed))
    s->changed = 0;
  PQclear(r);
  return 0;
}

static struct sql_rows *postgres_query(struct store *s, const char *sql, const struct sql_value *v, size_t n)
{
  struct err err = ERR_NONE;
  PGresult *r = execute(of(s), sql, v, n, &err);
  if (!r) {
    if (!s->late)
      log_error("store: %s", err.msg);
    return NULL;
  }
  struct postgres_rows *rows = xcalloc(1, sizeof(*rows));
  *rows = (struct postgres_rows){{.store = s}, r, -1};
  return &rows->base;
}

static bool rows_next(struct sql_rows *rows)
{
  struct postgres_rows *r = (struct postgres_rows *)rows;
  return ++r->at < PQntuples(r->result);
}

static void rows_done(struct sql_rows *rows)
{
  PQclear(((struct postgres_rows *)rows)->result);
  free(rows);
}

static struct str rows_bytes(const struct sql_rows *rows, int i)
{
  const struct postgres_rows *r = (const struct postgres_rows *)rows;
  return (struct str){PQgetvalue(r->result, r->at, i), (size_t)PQgetlength(r->result, r->at, i)};
}

/* Whole numbers of any width, and truth. */
static int64_t rows_number(const struct sql_rows *rows, int i)
{
  struct str s = rows_bytes(rows, i);
  uint64_t v = s.n && s.n <= sizeof(v) && (s.p[0] & 0x80) ? UINT64_MAX : 0;
  if (s.n > sizeof(v))
    return 0;
  for (size_t k = 0; k < s.n; k++)
    v = v << 8 | (uint8_t)s.p[k];
  return (int64_t)v;
}

/* ---- transactions ---- */

static int postgres_begin(struct store *s, struct err *err)
{
  struct postgres_store *p = of(s);
  p->begun = false;
  int r = postgres_run(s, "BEGIN", err);
  p->begun = !r;
  return r;
}

static int postgres_end(struct store *s, bool commit, struct err *err)
{
  struct postgres_store *p = of(s);
  p->begun = false;
  if (!p->conn || PQstatus(p->conn) != CONNECTION_OK)
    return away(p, err);
  /* COMMIT of one that failed is answered with ROLLBACK, which would look like success. */
  bool whole = PQtransactionStatus(p->conn) == PQTRANS_INTRANS;
  if (commit && whole)
    return postgres_run(s, "COMMIT", err);
  postgres_run(s, "ROLLBACK", NULL);
  return err_set(err, -EIO, "%s: a part of the change failed", p->place);
}

static int postgres_serialize(struct store *s, const char *name, struct err *err)
{
  struct sql_value v = {.kind = 't', .bytes = str_of(name)};
  return postgres_change(s, "SELECT pg_advisory_xact_lock(hashtextextended('cloche ' || ?, 0))", &v, 1, err);
}

/* ---- opening and upkeep ---- */

static void postgres_close(struct store *s)
{
  struct postgres_store *p = of(s);
  drop(p);
  explicit_bzero(p->url, strlen(p->url));
  free(p->url);
  free(p);
}

static const struct sql_engine postgres_engine;

static struct postgres_store *make(const char *url)
{
  struct postgres_store *p = xcalloc(1, sizeof(*p));
  p->base.engine = &postgres_engine;
  p->url = xstrdup(url);
  postgres_place(url, p->place, sizeof(p->place));
  return p;
}

int store_open_postgres(const char *url, struct store **out, struct err *err)
{
  struct postgres_store *p = make(url);
  int r = connect_now(p, err);
  r = r ? r : postgres_migrate(p->conn, p->place, err);
  if (r)
    postgres_close(&p->base);
  *out = r ? NULL : &p->base;
  return r;
}

static int open_other(const struct store *s, bool reads, struct store **out, struct err *err)
{
  struct postgres_store *p = make(of(s)->url);
  p->base.reads = reads;
  p->base.read_us = reads ? s->read_us : 0;
  p->base.until_us = clock_mono_us() + s->read_us;
  int r = connect_now(p, err);
  if (r)
    postgres_close(&p->base);
  *out = r ? NULL : &p->base;
  return r;
}

/* The server folds its own log and commits to its own disk. */
static int nothing(struct store *s)
{
  return 0;
}

static void no_bound(struct store *s)
{
}

static uint64_t no_log(const struct store *s)
{
  return 0;
}

/* What was sealed by a former key leaves the tables' files. */
static int postgres_rewrite(struct store *s, struct err *err)
{
  return postgres_run(s, "VACUUM (FULL) secret, identity_key, box_egress", err);
}

static const struct sql_engine postgres_engine = {
    .run = postgres_run,
    .change = postgres_change,
    .query = postgres_query,
    .next = rows_next,
    .done = rows_done,
    .number = rows_number,
    .bytes = rows_bytes,
    .begin = postgres_begin,
    .end = postgres_end,
    .serialize = postgres_serialize,
    .open_other = open_other,
    .close = postgres_close,
    .checkpoint = nothing,
    .harden = nothing,
    .rewrite = postgres_rewrite,
    .bound = no_bound,
    .log_size = no_log,
};
