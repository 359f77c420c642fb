/* SPDX-License-Identifier: Apache-2.0 */
/* store_postgres.c - the engine on PostgreSQL: texts of statements, connections that break, migrations at once. What
 * needs a server is skipped without one: the suite store_on_postgres runs it (scripts/with-postgres). */
#include "store_lab.h"

#include "store/postgres_connect.h"
#include "store/postgres_text.h"
#include "warden/db/event.h"
#include <pthread.h>
#include <sqlite3.h>

static void says(const char *sql, const char *want)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  postgres_text(sql, &b);
  assert_string_equal(buf_z(&b), want);
}

static void statements_are_said_as_postgres_has_them(void **state)
{
  says("SELECT a FROM t WHERE b=? AND c<?", "SELECT a FROM t WHERE b=$1 AND c<$2");
  says("SELECT ?2, ?1, ?10", "SELECT $2, $1, $10");
  says("SELECT '?', ? FROM t", "SELECT '?', $1 FROM t");
  says("SELECT a FROM t INDEXED BY t_a WHERE +b=? AND (?='' OR +c=?)",
       "SELECT a FROM t WHERE b=$1 AND ($2='' OR c=$3)");
  says("SELECT a+1, b+c FROM t", "SELECT a+1, b+c FROM t");
  says("SELECT x FROM a CROSS JOIN b ON a.i=b.i", "SELECT x FROM a JOIN b ON a.i=b.i");
}

static void a_url_is_told_from_a_path(void **state)
{
  assert_true(postgres_url("postgres://u@h/d"));
  assert_true(postgres_url("postgresql://h"));
  assert_false(postgres_url("/var/lib/cloche/cloche.db"));
  assert_false(postgres_url("postgres:/h"));
}

static void an_error_never_holds_the_password(void **state)
{
  static const char *const urls[] = {"postgres://me:hush@/d?host=/nonexistent", "postgres://me:hush@[broken/d",
                                     "postgres://me:hush@/d?nosuch=1"};
  for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
    struct store *s = NULL;
    struct err err = ERR_NONE;
    assert_true(store_open_postgres(urls[i], &s, &err) < 0);
    assert_null(s);
    assert_true(err.msg[0]);
    assert_null(strstr(err.msg, "hush"));
  }
}

/* Another connection ends this one's at the server, as a restart of it does. */
static void cut(struct store *s, const char *name)
{
  struct store *other = fresh(name);
  int64_t pid = sql_number(s, "SELECT pg_backend_pid()", "");
  assert_true(pid > 0);
  assert_int_equal(
      sql_number(other, "SELECT CAST(pg_terminate_backend(CAST(? AS INTEGER), 5000) AS INTEGER)", "i", pid), 1);
  store_close(other);
}

static void a_connection_that_broke_is_made_again(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("broke");
  struct err err = ERR_NONE;
  assert_int_equal(store_meta_put(s, "name", STR("one"), &err), 0);
  cut(s, "broke");
  assert_int_equal(store_meta_put(s, "name", STR("two"), &err), 0);
  cleanup_buf struct buf b = BUF_INIT(100);
  assert_int_equal(store_meta_get(s, "name", &b), 0);
  assert_string_equal(buf_z(&b), "two");
  store_close(s);
}

static void a_transaction_that_lost_its_connection_changes_nothing(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("halves");
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(100);
  assert_int_equal(store_begin(s, &err), 0);
  assert_int_equal(store_meta_put(s, "first", STR("half"), &err), 0);
  cut(s, "halves");
  assert_int_equal(store_meta_put(s, "second", STR("half"), &err), -ENOTCONN);
  assert_true(store_end(s, 0, &err) < 0); /* although whoever asks forgot that a part failed */
  assert_int_equal(store_meta_get(s, "first", &b), -ENOENT);
  assert_int_equal(store_meta_get(s, "second", &b), -ENOENT);
  store_close(s);
}

static void a_failed_part_fails_the_whole(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = fresh("part");
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(100);
  assert_int_equal(store_begin(s, &err), 0);
  assert_int_equal(store_meta_put(s, "first", STR("half"), &err), 0);
  assert_int_equal(sql_run(s, "INSERT INTO meta VALUES('first', 'again')", &err), -EIO);
  assert_int_equal(store_end(s, 0, &err), -EIO);
  assert_int_equal(store_meta_get(s, "first", &b), -ENOENT);
  store_close(s);
}

static void *open_it(void *url)
{
  struct store *s = NULL;
  struct err err = ERR_NONE;
  int r = store_open_postgres(url, &s, &err);
  if (r)
    fprintf(stderr, "%s\n", err.msg);
  store_close(s);
  return (void *)(intptr_t)r;
}

static void nodes_that_start_at_once_make_the_tables_once(void **state)
{
  if (!on_postgres())
    skip();
  struct store *s = NULL;
  struct err err = ERR_NONE;
  pthread_t threads[6];
  cleanup_free char *url = postgres_schema_url("once");
  assert_int_equal(store_open_postgres(getenv("STORE_URL"), &s, &err), 0);
  cleanup_free char *sql = xasprintf("CREATE SCHEMA unit_%d_once", (int)getpid());
  assert_int_equal(sql_run(s, sql, &err), 0);
  for (size_t i = 0; i < ARRAY_LEN(threads); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, open_it, url), 0);
  for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
    void *r;
    pthread_join(threads[i], &r);
    assert_null(r);
  }
  store_close(s);
}

/* Two nodes record events of one team: every number is there once, and in the order of commits. */
static void *record_many(void *name)
{
  struct store *s = fresh(name);
  struct err err = ERR_NONE;
  int64_t bad = 0;
  for (int i = 0; i < 50; i++) {
    struct event e = {.at_us = 1, .team = "team", .sandbox = "box", .type = EVENT_CREATED, .data = ""};
    uuid4(e.id);
    int r = store_begin(s, &err);
    r = r ? r : event_record(s, &e, &err);
    bad += store_end(s, r, &err) != 0;
  }
  store_close(s);
  return (void *)(intptr_t)bad;
}

static void two_writers_number_events_without_a_clash(void **state)
{
  if (!on_postgres())
    skip();
  static char name[] = "writers";
  struct store *s = fresh(name);
  pthread_t threads[2];
  void *bad;
  for (size_t i = 0; i < ARRAY_LEN(threads); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, record_many, name), 0);
  for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
    pthread_join(threads[i], &bad);
    assert_null(bad);
  }
  assert_int_equal(sql_number(s, "SELECT count(DISTINCT seq) FROM event", ""), 100);
  assert_int_equal(sql_number(s, "SELECT max(place) FROM event", ""), 100);
  store_close(s);
}

/* Lines of table.column, in order. */
static void columns_of(struct store *s, const char *sql, struct buf *out)
{
  struct sql_rows *rows = sql_query(s, sql, "");
  assert_non_null(rows);
  SQL_EACH_ROW(rows)
  {
    buf_adds(out, sql_str(rows, 0));
    buf_addc(out, '\n');
  }
  sql_done(rows);
}

static void both_engines_have_the_same_tables_and_columns(void **state)
{
  if (!on_postgres())
    skip();
  struct store *there = fresh("columns"), *here = NULL;
  struct err err = ERR_NONE;
  cleanup_buf struct buf a = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);
  snprintf(path, sizeof(path), "%s/columns.db", dir);
  assert_int_equal(store_open(path, &here, &err), 0);
  columns_of(here,
             "SELECT m.name||'.'||c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type='table' "
             "AND m.name NOT LIKE 'sqlite_%' ORDER BY 1",
             &a);
  columns_of(there,
             "SELECT (table_name||'.'||column_name) COLLATE \"C\" FROM information_schema.columns WHERE "
             "table_schema=current_schema() AND table_name NOT IN ('cloche_schema', 'node') AND column_name<>'rowid' "
             "ORDER BY 1",
             &b);
  assert_string_equal(buf_z(&a), buf_z(&b));
  store_close(here);
  store_close(there);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statements_are_said_as_postgres_has_them),
      cmocka_unit_test(a_url_is_told_from_a_path),
      cmocka_unit_test(an_error_never_holds_the_password),
      cmocka_unit_test(a_connection_that_broke_is_made_again),
      cmocka_unit_test(a_transaction_that_lost_its_connection_changes_nothing),
      cmocka_unit_test(a_failed_part_fails_the_whole),
      cmocka_unit_test(nodes_that_start_at_once_make_the_tables_once),
      cmocka_unit_test(two_writers_number_events_without_a_clash),
      cmocka_unit_test(both_engines_have_the_same_tables_and_columns),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
