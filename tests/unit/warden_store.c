/* SPDX-License-Identifier: Apache-2.0 */
/* warden_store.c - what survives: migrations, boxes, ends and their logs, teams and templates. */
#include "store_lab.h"

#include "warden/db/catalog.h"
#include "warden/db/idempotency.h"
#include "warden/db/ref.h"
#include "warden/db/store.h"
#include "warden/db/tag_history.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

/* A database as the first release wrote it. */
static void write_first_schema(const char *file)
{
  static const char sql[] =
      "PRAGMA journal_mode=WAL;"
      "CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE team(id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT NOT NULL UNIQUE);"
      "CREATE TABLE api_key(id TEXT PRIMARY KEY, team TEXT NOT NULL REFERENCES team(id), name TEXT NOT NULL, mask TEXT "
      "NOT NULL,"
      " hash BLOB NOT NULL UNIQUE, created INTEGER NOT NULL, used INTEGER NOT NULL);"
      "CREATE TABLE template(id TEXT PRIMARY KEY, team TEXT NOT NULL REFERENCES team(id), name TEXT NOT NULL, public "
      "INTEGER NOT NULL,"
      " created INTEGER NOT NULL, updated INTEGER NOT NULL, spawned INTEGER NOT NULL, spawns INTEGER NOT NULL, "
      "UNIQUE(team, name));"
      "CREATE TABLE build(id TEXT PRIMARY KEY, template TEXT NOT NULL REFERENCES template(id), layers TEXT NOT NULL, "
      "config TEXT NOT NULL,"
      " cpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, created INTEGER NOT NULL);"
      "CREATE TABLE tag(template TEXT NOT NULL REFERENCES template(id), tag TEXT NOT NULL, build TEXT NOT NULL "
      "REFERENCES build(id),"
      " assigned INTEGER NOT NULL, PRIMARY KEY(template, tag)) WITHOUT ROWID;"
      "CREATE TABLE box(id TEXT PRIMARY KEY, team TEXT NOT NULL, template TEXT NOT NULL, alias TEXT NOT NULL, build "
      "TEXT NOT NULL,"
      " runtime TEXT NOT NULL, secret TEXT NOT NULL, config TEXT NOT NULL, init TEXT NOT NULL, flags INTEGER NOT NULL, "
      "cpus INTEGER NOT NULL,"
      " memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, slot INTEGER NOT NULL, state INTEGER NOT NULL, run "
      "INTEGER NOT NULL,"
      " started INTEGER NOT NULL, end_at INTEGER NOT NULL, pid INTEGER NOT NULL, pid_start INTEGER NOT NULL) WITHOUT "
      "ROWID;"
      "CREATE TABLE ended(id TEXT PRIMARY KEY, team TEXT NOT NULL, at INTEGER NOT NULL, cause TEXT NOT NULL) WITHOUT "
      "ROWID;"
      "CREATE INDEX ended_at ON ended(at);"
      "INSERT INTO team VALUES('t1','First','first');"
      "INSERT INTO box VALUES('ibox','t1','tpl','base','b1','rt','hush','{}','{}',1,2,1024,2048,7,2,1,111,222,333,444);"
      "PRAGMA user_version=1;";
  sqlite3 *db;
  assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
}

static int keep_box(const struct row_box *r, void *arg)
{
  struct row_box *out = arg;
  *out = *r;
  out->config = xstrdup(r->config);
  out->init = xstrdup(r->init);
  out->allow = xstrdup(r->allow);
  out->deny = xstrdup(r->deny);
  out->mounts = xstrdup(r->mounts);
  out->tokens = xstrdup(r->tokens);
  return 0;
}

static int keep_team(const struct row_team *t, void *arg)
{
  *(struct row_team *)arg = *t;
  return 0;
}

/* The version in the header of the file, as packages read it; what is in the log alone is not seen there. */
static unsigned version_in_file(const char *file)
{
  unsigned char v[4] = {0};
  cleanup_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
  assert_int_equal(pread(fd, v, sizeof(v), 60), sizeof(v));
  return (unsigned)v[0] << 24 | (unsigned)v[1] << 16 | (unsigned)v[2] << 8 | v[3];
}

static void the_first_schema_is_brought_up_to_date(void **state)
{
  if (on_postgres())
    skip();
  snprintf(path, sizeof(path), "%s/old.db", dir);
  write_first_schema(path);
  struct store *s = fresh("old");
  assert_int_equal(version_in_file(path), STORE_SCHEMA);
  struct row_box b = {0};
  struct row_team t = {0};
  store_boxes(s, keep_box, &b);
  store_teams(s, keep_team, &t);
  assert_string_equal(b.id, "ibox");
  assert_int_equal(b.init_proc.pid, 333);
  assert_int_equal(b.timeout_s, 0);
  assert_true(uuid_valid(str_of(b.execution))); /* a box that has run since before has one from now on */
  assert_string_equal(t.slug, "first");
  assert_int_equal(t.boxes_max, 0);
  assert_int_equal(t.storage_max_mb, 0);
  t.storage_max_mb = 11, t.paused_max = 12, t.snapshots_max = 13, t.disk_max_mb = 14, t.isolation = 2;
  assert_int_equal(store_team_put(s, &t, NULL), 0);
  b.timeout_s = 77;
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  assert_int_equal(store_log_put(s, "ibox", "t1", 5, STR("a line\n"), NULL), 0);
  row_box_free(&b);
  store_close(s);
  s = fresh("old");
  store_boxes(s, keep_box, &b);
  store_teams(s, keep_team, &t);
  assert_int_equal(t.storage_max_mb, 11);
  assert_int_equal(t.paused_max, 12);
  assert_int_equal(t.snapshots_max, 13);
  assert_int_equal(t.disk_max_mb, 14);
  assert_int_equal(t.isolation, 2);
  assert_int_equal(b.timeout_s, 77);
  row_box_free(&b);
  store_close(s);
}

static void a_newer_database_is_refused_with_words(void **state)
{
  snprintf(path, sizeof(path), "%s/newer.db", dir);
  sqlite3 *db;
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=999", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  struct store *s = NULL;
  struct err err = ERR_NONE;
  assert_int_equal(store_open(path, &s, &err), -ENOTSUP);
  assert_non_null(strstr(err.msg, "newer"));
}

static void an_end_is_remembered_for_its_team_only(void **state)
{
  struct store *s = fresh("ends");
  char cause[64];
  int64_t when;
  assert_int_equal(store_box_ended(s, "i1", "t1", 1000, "killed: by request", NULL), 0);
  assert_int_equal(store_cause(s, STR("i1"), STR("t1"), cause, sizeof(cause), &when), 0);
  assert_string_equal(cause, "killed: by request");
  assert_int_equal(when, 1000);
  assert_int_equal(store_cause(s, STR("i1"), STR("t2"), cause, sizeof(cause), &when), -ENOENT);
  assert_int_equal(store_cause(s, STR("i2"), STR("t1"), cause, sizeof(cause), &when), -ENOENT);
  store_forget_ended(s, 1001);
  assert_int_equal(store_cause(s, STR("i1"), STR("t1"), cause, sizeof(cause), &when), -ENOENT);
  store_close(s);
}

static void old_logs_make_room_for_new_ones(void **state)
{
  struct store *s = fresh("logs");
  char lines[1000];
  memset(lines, 'x', sizeof(lines));
  for (int i = 0; i < 10; i++) {
    char id[8];
    snprintf(id, sizeof(id), "i%d", i);
    assert_int_equal(store_log_put(s, id, "t1", i, (struct str){lines, sizeof(lines)}, NULL), 0);
  }
  store_log_trim(s, 3500);
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  assert_int_equal(store_log_get(s, STR("i6"), STR("t1"), &b), -ENOENT);
  assert_int_equal(store_log_get(s, STR("i7"), STR("t2"), &b), -ENOENT);
  assert_int_equal(store_log_get(s, STR("i7"), STR("t1"), &b), 0);
  assert_int_equal(b.n, sizeof(lines));
  store_close(s);
}

/* ---- references ---- */

static void references_are_taken_apart(void **state)
{
  static const struct {
    const char *text, *space, *alias, *tag; /* alias NULL: refused */
  } table[] = {
      {"base", "", "base", "default"},
      {" Base ", "", "base", "default"},
      {"base:v1.2", "", "base", "v1.2"},
      {"team/base", "team", "base", "default"},
      {"team/base:x", "team", "base", "x"},
      {"a_b-c", "", "a_b-c", "default"},
      {"", 0, 0, 0},
      {"/x", 0, 0, 0},
      {"x/", 0, 0, 0},
      {"x:", 0, 0, 0},
      {":x", 0, 0, 0},
      {"a b", 0, 0, 0},
      {"a/b/c", 0, 0, 0},
      {"a:b:c", 0, 0, 0},
      {"a.b", 0, 0, 0},
      {"../x", 0, 0, 0},
      {"a\tb", 0, 0, 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    cleanup_buf struct buf lowered = BUF_INIT(1024);
    struct ref r;
    struct err err = ERR_NONE;
    int code = ref_read(str_of(table[i].text), &lowered, &r, &err);
    assert_int_equal(code, table[i].alias ? 0 : -EINVAL);
    if (code) {
      assert_true(err.msg[0]);
      continue;
    }
    assert_true(str_is(r.alias, table[i].alias) && str_is(r.tag, table[i].tag) &&
                str_eq(r.space, str_of(table[i].space)));
  }
}

/* ---- the catalog ---- */

struct shop {
  struct store *store;
  struct catalog *catalog;
  char team[40], other[40];
};

static void add_build(struct shop *s, const char *template_id, const char *id)
{
  struct row_build b = {.layers = (char *)"/layer\n",
                        .config = (char *)"{}",
                        .cpus = 2,
                        .memory_mb = 512,
                        .disk_mb = 1024,
                        .created_us = 5};
  snprintf(b.id, sizeof(b.id), "%s", id);
  snprintf(b.template_id, sizeof(b.template_id), "%s", template_id);
  assert_int_equal(store_build_put(s->store, &b, NULL), 0);
}

static void add_template(struct shop *s, const char *id, const char *team, const char *name, bool public)
{
  struct row_template t = {.public = public, .created_us = 1};
  snprintf(t.id, sizeof(t.id), "%s", id);
  snprintf(t.team, sizeof(t.team), "%s", team);
  snprintf(t.name, sizeof(t.name), "%s", name);
  assert_int_equal(store_template_put(s->store, &t, NULL), 0);
}

#define BUILD_1 "11111111-1111-4111-8111-111111111111"
#define BUILD_2 "22222222-2222-4222-8222-222222222222"

static void open_shop(struct shop *s, const char *name)
{
  char key[KEY_TEXT];
  struct err err = ERR_NONE;
  s->store = fresh(name);
  if (catalog_open(s->store, &s->catalog, key, &err))
    fail_msg("%s", err.msg);
  assert_int_equal(strlen(key), 44);
  memcpy(s->team, catalog_first_team(s->catalog)->id, sizeof(s->team));
  struct row_team other = {.name = "The Others!"};
  assert_int_equal(catalog_team_put(s->catalog, &other, &err), 0);
  assert_string_equal(other.slug, "the-others");
  memcpy(s->other, other.id, sizeof(s->other));
  add_template(s, "tpl1", s->team, "mine", false);
  add_template(s, "tpl2", s->other, "theirs", true);
  add_build(s, "tpl1", BUILD_1);
  add_build(s, "tpl1", BUILD_2);
  store_tag_put(s->store, "tpl1", "default", BUILD_1, 9, NULL);
  catalog_close(s->catalog);
  assert_int_equal(catalog_open(s->store, &s->catalog, key, &err), 0);
  assert_string_equal(key, "");
}

static void close_shop(struct shop *s)
{
  catalog_close(s->catalog);
  store_close(s->store);
}

static int find(struct shop *s, const char *team, const char *ref, struct build **b)
{
  struct template *t;
  struct err err = ERR_NONE;
  return catalog_find(s->catalog, str_of(team), str_of(ref), &t, b, &err);
}

static void a_removed_build_takes_its_tags_along(void **state)
{
  struct shop s;
  struct build *b;
  struct err err = ERR_NONE;
  open_shop(&s, "removed");
  assert_int_equal(catalog_tag(s.catalog, str_of(s.team), STR("mine:" BUILD_2), STR("v2"), &b, &err), 0);
  assert_int_equal(catalog_build_remove(s.catalog, b, &err), 0);
  assert_int_equal(find(&s, s.team, "mine:v2", &b), -ESTALE);
  assert_int_equal(find(&s, s.team, "mine", &b), 0);
  close_shop(&s);
}

static void tags_move_and_go(void **state)
{
  struct shop s;
  struct build *b;
  struct err err = ERR_NONE;
  open_shop(&s, "tags");
  assert_int_equal(find(&s, s.team, "mine", &b), 0);
  assert_string_equal(b->row.id, BUILD_1);
  assert_int_equal(find(&s, s.team, "default/mine:" BUILD_2, &b), 0);
  assert_int_equal(find(&s, s.team, "mine:v2", &b), -ESTALE);
  assert_int_equal(catalog_tag(s.catalog, str_of(s.team), STR("mine:" BUILD_2), STR("v2,Stable"), &b, &err), 0);
  assert_int_equal(find(&s, s.team, "mine:stable", &b), 0);
  assert_string_equal(b->row.id, BUILD_2);
  assert_int_equal(catalog_tag(s.catalog, str_of(s.team), STR("mine:v2"), STR("default"), &b, &err), 0);
  assert_int_equal(find(&s, s.team, "tpl1", &b), 0);
  assert_string_equal(b->row.id, BUILD_2);
  assert_int_equal(catalog_tag(s.catalog, str_of(s.team), STR("mine"), STR("bad tag"), &b, &err), -EINVAL);
  assert_int_equal(catalog_tag(s.catalog, str_of(s.team), STR("mine"), STR(BUILD_1), &b, &err), -EINVAL);
  assert_int_equal(catalog_untag(s.catalog, str_of(s.team), STR("mine"), STR("default"), &err), -EINVAL);
  assert_int_equal(catalog_untag(s.catalog, str_of(s.team), STR("mine:v2"), STR("stable"), &err), -EINVAL);
  assert_int_equal(catalog_untag(s.catalog, str_of(s.team), STR("mine"), STR("stable"), &err), 0);
  assert_int_equal(find(&s, s.team, "mine:stable", &b), -ESTALE);
  char tag[16];
  int r = 0, tags = 0;
  for (; !r && tags < 2000; tags++) {
    snprintf(tag, sizeof(tag), "t%d", tags);
    r = catalog_tag(s.catalog, str_of(s.team), STR("mine"), str_of(tag), &b, &err);
  }
  assert_int_equal(r, -EINVAL);
  assert_int_equal(tags, 1000 - 2 + 1); /* beside default and v2; the last one was refused */
  assert_int_equal(catalog_tag(s.catalog, str_of(s.team), STR("mine:v2"), STR("t1"), &b, &err), 0); /* moves */
  close_shop(&s);
}

static void a_team_changes_only_what_is_its_own(void **state)
{
  struct shop s;
  struct build *b;
  struct template *t;
  struct err err = ERR_NONE;
  open_shop(&s, "own");
  assert_int_equal(find(&s, s.other, "mine", &b), -ENOENT);
  assert_int_equal(find(&s, s.other, "tpl1", &b), -ENOENT);
  assert_int_equal(find(&s, s.other, "default/mine", &b), -ENOENT);
  assert_int_equal(catalog_template(s.catalog, str_of(s.team), STR("the-others/theirs"), &t, NULL, &err), 0);
  assert_int_equal(catalog_publish(s.catalog, str_of(s.team), t, false, &err), -EPERM);
  assert_int_equal(catalog_delete(s.catalog, str_of(s.team), t, &err), -EPERM);
  assert_int_equal(catalog_template(s.catalog, str_of(s.team), STR("mine"), &t, NULL, &err), 0);
  assert_int_equal(catalog_publish(s.catalog, str_of(s.team), t, true, &err), 0);
  assert_int_equal(find(&s, s.other, "default/mine", &b), 0);
  assert_int_equal(catalog_delete(s.catalog, str_of(s.team), t, &err), 0);
  assert_int_equal(find(&s, s.team, "mine", &b), -ENOENT);
  assert_null(catalog_build(s.catalog, STR(BUILD_1)));
  close_shop(&s);
}

static void access_tokens_and_keys_are_told_apart(void **state)
{
  char text[KEY_TEXT], as_key[KEY_TEXT], mask[KEY_MASK_SIZE];
  uint8_t hash[SHA256_LEN], again[SHA256_LEN];
  access_token_make(text, hash, mask);
  assert_int_equal(access_token_hash(str_of(text), again), 0);
  assert_memory_equal(hash, again, sizeof(hash));
  assert_int_equal(key_hash(str_of(text), again), -EINVAL);
  snprintf(as_key, sizeof(as_key), "%s", text + 3);
  assert_int_equal(key_hash(str_of(as_key), again), 0); /* well formed, but another hash */
  assert_memory_not_equal(hash, again, sizeof(hash));
  static const char *const bad[] = {"", "sk_e2b_", "sk_e2b_00", "sk_e2b_zz00000000000000000000000000000000000000"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(access_token_hash(str_of(bad[i]), again), -EINVAL);
}

static size_t opens(struct shop *s, uint8_t hashes[][SHA256_LEN], size_t n)
{
  size_t open = 0;
  for (size_t i = 0; i < n; i++)
    open += catalog_team_by_key(s->catalog, str_make(hashes[i], SHA256_LEN)) != NULL;
  return open;
}

static void a_token_has_a_few_keys_which_go_with_it(void **state)
{
  struct shop s;
  const struct row_key *token, *k;
  struct err err = ERR_NONE;
  uint8_t hashes[20][SHA256_LEN], hash[SHA256_LEN];
  char text[KEY_TEXT], mask[64], id[UUID_SIZE];
  open_shop(&s, "token_keys");
  access_token_make(text, hash, mask);
  assert_int_equal(
      catalog_key_add(s.catalog, str_of(s.other), STR("t"), str_make(hash, sizeof(hash)), str_of(mask), &token, &err),
      0);
  size_t before = catalog_team_keys(s.catalog, str_of(s.other));
  for (size_t i = 0; i < ARRAY_LEN(hashes); i++) {
    key_make(text, hashes[i], mask);
    assert_int_equal(
        catalog_token_key_add(s.catalog, token, 3, str_make(hashes[i], SHA256_LEN), str_of(mask), &k, &err), 0);
    assert_string_equal(k->team, s.other);
    catalog_key_used(s.catalog, str_make(hashes[0], SHA256_LEN), INT64_MAX); /* one is in use all the time */
  }
  assert_int_equal(catalog_team_keys(s.catalog, str_of(s.other)), before + 3);
  assert_int_equal(opens(&s, hashes, ARRAY_LEN(hashes)), 3);
  assert_int_equal(opens(&s, hashes, 1), 1);
  assert_int_equal(opens(&s, hashes + 19, 1), 1);
  memcpy(id, token->id, sizeof(id));
  assert_int_equal(catalog_key_delete(s.catalog, str_of(s.other), str_of(id), &err), 0);
  assert_int_equal(opens(&s, hashes, ARRAY_LEN(hashes)), 0);
  assert_int_equal(catalog_team_keys(s.catalog, str_of(s.other)), before - 1);
  close_shop(&s);
}

static void keys_open_their_team_until_they_are_deleted(void **state)
{
  struct shop s;
  const struct row_key *k;
  struct err err = ERR_NONE;
  uint8_t hash[SHA256_LEN];
  char text[KEY_TEXT], mask[64];
  open_shop(&s, "keys");
  key_make(text, hash, mask);
  assert_int_equal(
      catalog_key_add(s.catalog, str_of(s.other), STR("k"), str_make(hash, sizeof(hash)), str_of(mask), &k, &err), 0);
  uint8_t again[SHA256_LEN];
  assert_int_equal(key_hash(str_of(text), again), 0);
  const struct row_team *t = catalog_team_by_key(s.catalog, str_make(again, sizeof(again)));
  assert_non_null(t);
  assert_string_equal(t->id, s.other);
  assert_int_equal(catalog_key_delete(s.catalog, str_of(s.team), str_of(k->id), &err), -ENOENT);
  char id[40];
  memcpy(id, k->id, sizeof(id));
  assert_int_equal(catalog_key_delete(s.catalog, str_of(s.other), str_of(id), &err), 0);
  assert_null(catalog_team_by_key(s.catalog, str_make(again, sizeof(again))));
  static const char *const bad[] = {"", "e2b_", "e2b_x", "e2b_123", "abc", "E2B_00"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(key_hash(str_of(bad[i]), again), -EINVAL);
  close_shop(&s);
}

static int keep_job(const struct row_job *r, void *arg)
{
  *(struct row_job *)arg = *r;
  return 0;
}

static void a_job_is_kept_with_all_that_was_asked_for(void **state)
{
  struct store *s = fresh("job");
  struct row_job j = {.id = "b1", .template_id = "t", .team = "t1", .tags = "a,b", .state = 1, .step = "base"}, got;
  j.cpus = 2, j.memory_mb = 512, j.free_disk_mb = 20480, j.created_us = 3, j.started_us = 4, j.finished_us = 5;
  assert_int_equal(store_job_put(s, &j, NULL), 0);
  assert_int_equal(store_job_recipe_put(s, "b1", STR("a\0b"), NULL), 0);
  store_close(s);
  s = fresh("job");
  cleanup_buf struct buf recipe = BUF_INIT(64);
  assert_int_equal(store_job_put(s, &j, NULL), 0);
  assert_int_equal(store_job_recipe(s, "b1", &recipe), 0);
  assert_true(str_eq(buf_str(&recipe), STR("a\0b")));
  j.state = 2;
  assert_int_equal(store_job_put(s, &j, NULL), 0);
  assert_int_equal(store_job_recipe(s, "b1", &recipe), -ENOENT); /* it is used once */
  assert_int_equal(store_jobs(s, keep_job, &got), 0);
  assert_string_equal(got.id, "b1");
  assert_string_equal(got.step, "base");
  assert_int_equal(got.cpus, 2);
  assert_int_equal(got.memory_mb, 512);
  assert_int_equal(got.free_disk_mb, 20480);
  assert_int_equal(got.created_us, 3);
  assert_int_equal(got.finished_us, 5);
  store_close(s);
}

static void an_idempotency_key_is_a_teams_and_survives(void **state)
{
  struct store *s = fresh("idempotency");
  struct row_idempotency k = {.team = "t1", .key = "k-1", .box = "ibox", .created_us = 5, .fingerprint = {7}}, got;
  assert_int_equal(idempotency_get(s, STR("t1"), STR("k-1"), &got), -ENOENT);
  assert_int_equal(idempotency_reserve(s, &k, NULL), 0);
  store_close(s);
  s = fresh("idempotency");
  assert_int_equal(idempotency_get(s, STR("t2"), STR("k-1"), &got), -ENOENT);
  assert_int_equal(idempotency_get(s, STR("t1"), STR("k-1"), &got), 0);
  assert_false(got.answered);
  assert_string_equal(got.box, "ibox");
  assert_memory_equal(got.fingerprint, k.fingerprint, sizeof(k.fingerprint));
  assert_int_equal(idempotency_answer(s, &k, -ENOENT, "no such template", NULL), 0);
  assert_int_equal(idempotency_get(s, STR("t1"), STR("k-1"), &got), 0);
  assert_true(got.answered);
  assert_int_equal(got.status, -ENOENT);
  assert_string_equal(got.message, "no such template");
  assert_int_equal(got.created_us, 5);
  struct row_idempotency later = k;
  str_copyz(STR("iother"), later.box, sizeof(later.box));
  assert_int_equal(idempotency_delete(s, &later, NULL), 0); /* the key's, but another reservation's */
  assert_int_equal(idempotency_count(s, STR("t1")), 1);
  assert_int_equal(idempotency_count(s, STR("t2")), 0);
  idempotency_forget(s, 4);
  assert_int_equal(idempotency_count(s, STR("t1")), 1);
  idempotency_forget(s, 5);
  assert_int_equal(idempotency_count(s, STR("t1")), 0);
  store_close(s);
}

static void volumes_of_a_box_go_with_it(void **state)
{
  struct store *s = fresh("mounts");
  struct row_box b = {.id = "ibox", .team = "t1", .template_id = "tpl"}, have = {0};
  b.config = b.init = b.allow = b.deny = "";
  b.mounts = "id\tname\t/a b\n";
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  assert_int_equal(store_box_put(s, &b, NULL), 0); /* a change of its state */
  assert_int_equal(store_boxes(s, keep_box, &have), 0);
  assert_string_equal(have.mounts, b.mounts);
  row_box_free(&have);
  assert_int_equal(store_box_ended(s, "ibox", "t1", 9, "killed", NULL), 0);
  b.mounts = NULL;
  assert_int_equal(store_box_put(s, &b, NULL), 0); /* of the same id, without any */
  assert_int_equal(store_boxes(s, keep_box, &have), 0);
  assert_string_equal(have.mounts, "");
  row_box_free(&have);
  store_close(s);
}

static void a_new_box_and_the_answer_of_its_key_are_one_write(void **state)
{
  struct store *s = fresh("answer");
  struct row_idempotency k = {.team = "t1", .key = "k", .box = "ibox", .created_us = 5}, got;
  struct row_box b = {.id = "ibox", .team = "t1", .template_id = "tpl", .alias = "base", .flags = 3}, have = {0};
  b.config = b.init = b.allow = b.deny = "";
  assert_int_equal(idempotency_reserve(s, &k, NULL), 0);
  assert_int_equal(store_begin(s, NULL), 0);
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  assert_int_equal(idempotency_created(s, &b, "k", NULL), 0);
  assert_int_equal(store_end(s, -EIO, NULL), -EIO);
  assert_int_equal(idempotency_get(s, STR("t1"), STR("k"), &got), 0);
  assert_false(got.answered); /* neither was written */
  assert_int_equal(store_begin(s, NULL), 0);
  assert_int_equal(store_box_put(s, &b, NULL), 0);
  assert_int_equal(idempotency_created(s, &b, "k", NULL), 0);
  assert_int_equal(store_end(s, 0, NULL), 0);
  assert_int_equal(idempotency_get(s, STR("t1"), STR("k"), &got), 0);
  assert_true(got.answered && !got.status);
  assert_string_equal(got.template_id, "tpl");
  assert_string_equal(got.alias, "base");
  assert_int_equal(got.flags, 3);
  assert_int_equal(store_boxes(s, keep_box, &have), 0);
  assert_string_equal(have.id, "ibox");
  row_box_free(&have);
  assert_int_equal(store_box_ended(s, "ibox", "t1", 9, "killed", NULL), 0); /* the answer outlives the box */
  assert_int_equal(idempotency_get(s, STR("t1"), STR("k"), &got), 0);
  assert_true(got.answered);
  store_close(s);
}

static void note_event(const struct tag_event *e, void *arg)
{
  struct buf *b = arg;
  assert_true(uuid_valid(e->id));
  buf_addf(b, STR_FMT ":" STR_FMT " ", STR_ARG(e->tag), STR_ARG(e->build));
}

static void the_newest_assignments_of_a_tag_are_kept(void **state)
{
  struct store *s = fresh("tags");
  cleanup_buf struct buf seen = BUF_INIT(1 << 16);
  for (int i = 0; i < TAG_HISTORY_MAX + 20; i++)
    assert_int_equal(tag_history_add(s, "t", "moved", i ? "b" : "first", 1000 + i, NULL), 0);
  assert_int_equal(tag_history_add(s, "t", "quiet", "b", 1, NULL), 0);
  assert_int_equal(tag_history_add(s, "other", "quiet", "c", 1, NULL), 0);
  tag_history_each(s, "t", note_event, &seen);
  assert_int_equal(seen.n, TAG_HISTORY_MAX * strlen("moved:b ") + strlen("quiet:b "));
  assert_int_equal(store_tag_delete(s, "t", "moved", NULL), 0);
  buf_clear(&seen);
  tag_history_each(s, "t", note_event, &seen);
  assert_string_equal(buf_z(&seen), "quiet:b ");
  assert_int_equal(store_build_delete(s, "b", NULL), 0);
  buf_clear(&seen);
  tag_history_each(s, "t", note_event, &seen);
  assert_int_equal(seen.n, 0);
  store_close(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_schema_is_brought_up_to_date),
      cmocka_unit_test(a_newer_database_is_refused_with_words),
      cmocka_unit_test(an_end_is_remembered_for_its_team_only),
      cmocka_unit_test(old_logs_make_room_for_new_ones),
      cmocka_unit_test(a_job_is_kept_with_all_that_was_asked_for),
      cmocka_unit_test(an_idempotency_key_is_a_teams_and_survives),
      cmocka_unit_test(volumes_of_a_box_go_with_it),
      cmocka_unit_test(a_new_box_and_the_answer_of_its_key_are_one_write),
      cmocka_unit_test(references_are_taken_apart),
      cmocka_unit_test(tags_move_and_go),
      cmocka_unit_test(a_removed_build_takes_its_tags_along),
      cmocka_unit_test(a_team_changes_only_what_is_its_own),
      cmocka_unit_test(the_newest_assignments_of_a_tag_are_kept),
      cmocka_unit_test(access_tokens_and_keys_are_told_apart),
      cmocka_unit_test(keys_open_their_team_until_they_are_deleted),
      cmocka_unit_test(a_token_has_a_few_keys_which_go_with_it),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
