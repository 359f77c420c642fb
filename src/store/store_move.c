/* SPDX-License-Identifier: Apache-2.0 */
/* store_move.c - see store_move.h. Tables and columns are asked of the databases, so that a migration needs no change
 * here. */
#include "store/store_move.h"

#include "warden/db/sql_engine.h"
#include <endian.h>

#define COLUMNS_MAX SQL_VALUES_MAX
#define AT_ONCE     "500" /* rows that are in memory */
#define SQL_MAX     ((size_t)8 << 10)

struct table {
  char name[64];
  char columns[COLUMNS_MAX][64];
  char kinds[COLUMNS_MAX]; /* as in sql_value */
  size_t n;
};

/* Rows of these are named by others, or a trigger on them looks at others: they go first, in this order. Usage is what
 * triggers count; machines announce themselves. */
static const char *const first[] = {"team", "template", "build", "job", "webhook_body"};
static const char *const left_out[] = {"webhook_usage", "cloche_schema", "node"};

static bool among(const char *name, const char *const *list, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!strcmp(name, list[i]))
      return true;
  return false;
}

/* ---- what is there ---- */

static const char sqlite_tables[] =
    "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
static const char postgres_tables[] = "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE "
                                      "table_schema=current_schema() AND table_type='BASE TABLE' ORDER BY 1";
static const char sqlite_columns[] = "SELECT name,type FROM pragma_table_info(?) ORDER BY name";
static const char postgres_columns[] =
    "SELECT CAST(column_name AS TEXT),CAST(data_type AS TEXT) FROM information_schema.columns WHERE "
    "table_schema=current_schema() AND table_name=? AND column_name<>'rowid' ORDER BY column_name COLLATE \"C\"";

static char kind_of(const char *type)
{
  if (!strcasecmp(type, "TEXT"))
    return 't';
  return !strcasecmp(type, "INTEGER") || !strcasecmp(type, "BIGINT") ? 'i' : 'b';
}

static int read_columns(struct store *s, struct table *t, struct err *err)
{
  struct sql_rows *rows = sql_query(s, sql_postgres(s) ? postgres_columns : sqlite_columns, "t", t->name);
  t->n = 0;
  SQL_EACH_ROW(rows)
  {
    char type[64];
    if (t->n == COLUMNS_MAX)
      break;
    sql_z(rows, 0, t->columns[t->n], sizeof(t->columns[0]));
    sql_z(rows, 1, type, sizeof(type));
    t->kinds[t->n++] = kind_of(type);
  }
  bool bad = sql_failed(rows) || !t->n || t->n == COLUMNS_MAX;
  sql_done(rows);
  return bad ? err_set(err, -EIO, "the columns of table %s can't be read", t->name) : 0;
}

/* The same table there: the same columns, kinds of its own. */
static int match(const struct table *from, struct table *to, struct store *target, struct err *err)
{
  memcpy(to->name, from->name, sizeof(to->name));
  int r = read_columns(target, to, err);
  bool same = !r && to->n == from->n;
  for (size_t i = 0; same && i < to->n; i++)
    same = !strcmp(to->columns[i], from->columns[i]);
  return r || same ? r : err_set(err, -EINVAL, "table %s has other columns in the target", from->name);
}

/* ---- rows ---- */

/* Independent of the order in which rows are read. */
struct digest {
  uint8_t sum[SHA256_LEN];
  uint64_t rows;
};

static void digest_row(struct digest *d, const struct sql_rows *rows, const struct table *t)
{
  uint8_t one[SHA256_LEN];
  cleanup_buf struct buf b = BUF_INIT(BUF_DEFAULT_MAX);
  for (size_t i = 0; i < t->n; i++) {
    struct str bytes = t->kinds[i] == 'i' ? STR_NONE : sql_str(rows, (int)i);
    uint64_t head = htobe64(t->kinds[i] == 'i' ? (uint64_t)sql_int(rows, (int)i) : bytes.n);
    buf_add(&b, &head, sizeof(head));
    buf_adds(&b, bytes);
  }
  sha256_of(b.p, b.n, one);
  for (size_t i = 0; i < sizeof(one); i++)
    d->sum[i] ^= one[i];
  d->rows++;
}

static void select_text(struct buf *sql, const struct table *t, bool ordered)
{
  buf_addz(sql, "SELECT ");
  for (size_t i = 0; i < t->n; i++)
    buf_addf(sql, "%s\"%s\"", i ? "," : "", t->columns[i]);
  buf_addf(sql, " FROM \"%s\"%s", t->name, ordered ? " ORDER BY rowid" : "");
}

static void insert_text(struct buf *sql, const struct table *t)
{
  buf_addf(sql, "INSERT INTO \"%s\"(", t->name);
  for (size_t i = 0; i < t->n; i++)
    buf_addf(sql, "%s\"%s\"", i ? "," : "", t->columns[i]);
  buf_addz(sql, ") VALUES(");
  for (size_t i = 0; i < t->n; i++)
    buf_addz(sql, i ? ",?" : "?");
  buf_addz(sql, ")");
}

typedef int row_fn(const struct sql_rows *rows, void *arg);

static int each_of(struct sql_rows *rows, row_fn *fn, void *arg, uint64_t *n)
{
  int r = 0;
  SQL_EACH_ROW(rows)
  {
    ++*n;
    if ((r = fn(rows, arg)))
      break;
  }
  r = r ? r : sql_failed(rows) ? -EIO : 0;
  sql_done(rows);
  return r;
}

/* libpq holds a whole answer in memory, so a cursor gives some at once. */
static int each_by_cursor(struct store *s, const char *select, row_fn *fn, void *arg, struct err *err)
{
  cleanup_buf struct buf sql = BUF_INIT(SQL_MAX);
  buf_addf(&sql, "DECLARE moved NO SCROLL CURSOR FOR %s", select);
  int r = sql_run(s, buf_z(&sql), err);
  for (uint64_t n = 1; !r && n;) {
    n = 0;
    r = each_of(sql_query(s, "FETCH FORWARD " AT_ONCE " FROM moved", ""), fn, arg, &n);
  }
  return r ? r : sql_run(s, "CLOSE moved", err);
}

static int each_row(struct store *s, const struct table *t, row_fn *fn, void *arg, struct err *err)
{
  cleanup_buf struct buf sql = BUF_INIT(SQL_MAX);
  uint64_t n = 0;
  select_text(&sql, t, among(t->name, first, 3)); /* the order of these says which came first */
  if (buf_failed(&sql))
    return err_set(err, -ENOBUFS, "table %s has too many columns", t->name);
  int r = sql_postgres(s) ? each_by_cursor(s, buf_z(&sql), fn, arg, err)
                          : each_of(sql_query(s, buf_z(&sql), ""), fn, arg, &n);
  return r && (!err || !err->code) ? err_set(err, r, "reading table %s failed", t->name) : r;
}

struct copy {
  struct store *to;
  const struct table *from_table, *to_table;
  struct digest digest;
  struct buf insert;
  struct err *err;
};

static int copy_row(const struct sql_rows *rows, void *arg)
{
  struct copy *c = arg;
  struct sql_value v[COLUMNS_MAX];
  for (size_t i = 0; i < c->to_table->n; i++) {
    v[i] = (struct sql_value){.kind = c->to_table->kinds[i]};
    if (v[i].kind == 'i')
      v[i].number = sql_int(rows, (int)i);
    else
      v[i].bytes = sql_str(rows, (int)i);
    if (v[i].kind != 'i' && !v[i].bytes.p)
      v[i].bytes.p = "";
  }
  digest_row(&c->digest, rows, c->from_table);
  int r = c->to->engine->change(c->to, buf_z(&c->insert), v, c->to_table->n, c->err);
  return r ? err_wrap(c->err, "table %s", c->to_table->name) : 0;
}

struct check {
  struct digest digest;
  const struct table *table;
};

static int check_row(const struct sql_rows *rows, void *arg)
{
  struct check *c = arg;
  digest_row(&c->digest, rows, c->table);
  return 0;
}

static int move_table(struct store *from, struct store *to, const char *name, struct store_moved *out, struct err *err)
{
  struct table here = {0}, there = {0};
  str_copyz(str_of(name), here.name, sizeof(here.name));
  int r = read_columns(from, &here, err);
  r = r ? r : match(&here, &there, to, err);
  if (r)
    return r;
  struct copy c = {to, &here, &there, {0}, BUF_INIT(SQL_MAX), err};
  insert_text(&c.insert, &there);
  r = each_row(from, &here, copy_row, &c, err);
  buf_free(&c.insert);
  struct check arrived = {.table = &there};
  r = r ? r : each_row(to, &there, check_row, &arrived, err);
  if (!r && memcmp(&c.digest, &arrived.digest, sizeof(c.digest)))
    r = err_set(err, -EILSEQ, "table %s: %llu rows were read and %llu others arrived", name,
                (unsigned long long)c.digest.rows, (unsigned long long)arrived.digest.rows);
  out->tables++;
  out->rows += c.digest.rows;
  return r;
}

/* ---- numbers that must not come again ---- */

struct counter {
  const char *table, *read, *write; /* in PostgreSQL */
};
static const struct counter counters[] = {
    {"webhook_attempt", "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM webhook_attempt_order",
     "SELECT setval('webhook_attempt_order', ?)"},
    {"webhook_fanout",
     "SELECT coalesce(pg_sequence_last_value(CAST(pg_get_serial_sequence('webhook_fanout','seq') AS regclass)),0)",
     "SELECT setval(pg_get_serial_sequence('webhook_fanout','seq'), ?)"},
};

static int move_counter(struct store *from, struct store *to, const struct counter *c, struct err *err)
{
  int64_t last = sql_postgres(from) ? sql_number(from, c->read, "")
                                    : sql_number(from, "SELECT seq FROM sqlite_sequence WHERE name=?", "t", c->table);
  if (!last)
    return 0;
  if (sql_postgres(to))
    return sql_change(to, err, c->write, "i", last);
  int r = sql_change(to, err, "DELETE FROM sqlite_sequence WHERE name=?", "t", c->table);
  return r ? r : sql_change(to, err, "INSERT INTO sqlite_sequence(name,seq) VALUES(?,?)", "ti", c->table, last);
}

/* ---- all of it ---- */

typedef VEC(char *) names;

static int read_names(struct store *s, names *out, struct err *err)
{
  struct sql_rows *rows = sql_query(s, sql_postgres(s) ? postgres_tables : sqlite_tables, "");
  for (size_t i = 0; i < ARRAY_LEN(first); i++)
    vec_push(out, xstrdup(first[i]));
  SQL_EACH_ROW(rows)
  {
    char *name = sql_dup(rows, 0);
    if (among(name, first, ARRAY_LEN(first)) || among(name, left_out, ARRAY_LEN(left_out)))
      free(name);
    else
      vec_push(out, name);
  }
  bool bad = sql_failed(rows);
  sql_done(rows);
  return bad ? err_set(err, -EIO, "the tables of the source can't be read") : 0;
}

static int move_all(struct store *from, struct store *to, struct store_moved *out, struct err *err)
{
  names list = {0};
  int r = read_names(from, &list, err);
  for (size_t i = 0; i < list.n; i++) {
    r = r ? r : move_table(from, to, list.p[i], out, err);
    free(list.p[i]);
  }
  vec_free(&list);
  for (size_t i = 0; !r && i < ARRAY_LEN(counters); i++)
    r = move_counter(from, to, &counters[i], err);
  return r;
}

int store_move(struct store *from, struct store *to, struct store_moved *out, struct err *err)
{
  *out = (struct store_moved){0};
  if (sql_number(to, "SELECT count(*) FROM team", ""))
    return err_set(err, -ENOTEMPTY, "the target has teams already; move into an empty database");
  int r = store_begin(from, err);
  if (r)
    return r;
  r = store_begin(to, err);
  if (!r)
    r = store_end(to, move_all(from, to, out, err), err);
  store_end(from, -ECANCELED, NULL); /* it was only read */
  return r;
}
