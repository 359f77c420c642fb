/* SPDX-License-Identifier: Apache-2.0 */
/* store_move.c - rows go from SQLite to PostgreSQL and back, all or none. Skipped without a server: the suite
 * store_on_postgres runs it (scripts/with-postgres). */
#include "store_lab.h"

#include "store/store_move.h"
#include "warden/db/event.h"
#include "warden/db/idempotency.h"
#include "warden/db/secret_store.h"
#include "warden/db/volume_store.h"
#include "warden/db/webhook_store.h"

#define TEAM "11111111-1111-4111-8111-111111111111"
#define HOOK "22222222-2222-4222-8222-222222222222"

static struct store *local(const char *name)
{
  struct store *s = NULL;
  struct err err = ERR_NONE;
  snprintf(path, sizeof(path), "%s/%s.db", dir, name);
  if (store_open(path, &s, &err))
    fail_msg("%s", err.msg);
  return s;
}

static void add_team(struct store *s, const char *id, const char *slug)
{
  struct row_team t = {.boxes_max = 7};
  snprintf(t.id, sizeof(t.id), "%s", id);
  snprintf(t.name, sizeof(t.name), "Zürich %s", slug);
  snprintf(t.slug, sizeof(t.slug), "%s", slug);
  assert_int_equal(store_team_put(s, &t, NULL), 0);
}

static void add_template(struct store *s)
{
  struct row_template t = {.id = "tpl", .team = TEAM, .name = "base", .spawns = 3};
  struct row_build b = {.id = "build",
                        .template_id = "tpl",
                        .layers = (char *)"/a\n/b",
                        .config = (char *)"{}",
                        .mounts = (char *)"lines"};
  assert_int_equal(store_template_put(s, &t, NULL), 0);
  assert_int_equal(store_build_put(s, &b, NULL), 0);
  assert_int_equal(store_tag_put(s, "tpl", "default", "build", 5, NULL), 0);
}

static void add_box(struct store *s)
{
  struct row_box b = {.id = "ibox",
                      .team = TEAM,
                      .template_id = "tpl",
                      .config = (char *)"{\"a\":\"\\u0000\"}",
                      .init = (char *)"{}",
                      .end_us = INT64_MAX,
                      .tokens = (char *)"name\taudience",
                      .run = 9};
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  assert_int_equal(store_box_ended(s, "iold", TEAM, 77, "out of memory \xff", NULL), 0);
  assert_int_equal(store_log_put(s, "iold", TEAM, 77, (struct str){"a\0\xfe", 3}, NULL), 0);
}

static int keep_fan(const struct row_fanout *f, void *arg)
{
  *(struct row_fanout *)arg = *f;
  ((struct row_fanout *)arg)->targets = (char *)HOOK;
  return 0;
}

static int keep_attempt(const struct row_attempt *a, void *arg)
{
  *(struct row_attempt *)arg = *a;
  return 0;
}

/* The newest attempt that waits. */
static struct row_attempt deliver(struct store *s, const char *id)
{
  struct event e = {.at_us = 1000, .team = TEAM, .sandbox = "ibox", .type = EVENT_CREATED, .data = "{}"};
  struct row_fanout f = {0};
  struct row_attempt a = {0};
  size_t made;
  snprintf(e.id, sizeof(e.id), "%s", id);
  assert_int_equal(event_record(s, &e, NULL), 0);
  store_fanouts(s, 0, keep_fan, &f);
  assert_int_equal(store_fan_out(s, &f, &made, NULL), 0);
  assert_int_equal(made, 1);
  store_attempts_open(s, 0, keep_attempt, &a);
  return a;
}

static void add_webhook(struct store *s)
{
  struct row_webhook h = {.id = HOOK,
                          .team = TEAM,
                          .name = (char *)"n",
                          .url = (char *)"http://h/",
                          .origin = (char *)"http://h:80",
                          .events = (char *)"sandbox.lifecycle.created",
                          .secret = BUF_INIT(100),
                          .enabled = true,
                          .created_us = 1};
  struct attempt_end end = {.class = DELIVERY_OK,
                            .http_status = 200,
                            .headers = STR("{}"),
                            .body = (struct str){"\xff\0x", 3},
                            .message = STR("")};
  buf_add(&h.secret, "a\0b", 3);
  assert_int_equal(store_webhook_put(s, &h, NULL), 0);
  buf_free(&h.secret);
  struct row_attempt a = deliver(s, "event1");
  assert_int_equal(store_attempt_end(s, a.seq, &end, NULL, NULL), 0);
}

static void add_job(struct store *s)
{
  struct row_job j = {.id = "job", .template_id = "tpl", .team = TEAM, .tags = (char *)"a,b", .state = 1};
  assert_int_equal(store_job_put(s, &j, NULL), 0);
  assert_int_equal(store_job_recipe_put(s, "job", (struct str){"\0\1\2", 3}, NULL), 0);
}

static void fill(struct store *s)
{
  add_team(s, TEAM, "zuerich");
  add_team(s, "00000000-1111-4111-8111-111111111111", "second");
  add_template(s);
  add_box(s);
  add_webhook(s);
  add_job(s);
  struct row_volume v = {.id = "vol", .team = TEAM, .name = "files", .state = VOLUME_READY, .created_us = 4};
  assert_int_equal(store_volume_put(s, &v, NULL), 0);
  assert_int_equal(store_meta_put(s, "secret", (struct str){"\0\xff", 2}, NULL), 0);
}

static int keep_first_team(const struct row_team *t, void *arg)
{
  *(struct row_team *)arg = *t;
  return 1;
}

static void rows_go_to_postgres_and_back(void **state)
{
  if (!on_postgres())
    skip();
  struct store *a = local("a"), *b = fresh("moved"), *c = local("c");
  struct store_moved there = {0}, back = {0};
  struct err err = ERR_NONE;
  fill(a);
  if (store_move(a, b, &there, &err) || store_move(b, c, &back, &err))
    fail_msg("%s", err.msg);
  assert_true(there.rows > 15);
  assert_int_equal(there.rows, back.rows);
  assert_int_equal(there.tables, back.tables);
  struct store *all[] = {a, b, c};
  for (size_t i = 0; i < ARRAY_LEN(all); i++) {
    struct row_team t = {0};
    uint64_t rows, bytes, bytes_of_first;
    cleanup_buf struct buf lines = BUF_INIT(100), recipe = BUF_INIT(100);
    store_teams(all[i], keep_first_team, &t);
    assert_string_equal(t.slug, "zuerich"); /* the first one stays the first */
    assert_int_equal(t.boxes_max, 7);
    assert_int_equal(store_log_get(all[i], STR("iold"), STR_NONE, &lines), 0);
    assert_memory_equal(lines.p, "a\0\xfe", 3);
    assert_int_equal(store_job_recipe(all[i], "job", &recipe), 0);
    assert_int_equal(recipe.n, 3);
    store_deliveries_usage(a, TEAM, &rows, &bytes_of_first);
    store_deliveries_usage(all[i], TEAM, &rows, &bytes);
    assert_int_equal(bytes, bytes_of_first);
  }
  for (size_t i = 0; i < ARRAY_LEN(all); i++) {
    assert_int_equal(deliver(all[i], "event2").seq, 2); /* numbers go on behind those that there were */
    store_close(all[i]);
  }
}

static void a_target_with_teams_is_refused(void **state)
{
  if (!on_postgres())
    skip();
  struct store *a = local("full"), *b = fresh("taken");
  struct store_moved moved;
  struct err err = ERR_NONE;
  fill(a);
  add_team(b, TEAM, "there");
  assert_int_equal(store_move(a, b, &moved, &err), -ENOTEMPTY);
  store_close(a);
  store_close(b);
}

static void a_move_that_fails_leaves_nothing(void **state)
{
  if (!on_postgres())
    skip();
  struct store *a = local("bad"), *b = fresh("nothing");
  struct store_moved moved;
  struct err err = ERR_NONE;
  fill(a);
  assert_int_equal(sql_change(a, &err, "UPDATE box SET config=? WHERE id='ibox'", "s", STR("\xff")), 0);
  assert_int_equal(store_move(a, b, &moved, &err), -EIO);
  assert_non_null(strstr(err.msg, "table box"));
  assert_int_equal(sql_number(b, "SELECT count(*) FROM team", ""), 0);
  store_close(a);
  store_close(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_go_to_postgres_and_back),
      cmocka_unit_test(a_target_with_teams_is_refused),
      cmocka_unit_test(a_move_that_fails_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
